//! What rows of the timeline are about.

use handlescope_model::EventKind;

use crate::raw::RowKind;

/// The pattern of rows about allocations, which objects have nothing to do with.
macro_rules! of_allocations {
    () => {
        RowKind::HeapCreate
            | RowKind::HeapAlloc
            | RowKind::HeapReAlloc
            | RowKind::HeapFree
            | RowKind::HeapDestroy
            | RowKind::RangeAlloc
            | RowKind::RangeFree
            | RowKind::Undescribed
            | RowKind::Acquire
            | RowKind::Release
            | RowKind::ResourceIgnored
            | RowKind::GuiCreate
            | RowKind::GuiDestroy
            | RowKind::GuiOwner
            | RowKind::GuiTransform
    };
}

pub(super) use of_allocations;

/// The kind a row is stored as in the events table; `None` for rows of other tables.
pub fn event_kind(kind: RowKind) -> Option<EventKind> {
    Some(match kind {
        RowKind::HandleCreate => EventKind::HandleCreate,
        RowKind::HandleDuplicate => EventKind::HandleDuplicate,
        RowKind::HandleClose => EventKind::HandleClose,
        RowKind::ObjectCreate => EventKind::ObjectCreate,
        RowKind::ObjectDelete => EventKind::ObjectDelete,
        RowKind::Reference => EventKind::Reference,
        RowKind::Dereference => EventKind::Dereference,
        RowKind::Map => EventKind::Map,
        RowKind::Unmap => EventKind::Unmap,
        RowKind::HandleAtEnd | of_allocations!() => return None,
    })
}

/// Whether a row is about an object; others are about allocations, which have owners of their own.
pub(super) fn is_of_object(kind: RowKind) -> bool {
    !matches!(kind, of_allocations!())
}
