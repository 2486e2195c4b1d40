//! What processes acquired and have to give back, one row each, and the changes of reference counts.

use super::declare::{codes, table};
use super::events::{ClosedUnseen, EventKind};
use super::resources::{ResourceEnd, ResourceKind};
use crate::index::{AcquisitionIdx, AllocatorIdx, ObjectIdx, ProcessIdx, StackIdx};

codes! {
    /// Kind of an acquisition.
    AcquisitionKind {
        /// A handle.
        Handle = "handle",
        /// A mapped view.
        View = "view",
        /// A block of a heap.
        Heap = "heap",
        /// Committed pages.
        Commit = "commit",
        /// Reserved addresses.
        Reserve = "reserve",
        /// Resource acquired and released by events of a provider.
        Resource = "resource",
        /// A handle of GDI.
        Gdi = "gdi",
        /// A handle of USER.
        User = "user",
    }
}

impl AcquisitionKind {
    /// Returns the kind of an allocation; `None` for handles and views.
    pub fn of_allocation(self) -> Option<ResourceKind> {
        Some(match self {
            Self::Handle | Self::View => return None,
            Self::Heap => ResourceKind::Heap,
            Self::Commit => ResourceKind::Commit,
            Self::Reserve => ResourceKind::Reserve,
            Self::Resource => ResourceKind::Resource,
            Self::Gdi => ResourceKind::Gdi,
            Self::User => ResourceKind::User,
        })
    }
}

impl From<ResourceKind> for AcquisitionKind {
    fn from(kind: ResourceKind) -> Self {
        match kind {
            ResourceKind::Heap => Self::Heap,
            ResourceKind::Commit => Self::Commit,
            ResourceKind::Reserve => Self::Reserve,
            ResourceKind::Resource => Self::Resource,
            ResourceKind::Gdi => Self::Gdi,
            ResourceKind::User => Self::User,
        }
    }
}

codes! {
    /// How an acquisition began.
    Origin {
        /// A handle was created or opened.
        Create = "create",
        /// A handle was duplicated.
        Duplicate = "duplicate",
        /// A child inherited a handle.
        Inherit = "inherit",
        /// A view was mapped.
        Map = "map",
        /// It was allocated.
        Allocate = "allocate",
        /// A reallocation made it of another allocation.
        Reallocate = "reallocate",
        /// It was open when the trace began.
        Before = "before",
    }
}

impl Origin {
    /// Whether the trace has the opening.
    pub fn is_in_trace(self) -> bool {
        self != Self::Before
    }

    /// Whether an acquisition with this origin and `end` leaks: the trace has its opening, and nothing released it.
    pub fn is_leak(self, end: End) -> bool {
        self.is_in_trace() && end == End::Open
    }

    /// Whether an acquisition with this origin and `end` is the program's own and only the end of its process released
    /// it.
    pub fn is_leak_at_exit(self, end: End) -> bool {
        self.is_in_trace() && self != Self::Inherit && end == End::AtExit
    }

    /// Returns the origin of what an event opens; `None` for other events.
    pub fn from_event(kind: EventKind, is_inherited: bool) -> Option<Self> {
        match kind {
            EventKind::HandleCreate => Some(Self::Create),
            EventKind::HandleDuplicate if is_inherited => Some(Self::Inherit),
            EventKind::HandleDuplicate => Some(Self::Duplicate),
            EventKind::Map => Some(Self::Map),
            _ => None,
        }
    }

    /// Returns the kind of the event that opens a handle or view with this origin.
    pub fn event(self) -> Option<EventKind> {
        match self {
            Self::Create => Some(EventKind::HandleCreate),
            Self::Duplicate | Self::Inherit => Some(EventKind::HandleDuplicate),
            Self::Map => Some(EventKind::Map),
            Self::Allocate | Self::Reallocate | Self::Before => None,
        }
    }
}

