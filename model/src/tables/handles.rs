//! Handles that were open when the trace began or ended, from the rundowns.

use super::declare::table;
use crate::index::{NameIdx, ObjectIdx, ProcessIdx, TypeId};

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
        handle: u64,
    }
}

table! {
    /// Columns of the start handles table; they explain closes without a create, and count in traces without a rundown at the end.
    StartHandles => StartHandles,
    /// A handle open at the start of the trace.
    StartHandle {
        /// Kernel address of the object.
        pointer: u64,
        /// The process that owns the handle, where known.
        process: Option<ProcessIdx>,
        /// Process id as in the event.
        pid: u32,
        /// Handle value.
        handle: u64,
        /// Type id.
        type_id: TypeId,
        /// Object name.
        name: Option<NameIdx>,
        /// Whether its process closed a handle of this value later in the trace.
        closed: Option<bool>,
    }
}
