//! Kernel objects and mapped views.

use super::declare::table;
use crate::index::{EventIdx, ExistingIdx, NameIdx, RowCount, TypeId};

table! {
    /// Columns of the objects table, in id order: an object's id is its row number plus one.
    ///
    /// Objects stand in the order of their completion; those still open at the end follow, in
    /// the order of their first event.
    Objects => Objects,
    /// One lifetime of one kernel object, or of one mapped view.
    Object {
        /// Kernel address of the object, reused after its deletion. View: base | pid << 42.
        pointer: u64,
        /// Type id.
        type_id: TypeId,
        /// Name; null when the object has none or it is not known.
        name: Option<NameIdx>,
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
        /// Whether more than one process created, duplicated, referenced or mapped it.
        is_multiprocess: bool,
        /// Whether two handles were open at once.
        is_overlapped: bool,
    }
}
