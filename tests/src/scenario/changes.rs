//! Changes to what processes have open, as a scenario states them.

use super::caller::Caller;
use crate::payload::{DuplicateRecord, HandleRecord, ViewRecord};

/// Bit of the values of handles in the table of System, which threads of all processes open and close.
pub const KERNEL_HANDLE: u32 = 0x8000_0000;
/// Bits of a handle value that belong to the caller.
pub const TAG_BITS: u32 = 3;

/// A stated change to what is open.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) ns: i64,
    pub(super) caller: Caller,
    pub(super) what: What,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    /// Open since before the trace.
    Before(HandleRecord),
    Create(HandleRecord),
    Duplicate(DuplicateRecord),
    Close(HandleRecord),
    Map(ViewRecord),
    Unmap(ViewRecord),
}

/// Handles and views that a process has open when it ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Left {
    pub(super) handles: Vec<HandleRecord>,
    pub(super) views: Vec<ViewRecord>,
}
