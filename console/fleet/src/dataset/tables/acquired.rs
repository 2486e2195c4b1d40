//! Rows about what processes acquired: single acquisitions, groups, and what is open over time.

use super::place::{Owner, What};
use crate::dataset::column::{Utc, columns};
use crate::dataset::origin::{Origin, seconds};
use crate::dataset::rows::{TraceRows, count};
use handlescope_query::{Acquisition, InventoryGroup, OpenAt, StackIdentity};

/// A handle, a view, or an allocation or part of one.
pub struct AcquisitionRow<'t> {
    pub origin: &'t Origin,
    pub owner: Owner<'t>,
    pub what: What<'t>,
    pub acquisition: Acquisition<'t>,
    /// The stack that released it.
    pub close_stack: Option<&'t StackIdentity>,
}

columns! {
    &AcquisitionRow<'t>: row {
        owner: Owner<'t> = row.owner;
        /// Thread that acquired it.
        tid: Option<i64> = row.acquisition.tid.map(i64::from);
        what: What<'t> = row.what;
        /// Handle value, or address of the view or block: an unsigned number, stored as signed.
        handle: Option<i64> = row.acquisition.key.map(u64::cast_signed);
        /// The same as text like 0xC0.
        handle_hex: Option<String> = row.acquisition.key.map(|key| format!("0x{key:X}"));
        /// Number of the object, as answers about the trace show it.
        object: Option<i64> = row.acquisition.object.and_then(|object| i64::try_from(object).ok());
        /// Name of the object.
        object_name: Option<&'t str> = row.acquisition.object_name;
        /// Bytes of the view or allocation.
        bytes: Option<i64> = row.acquisition.bytes;
        /// When it was opened.
        opened_utc: Option<Utc> = row.origin.utc(row.acquisition.opened_ns);
        /// The same in seconds since session start.
        opened_s: Option<f64> = row.origin.seconds(row.acquisition.opened_ns);
        /// When it was closed; the latest possible time if the trace lost the close.
        closed_utc: Option<Utc> = row.acquisition.closed_ns.and_then(|ns| row.origin.utc(ns));
        /// The same in seconds since session start.
        closed_s: Option<f64> = row.acquisition.closed_ns.and_then(|ns| row.origin.seconds(ns));
        /// open, closed, closed_at_exit or closed_unseen; of allocations open, freed, reallocated, replaced, destroyed,
        /// at_exit or empty.
        ended: &'static str = row.acquisition.ended;
        /// Whether nothing released it.
        is_leaked: bool = row.acquisition.is_leaked;
        /// Whether it is a further part of an allocation that ended in parts.
        is_part: bool = row.acquisition.is_part;
        /// Identity of the stack that released it.
        close_stack: Option<&'t str> = row.close_stack.map(|stack| stack.id.as_str());
        /// The program's first function on it.
        close_function: Option<&'t str> = row.close_stack.map(|stack| stack.function.as_str());
    }
}

/// What one process acquired of one type on one stack.
pub struct DatasetGroupRow<'t> {
    pub rows: &'t TraceRows<'t>,
    pub owner: Owner<'t>,
    pub what: What<'t>,
    pub group: &'t InventoryGroup,
}

impl DatasetGroupRow<'_> {
    fn first_leaked(&self) -> Option<i64> {
        self.group.leaked_ns.map(|(first, _)| first)
    }

    fn last_leaked(&self) -> Option<i64> {
        self.group.leaked_ns.map(|(_, last)| last)
    }

    fn mean_lifetime_s(&self) -> Option<f64> {
        let ns = self.group.mean_lifetime_ns?;
        self.rows.origin.info.has_clock().then(|| ns / 1e9)
    }
}

columns! {
    &DatasetGroupRow<'t>: row {
        owner: Owner<'t> = row.owner;
        what: What<'t> = row.what;
        /// Frames of the stack, a line for each.
        stack_text: Option<String> = row.rows.stack_text(row.group.stack);
        /// Number acquired, each once.
        acquired: i64 = count(row.group.counts.opened);
        /// Number that the program released.
        released: i64 = count(row.group.released());
        /// Number never released.
        leaked: i64 = count(row.group.counts.leaked);
        /// Number released only by process exit.
        closed_at_exit: i64 = count(row.group.counts.closed_at_exit);
        /// leaked + closed_at_exit.
        unreleased: i64 = count(row.group.counts.unreleased());
        /// Bytes of allocations.
        bytes_acquired: Option<i64> = row.group.bytes.map(|bytes| bytes.allocated);
        /// Bytes of those not released.
        bytes_unreleased: Option<i64> = row.group.bytes.map(|bytes| bytes.unreleased);
        /// When the first one that the program did not release was opened.
        first_leaked_utc: Option<Utc> = row.first_leaked().and_then(|ns| row.rows.origin.utc(ns));
        /// The same in seconds since session start.
        first_leaked_s: Option<f64> = row.first_leaked().and_then(|ns| row.rows.origin.seconds(ns));
        /// When the last one that the program did not release was opened.
        last_leaked_utc: Option<Utc> = row.last_leaked().and_then(|ns| row.rows.origin.utc(ns));
        /// The same in seconds since session start.
        last_leaked_s: Option<f64> = row.last_leaked().and_then(|ns| row.rows.origin.seconds(ns));
        /// Mean time until the program released one, in seconds.
        mean_lifetime_s: Option<f64> = row.mean_lifetime_s();
        /// Seconds that the process ran within the trace.
        observed_s: Option<f64> = row.rows.origin.seconds(row.group.observed_ns);
    }
}

/// What is open at a step of the trace.
pub struct DatasetGrowthRow<'t> {
    pub origin: &'t Origin,
    pub owner: Owner<'t>,
    pub at: OpenAt<'t>,
}

columns! {
    &DatasetGrowthRow<'t>: row {
        owner: Owner<'t> = row.owner;
        /// As in groups.
        kind: &'t str = &row.at.group.kind;
        /// As in groups.
        r#type: &'t str = &row.at.group.type_name;
        /// Step of the trace, 1 to 60.
        step: i32 = i32::try_from(row.at.step).unwrap_or(i32::MAX);
        /// End of the step.
        at_utc: Option<Utc> = row.origin.utc(row.at.at_ns);
        /// The same in seconds since session start.
        at_s: f64 = seconds(row.at.at_ns);
        /// Number open then that were acquired in the trace.
        open: i64 = row.at.open;
        /// Their bytes, if they have a size.
        open_bytes: i64 = row.at.bytes;
    }
}
