//! Stacks of any event.

use super::declare::table;
use crate::index::{ProcessIdx, StackIdx};

table! {
    /// Columns of the stack events table; empty unless every stack is kept.
    StackEvents => StackEvents,
    /// One stack that was recorded, with the event it belongs to: a CPU sample, a context switch,
    /// a disk access, a handle event or any other.
    StackEvent {
        /// When the event happened.
        ["ns since session start"] time_ns: i64,
        /// The process; null when no process of this id is known.
        process: Option<ProcessIdx>,
        /// Process id.
        pid: u32,
        /// Thread id.
        tid: u32,
        /// The stack; null when no frame of it came.
        stack: Option<StackIdx>,
    }
}
