//! Rows about suspects and stacks.

use super::place::{Place, What};
use crate::dataset::column::columns;

columns! {
    /// A suspect of `.why`.
    pub struct DatasetSuspectRow<'t> {
        pub place: Place<'t>,
        /// Its id, as -Suspect takes it.
        pub suspect: &'t str,
        /// Place among the suspects of its trace.
        pub rank: i32,
        /// Executable of its processes.
        pub process: &'t str,
        /// Process id; null if they are several.
        pub pid: Option<i64>,
        /// Number of processes that leak it.
        pub processes: i32,
        pub what: What<'t>,
        /// Frames of the stack, a line for each.
        pub stack_text: Option<String>,
        /// Number acquired, each once.
        pub acquired: i64,
        /// Number never released.
        pub leaked: i64,
        /// Number released only by process exit.
        pub closed_at_exit: i64,
        /// leaked + closed_at_exit.
        pub unreleased: i64,
        /// Bytes of those not released.
        pub bytes_unreleased: Option<i64>,
        /// steady, burst, once, balanced or short.
        pub verdict: &'static str,
        /// Number leaked per minute; null unless the leak is steady.
        pub rate_per_minute: Option<f64>,
        /// Score by which .why ranks.
        pub score: f64,
        /// Words for the causes, separated by commas.
        pub causes: Option<String>,
        /// Evidence for the verdict, as a sentence.
        pub evidence: String,
        /// Seconds that its processes ran within the trace, added up.
        pub observed_s: Option<f64>,
    }
}

columns! {
    /// A stack that acquired or released something.
    pub struct StackRow<'t> {
        /// Computer that recorded the trace.
        pub machine: Option<&'t str>,
        /// Identity: 128-bit hash of the functions in the program's modules; of offsets and builds in modules without symbols.
        pub stack: &'t str,
        /// The same for all frames.
        pub frames_id: &'t str,
        /// The program's first function.
        pub function: &'t str,
        /// Frames of the stack, a line for each.
        pub stack_text: Option<String>,
        /// Number of frames.
        pub frames: Option<i32>,
        /// Whether all frames in the identity have names.
        pub has_symbols: bool,
        /// Number that the stack acquired.
        pub acquired: i64,
    }
}
