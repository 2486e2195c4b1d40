//! Suspects, and stacks.

use super::acquired::{Acquired, ROWS_WITH_TEXTS, What, stack_text, what_columns};
use super::place::{Place, Placed, place_columns};
use crate::dataset::column::{DatasetRow, RowColumn};
use handlescope_query::StackIdentity;

/// A suspect of `.why`.
#[derive(Debug, Clone)]
pub struct SuspectRow<'t> {
    pub place: Place<'t>,
    pub what: What<'t>,
    pub stack_text: Option<String>,
    pub id: &'t str,
    pub rank: i32,
    pub process: &'t str,
    pub pid: Option<i64>,
    pub processes: i32,
    pub acquired: i64,
    pub leaked: i64,
    pub closed_at_exit: i64,
    pub bytes_unreleased: Option<i64>,
    pub verdict: &'static str,
    pub rate_per_minute: Option<f64>,
    pub score: f64,
    pub causes: String,
    pub evidence: String,
    pub observed_s: Option<f64>,
}

impl Placed for SuspectRow<'_> {
    fn place(&self) -> &Place<'_> {
        &self.place
    }
}

impl Acquired for SuspectRow<'_> {
    fn what(&self) -> &What<'_> {
        &self.what
    }
}

impl DatasetRow for SuspectRow<'_> {
    const TABLE: &'static str = "suspects";
    const BATCH_ROWS: usize = ROWS_WITH_TEXTS;

    fn columns() -> Vec<RowColumn<Self>> {
        let mut columns = place_columns();
        columns.extend([
            RowColumn::text("suspect", "Its id, as -Suspect takes it.", |row: &Self| Some(row.id)),
            RowColumn::int("rank", "Place among the suspects of its trace.", |row| Some(row.rank)),
            RowColumn::text("process", "Executable of its processes.", |row| Some(row.process)),
            RowColumn::big_int("pid", "Process id; null if they are several.", |row| row.pid),
            RowColumn::int("processes", "Number of processes that leak it.", |row| {
                Some(row.processes)
            }),
        ]);
        columns.extend(what_columns());
        columns.extend([
            stack_text(|row: &Self| row.stack_text.as_deref()),
            RowColumn::big_int("acquired", "Number acquired, each once.", |row: &Self| {
                Some(row.acquired)
            }),
            RowColumn::big_int("leaked", "Number that nothing released.", |row| Some(row.leaked)),
            RowColumn::big_int(
                "closed_at_exit",
                "Number that nothing but the exit of the process released.",
                |row| Some(row.closed_at_exit),
            ),
            RowColumn::big_int("unreleased", "leaked + closed_at_exit.", |row| {
                Some(row.leaked + row.closed_at_exit)
            }),
            RowColumn::big_int("bytes_unreleased", "Bytes of those not released.", |row| {
                row.bytes_unreleased
            }),
            RowColumn::text("verdict", "steady, burst, once, balanced or short.", |row| {
                Some(row.verdict)
            }),
            RowColumn::double(
                "rate_per_minute",
                "Number leaked per minute; null unless the leak is steady.",
                |row| row.rate_per_minute,
            ),
            RowColumn::double("score", "Score by which .why ranks.", |row| Some(row.score)),
            RowColumn::text("causes", "Words for the causes, separated by commas.", |row| {
                Some(row.causes.as_str()).filter(|causes| !causes.is_empty())
            }),
            RowColumn::text("evidence", "Evidence for the verdict, as a sentence.", |row| {
                Some(&row.evidence)
            }),
            RowColumn::double(
                "observed_s",
                "Seconds that the trace shows of its processes, all together.",
                |row| row.observed_s,
            ),
        ]);
        columns
    }
}

/// A stack that acquired or released something.
#[derive(Debug, Clone)]
pub struct StackRow<'t> {
    pub machine: Option<&'t str>,
    pub stack: &'t StackIdentity,
    pub stack_text: Option<String>,
    pub acquired: i64,
}

impl DatasetRow for StackRow<'_> {
    const TABLE: &'static str = "stacks";
    const BATCH_ROWS: usize = ROWS_WITH_TEXTS;

    fn columns() -> Vec<RowColumn<Self>> {
        vec![
            RowColumn::text("machine", "Computer that recorded the trace.", |row: &Self| {
                row.machine
            }),
            RowColumn::text(
                "stack",
                "Identity: 128 bits of the functions of the program's modules; without symbols of \
                 modules, offsets and builds.",
                |row| Some(&row.stack.id),
            ),
            RowColumn::text("frames_id", "The same of all frames.", |row| {
                Some(&row.stack.frames_id)
            }),
            RowColumn::text("function", "The program's first function.", |row| {
                Some(&row.stack.function)
            }),
            stack_text(|row| row.stack_text.as_deref()),
            RowColumn::int("frames", "Number of frames.", |row| {
                i32::try_from(row.stack.frames).ok()
            }),
            RowColumn::boolean(
                "has_symbols",
                "Whether all frames that the identity is made of have names.",
                |row| Some(row.stack.has_symbols),
            ),
            RowColumn::big_int("acquired", "Number that the stack acquired.", |row| {
                Some(row.acquired)
            }),
        ]
    }
}
