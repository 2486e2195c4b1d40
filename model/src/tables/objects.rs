//! Objects, their names and types.

use super::declare::table;
use crate::index::{AcquisitionIdx, NameIdx, ProcessIdx, RowCount, StackIdx, TypeId};

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
        /// Name; null if the object has none or it is unknown.
        name: Option<NameIdx>,
        /// First handle or view of the object.
        first_acquisition: AcquisitionIdx,
        /// Number of its handles and views, which are consecutive.
        acquisition_count: RowCount<AcquisitionIdx>,
        /// Time at which the object was created; null if no object event says so.
        ["ns since session start"] created_ns: Option<i64>,
        /// Thread that created it.
        created_tid: Option<u32>,
        /// Process that created it.
        created_process: Option<ProcessIdx>,
        /// Stack that created it.
        created_stack: Option<StackIdx>,
        /// Time at which the object was deleted; null if no object event says so.
        ["ns since session start"] deleted_ns: Option<i64>,
        /// Thread that deleted it.
        deleted_tid: Option<u32>,
        /// Process that deleted it.
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
    /// Columns of the names table: every distinct object name once.
    Names => Names,
    /// One object name.
    Name {
        /// The name, as in \Sessions\1\BaseNamedObjects\X; never empty.
        name: String,
    }
}

/// Type id of mapped views. It is not a kernel type; ETWAnalyzer chose it and this program kept it.
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
