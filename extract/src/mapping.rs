//! User-defined mappings of provider events to resources acquired and released. They are given in words,
//! `PROVIDER/EVENT acquire handle=FIELD size=FIELD allocator=FIELD` with `;` between several, or as a list in TOML.

use handlescope_model::Untrusted;
use serde::Deserialize;

/// Default field names.
const HANDLE: &str = "Handle";
const SIZE: &str = "AllocSize";
const ALLOCATOR: &str = "Allocator";

/// What an event does to the resource that its handle names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceAction {
    Acquire,
    Release,
}

impl ResourceAction {
    const WORDS: [(&'static str, Self); 2] =
        [("acquire", Self::Acquire), ("release", Self::Release)];

    /// Returns the action for a word, ignoring case.
    fn new(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(word))
            .map(|(_, action)| *action)
    }
}

/// Events of a provider that acquire or release a resource, and the fields that identify it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceMapping {
    /// Name or GUID of the provider, ignoring case; `*` for every provider.
    pub provider: String,
    /// Name of the event, as task and opcode with `/` in between, ignoring case; or its id.
    pub event: String,
    pub action: ResourceAction,
    pub fields: ResourceFields,
}

/// Field names of an event that acquires or releases, ignoring case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceFields {
    /// Field that identifies a resource: an integer or pointer.
    pub handle: String,
    /// Field with the size in bytes.
    pub size: String,
    /// Field that resources are counted by.
    pub allocator: String,
}

impl Default for ResourceFields {
    /// Returns the fields of `AcquireResource` and `ReleaseResource`.
    fn default() -> Self {
        Self { handle: HANDLE.into(), size: SIZE.into(), allocator: ALLOCATOR.into() }
    }
}

impl ResourceMapping {
    /// Whether the mapping is for this provider.
    pub fn is_of_provider(&self, name: &str, guid: &str) -> bool {
        self.provider == "*" || self.names_provider(name, guid)
    }

    /// Whether the mapping names this provider, rather than any.
    pub fn names_provider(&self, name: &str, guid: &str) -> bool {
        let provider = self.provider.trim_start_matches('{').trim_end_matches('}');
        provider.eq_ignore_ascii_case(name) || provider.eq_ignore_ascii_case(guid)
    }

    /// Whether the mapping may be for events of this id whose name is unknown.
    pub fn may_be_of_id(&self, id: u16) -> bool {
        self.event.parse().map_or(true, |number: u16| number == id)
    }

    /// Whether the mapping is for the event with this name or id.
    pub fn is_of_event(&self, name: &[u8], id: u16) -> bool {
        self.event.as_bytes().eq_ignore_ascii_case(name) || self.event.parse() == Ok(id)
    }

    /// Creates a mapping; `text` is how messages refer to its source.
    fn new(
        event: &str,
        action: &str,
        text: &str,
        fields: ResourceFields,
    ) -> Result<Self, MappingError> {
        let parts = event.split_once('/').map(|(provider, name)| (provider.trim(), name.trim()));
        let Some((provider, name)) = parts.filter(|(p, n)| !p.is_empty() && !n.is_empty()) else {
            return Err(MappingError::NoEvent { text: text.to_owned(), event: event.to_owned() });
        };
        let Some(action) = ResourceAction::new(action) else {
            return Err(MappingError::NoAction {
                text: text.to_owned(),
                action: action.to_owned(),
            });
        };
        Ok(Self { provider: provider.to_owned(), event: name.to_owned(), action, fields })
    }
}

/// Maximum number of mappings in an extract: each is tried on each kind of event.
const MAX_MAPPINGS: usize = 1000;

impl ResourceMapping {
    /// Parses mappings in words.
    ///
    /// # Errors
    /// Fails for the first invalid mapping.
    pub fn from_words(text: &str) -> Result<Vec<Self>, MappingError> {
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let mappings: Vec<Self> = parts.map(parse).collect::<Result<_, _>>()?;
        checked(mappings)
    }
}

