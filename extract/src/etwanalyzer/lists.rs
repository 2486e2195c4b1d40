//! The lists that an object's events stand in.

use handlescope_model::EventKind;

/// The lists of events, in the order in which events of one time happen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum List {
    /// Not a list, but one event or none.
    #[default]
    ObjectCreate,
    HandleCreate,
    HandleDuplicate,
    Map,
    RefChange,
    HandleClose,
    Unmap,
    /// Not a list, but one event or none.
    ObjectDelete,
}

impl List {
    /// All of them, in the order in which they are written.
    pub(super) const WRITTEN: [Self; 8] = [
        Self::ObjectCreate,
        Self::ObjectDelete,
        Self::HandleCreate,
        Self::HandleDuplicate,
        Self::HandleClose,
        Self::RefChange,
        Self::Map,
        Self::Unmap,
    ];

    /// The member of an object that holds the list.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ObjectCreate => "CreateEvent",
            Self::ObjectDelete => "DestroyEvent",
            Self::HandleCreate => "HandleCreateEvents",
            Self::HandleDuplicate => "HandleDuplicateEvents",
            Self::HandleClose => "HandleCloseEvents",
            Self::RefChange => "RefChanges",
            Self::Map => "FileMapEvents",
            Self::Unmap => "FileUnmapEvents",
        }
    }

    /// The list of a member.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::WRITTEN.into_iter().find(|list| list.name() == name)
    }

    /// Whether it is not a list but one event.
    pub(super) fn is_single(self) -> bool {
        matches!(self, Self::ObjectCreate | Self::ObjectDelete)
    }

    /// The list that events of a kind stand in.
    pub(super) fn of(kind: EventKind) -> Self {
        match kind {
            EventKind::HandleCreate => Self::HandleCreate,
            EventKind::HandleDuplicate => Self::HandleDuplicate,
            EventKind::HandleClose => Self::HandleClose,
            EventKind::ObjectCreate => Self::ObjectCreate,
            EventKind::ObjectDelete => Self::ObjectDelete,
            EventKind::Reference | EventKind::Dereference => Self::RefChange,
            EventKind::Map => Self::Map,
            EventKind::Unmap => Self::Unmap,
        }
    }
}
