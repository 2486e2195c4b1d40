//! What processes acquired: single acquisitions, groups, and what is open over time.

use super::place::{Owned, Owner, owner_columns};
use crate::dataset::column::{DatasetRow, RowColumn};
use handlescope_query::StackIdentity;

/// What is acquired.
#[derive(Debug, Clone, Copy)]
pub struct What<'t> {
    pub kind: &'t str,
    pub type_name: &'t str,
    pub allocator: Option<&'t str>,
    /// The stack that acquired it.
    pub stack: Option<&'t StackIdentity>,
}

/// Rows of what is acquired.
pub trait Acquired {
    fn what(&self) -> &What<'_>;
}

pub fn what_columns<R: Acquired>() -> [RowColumn<R>; 5] {
    [
        RowColumn::text(
            "kind",
            "handle, view, heap, commit, reserve, resource, gdi or user.",
            |row: &R| Some(row.what().kind),
        ),
        RowColumn::text("type", "Type of the object, as in Event; else the kind.", |row: &R| {
            Some(row.what().type_name)
        }),
        RowColumn::text("allocator", "Allocator, where every trace has its name.", |row: &R| {
            row.what().allocator
        }),
        RowColumn::text(
            "stack",
            "Identity of the stack that acquired it: 128 bits of the functions of the program.",
            |row: &R| row.what().stack.map(|stack| stack.id.as_str()),
        ),
        RowColumn::text(
            "function",
            "The program's first function on it, as in app.exe!Cache::Get.",
            |row: &R| row.what().stack.map(|stack| stack.function.as_str()),
        ),
    ]
}

/// Rows in memory of a table that has the texts of stacks.
pub const ROWS_WITH_TEXTS: usize = 1 << 14;

/// The frames of the stack, which take most of the memory of a row.
pub fn stack_text<R>(text: fn(&R) -> Option<&str>) -> RowColumn<R> {
    RowColumn::text("stack_text", "Frames of the stack, a line for each.", text)
}

/// A handle, a view, or an allocation or part of one.
#[derive(Debug, Clone)]
pub struct AcquisitionRow<'t> {
    pub owner: Owner<'t>,
    pub what: What<'t>,
    pub tid: Option<i64>,
    pub key: Option<i64>,
    pub key_hex: Option<String>,
    pub object: Option<i64>,
    pub object_name: Option<&'t str>,
    pub bytes: Option<i64>,
    pub opened_us: Option<i64>,
    pub opened_s: Option<f64>,
    pub closed_us: Option<i64>,
    pub closed_s: Option<f64>,
    pub ended: &'static str,
    pub is_leaked: bool,
    pub is_part: bool,
    pub close_stack: Option<&'t StackIdentity>,
}

impl Owned for AcquisitionRow<'_> {
    fn owner(&self) -> &Owner<'_> {
        &self.owner
    }
}

impl Acquired for AcquisitionRow<'_> {
    fn what(&self) -> &What<'_> {
        &self.what
    }
}

impl DatasetRow for AcquisitionRow<'_> {
    const TABLE: &'static str = "acquisitions";

    fn columns() -> Vec<RowColumn<Self>> {
        let mut columns = owner_columns();
        columns.push(RowColumn::big_int("tid", "Thread that acquired it.", |row: &Self| row.tid));
        columns.extend(what_columns());
        columns.extend([
            RowColumn::big_int(
                "handle",
                "Handle value, or address of the view or block; the bits of an unsigned number.",
                |row: &Self| row.key,
            ),
            RowColumn::text("handle_hex", "The same as text like 0xC0.", |row| {
                row.key_hex.as_deref()
            }),
            RowColumn::big_int(
                "object",
                "Number of the object, as answers about the trace show it.",
                |row| row.object,
            ),
            RowColumn::text("object_name", "Name of the object.", |row| row.object_name),
            RowColumn::big_int("bytes", "Bytes of the view or allocation.", |row| row.bytes),
            RowColumn::timestamp("opened_utc", "When it was opened.", |row| row.opened_us),
            RowColumn::double("opened_s", "The same in seconds since session start.", |row| {
                row.opened_s
            }),
            RowColumn::timestamp(
                "closed_utc",
                "When it was closed; at the latest, where the trace lost the close.",
                |row| row.closed_us,
            ),
            RowColumn::double("closed_s", "The same in seconds since session start.", |row| {
                row.closed_s
            }),
            RowColumn::text(
                "ended",
                "open, closed, closed_at_exit or closed_unseen; of allocations open, freed, \
                 reallocated, replaced, destroyed, at_exit or empty.",
                |row| Some(row.ended),
            ),
            RowColumn::boolean("is_leaked", "Whether nothing released it.", |row| {
                Some(row.is_leaked)
            }),
            RowColumn::boolean(
                "is_part",
                "Whether it is a further part of an allocation that ended in parts.",
                |row| Some(row.is_part),
            ),
            RowColumn::text("close_stack", "Identity of the stack that released it.", |row| {
                row.close_stack.map(|stack| stack.id.as_str())
            }),
            RowColumn::text("close_function", "The program's first function on it.", |row| {
                row.close_stack.map(|stack| stack.function.as_str())
            }),
        ]);
        columns
    }
}

