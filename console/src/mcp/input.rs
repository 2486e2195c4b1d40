//! The arguments of tools: their schema, and the words of a command that they stand for.
//!
//! An argument that is an option of the command has its help and its kind of value, so that both are declared
//! once.

use serde_json::{Map, Value, json};

use super::error::ToolError;
use crate::grammar::{Doc, OptionSpec, Quotes, Token, ValueKind};
use crate::suggest;

/// An argument of a tool.
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) is_required: bool,
    /// The option of the tool's kind of `.dump` that it stands for.
    pub(super) option: Option<&'static str>,
    /// Shape of the value, unless it is that of the option.
    pub(super) shape: Option<fn() -> Shape>,
    /// Description, unless it is that of the option.
    pub(super) about: &'static str,
}

/// The shape of an argument's value.
pub(super) enum Shape {
    Flag,
    Text,
    Texts,
    /// A whole number up to this one.
    Number(u64),
    /// A whole number from 0.
    Index,
    /// One whole number, or two: least and most.
    Range,
    /// One time in seconds or with its unit, or two.
    Times,
    /// Some of these words.
    Words(Vec<&'static str>),
}

/// An option of the tool's kind.
pub(super) const fn option(name: &'static str, option: &'static str) -> Input {
    Input { name, is_required: false, option: Some(option), shape: None, about: "" }
}

/// An argument of the tool itself.
pub(super) const fn own(name: &'static str, shape: fn() -> Shape, about: &'static str) -> Input {
    Input { name, is_required: false, option: None, shape: Some(shape), about }
}

impl Input {
    pub(super) const fn required(self) -> Input {
        Input { is_required: true, ..self }
    }

    fn shape(&self, option: Option<&dyn OptionSpec>) -> Shape {
        match (self.shape, option.map(OptionSpec::value)) {
            (Some(shape), _) => shape(),
            (None, Some(ValueKind::None)) => Shape::Flag,
            (None, Some(ValueKind::Number { .. })) => Shape::Number(u64::MAX),
            (None, Some(ValueKind::Count(_))) => Shape::Range,
            (None, Some(ValueKind::Seconds)) => Shape::Times,
            (None, Some(ValueKind::List(words))) => {
                Shape::Words(words.into_iter().map(|(word, _)| word).collect())
            }
            (None, _) => Shape::Text,
        }
    }

    /// Returns the JSON schema of the argument, whose description may mention the others.
    fn schema(&self, option: Option<&dyn OptionSpec>, others: &[&Input]) -> Value {
        let mut schema = self.shape(option).schema();
        let doc = option.map(OptionSpec::doc).filter(|_| self.about.is_empty());
        let of_option = |doc: Doc| as_arguments(&format!("{}. {}", doc.help, doc.details), others);
        let about = doc.map_or_else(|| self.about.to_owned(), of_option);
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), about.into());
        }
        schema
    }
}

/// The text about an option, with the names of arguments in the place of options.
fn as_arguments(text: &str, inputs: &[&Input]) -> String {
    let named = |word: &str| {
        let name = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let input = inputs.iter().find(|input| input.option == Some(name));
        input.map_or_else(|| word.to_owned(), |input| word.replace(name, input.name))
    };
    text.split(' ').map(named).collect::<Vec<_>>().join(" ")
}

impl Shape {
    fn schema(&self) -> Value {
        let several = |item: Value, most: Option<u64>| {
            let mut schema = json!({"type": "array", "items": item, "minItems": 1});
            if let (Some(most), Some(schema)) = (most, schema.as_object_mut()) {
                schema.insert("maxItems".to_owned(), most.into());
            }
            schema
        };
        let text = || json!({"type": "string", "minLength": 1});
        match self {
            Shape::Flag => json!({"type": "boolean"}),
            Shape::Text => text(),
            Shape::Texts => several(text(), None),
            Shape::Number(u64::MAX) => json!({"type": "integer", "minimum": 1}),
            Shape::Number(most) => json!({"type": "integer", "minimum": 1, "maximum": most}),
            Shape::Index => json!({"type": "integer", "minimum": 0}),
            Shape::Range => several(json!({"type": "integer", "minimum": 0}), Some(2)),
            Shape::Times => several(text(), Some(2)),
            Shape::Words(words) => several(json!({"type": "string", "enum": words}), None),
        }
    }

    /// Describes the shape in words, for errors.
    fn wanted(&self) -> String {
        match self {
            Shape::Flag => "true or false".to_owned(),
            Shape::Text => "a text that is not empty".to_owned(),
            Shape::Texts => "a list of texts".to_owned(),
            Shape::Number(u64::MAX) => "a whole number from 1".to_owned(),
            Shape::Number(most) => format!("a whole number from 1 to {most}"),
            Shape::Index => "a whole number".to_owned(),
            Shape::Range => "a list of one or two whole numbers".to_owned(),
            Shape::Times => "a list of one or two times, like \"10ms\"".to_owned(),
            Shape::Words(words) => format!("a list of some of {}", words.join(", ")),
        }
    }

