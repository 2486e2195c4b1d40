//! Rows about suspects and stacks.

use handlescope_model::{ProcessIdx, StackIdx};

use super::place::{Place, What};
use crate::dataset::column::columns;
use crate::dataset::origin::seconds;
use crate::dataset::rows::{TraceRows, count};
use handlescope_query::{StackIdentity, Suspect};

/// A suspect of `.why`.
pub struct DatasetSuspectRow<'t> {
    pub rows: &'t TraceRows<'t>,
    pub suspect: &'t Suspect,
}

impl<'t> DatasetSuspectRow<'t> {
    fn processes(&self) -> impl Iterator<Item = ProcessIdx> {
        self.suspect.processes.iter().filter_map(|process| process.row)
    }

    fn process(&self) -> &'t str {
        let row = self.processes().next();
        row.map_or(self.suspect.program(), |row| self.rows.inventory.process(row).name.as_str())
    }

    fn what(&self) -> What<'t> {
        What {
            // As in the table `groups`.
            kind: self.suspect.kind(),
            type_name: &self.suspect.type_name,
            allocator: self.suspect.allocator.as_deref(),
            stack: self.rows.stack(self.suspect.create_stack, self.processes().next()),
        }
    }

    fn causes(&self) -> Option<String> {
        let causes: Vec<&str> =
            self.suspect.diagnoses.iter().map(|diagnosis| diagnosis.cause).collect();
        (!causes.is_empty()).then(|| causes.join(","))
    }

    fn observed_s(&self) -> Option<f64> {
        let inventory = self.rows.inventory;
        inventory.window?;
        let observed = self.processes().filter_map(|row| {
            inventory.observed(inventory.process(row)).map(|window| window.length_ns())
        });
        Some(seconds(observed.sum()))
    }
}

columns! {
    &DatasetSuspectRow<'t>: row {
        place: Place<'t> = row.rows.origin.place(row.processes().next());
        /// Its id, as -Suspect takes it.
        suspect: &'t str = row.suspect.id.text();
        /// Place among the suspects of its trace.
        rank: i32 = i32::try_from(row.suspect.rank).unwrap_or(i32::MAX);
        /// Executable of its processes.
        process: &'t str = row.process();
        /// Process id; null if they are several.
        pid: Option<i64> = row.suspect.pid.map(i64::from);
        /// Number of processes that leak it.
        processes: i32 = i32::try_from(row.suspect.processes.len()).unwrap_or(i32::MAX);
        what: What<'t> = row.what();
        /// Frames of the stack, a line for each.
        stack_text: Option<String> = row.rows.stack_text(row.suspect.create_stack);
        /// Number acquired, each once.
        acquired: i64 = count(row.suspect.counts.opened);
        /// Number never released.
        leaked: i64 = count(row.suspect.counts.leaked);
        /// Number released only by process exit.
        closed_at_exit: i64 = count(row.suspect.counts.closed_at_exit);
        /// leaked + closed_at_exit.
        unreleased: i64 = count(row.suspect.counts.unreleased());
        /// Bytes of those not released.
        bytes_unreleased: Option<i64> = row.suspect.bytes.map(|bytes| bytes.unreleased);
        /// steady, burst, once, balanced or short.
        verdict: &'static str = row.suspect.growth.verdict.word();
        /// Number leaked per minute; null unless the leak is steady.
        rate_per_minute: Option<f64> = row.suspect.rate_per_minute();
        /// Score by which .why ranks.
        score: f64 = row.suspect.score;
        /// Words for the causes, separated by commas.
        causes: Option<String> = row.causes();
        /// Evidence for the verdict, as a sentence.
        evidence: String = row.suspect.evidence();
        /// Seconds that its processes ran within the trace, added up.
        observed_s: Option<f64> = row.observed_s();
    }
}

/// A stack that acquired or released something.
pub struct StackRow<'t> {
    pub rows: &'t TraceRows<'t>,
    pub index: StackIdx,
    pub identity: &'t StackIdentity,
    /// Number that it acquired.
    pub acquired: u64,
}

columns! {
    &StackRow<'t>: row {
        /// Computer that recorded the trace.
        machine: Option<&'t str> = row.rows.origin.machine.as_deref();
        /// Identity: 128-bit hash of the functions in the program's modules; of offsets and builds in modules without symbols.
        stack: &'t str = &row.identity.id;
        /// The same for all frames.
        frames_id: &'t str = &row.identity.frames_id;
        /// The program's first function.
        function: &'t str = &row.identity.function;
        /// Frames of the stack, a line for each.
        stack_text: Option<String> = row.rows.stack_text(Some(row.index));
        /// Number of frames.
        frames: Option<i32> = i32::try_from(row.identity.frames).ok();
        /// Whether all frames in the identity have names.
        has_symbols: bool = row.identity.has_symbols;
        /// Number that the stack acquired.
        acquired: i64 = count(row.acquired);
    }
}