/// Returns the mappings if there are any and not too many.
pub fn checked(mappings: Vec<ResourceMapping>) -> Result<Vec<ResourceMapping>, MappingError> {
    match mappings.len() {
        0 => Err(MappingError::Empty),
        count if count > MAX_MAPPINGS => Err(MappingError::TooMany { count, most: MAX_MAPPINGS }),
        _ => Ok(mappings),
    }
}

fn parse(text: &str) -> Result<ResourceMapping, MappingError> {
    let mut words = text.split_whitespace();
    let (event, action) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut handle, mut size, mut allocator) = (None, None, None);
    for word in words {
        let unknown =
            || MappingError::UnknownField { text: text.to_owned(), word: word.to_owned() };
        let (name, field) = word.split_once('=').ok_or_else(unknown)?;
        let (name, slot) = match name.to_ascii_lowercase().as_str() {
            "handle" => ("handle", &mut handle),
            "size" => ("size", &mut size),
            "allocator" => ("allocator", &mut allocator),
            _ => return Err(unknown()),
        };
        if field.is_empty() {
            return Err(unknown());
        }
        if slot.replace(field.to_owned()).is_some() {
            return Err(MappingError::Twice { text: text.to_owned(), field: name });
        }
    }
    let usual = ResourceFields::default();
    let fields = ResourceFields {
        handle: handle.unwrap_or(usual.handle),
        size: size.unwrap_or(usual.size),
        allocator: allocator.unwrap_or(usual.allocator),
    };
    ResourceMapping::new(event, action, text, fields)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    resource: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    event: String,
    action: String,
    handle: Option<String>,
    size: Option<String>,
    allocator: Option<String>,
}

impl ResourceMapping {
    /// Parses a list of mappings, with one `[[resource]]` each.
    ///
    /// # Errors
    /// Fails if the text is not a list of mappings, or for its first invalid entry.
    pub fn from_list(text: &str) -> Result<Vec<Self>, MappingError> {
        let list: List = toml::from_str(text)
            .map_err(|error| MappingError::NoList { reason: parser_message(&error, text) })?;
        let usual = ResourceFields::default();
        let mapping = |(number, entry): (usize, Entry)| {
            let fields = ResourceFields {
                handle: entry.handle.unwrap_or_else(|| usual.handle.clone()),
                size: entry.size.unwrap_or_else(|| usual.size.clone()),
                allocator: entry.allocator.unwrap_or_else(|| usual.allocator.clone()),
            };
            Self::new(&entry.event, &entry.action, &format!("resource {number}"), fields)
        };
        checked((1..).zip(list.resource).map(mapping).collect::<Result<_, _>>()?)
    }
}

/// Returns the parser's error message with its line, but without the excerpt of the source text.
fn parser_message(error: &toml::de::Error, text: &str) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let line = text.get(..start).map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", error.message())
}

/// Why a mapping is invalid. Each message says what to write instead.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    #[error(
        "{}: {} is not a PROVIDER/EVENT; write the name or GUID of a provider, or *, then / and the name or id of an event",
        Untrusted(text),
        QuotedText(event)
    )]
    NoEvent { text: String, event: String },
    #[error(
        "{}: {} is neither acquire nor release; one of them must follow PROVIDER/EVENT",
        Untrusted(text),
        QuotedText(action)
    )]
    NoAction { text: String, action: String },
    #[error(
        "{}: {} is not handle=FIELD, size=FIELD or allocator=FIELD",
        Untrusted(text),
        QuotedText(word)
    )]
    UnknownField { text: String, word: String },
    #[error(
        "{}: events of this kernel provider cannot be mapped, because handlescope decodes them itself; .dump Resource \
         shows what they allocate",
        Untrusted(event)
    )]
    OfKernel { event: String },
    #[error("{}: {field}= is given twice; remove one", Untrusted(text))]
    Twice { text: String, field: &'static str },
    #[error(
        "no mapping is given; write \"PROVIDER/EVENT acquire handle=FIELD size=FIELD allocator=FIELD\""
    )]
    Empty,
    #[error("too many mappings: {count}, the limit is {most}; remove some, or use * as PROVIDER")]
    TooMany { count: usize, most: usize },
    #[error("not a list of mappings: {}; each begins with a line [[resource]], and has event = \"PROVIDER/EVENT\" and action = \"acquire\" or \"release\"", Untrusted(reason.trim_end()))]
    NoList { reason: String },
}

