//! Rows about the trace itself, its processes and its modules.

use super::place::{Owner, Place};
use crate::dataset::column::{Utc, columns};

columns! {
    /// A trace.
    pub struct TraceRow<'t> {
        /// Computer that recorded the trace.
        pub machine: Option<&'t str>,
        /// Build given for the trace.
        pub build: Option<&'t str>,
        /// The build with numbers of equal length, so that builds sort as text.
        pub build_order: Option<&'t str>,
        /// File name of the trace.
        pub source: &'t str,
        /// Its bytes.
        pub source_bytes: i64,
        /// Build number of Windows.
        pub windows_build: Option<i32>,
        /// Session start.
        pub started_utc: Option<Utc>,
        /// End of the recording.
        pub ended_utc: Option<Utc>,
        /// Seconds that the trace covers; null without a clock.
        pub recorded_s: Option<f64>,
        /// Events in the file.
        pub events: Option<i64>,
        /// Events that the session lost.
        pub events_lost: Option<i64>,
        /// Buffers that the session lost.
        pub buffers_lost: Option<i64>,
        /// Handles and views opened.
        pub opened: i64,
        /// Handles and views never closed, as .dump ObjectRef -Leak counts them.
        pub leaked: i64,
        /// Handles closed only by process exit.
        pub closed_at_exit: i64,
        /// Allocations, each once.
        pub allocations: i64,
        /// Allocations never freed, or only by process exit.
        pub unfreed: i64,
        /// Suspects of .why.
        pub suspects: i32,
        /// Rows in the table of stacks.
        pub stacks: i64,
        /// Stacks with a frame of the program that has no name.
        pub stacks_without_symbols: i64,
        /// Version of handlescope that added the trace.
        pub extractor: &'t str,
        /// Version of the tables.
        pub schema_version: i32,
    }
}

columns! {
    /// A lifetime of a process.
    pub struct DatasetProcessRow<'t> {
        pub owner: Owner<'t>,
        /// Process id of the parent.
        pub parent_pid: i64,
        /// Path of the executable.
        pub path: Option<&'t str>,
        /// Command line.
        pub command_line: Option<&'t str>,
        /// Security identifier of the user.
        pub sid: Option<&'t str>,
        /// Identity of the executable: PDB GUID and age, or else time stamp and size.
        pub build_id: Option<&'t str>,
        /// Start; null before the trace.
        pub started_utc: Option<Utc>,
        /// The same in seconds since session start.
        pub started_s: Option<f64>,
        /// End; null if it outlived the trace.
        pub ended_utc: Option<Utc>,
        /// The same in seconds since session start.
        pub ended_s: Option<f64>,
        /// Exit code.
        pub exit_code: Option<i64>,
        /// Seconds that it ran within the trace.
        pub observed_s: Option<f64>,
    }
}

columns! {
    /// A module.
    pub struct ModuleRow<'t> {
        pub place: Place<'t>,
        /// Number of the module in its trace.
        pub module_number: i32,
        /// File name.
        pub module: &'t str,
        /// Path as the trace has it.
        pub path: Option<&'t str>,
        /// File version.
        pub file_version: Option<&'t str>,
        /// Identity: PDB GUID and age, or else time stamp and size.
        pub build_id: Option<&'t str>,
        /// File name of the PDB.
        pub pdb_name: Option<&'t str>,
        /// Bytes of the mapping.
        pub size_bytes: Option<i64>,
        /// Product.
        pub product: Option<&'t str>,
        /// Company.
        pub company: Option<&'t str>,
    }
}