/// What one process acquired of one type on one stack.
#[derive(Debug, Clone)]
pub struct GroupRow<'t> {
    pub owner: Owner<'t>,
    pub what: What<'t>,
    pub stack_text: Option<String>,
    pub acquired: i64,
    pub released: i64,
    pub leaked: i64,
    pub closed_at_exit: i64,
    pub bytes_acquired: Option<i64>,
    pub bytes_unreleased: Option<i64>,
    pub first_leaked_s: Option<f64>,
    pub last_leaked_s: Option<f64>,
    pub mean_lifetime_s: Option<f64>,
    pub observed_s: Option<f64>,
}

impl Owned for GroupRow<'_> {
    fn owner(&self) -> &Owner<'_> {
        &self.owner
    }
}

impl Acquired for GroupRow<'_> {
    fn what(&self) -> &What<'_> {
        &self.what
    }
}

impl DatasetRow for GroupRow<'_> {
    const TABLE: &'static str = "groups";
    const BATCH_ROWS: usize = ROWS_WITH_TEXTS;

    fn columns() -> Vec<RowColumn<Self>> {
        let mut columns = owner_columns();
        columns.extend(what_columns());
        columns.extend([
            stack_text(|row: &Self| row.stack_text.as_deref()),
            RowColumn::big_int("acquired", "Number acquired, each once.", |row: &Self| {
                Some(row.acquired)
            }),
            RowColumn::big_int("released", "Number that the program released.", |row| {
                Some(row.released)
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
            RowColumn::big_int("bytes_acquired", "Bytes of allocations.", |row| row.bytes_acquired),
            RowColumn::big_int("bytes_unreleased", "Bytes of those not released.", |row| {
                row.bytes_unreleased
            }),
            RowColumn::double(
                "first_leaked_s",
                "When the first was opened that the program did not release, in seconds since \
                 session start.",
                |row| row.first_leaked_s,
            ),
            RowColumn::double("last_leaked_s", "The same of the last.", |row| row.last_leaked_s),
            RowColumn::double(
                "mean_lifetime_s",
                "Mean time until the program released one, in seconds.",
                |row| row.mean_lifetime_s,
            ),
            RowColumn::double(
                "observed_s",
                "Seconds that the trace shows of the process.",
                |row| row.observed_s,
            ),
        ]);
        columns
    }
}

/// What is open at a step of the trace.
#[derive(Debug, Clone)]
pub struct GrowthRow<'t> {
    pub owner: Owner<'t>,
    pub kind: &'t str,
    pub type_name: &'t str,
    pub step: i32,
    pub at_us: Option<i64>,
    pub at_s: f64,
    pub open: i64,
    pub open_bytes: i64,
}

impl Owned for GrowthRow<'_> {
    fn owner(&self) -> &Owner<'_> {
        &self.owner
    }
}

impl DatasetRow for GrowthRow<'_> {
    const TABLE: &'static str = "growth";

    fn columns() -> Vec<RowColumn<Self>> {
        let mut columns = owner_columns();
        columns.extend([
            RowColumn::text("kind", "As in groups.", |row: &Self| Some(row.kind)),
            RowColumn::text("type", "As in groups.", |row| Some(row.type_name)),
            RowColumn::int("step", "Step of the trace, 1 to 60.", |row| Some(row.step)),
            RowColumn::timestamp("at_utc", "End of the step.", |row| row.at_us),
            RowColumn::double("at_s", "The same in seconds since session start.", |row| {
                Some(row.at_s)
            }),
            RowColumn::big_int(
                "open",
                "Number open then, of those acquired in the trace.",
                |row| Some(row.open),
            ),
            RowColumn::big_int("open_bytes", "Bytes of these, as far as they have some.", |row| {
                Some(row.open_bytes)
            }),
        ]);
        columns
    }
}
