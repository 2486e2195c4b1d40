//! The engine of queries over tables.

use polars::prelude::{DataFrame, IntoLazy};

/// Starts the threads of the engine.
///
/// Polars starts them with the first query, and waits for ever for those that it got when the system refuses one,
/// as it may once other threads have taken what addresses there are. So they start while there are few.
pub fn start_engine() {
    // An empty table is a valid one; only starting the threads could fail.
    let _ = DataFrame::empty().lazy().collect();
}
