//! Subjects of timeline rows.

use handlescope_model::EventKind;

use crate::described::GuiChange;
use crate::raw::RowKind;

/// Subject of a timeline row, and the change to it.
///
/// [`subject`] gives one to every kind of rows. What follows a subject matches all that can happen to it, so that a
/// kind of rows which is new cannot be left out unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A row of the events table.
    Object(EventKind),
    /// A handle that was open at the end.
    HandleAtEnd,
    /// A heap or a block of one.
    Heap(HeapChange),
    /// Reserved and committed pages.
    Pages(PageChange),
    /// Acquire or release by an event of a provider.
    Acquired(AcquiredChange),
    /// A handle of GDI or USER.
    Gui(GuiChange),
    /// No subject, as long as no description gives one.
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
    /// A change that cannot be followed.
    Ignored,
}

/// Returns the subject of a kind of rows.
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

/// The kind a row is stored as in the events table; `None` for rows of other tables.
pub const fn event_kind(kind: RowKind) -> Option<EventKind> {
    match subject(kind) {
        Subject::Object(kind) => Some(kind),
        _ => None,
    }
}

impl Subject {
    /// Whether it is about an object. All further subjects are allocations, whose owners are separate.
    pub const fn is_of_object(self) -> bool {
        match self {
            Self::Object(_) | Self::HandleAtEnd => true,
            Self::Heap(_) | Self::Pages(_) | Self::Acquired(_) | Self::Gui(_) | Self::Unknown => {
                false
            }
        }
    }

    /// Whether allocations of any later time may depend on it. Which pages an event changes depends on all that
    /// came before it; a heap is known by its creation, and what becomes of a handle of GDI or USER by every change
    /// of its owner and value.
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
