//! Handles that were open when the trace began or ended, from the rundowns.

use crate::{NameIdx, ObjectIdx, ProcessIdx};

table! {
    /// Columns of the existing handles table, grouped by object.
    ExistingHandles,
    /// A handle open at the end of the trace.
    ExistingHandle {
        /// The object.
        ["row of objects"] object: ObjectIdx,
        /// The process that owns the handle.
        ["row of processes"] process: ProcessIdx,
        /// Handle value.
        handle: u64,
    }
}

table! {
    /// Columns of the start handles table; they explain closes without a create and count nowhere.
    StartHandles,
    /// A handle open at the start of the trace.
    StartHandle {
        /// Kernel address of the object.
        pointer: u64,
        /// The process that owns the handle, where known.
        ["row of processes"] process: Option<ProcessIdx>,
        /// Process id as in the event.
        pid: u32,
        /// Handle value.
        handle: u64,
        /// Type id.
        ["object_types.type_id"] type_id: u32,
        /// Object name.
        ["row of names"] name: Option<NameIdx>,
    }
}
