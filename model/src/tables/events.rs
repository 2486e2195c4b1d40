//! Handle, object, reference and map events.

use super::declare::{codes, table};
use crate::index::{EventIdx, ObjectIdx, ProcessIdx, StackIdx};

codes! {
    /// Action of an event.
    EventKind {
        /// A handle was created.
        HandleCreate = "handle_create",
        /// A handle was duplicated, perhaps into another process, perhaps by inheritance.
        HandleDuplicate = "handle_duplicate",
        /// A handle was closed.
        HandleClose = "handle_close",
        /// The object was created.
        ObjectCreate = "object_create",
        /// The object was deleted.
        ObjectDelete = "object_delete",
        /// The reference count rose.
        Reference = "reference",
        /// The reference count fell.
        Dereference = "dereference",
        /// A view of a file was mapped.
        Map = "map",
        /// A view was unmapped.
        Unmap = "unmap",
    }
}

impl EventKind {
    /// Returns the name of its Windows event, under which events are counted.
    pub const fn event_name(self) -> &'static str {
        match self {
            Self::HandleCreate => "CreateHandle",
            Self::HandleDuplicate => "DuplicateHandle",
            Self::HandleClose => "CloseHandle",
            Self::ObjectCreate => "CreateObject",
            Self::ObjectDelete => "DeleteObject",
            Self::Reference => "ReferenceObject",
            Self::Dereference => "DereferenceObject",
            Self::Map => "MapFile",
            Self::Unmap => "UnmapFile",
        }
    }

    /// Returns the kind of the event with this name; `None` for other events.
    pub fn from_event_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.event_name() == name)
    }
}

codes! {
    /// Evidence that a handle or view was closed, though the trace lost its close.
    ClosedUnseen {
        /// The process opened or closed the same handle value again, or mapped a view at the same address.
        Reused = "reused",
        /// The rundown at the end, of which nothing is missing, does not list it.
        NotInRundown = "not_in_rundown",
        /// The sweep of the handle table at the end of its process, of which nothing is missing, did not close it.
        ProcessEnded = "process_ended",
    }
}

table! {
    /// Columns of the events table, grouped by object, in time order within an object.
    Events => Events,
    /// One event of one object.
    Event {
        /// The object.
        object: ObjectIdx,
        /// 0 handle_create, 1 handle_duplicate, 2 handle_close, 3 object_create, 4 object_delete, 5 reference, 6 dereference, 7 map, 8 unmap.
        kind: u32,
        /// Time; only the order of the events if the trace has no clock.
        ["ns since session start"] time_ns: i64,
        /// Handle events: the owner of the handle (System for kernel handles; the parent if a child inherited it). Others: the process that acted.
        process: ProcessIdx,
        /// Thread that made the call.
        tid: u32,
        /// Handle value (handle events).
        ["hex"] handle: Option<u64>,
        /// Whether a create, duplicate or map leaks: nothing in the trace closes it or shows that it was closed.
        leaked: bool,
        /// Whether process exit made this close or unmap; for a create, duplicate or map, whether only process exit closed it (never for inherited handles).
        closed_at_exit: bool,
        /// The close or unmap that ended a create, duplicate or map.
        closing_event: Option<EventIdx>,
        /// Evidence of the close, if the trace lost it: 0 reused, 1 not_in_rundown, 2 process_ended.
        closed_unseen: Option<u32>,
        /// Time at which it was still open; null unless it was closed unseen.
        ["ns since session start"] closed_after_ns: Option<i64>,
        /// Latest possible time of the close; null unless it was closed unseen.
        ["ns since session start"] closed_before_ns: Option<i64>,
        /// Call stack.
        stack: Option<StackIdx>,
        /// Change of the reference count, signed (reference and dereference).
        ref_delta: Option<i32>,
        /// Process the handle was duplicated from, if known.
        source_process: Option<ProcessIdx>,
        /// Process id the handle was duplicated from, as in the event.
        source_pid: Option<u32>,
        /// Handle value in the source process.
        ["hex"] source_handle: Option<u64>,
        /// Process that made the call; for creates and closes only if not the owner.
        caller_process: Option<ProcessIdx>,
        /// Child process that inherited the handle.
        inherited_by: Option<ProcessIdx>,
        /// First address of the view (map and unmap).
        ["hex"] view_base: Option<u64>,
        /// Size of the view.
        ["bytes"] view_size: Option<u64>,
        /// Offset of the view in the file.
        ["bytes"] byte_offset: Option<u64>,
        /// Kernel key of the mapped file.
        ["hex"] file_object: Option<u64>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_kinds_are_inverse() {
        for (code, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.code() as usize, code);
            assert_eq!(EventKind::from_code(kind.code()), Some(kind));
            assert_eq!(EventKind::from_event_name(kind.event_name()), Some(kind));
        }
        assert_eq!(EventKind::from_code(99), None);
        for code in ClosedUnseen::ALL.map(|unseen| format!("{} {}", unseen.code(), unseen.name())) {
            assert!(Events::closed_unseen.spec().doc.contains(&code), "{code}");
        }
        assert_eq!(EventKind::from_event_name("HandleDCEnd"), None);
    }
}
