//! Tables written in parts.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use handlescope_model::{ArchiveWriter, Cancel, Cancelled, Table};
use polars::prelude::{DataFrame, PolarsResult};

use crate::error::ExtractError;

/// Parts made ahead at most.
const BATCHES_AHEAD: usize = 2;

/// Parts of a table that a second thread makes ahead.
pub(super) struct BatchesAhead<'scope, P> {
    batches: Receiver<P>,
    maker: Option<ScopedJoinHandle<'scope, Result<(), Cancelled>>>,
}

impl<'scope, P: Send + 'scope> BatchesAhead<'scope, P> {
    /// Starts the thread; `make` makes the parts, `None` after the last one.
    pub(super) fn start(
        scope: &'scope Scope<'scope, '_>,
        mut make: impl FnMut() -> Result<Option<P>, Cancelled> + Send + 'scope,
    ) -> Self {
        let (made, batches) = sync_channel(BATCHES_AHEAD);
        let maker = scope.spawn(move || {
            while let Some(batch) = make()? {
                // Fails when the writer has stopped.
                if made.send(batch).is_err() {
                    break;
                }
            }
            Ok(())
        });
        Self { batches, maker: Some(maker) }
    }

    /// The next part, `None` after the last one.
    pub(super) fn next(&mut self) -> Result<Option<P>, Cancelled> {
        if let Ok(batch) = self.batches.recv() {
            return Ok(Some(batch));
        }
        let Some(maker) = self.maker.take() else { return Ok(None) };
        maker.join().unwrap_or_else(|panic| resume_unwind(panic)).map(|()| None)
    }
}

/// Writes a table from the parts that `next` returns, until it returns `None`.
///
/// A second thread makes the next part while this thread encodes and compresses the last.
pub(super) fn write_in_batches<P: Send>(
    writer: &mut ArchiveWriter,
    table: Table,
    next: impl FnMut() -> Result<Option<P>, Cancelled> + Send,
    frame: impl Fn(P) -> PolarsResult<DataFrame>,
    cancel: &Cancel,
) -> Result<(), ExtractError> {
    thread::scope(|scope| {
        let mut batches = BatchesAhead::start(scope, next);
        let mut made = Ok(());
        let encoded = writer.encoder().encode_in_batches(table, || match batches.next() {
            Ok(batch) => batch.filter(|_| !cancel.is_cancelled()).map(&frame),
            Err(cancelled) => {
                made = Err(cancelled);
                None
            }
        });
        drop(batches);
        made?;
        cancel.check()?;
        Ok(writer.append(encoded?)?)
    })
}
