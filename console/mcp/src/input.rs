//! The arguments of tools: their schema, and the words of a command that they stand for.
//!
//! An argument that is an option of the command has its kind of value, so that this is declared once.

use serde_json::{Map, Value, json};

use super::error::ToolError;
use handlescope_session::grammar::value::{COUNTS, MAYBE_NUMBER, NUMBER, Offers, SIZES, TIMES};
use handlescope_session::grammar::{OptionSpec, Quotes, Token};
use handlescope_session::suggest;

/// An argument of a tool.
pub struct ToolInput {
    pub name: &'static str,
    pub is_required: bool,
    /// The option of the tool's kind of `.dump` that it stands for.
    pub option: Option<&'static str>,
    /// The option over a dataset, if it has another name there.
    over_dataset: Option<&'static str>,
    /// Shape of the value, unless it is that of the option.
    pub shape: Option<fn() -> InputShape>,
    pub about: &'static str,
}

/// The shape of an argument's value.
pub enum InputShape {
    Flag,
    Text,
    Texts,
    /// A whole number.
    Number {
        least: u64,
        most: u64,
    },
    /// A whole number from 0.
    Index,
    /// Whole numbers from 0, each separately.
    Indices,
    /// Whole numbers, `from` and `to`, of which one may be left out.
    Range,
    /// Times in seconds or with a unit, `from` and `to`, of which one may be left out.
    Times,
    /// Two texts.
    Pair,
    /// Some of these words.
    Words(Vec<&'static str>),
}

/// An option of the tool's kind.
pub const fn option(name: &'static str, option: &'static str, about: &'static str) -> ToolInput {
    ToolInput {
        name,
        is_required: false,
        option: Some(option),
        over_dataset: None,
        shape: None,
        about,
    }
}

/// An argument of the tool itself.
pub const fn argument(
    name: &'static str,
    shape: fn() -> InputShape,
    about: &'static str,
) -> ToolInput {
    ToolInput {
        name,
        is_required: false,
        option: None,
        over_dataset: None,
        shape: Some(shape),
        about,
    }
}

impl ToolInput {
    pub const fn required(self) -> ToolInput {
        ToolInput { is_required: true, ..self }
    }

    pub const fn with_shape(self, shape: fn() -> InputShape) -> ToolInput {
        ToolInput { shape: Some(shape), ..self }
    }

    pub const fn over_dataset(self, option: &'static str) -> ToolInput {
        ToolInput { over_dataset: Some(option), ..self }
    }

    /// The option that it stands for over traces, or over a dataset.
    pub fn option(&self, over_dataset: bool) -> Option<&'static str> {
        self.over_dataset.filter(|_| over_dataset).or(self.option)
    }

    fn shape(&self, options: &[&dyn OptionSpec]) -> InputShape {
        if let Some(shape) = self.shape {
            return shape();
        }
        let Some(value) = options.first().map(|option| option.value()) else {
            return InputShape::Text;
        };
        let is_like = |placeholders: [&str; 2]| placeholders.contains(&value.placeholder);
        match value.offers {
            Offers::List => {
                let mut all: Vec<&str> = Vec::new();
                for (word, _) in options.iter().flat_map(|option| (option.value().words)()) {
                    if !all.contains(&word) {
                        all.push(word);
                    }
                }
                InputShape::Words(all)
            }
            Offers::Nothing if value.arity.1 == 0 => InputShape::Flag,
            _ if is_like([NUMBER.placeholder, MAYBE_NUMBER.placeholder]) => {
                InputShape::Number { least: 1, most: u64::MAX }
            }
            _ if is_like([COUNTS.placeholder, SIZES.placeholder]) => InputShape::Range,
            _ if value.placeholder == TIMES.placeholder => InputShape::Times,
            _ => InputShape::Text,
        }
    }

    /// Returns the JSON schema of the argument.
    fn schema(&self, options: &[&dyn OptionSpec]) -> Value {
        let mut schema = self.shape(options).schema();
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), self.about.into());
        }
        schema
    }
}

impl InputShape {
    fn schema(&self) -> Value {
        let list = |item: Value| json!({"type": "array", "items": item});
        let ends = |kind: Value| {
            let end = json!({"type": kind});
            json!({"type": "object", "properties": {"from": end, "to": end}})
        };
        match self {
            InputShape::Flag => json!({"type": "boolean"}),
            InputShape::Text => json!({"type": "string"}),
            InputShape::Texts => list(json!({"type": "string"})),
            InputShape::Pair => {
                json!({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2})
            }
            InputShape::Number { .. } | InputShape::Index => json!({"type": "integer"}),
            InputShape::Indices => list(json!({"type": "integer"})),
            InputShape::Range => ends("integer".into()),
            InputShape::Times => ends("string".into()),
            InputShape::Words(words) => list(json!({"enum": words})),
        }
    }