/// Text in quotation marks, or `nothing` if it is empty.
struct QuotedText<'a>(&'a str);

impl std::fmt::Display for QuotedText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            f.write_str("nothing")
        } else {
            write!(f, "\"{}\"", Untrusted(self.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_have_several_mappings() {
        let text = "Contoso.Pool/Alloc/Start acquire handle=Block size=Bytes; \
                    */7 RELEASE allocator=Pool;";
        let mappings = ResourceMapping::from_words(text).unwrap();
        let [alloc, free] = mappings.as_slice() else { panic!("{mappings:?}") };
        assert_eq!(
            (alloc.provider.as_str(), alloc.event.as_str()),
            ("Contoso.Pool", "Alloc/Start")
        );
        assert_eq!(alloc.action, ResourceAction::Acquire);
        let ResourceFields { handle, size, allocator } = &alloc.fields;
        assert_eq!([handle, size, allocator], ["Block", "Bytes", "Allocator"]);
        assert_eq!(
            (free.action, free.fields.allocator.as_str()),
            (ResourceAction::Release, "Pool")
        );
        assert!(alloc.is_of_provider("contoso.pool", "") && !alloc.is_of_provider("Contoso", ""));
        assert!(free.is_of_provider("any", "") && free.is_of_event(b"Free", 7));
        assert!(alloc.is_of_event(b"alloc/START", 3) && !alloc.is_of_event(b"alloc", 3));
    }

    #[test]
    fn errors_give_the_expected_form() {
        for (text, said) in [
            ("", "no mapping is given"),
            ("Alloc acquire", "\"Alloc\" is not a PROVIDER/EVENT; write the name or GUID"),
            ("/Alloc acquire", "is not a PROVIDER/EVENT"),
            ("P/Alloc", "nothing is neither acquire nor release"),
            ("P/Alloc open", "\"open\" is neither acquire nor release"),
            ("P/Alloc acquire Block", "\"Block\" is not handle=FIELD"),
            ("P/Alloc acquire handle=", "is not handle=FIELD"),
            ("P/Alloc acquire bytes=Size", "\"bytes=Size\" is not handle=FIELD"),
            ("P/Alloc acquire size=A size=B", "size= is given twice"),
            ("P/\u{202e} x", "P/\\u{202e} x: \"x\""),
        ] {
            let error = ResourceMapping::from_words(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        let many = "*/1 acquire;".repeat(1001);
        assert!(matches!(ResourceMapping::from_words(&many), Err(MappingError::TooMany { .. })));
    }

    const LIST: &str = "
        [[resource]]
        event = 'Contoso-Pool/Block Taken'
        action = 'acquire'
        handle = 'Block'
        [[resource]]
        event = '8c416c79-d49b-4f01-a467-e56d3aa8234c/12'
        action = 'release'
    ";

    #[test]
    fn a_list_means_the_same_as_words_and_takes_names_with_spaces() {
        let mappings = ResourceMapping::from_list(LIST).unwrap();
        assert_eq!(mappings[0].event, "Block Taken");
        assert_eq!(
            (mappings[0].fields.handle.as_str(), mappings[1].action),
            ("Block", ResourceAction::Release)
        );
        let words = "8c416c79-d49b-4f01-a467-e56d3aa8234c/12 release";
        assert_eq!(mappings[1..], ResourceMapping::from_words(words).unwrap());
    }

    #[test]
    fn errors_name_line_or_entry() {
        for (from, to, said) in [
            ("handle =", "handel =", "not a list of mappings: line 5: unknown field `handel`"),
            ("'release'", "'close'", "resource 2: \"close\" is neither acquire nor release"),
            ("'Block'", "7", "line 5: invalid type"),
            ("[[resource]]", "[[resources]]", "line 2: unknown field `resources`"),
        ] {
            let error =
                ResourceMapping::from_list(&LIST.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(matches!(ResourceMapping::from_list(""), Err(MappingError::Empty)));
    }
}
