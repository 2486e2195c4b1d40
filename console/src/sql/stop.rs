//! Asking a query to end that runs on a thread of its own.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use polars::prelude::{PolarsError, PolarsResult};

/// Asks one query to stop. Unlike [`crate::cancel::Cancel`] it is not reset for the next command, which
/// may come while this query still looks for its end.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn check(&self) -> PolarsResult<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(PolarsError::ComputeError("stopped".into())),
            false => Ok(()),
        }
    }
}