    /// Describes the shape in words, for errors.
    fn wanted(&self) -> String {
        match self {
            InputShape::Flag => "true or false".to_owned(),
            InputShape::Text => "a non-empty text".to_owned(),
            InputShape::Texts => "a list of texts".to_owned(),
            InputShape::Pair => "a list of two texts".to_owned(),
            InputShape::Number { least, most: u64::MAX } => format!("a whole number from {least}"),
            InputShape::Number { least, most } => format!("a whole number from {least} to {most}"),
            InputShape::Index => "a whole number".to_owned(),
            InputShape::Indices => "a list of whole numbers".to_owned(),
            InputShape::Range => "an object with whole numbers `from`, `to` or both".to_owned(),
            InputShape::Times => {
                "an object with times `from`, `to` or both, like {\"from\": \"10ms\"}".to_owned()
            }
            InputShape::Words(words) => format!("a list of some of {}", words.join(", ")),
        }
    }

    /// The words that a value of this shape stands for; `None` when it has another one.
    fn words(&self, value: &Value) -> Option<Vec<String>> {
        let text = |value: &Value| value.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
        let number = |value: &Value| value.as_u64().map(|number| number.to_string());
        let list = |word: &dyn Fn(&Value) -> Option<String>| {
            value
                .as_array()
                .filter(|items| !items.is_empty())?
                .iter()
                .map(word)
                .collect::<Option<Vec<String>>>()
        };
        match self {
            InputShape::Flag => value.as_bool().map(|_| Vec::new()),
            InputShape::Text => text(value).map(|text| vec![text]),
            InputShape::Texts => list(&text),
            InputShape::Pair => list(&text).filter(|texts| texts.len() == 2),
            InputShape::Number { least, most } => {
                let number = value.as_u64().filter(|number| (least..=most).contains(&number))?;
                Some(vec![number.to_string()])
            }
            InputShape::Index => Some(vec![number(value)?]),
            InputShape::Indices => Some(vec![list(&number)?.join(";")]),
            InputShape::Range => ends(value, &number),
            InputShape::Times => {
                ends(value, &|end| text(end).or_else(|| Some(end.as_f64()?.to_string())))
            }
            InputShape::Words(words) => {
                let known =
                    |value: &Value| text(value).filter(|text| words.contains(&text.as_str()));
                Some(vec![list(&known)?.join(",")])
            }
        }
    }
}

/// The words of a range: its start, 0 by default, and its end, if it has one.
fn ends(value: &Value, word: &dyn Fn(&Value) -> Option<String>) -> Option<Vec<String>> {
    let members = value.as_object().filter(|members| !members.is_empty())?;
    if members.keys().any(|name| name != "from" && name != "to") {
        return None;
    }
    let from = members.get("from").map_or_else(|| Some("0".to_owned()), word)?;
    let to = members.get("to").map(word);
    [Some(Some(from)), to].into_iter().flatten().collect()
}

/// The schema of some arguments, which an object holds.
pub fn schema(
    inputs: &[&ToolInput],
    options_of: impl Fn(&ToolInput) -> Vec<&'static dyn OptionSpec>,
) -> Map<String, Value> {
    let properties: Map<String, Value> = inputs
        .iter()
        .map(|input| (input.name.to_owned(), input.schema(&options_of(input))))
        .collect();
    let required = inputs.iter().filter(|input| input.is_required).map(|input| input.name);
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.collect());
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// Arguments that fit the schema.
pub struct Inputs<'a> {
    given: Vec<(&'a ToolInput, &'a Value, Vec<String>)>,
}

impl<'a> Inputs<'a> {
    /// Reads arguments; `null` counts as not given.
    ///
    /// # Errors
    /// Names what is not in the schema, has another type, or would be read as an option.
    pub fn read(
        inputs: &[&'a ToolInput],
        options_of: impl Fn(&ToolInput) -> Vec<&'static dyn OptionSpec>,
        arguments: &'a Map<String, Value>,
    ) -> Result<Inputs<'a>, ToolError> {
        let names = || inputs.iter().map(|input| input.name);
        let mut given = Vec::new();
        for (name, value) in arguments.iter().filter(|(_, value)| !value.is_null()) {
            let Some(input) = inputs.iter().find(|input| input.name == name) else {
                let known = names().collect::<Vec<_>>().join(", ");
                let hint = suggest::hint(name, names());
                return Err(ToolError::Unknown { name: name.clone(), hint, known });
            };
            let shape = input.shape(&options_of(input));
            let wrong = || ToolError::Wrong { name: input.name, wanted: shape.wanted() };
            let words = shape.words(value).ok_or_else(wrong)?;
            if input.option.is_some() && words.iter().any(|word| is_switch(word)) {
                return Err(ToolError::Option { name: input.name });
            }
            given.push((*input, value, words));
        }
        let is_given = |name: &str| given.iter().any(|(input, ..)| input.name == name);
        let mut required = inputs.iter().filter(|input| input.is_required);
        match required.find(|input| !is_given(input.name)) {
            Some(input) => Err(ToolError::Missing { name: input.name }),
            None => Ok(Inputs { given }),
        }
    }

