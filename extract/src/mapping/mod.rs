//! Which events of providers acquire and release resources, as a user says it.

mod error;
mod line;
mod list;

pub use error::MappingError;

/// Names of the fields where a mapping does not say others.
const HANDLE: &str = "Handle";
const SIZE: &str = "AllocSize";
const ALLOCATOR: &str = "Allocator";

/// What an event does with the resource that its handle names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceAction {
    Acquire,
    Release,
}

impl ResourceAction {
    const WORDS: [(&'static str, Self); 2] =
        [("acquire", Self::Acquire), ("release", Self::Release)];

    /// The action of a word, in any case.
    fn of(word: &str) -> Option<Self> {
        let is_word = |(known, _): &&(&str, Self)| known.eq_ignore_ascii_case(word);
        Self::WORDS.iter().find(is_word).map(|(_, action)| *action)
    }
}

/// Events of a provider that acquire or release a resource, and the fields that say which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceMapping {
    /// Name or GUID of the provider, in any case; `*` for every one.
    pub provider: String,
    /// Name of the event, task and opcode with `/` between them, in any case; or its id.
    pub event: String,
    pub action: ResourceAction,
    pub fields: ResourceFields,
}

/// Names of the fields of an event that acquires or releases, in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceFields {
    /// By what a resource is known: an integer or pointer.
    pub handle: String,
    /// Bytes.
    pub size: String,
    /// What the resource is counted under.
    pub allocator: String,
}

impl Default for ResourceFields {
    /// The fields of `AcquireResource` and `ReleaseResource`.
    fn default() -> Self {
        Self { handle: HANDLE.into(), size: SIZE.into(), allocator: ALLOCATOR.into() }
    }
}

impl ResourceMapping {
    /// Whether the mapping is for this provider.
    pub(crate) fn is_of_provider(&self, name: &str, guid: &str) -> bool {
        self.provider == "*" || self.names_provider(name, guid)
    }

    /// Whether the mapping names this provider, not just any.
    pub(crate) fn names_provider(&self, name: &str, guid: &str) -> bool {
        let own = self.provider.trim_start_matches('{').trim_end_matches('}');
        own.eq_ignore_ascii_case(name) || own.eq_ignore_ascii_case(guid)
    }

    /// Whether the mapping may be for events of this id, whose name is not known.
    pub(crate) fn may_be_of_id(&self, id: u16) -> bool {
        self.event.parse().map_or(true, |own: u16| own == id)
    }

    /// Whether the mapping is for the event with this name or id.
    pub(crate) fn is_of_event(&self, name: &[u8], id: u16) -> bool {
        self.event.as_bytes().eq_ignore_ascii_case(name) || self.event.parse() == Ok(id)
    }

    /// A mapping whose parts were read somewhere; `place` says where, for errors.
    fn new(
        event: &str,
        action: &str,
        place: &str,
        fields: ResourceFields,
    ) -> Result<Self, MappingError> {
        let parts = event.split_once('/').map(|(provider, name)| (provider.trim(), name.trim()));
        let Some((provider, name)) = parts.filter(|(p, n)| !p.is_empty() && !n.is_empty()) else {
            return Err(MappingError::NoEvent { place: place.to_owned(), found: event.to_owned() });
        };
        let Some(action) = ResourceAction::of(action) else {
            return Err(MappingError::NoAction {
                place: place.to_owned(),
                found: action.to_owned(),
            });
        };
        Ok(Self { provider: provider.to_owned(), event: name.to_owned(), action, fields })
    }
}
