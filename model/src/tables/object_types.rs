use super::declare::table;
use crate::index::TypeId;

/// Type id of mapped views; not a kernel type, chosen by ETWAnalyzer and kept.
pub const FILE_MAPPING_TYPE: TypeId = TypeId(1000);

/// Name of [`FILE_MAPPING_TYPE`].
pub const FILE_MAPPING_NAME: &str = "FileMapping";

/// What a type id without a row is called.
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