    /// The words that a value of this shape stands for; `None` when it has another one.
    fn words(&self, value: &Value) -> Option<Vec<String>> {
        let text = |value: &Value| value.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
        let list = |most: usize, word: &dyn Fn(&Value) -> Option<String>| {
            let items = value.as_array().filter(|items| (1..=most).contains(&items.len()))?;
            items.iter().map(word).collect::<Option<Vec<String>>>()
        };
        match self {
            Shape::Flag => value.as_bool().map(|_| Vec::new()),
            Shape::Text => text(value).map(|text| vec![text]),
            Shape::Texts => list(usize::MAX, &text),
            Shape::Number(most) => {
                let number = value.as_u64().filter(|number| (1..=*most).contains(number))?;
                Some(vec![number.to_string()])
            }
            Shape::Index => value.as_u64().map(|number| vec![number.to_string()]),
            Shape::Range => list(2, &|value| value.as_u64().map(|number| number.to_string())),
            Shape::Times => list(2, &text),
            Shape::Words(words) => {
                let known =
                    |value: &Value| text(value).filter(|text| words.contains(&text.as_str()));
                Some(vec![list(usize::MAX, &known)?.join(",")])
            }
        }
    }
}

/// The schema of some arguments, which an object holds.
pub(super) fn schema(
    inputs: &[&Input],
    option_of: impl Fn(&Input) -> Option<&'static dyn OptionSpec>,
) -> Map<String, Value> {
    let properties: Map<String, Value> = inputs
        .iter()
        .map(|input| (input.name.to_owned(), input.schema(option_of(input), inputs)))
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
pub(super) struct Inputs<'a> {
    given: Vec<(&'a Input, &'a Value, Vec<String>)>,
}

impl<'a> Inputs<'a> {
    /// Reads arguments; `null` counts as not given.
    ///
    /// # Errors
    /// Names what is not in the schema, has another type, or would be read as an option.
    pub(super) fn read(
        inputs: &[&'a Input],
        option_of: impl Fn(&Input) -> Option<&'static dyn OptionSpec>,
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
            let shape = input.shape(option_of(input));
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

    /// The options that were given, with their values.
    pub(super) fn options(&self) -> Vec<String> {
        let is_on = |value: &Value| *value != Value::Bool(false);
        let given = self.given.iter().filter(|(_, value, _)| is_on(value));
        given
            .filter_map(|(input, _, words)| Some((input.option?, words)))
            .flat_map(|(option, words)| {
                [option.to_owned()].into_iter().chain(words.iter().cloned())
            })
            .collect()
    }

    /// The texts of an argument; none if it was not given.
    pub(super) fn texts(&self, name: &str) -> &[String] {
        let given = self.given.iter().find(|(input, ..)| input.name == name);
        given.map_or(&[], |(_, _, words)| words)
    }

    /// The text of an argument.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).first().map(String::as_str)
    }

    /// The number of an argument.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.text(name)?.parse().ok()
    }

    /// Whether a flag is set.
    pub(super) fn flag(&self, name: &str) -> bool {
        let mut given = self.given.iter();
        given.any(|(input, value, _)| input.name == name && **value == Value::Bool(true))
    }
}

/// Whether the command line takes a word for the name of an option.
fn is_switch(word: &str) -> bool {
    Token { text: word.to_owned(), span: 0..0, quotes: Quotes::No }.is_switch()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tools::{TOOLS, Tool};

    fn read(tool: &str, arguments: &Value) -> Result<Vec<String>, String> {
        let tool = Tool::named(tool).expect("a tool");
        let arguments = arguments.as_object().expect("an object");
        tool.read(arguments).map(|inputs| inputs.options()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_argument_about_an_option_finds_it() {
        for tool in TOOLS {
            let schema = tool.described(true).schema_as_json_value();
            for (name, property) in schema["properties"].as_object().expect("properties") {
                let about = property["description"].as_str().expect(name);
                assert!(about.len() > 10, "{}: {name}", tool.name);
            }
        }
    }

    #[test]
    fn arguments_become_options_with_their_values() {
        let arguments = json!({"by": ["process", "type"], "leak": true, "leak_at_exit": false, "name": "a b",
            "time": ["1s", "2s"], "min_count": 2, "process": null});
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
            "2s",
            "a b",
            "process,type",
        ];
        assert_eq!(words, expected);
        assert_eq!(read("stack", &json!({"id": 0})).expect("words"), ["-Id", "0"]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        for (tool, arguments, error) in [
            ("groups", json!({}), "the argument 'by' is missing"),
            ("groups", json!({"by": ["proces"]}), "a list of some of createstack"),
            ("groups", json!({"by": ["process,type"]}), "a list of some of"),
            ("groups", json!({"by": []}), "a list of some of"),
            ("why", json!({"top": 1001}), "a whole number from 1 to 1000"),
            ("why", json!({"top": "5"}), "a whole number from 1 to 1000"),
            ("why", json!({"typ": "x"}), "there is no argument 'typ', did you mean type?"),
            ("why", json!({"type": ""}), "a text that is not empty"),
            ("objects", json!({"leak": "yes"}), "true or false"),
            ("objects", json!({"ids": [1, 2, 3]}), "one or two whole numbers"),
            ("objects", json!({"type": "-csv"}), "cannot start with '-'"),
            ("objects", json!({"time": ["1s", "-parquet"]}), "cannot start with '-'"),
        ] {
            let refused = read(tool, &arguments).expect_err(error);
            assert!(refused.contains(error), "{arguments}: {refused}");
        }
    }

    #[test]
    fn texts_about_options_name_arguments() {
        let tool = Tool::named("objects").expect("a tool");
        let schema = tool.described(true).schema_as_json_value();
        let about = schema["properties"]["leak"]["description"].as_str().expect("a text");
        assert!(about.contains("leak_at_exit shows"), "{about}");
    }
}
