//! Rows about what processes acquired: single acquisitions, groups, and what is open over time.

use super::place::{Owner, What};
use crate::dataset::column::{Utc, columns};

columns! {
    /// A handle, a view, or an allocation or part of one.
    pub struct AcquisitionRow<'t> {
        pub owner: Owner<'t>,
        /// Thread that acquired it.
        pub tid: Option<i64>,
        pub what: What<'t>,
        /// Handle value, or address of the view or block: an unsigned number, stored as signed.
        pub handle: Option<i64>,
        /// The same as text like 0xC0.
        pub handle_hex: Option<String>,
        /// Number of the object, as answers about the trace show it.
        pub object: Option<i64>,
        /// Name of the object.
        pub object_name: Option<&'t str>,
        /// Bytes of the view or allocation.
        pub bytes: Option<i64>,
        /// When it was opened.
        pub opened_utc: Option<Utc>,
        /// The same in seconds since session start.
        pub opened_s: Option<f64>,
        /// When it was closed; the latest possible time if the trace lost the close.
        pub closed_utc: Option<Utc>,
        /// The same in seconds since session start.
        pub closed_s: Option<f64>,
        /// open, closed, closed_at_exit or closed_unseen; of allocations open, freed, reallocated, replaced, destroyed,
        /// at_exit or empty.
        pub ended: &'static str,
        /// Whether nothing released it.
        pub is_leaked: bool,
        /// Whether it is a further part of an allocation that ended in parts.
        pub is_part: bool,
        /// Identity of the stack that released it.
        pub close_stack: Option<&'t str>,
        /// The program's first function on it.
        pub close_function: Option<&'t str>,
    }
}

columns! {
    /// What one process acquired of one type on one stack.
    pub struct DatasetGroupRow<'t> {
        pub owner: Owner<'t>,
        pub what: What<'t>,
        /// Frames of the stack, a line for each.
        pub stack_text: Option<String>,
        /// Number acquired, each once.
        pub acquired: i64,
        /// Number that the program released.
        pub released: i64,
        /// Number never released.
        pub leaked: i64,
        /// Number released only by process exit.
        pub closed_at_exit: i64,
        /// leaked + closed_at_exit.
        pub unreleased: i64,
        /// Bytes of allocations.
        pub bytes_acquired: Option<i64>,
        /// Bytes of those not released.
        pub bytes_unreleased: Option<i64>,
        /// When the first one that the program did not release was opened.
        pub first_leaked_utc: Option<Utc>,
        /// The same in seconds since session start.
        pub first_leaked_s: Option<f64>,
        /// When the last one that the program did not release was opened.
        pub last_leaked_utc: Option<Utc>,
        /// The same in seconds since session start.
        pub last_leaked_s: Option<f64>,
        /// Mean time until the program released one, in seconds.
        pub mean_lifetime_s: Option<f64>,
        /// Seconds that the process ran within the trace.
        pub observed_s: Option<f64>,
    }
}

columns! {
    /// What is open at a step of the trace.
    pub struct DatasetGrowthRow<'t> {
        pub owner: Owner<'t>,
        /// As in groups.
        pub kind: &'t str,
        /// As in groups.
        pub r#type: &'t str,
        /// Step of the trace, 1 to 60.
        pub step: i32,
        /// End of the step.
        pub at_utc: Option<Utc>,
        /// The same in seconds since session start.
        pub at_s: f64,
        /// Number open then that were acquired in the trace.
        pub open: i64,
        /// Their bytes, if they have a size.
        pub open_bytes: i64,
    }
}
