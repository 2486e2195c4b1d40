//! Kernel objects and mapped views.

use crate::{EventIdx, NameIdx};

table! {
    /// Columns of the objects table, in id order: an object's id is its row number plus one.
    ///
    /// Objects stand in the order of their completion; those still open at the end follow, in
    /// the order of their first event.
    Objects,
    /// One lifetime of one kernel object, or of one mapped view.
    Object {
        /// Kernel address of the object, reused after its deletion. View: base | pid << 42.
        pointer: u64,
        /// Type id.
        ["object_types.type_id"] type_id: u32,
        /// Name; null when the object has none or it was never told.
        ["row of names"] name: Option<NameIdx>,
        /// First of the object's events.
        ["row of events"] first_event: EventIdx,
        /// Number of its events, which stand together.
        event_count: u32,
        /// First of the object's handles in the end rundown.
        ["row of existing_handles"] first_existing: u32,
        /// Number of those handles, which stand together.
        existing_count: u32,
        /// The event that created it: object create, else first map or handle create, else first duplicate.
        ["row of events"] create_event: Option<EventIdx>,
        /// The event that ended it: object delete, else last unmap, else the last close when all handles are closed.
        ["row of events"] destroy_event: Option<EventIdx>,
        /// Whether more than one process created, duplicated, referenced or mapped it.
        is_multiprocess: bool,
        /// Whether two handles were open at once.
        is_overlapped: bool,
    }
}