codes! {
    /// How an acquisition ended.
    End {
        /// It did not.
        Open = "open",
        /// A handle was closed, or a view unmapped.
        Closed = "closed",
        /// Only the end of its process released it.
        AtExit = "at_exit",
        /// Its close was lost: its process opened or closed the same handle value again, or mapped a view at the same address.
        Reused = "reused",
        /// Its close was lost: the rundown at the end, of which nothing is missing, does not list it.
        NotInRundown = "not_in_rundown",
        /// Its close was lost: the sweep at the end of its process, of which nothing is missing, did not close it.
        ProcessEnded = "process_ended",
        /// It was freed.
        Freed = "freed",
        /// It was freed by a reallocation, which made another one of it.
        Reallocated = "reallocated",
        /// Another allocation took its place: its free was lost.
        Replaced = "replaced",
        /// The heap was destroyed.
        Destroyed = "destroyed",
        /// It had no bytes that were not allocated before.
        Empty = "empty",
    }
}

impl End {
    /// Returns the evidence of a close that the trace lost; `None` for other ends.
    pub fn unseen(self) -> Option<ClosedUnseen> {
        match self {
            Self::Reused => Some(ClosedUnseen::Reused),
            Self::NotInRundown => Some(ClosedUnseen::NotInRundown),
            Self::ProcessEnded => Some(ClosedUnseen::ProcessEnded),
            _ => None,
        }
    }

    /// Returns the end of an allocation; `None` for ends that only handles and views have.
    pub fn of_allocation(self) -> Option<ResourceEnd> {
        match self {
            Self::Open => Some(ResourceEnd::Open),
            Self::AtExit => Some(ResourceEnd::AtExit),
            Self::Freed => Some(ResourceEnd::Freed),
            Self::Reallocated => Some(ResourceEnd::Reallocated),
            Self::Replaced => Some(ResourceEnd::Replaced),
            Self::Destroyed => Some(ResourceEnd::Destroyed),
            Self::Empty => Some(ResourceEnd::Empty),
            Self::Closed | Self::Reused | Self::NotInRundown | Self::ProcessEnded => None,
        }
    }
}

impl From<ClosedUnseen> for End {
    fn from(unseen: ClosedUnseen) -> Self {
        match unseen {
            ClosedUnseen::Reused => Self::Reused,
            ClosedUnseen::NotInRundown => Self::NotInRundown,
            ClosedUnseen::ProcessEnded => Self::ProcessEnded,
        }
    }
}

impl From<ResourceEnd> for End {
    fn from(end: ResourceEnd) -> Self {
        match end {
            ResourceEnd::Open => Self::Open,
            ResourceEnd::Freed => Self::Freed,
            ResourceEnd::Reallocated => Self::Reallocated,
            ResourceEnd::Replaced => Self::Replaced,
            ResourceEnd::Destroyed => Self::Destroyed,
            ResourceEnd::AtExit => Self::AtExit,
            ResourceEnd::Empty => Self::Empty,
        }
    }
}

