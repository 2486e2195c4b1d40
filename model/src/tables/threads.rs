use super::declare::table;
use crate::index::ProcessIdx;

table! {
    /// Columns of the threads table.
    Threads => Threads,
    /// One lifetime of one thread id.
    Thread {
        /// The process; null when no process of this id is known.
        process: Option<ProcessIdx>,
        /// Process id.
        pid: u32,
        /// Thread id; reused over time.
        tid: u32,
        /// Start; null when it was not seen.
        ["ns since session start"] start_ns: Option<i64>,
        /// End; null when it was not seen.
        ["ns since session start"] end_ns: Option<i64>,
        /// Process that started it; null when that was not seen.
        creator_pid: Option<u32>,
        /// Thread that started it; null when that was not seen.
        creator_tid: Option<u32>,
        /// Address of the function that it was started with; null where no event has it.
        start_address: Option<u64>,
    }
}
