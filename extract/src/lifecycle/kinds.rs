//! Subjects of timeline rows.

use handlescope_model::EventKind;

use crate::described::GuiChange;
use crate::raw::RowKind;

/// Subject of a timeline row, and what happens to it.
///
/// [`subject`] maps every row kind to one. Code that follows a subject matches all its changes exhaustively, so a new
/// row kind cannot be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Row of the events table.
    Object(EventKind),
    /// Handle that was open at the end.
    HandleAtEnd,
    /// Heap, or block of one.
    Heap(HeapChange),
    /// Reserved and committed pages.
    Pages(PageChange),
    /// Acquire or release in a provider's event.
    Acquired(AcquiredChange),
    /// GDI or USER handle.
    Gui(GuiChange),
    /// No subject until a description gives one.
    Unknown,
}

/// Change to a heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapChange {
    Create,
    Alloc,
    ReAlloc,
    Free,
    Destroy,
}

/// Change to pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageChange {
    Alloc,
    Free,
}

/// Change to a resource of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcquiredChange {
    Acquire,
    Release,
    /// Change that cannot be followed.
    Ignored,
}

/// Returns the subject of a row kind.
pub const fn subject(kind: RowKind) -> Subject {
    match kind {
        RowKind::HandleCreate => Subject::Object(EventKind::HandleCreate),
        RowKind::HandleDuplicate => Subject::Object(EventKind::HandleDuplicate),
        RowKind::HandleClose => Subject::Object(EventKind::HandleClose),
        RowKind::ObjectCreate => Subject::Object(EventKind::ObjectCreate),
        RowKind::ObjectDelete => Subject::Object(EventKind::ObjectDelete),
        RowKind::Reference => Subject::Object(EventKind::Reference),
        RowKind::Dereference => Subject::Object(EventKind::Dereference),
        RowKind::Map => Subject::Object(EventKind::Map),
        RowKind::Unmap => Subject::Object(EventKind::Unmap),
        RowKind::HandleAtEnd => Subject::HandleAtEnd,
        RowKind::HeapCreate => Subject::Heap(HeapChange::Create),
        RowKind::HeapAlloc => Subject::Heap(HeapChange::Alloc),
        RowKind::HeapReAlloc => Subject::Heap(HeapChange::ReAlloc),
        RowKind::HeapFree => Subject::Heap(HeapChange::Free),
        RowKind::HeapDestroy => Subject::Heap(HeapChange::Destroy),
        RowKind::RangeAlloc => Subject::Pages(PageChange::Alloc),
        RowKind::RangeFree => Subject::Pages(PageChange::Free),
        RowKind::Acquire => Subject::Acquired(AcquiredChange::Acquire),
        RowKind::Release => Subject::Acquired(AcquiredChange::Release),
        RowKind::ResourceIgnored => Subject::Acquired(AcquiredChange::Ignored),
        RowKind::GuiCreate => Subject::Gui(GuiChange::Create),
        RowKind::GuiDestroy => Subject::Gui(GuiChange::Destroy),
        RowKind::GuiOwner => Subject::Gui(GuiChange::Owner),
        RowKind::GuiTransform => Subject::Gui(GuiChange::Transform),
        RowKind::Undescribed => Subject::Unknown,
    }
}

/// Returns the kind stored in the events table, or `None` for rows of other tables.
pub const fn event_kind(kind: RowKind) -> Option<EventKind> {
    match subject(kind) {
        Subject::Object(kind) => Some(kind),
        _ => None,
    }
}

impl Subject {
    /// Whether the subject is an object. All others are allocations, and their owners are kept separately.
    pub const fn is_of_object(self) -> bool {
        match self {
            Self::Object(_) | Self::HandleAtEnd => true,
            Self::Heap(_) | Self::Pages(_) | Self::Acquired(_) | Self::Gui(_) | Self::Unknown => {
                false
            }
        }
    }

    /// Whether allocations at any later time may depend on this row. What pages an event changes depends on everything
    /// before it. A heap is known by its creation. What becomes of a GDI or USER handle depends on every change of its
    /// owner and value.
    pub const fn lasts(self) -> bool {
        match self {
            Self::Pages(PageChange::Alloc | PageChange::Free)
            | Self::Heap(HeapChange::Create)
            | Self::Gui(GuiChange::Owner | GuiChange::Transform) => true,
            Self::Heap(
                HeapChange::Alloc | HeapChange::ReAlloc | HeapChange::Free | HeapChange::Destroy,
            )
            | Self::Gui(GuiChange::Create | GuiChange::Destroy)
            | Self::Acquired(_)
            | Self::Object(_)
            | Self::HandleAtEnd
            | Self::Unknown => false,
        }
    }
}
