//! Objects, their names and types, and the handles that were open at the start and at the end.

use super::declare::table;
use crate::index::{
    AcquisitionIdx, EventIdx, ExistingIdx, NameIdx, ObjectIdx, ProcessIdx, RowCount, StackIdx,
    TypeId,
};

table! {
    /// Columns of the objects table, in id order: an object's id is its row number plus one.
    ///
    /// Objects stand in the order of their completion; those still open at the end follow, in
    /// the order of their first event, and then those that only the rundown at the start has.
    Objects => Objects,
    /// One lifetime of one kernel object, or of one mapped view.
    Object {
        /// Kernel address of the object, reused after its deletion. View: base | pid << 42.
        ["hex"] pointer: u64,
        /// Type id.
        type_id: TypeId,
        /// Name; null when the object has none or it is not known.
        name: Option<NameIdx>,
        /// First of the handles and views of the object.
        first_acquisition: AcquisitionIdx,
        /// Number of these, which are consecutive.
        acquisition_count: RowCount<AcquisitionIdx>,
        /// Time at which the object was created; null where no object event says so.
        ["ns since session start"] created_ns: Option<i64>,
        /// Thread that created it.
        created_tid: Option<u32>,
        /// Process whose thread created it.
        created_process: Option<ProcessIdx>,
        /// Stack that created it.
        created_stack: Option<StackIdx>,
        /// Time at which the object was deleted; null where no object event says so.
        ["ns since session start"] deleted_ns: Option<i64>,
        /// Thread that deleted it.
        deleted_tid: Option<u32>,
        /// Process whose thread deleted it.
        deleted_process: Option<ProcessIdx>,
        /// Stack that deleted it.
        deleted_stack: Option<StackIdx>,
        /// Whether more than one process created, duplicated, referenced or mapped it.
        is_multiprocess: bool,
        /// Whether two handles were open at once.
        is_overlapped: bool,
        /// Number of handles to the object; null unless a dump lists it.
        handle_count: Option<u32>,
        /// Number of references to the object; null unless a dump lists it.
        pointer_count: Option<u32>,
    }
}

table! {
    /// Columns that follow from the acquisitions of each object.
    ObjectSpans => ObjectSpans,
    /// Where the events and open handles of an object are.
    ObjectSpan {
        /// First of the object's events.
        first_event: EventIdx,
        /// Number of its events, which are consecutive.
        event_count: RowCount<EventIdx>,
        /// First of the object's handles in the end rundown.
        first_existing: ExistingIdx,
        /// Number of those handles, which are consecutive.
        existing_count: RowCount<ExistingIdx>,
        /// The event that created it: object create, else first map or handle create, else first duplicate.
        create_event: Option<EventIdx>,
        /// The event that ended it: object delete, else last unmap, else the last close when all handles are closed.
        destroy_event: Option<EventIdx>,
    }
}

table! {
    /// Columns of the names table: every distinct object name once.
    Names => Names,
    /// One object name.
    Name {
        /// The name, as in \Sessions\1\BaseNamedObjects\X; never empty.
        name: String,
    }
}

/// Type id of mapped views; not a kernel type, chosen by ETWAnalyzer and kept.
pub const FILE_MAPPING_TYPE: TypeId = TypeId(1000);

/// Name of [`FILE_MAPPING_TYPE`].
pub const FILE_MAPPING_NAME: &str = "FileMapping";

/// Name of a type id without a row.
pub const UNKNOWN_TYPE_NAME: &str = "UnknownType";

table! {
    /// Columns of the object types table.
    ObjectTypes => ObjectTypes,
    /// One object type of the recording system; the ids differ between Windows builds.
    ObjectType {
        /// Type id as in the events.
        type_id: TypeId,
        /// Name, as in Event or File.
        name: String,
    }
}

table! {
    /// Columns of the existing handles table, grouped by object.
    ExistingHandles => ExistingHandles,
    /// A handle open at the end of the trace.
    ExistingHandle {
        /// The object.
        object: ObjectIdx,
        /// The process that owns the handle.
        process: ProcessIdx,
        /// Handle value.
        ["hex"] handle: u64,
        /// Rights that were granted, a bit mask; null unless a dump lists the handle.
        ["hex"] granted_access: Option<u32>,
        /// Attributes of the handle, as in 2 for one that children inherit; null unless a dump lists it.
        ["hex"] attributes: Option<u32>,
        /// Number of handles to the object; null unless a dump lists it.
        handle_count: Option<u32>,
        /// Number of references to the object; null unless a dump lists it.
        pointer_count: Option<u32>,
    }
}

table! {
    /// Columns of the start handles table; they explain closes without a create, and count in traces without a rundown at the end.
    StartHandles => StartHandles,
    /// A handle open at the start of the trace.
    StartHandle {
        /// Kernel address of the object.
        ["hex"] pointer: u64,
        /// The process that owns the handle, where known.
        process: Option<ProcessIdx>,
        /// Process id as in the event.
        pid: u32,
        /// Handle value.
        ["hex"] handle: u64,
        /// Type id.
        type_id: TypeId,
        /// Object name.
        name: Option<NameIdx>,
        /// Whether its process closed a handle of this value later in the trace.
        closed: bool,
    }
}