    /// The arguments that were given.
    pub fn given(&self) -> impl Iterator<Item = &'a ToolInput> {
        self.given.iter().map(|(input, ..)| *input)
    }

    /// The options that were given, with their values, over traces or over a dataset.
    pub fn options(&self, over_dataset: bool) -> Vec<String> {
        let is_on = |value: &Value| *value != Value::Bool(false);
        self.given
            .iter()
            .filter(|(_, value, _)| is_on(value))
            .filter_map(|(input, _, words)| Some((input.option(over_dataset)?, words)))
            .flat_map(|(option, words)| {
                [option.to_owned()].into_iter().chain(words.iter().cloned())
            })
            .collect()
    }

    /// The texts of an argument; none if it was not given.
    pub fn texts(&self, name: &str) -> &[String] {
        let given = self.given.iter().find(|(input, ..)| input.name == name);
        given.map_or(&[], |(_, _, words)| words)
    }

    /// The text of an argument.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).first().map(String::as_str)
    }

    /// The number of an argument.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.text(name)?.parse().ok()
    }

    /// Whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        self.given
            .iter()
            .any(|(input, value, _)| input.name == name && **value == Value::Bool(true))
    }
}

/// Whether the command line takes a word for the name of an option.
fn is_switch(word: &str) -> bool {
    Token { text: word.to_owned(), span: 0..0, quotes: Quotes::No }.is_switch()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Tool;

    fn read(tool: &str, arguments: &Value) -> Result<Vec<String>, String> {
        let tool = Tool::named(tool).expect("a tool");
        let arguments = arguments.as_object().expect("an object");
        tool.read(arguments).map(|inputs| inputs.options(false)).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_become_options_with_their_values() {
        let arguments = json!({"by": ["process", "type"], "leak": true, "leak_at_exit": false, "name": "a b",
            "time": {"from": "1s", "to": 2.5}, "min_count": 2, "process": null});
        let mut words = read("groups", &arguments).expect("words");
        words.sort();
        let expected = [
            "-GroupBy",
            "-Leak",
            "-MinCount",
            "-MinMaxTime",
            "-ObjectName",
            "1s",
            "2",
            "2.5",
            "a b",
            "process,type",
        ];
        assert_eq!(words, expected);
        assert_eq!(read("stack", &json!({"id": 0})).expect("words"), ["-Id", "0"]);
        assert_eq!(read("objects", &json!({"ids": [285, 7]})).expect("words"), ["-Id", "285;7"]);
        let to = json!({"time": {"to": "1s"}});
        assert_eq!(read("objects", &to).expect("words"), ["-MinMaxTime", "0", "1s"]);
        let since = json!({"since": "1s"});
        assert_eq!(read("why", &since).expect("words"), ["-Since", "1s"]);
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_right_ones() {
        for (tool, arguments, error) in [
            ("groups", json!({}), "the argument 'by' is missing"),
            ("groups", json!({"by": ["proces"]}), "a list of some of createstack"),
            ("groups", json!({"by": ["process,type"]}), "a list of some of"),
            ("groups", json!({"by": []}), "a list of some of"),
            ("why", json!({"top": 1001}), "a whole number from 1 to 1000"),
            ("why", json!({"top": "5"}), "a whole number from 1 to 1000"),
            ("why", json!({"typ": "x"}), "there is no argument 'typ', did you mean type?"),
            ("why", json!({"type": ""}), "a non-empty text"),
            ("objects", json!({"leak": "yes"}), "true or false"),
            ("objects", json!({"ids": [1, "2"]}), "a list of whole numbers"),
            ("objects", json!({"time": ["1"]}), "an object with times"),
            ("objects", json!({"time": {"form": "1s"}}), "an object with times"),
            ("allocations", json!({"by": ["kind"], "size": {}}), "an object with whole numbers"),
            ("objects", json!({"type": "-csv"}), "cannot start with '-'"),
            ("objects", json!({"time": {"from": "1s", "to": "-parquet"}}), "cannot start with '-'"),
        ] {
            let refused = read(tool, &arguments).expect_err(error);
            assert!(refused.contains(error), "{arguments}: {refused}");
        }
    }
}
