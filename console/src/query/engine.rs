//! The engine of queries over tables.

use polars::prelude::{DataFrame, IntoLazy};

/// Starts the threads of the engine.
///
/// Polars starts them with the first query, and waits for ever for those that it got when the system refuses one,
/// as it may once other threads have taken what addresses there are. So they start while there are few.
pub fn start_engine() {
    // A table of nothing is one; there is nothing that could fail but for the threads.
    let _ = DataFrame::empty().lazy().collect();
}