table! {
    /// Columns of the acquisitions table: handles and views by object, then allocations by allocator; in time order of the
    /// opening within each.
    Acquisitions => Acquisitions,
    /// A handle, a view, or an allocation or a part of one that ended separately.
    Acquisition {
        /// 0 handle, 1 view, 2 heap, 3 commit, 4 reserve, 5 resource, 6 gdi, 7 user.
        kind: u32,
        /// The object of a handle or view.
        object: Option<ObjectIdx>,
        /// The allocator of everything else.
        allocator: Option<AllocatorIdx>,
        /// The process that owns it: the target of a duplicate, the child that inherited it, System for kernel handles; null if unknown.
        process: Option<ProcessIdx>,
        /// Handle value, or the first address of a view or allocation.
        ["hex"] key: u64,
        /// Size of a view or allocation, or of a part of one that ended separately. Signed, because events may have such values.
        ["bytes"] size: Option<i64>,
        /// 0 create, 1 duplicate, 2 inherit, 3 map, 4 allocate, 5 reallocate, 6 before.
        origin: u32,
        /// Time of the opening; null if it was open before the trace. In a trace without a clock the times are only an order.
        ["ns since session start"] opened_ns: Option<i64>,
        /// Thread that opened it.
        opened_tid: Option<u32>,
        /// Stack that opened it.
        opened_stack: Option<StackIdx>,
        /// Process that opened it, if not the owner; for duplicates always, if known.
        opened_by: Option<ProcessIdx>,
        /// 0 open, 1 closed, 2 at_exit, 3 reused, 4 not_in_rundown, 5 process_ended, 6 freed, 7 reallocated, 8 replaced, 9 destroyed, 10 empty.
        end: u32,
        /// Time of the end, or the latest possible time if the trace lost the close; null while it is open.
        ["ns since session start"] ended_ns: Option<i64>,
        /// Thread that ended it.
        ended_tid: Option<u32>,
        /// Stack that ended it.
        ended_stack: Option<StackIdx>,
        /// Process that ended it, if not the owner.
        ended_by: Option<ProcessIdx>,
        /// Time at which it was still open, if the trace lost its close.
        ["ns since session start"] ended_after_ns: Option<i64>,
        /// Handle value in the close, if its tag bits differ from those in the opening.
        ["hex"] ended_key: Option<u64>,
        /// Whether the rundown at the end lists it; null in a trace without one.
        in_rundown: Option<bool>,
        /// Whether the rundown at the start lists it; null for what was not open then.
        in_start_rundown: Option<bool>,
        /// Process that a handle was duplicated from, if known; for an inherited handle the parent.
        source_process: Option<ProcessIdx>,
        /// Process id that a handle was duplicated from, as in the event.
        source_pid: Option<u32>,
        /// Handle value in the source process.
        ["hex"] source_key: Option<u64>,
        /// The first part of the same allocation; null for that part and for an allocation that ended as a whole.
        part_of: Option<AcquisitionIdx>,
        /// The allocation that was reallocated as this one.
        grown_from: Option<AcquisitionIdx>,
        /// Number of the call that freed an allocation, if one call may end several parts.
        free_call: Option<u32>,
        /// Offset of a view in the file.
        ["bytes"] byte_offset: Option<u64>,
        /// Kernel key of the file of a view.
        ["hex"] file_object: Option<u64>,
        /// Granted rights, a bit mask; null unless a dump lists the handle.
        ["hex"] granted_access: Option<u32>,
        /// Attributes of the handle, such as 2 if children inherit it; null unless a dump lists it.
        ["hex"] attributes: Option<u32>,
    }
}

table! {
    /// Columns of the reference changes table, by object, in time order within each.
    ReferenceChanges => ReferenceChanges,
    /// A change of the reference count of an object. Traces recorded with `wpr -start Handle` have none.
    ReferenceChange {
        /// The object.
        object: ObjectIdx,
        /// Time of the change.
        ["ns since session start"] time_ns: i64,
        /// Process that made the change.
        process: Option<ProcessIdx>,
        /// Thread that made the change; null if unknown.
        tid: Option<u32>,
        /// Call stack.
        stack: Option<StackIdx>,
        /// The change, signed.
        delta: i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_describe_their_numbers() {
        fn listed<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> String {
            let each =
                all.iter().enumerate().map(|(code, value)| format!("{code} {}", name(*value)));
            format!("{}.", each.collect::<Vec<_>>().join(", "))
        }
        for (spec, listed) in [
            (Acquisitions::kind.spec(), listed(&AcquisitionKind::ALL, AcquisitionKind::name)),
            (Acquisitions::origin.spec(), listed(&Origin::ALL, Origin::name)),
            (Acquisitions::end.spec(), listed(&End::ALL, End::name)),
        ] {
            assert_eq!(spec.doc.trim(), listed);
        }
    }

    #[test]
    fn ends_and_kinds_of_allocations_are_theirs() {
        for end in ResourceEnd::ALL {
            assert_eq!(End::from(end).of_allocation(), Some(end));
        }
        for kind in ResourceKind::ALL {
            assert_eq!(AcquisitionKind::from(kind).of_allocation(), Some(kind));
        }
        for unseen in ClosedUnseen::ALL {
            assert_eq!(End::from(unseen).unseen(), Some(unseen));
        }
    }
}
