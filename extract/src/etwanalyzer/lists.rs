//! The lists that an object's events stand in.

use handlescope_model::EventKind;

/// The lists of events, in the order in which events of one time happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum List {
    /// Not a list, but one event or none.
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
