//! Processes and threads.

use super::declare::table;
use crate::index::ProcessIdx;

table! {
    /// Columns of the processes table: one row per lifetime, so a reused pid has several.
    Processes => Processes,
    /// One lifetime of one process.
    Process {
        /// Process id; reused over time.
        pid: u32,
        /// Process id of the parent.
        parent_pid: u32,
        /// Unique process key (kernel address of the process object).
        ["hex"] key: u64,
        /// Image file name without path, as the kernel reports it.
        name: String,
        /// Path of the executable, if an image event names it.
        image_path: Option<String>,
        /// Command line, cut at 1024 characters by Windows.
        command_line: String,
        /// Windows session; null for system processes.
        session_id: Option<u32>,
        /// Security identifier of the user, as text.
        sid: Option<String>,
        /// Start; null if the process started before the trace.
        ["ns since session start"] start_ns: Option<i64>,
        /// End; null if the process outlived the trace.
        ["ns since session start"] end_ns: Option<i64>,
        /// Exit code, if the trace has the end.
        exit_code: Option<i32>,
    }
}

table! {
    /// Columns of the table of zombies.
    Zombies => Zombies,
    /// A process that has ended but is kept in memory, nearly always by an open handle.
    Zombie {
        /// The same process; null if the trace has nothing else about it.
        process: Option<ProcessIdx>,
        /// Process id; reused over time.
        pid: u32,
        /// Process id of the parent.
        parent_pid: u32,
        /// Unique process key (kernel address of the process object).
        ["hex"] key: u64,
        /// Image file name without path, as the kernel reports it.
        name: String,
        /// Command line, cut at 1024 characters by Windows.
        command_line: String,
        /// Windows session; null for system processes.
        session_id: Option<u32>,
        /// Security identifier of the user, as text.
        sid: Option<String>,
        /// Exit code.
        exit_code: i32,
        /// End, negative before the session start; null if no event has it.
        ["ns since session start"] exit_ns: Option<i64>,
        /// Time of the last rundown that lists it.
        ["ns since session start"] listed_ns: i64,
    }
}

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
        /// Start; null if the trace lacks it.
        ["ns since session start"] start_ns: Option<i64>,
        /// End; null if the trace lacks it.
        ["ns since session start"] end_ns: Option<i64>,
        /// Process that started it; null if the trace lacks the start.
        creator_pid: Option<u32>,
        /// Thread that started it; null if the trace lacks the start.
        creator_tid: Option<u32>,
        /// Address of its start function; null if no event has it.
        ["hex"] start_address: Option<u64>,
    }
}
