//! Why a mapping cannot be used.

use handlescope_model::Untrusted;

/// Why a mapping cannot be used; each says what to write instead.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    #[error(
        "{}: {} is not a PROVIDER/EVENT; write the name or GUID of a provider, or *, then / and the name or id of an event",
        Untrusted(place),
        Quoted(found)
    )]
    NoEvent { place: String, found: String },
    #[error(
        "{}: {} is neither acquire nor release; one of them must follow PROVIDER/EVENT",
        Untrusted(place),
        Quoted(found)
    )]
    NoAction { place: String, found: String },
    #[error(
        "{}: {} is none of handle=FIELD, size=FIELD and allocator=FIELD",
        Untrusted(place),
        Quoted(found)
    )]
    UnknownField { place: String, found: String },
    #[error(
        "{}: events of this provider are those of the kernel, which handlescope decodes itself, so that they cannot be mapped; \
         .dump Resource has what it follows of them",
        Untrusted(event)
    )]
    OfKernel { event: String },
    #[error("{}: {found}= is given twice; remove one", Untrusted(place))]
    Twice { place: String, found: &'static str },
    #[error(
        "no mapping is given; write \"PROVIDER/EVENT acquire handle=FIELD size=FIELD allocator=FIELD\""
    )]
    Empty,
    #[error("{found} mappings are more than {most}; remove some, or use * as PROVIDER")]
    TooMany { found: usize, most: usize },
    #[error("not a list of mappings: {}; each begins with a line [[resource]], and has event = \"PROVIDER/EVENT\" and action = \"acquire\" or \"release\"", Untrusted(reason.trim_end()))]
    NoList { reason: String },
}

/// A text in quotation marks, or that there is none.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            f.write_str("nothing")
        } else {
            write!(f, "\"{}\"", Untrusted(self.0))
        }
    }
}
