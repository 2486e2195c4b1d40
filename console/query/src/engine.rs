//! The engine of queries over tables.

use polars::error::{PolarsWarning, set_warning_function};
use polars::prelude::{DataFrame, IntoLazy};

/// Starts the threads of the engine.
///
/// Polars starts its threads with the first query, and hangs if the system refuses one, which happens when other
/// threads use up the address space. Starting them early, while there are few threads, avoids this.
pub fn start_engine() {
    // Polars would write to standard error, about plans that it makes itself.
    set_warning_function(|_: &str, _: PolarsWarning| ());
    // An empty table is a valid one; only starting the threads could fail.
    let _ = DataFrame::empty().lazy().collect();
}
