//! Writes tables in parts.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle, Scope, ScopedJoinHandle};

use handlescope_model::guard::joined;
use handlescope_model::{
    ArchiveError, ArchiveWriter, Cancel, Cancelled, EncodedTable, Table, TableEncoder,
};
use polars::prelude::{DataFrame, PolarsResult};

use crate::error::ExtractError;

/// Maximum number of parts made ahead.
const BATCHES_AHEAD: usize = 1;

/// Parts of a table that a second thread makes ahead.
pub struct BatchesAhead<'scope, P> {
    batches: Receiver<P>,
    maker: Option<ScopedJoinHandle<'scope, Result<(), Cancelled>>>,
}

impl<'scope, P: Send + 'scope> BatchesAhead<'scope, P> {
    /// Starts the thread. `make` returns the next part, and `None` after the last.
    pub fn start(
        scope: &'scope Scope<'scope, '_>,
        mut make: impl FnMut() -> Result<Option<P>, Cancelled> + Send + 'scope,
    ) -> Self {
        let (made, batches) = sync_channel(BATCHES_AHEAD);
        let maker = scope.spawn(move || {
            while let Some(batch) = make()? {
                // Sending fails once the writer has stopped.
                if made.send(batch).is_err() {
                    break;
                }
            }
            Ok(())
        });
        Self { batches, maker: Some(maker) }
    }

    /// Returns the next part; `None` after the last.
    pub fn next(&mut self) -> Result<Option<P>, Cancelled> {
        if let Ok(batch) = self.batches.recv() {
            return Ok(Some(batch));
        }
        let Some(maker) = self.maker.take() else { return Ok(None) };
        joined(maker.join()).map(|()| None)
    }
}

/// Writes a table from the parts that `next` returns, until it returns `None`.
///
/// A second thread makes the next parts and a third their frames, while this one encodes and compresses the last.
pub fn write_in_batches<P: Send>(
    writer: &mut ArchiveWriter,
    table: Table,
    next: impl FnMut() -> Result<Option<P>, Cancelled> + Send,
    frame: impl Fn(P) -> PolarsResult<DataFrame> + Send,
    cancel: &Cancel,
) -> Result<(), ExtractError> {
    thread::scope(|scope| {
        let mut batches = BatchesAhead::start(scope, next);
        let mut made_frames = BatchesAhead::start(scope, move || Ok(batches.next()?.map(&frame)));
        let mut made = Ok(());
        let written = writer.table_in_parts(table, || match made_frames.next() {
            Ok(frame) => frame.filter(|_| !cancel.is_cancelled()),
            Err(cancelled) => {
                made = Err(cancelled);
                None
            }
        });
        drop(made_frames);
        made?;
        cancel.check()?;
        Ok(written?)
    })
}

/// Writes the frames that `send` sends as a table, on another thread. They go directly into the archive.
pub fn write_sent<T>(
    writer: &mut ArchiveWriter,
    table: Table,
    send: impl FnOnce(SyncSender<PolarsResult<DataFrame>>) -> Result<T, ExtractError>,
) -> Result<T, ExtractError> {
    let (sender, frames) = sync_channel(PARTS_WAITING);
    thread::scope(|scope| {
        let written = scope.spawn(|| writer.table_in_parts(table, move || frames.recv().ok()));
        let sent = send(sender);
        let written = joined(written.join());
        let sent = sent?;
        written?;
        Ok(sent)
    })
}

/// Sends the parts of a table that `next` returns to the thread that writes it, until `next` returns `None`. One thread
/// makes the parts, another their frames.
pub fn send_in_batches<P: Send>(
    to: &SyncSender<PolarsResult<DataFrame>>,
    next: impl FnMut() -> Result<Option<P>, Cancelled> + Send,
    frame: impl Fn(P) -> PolarsResult<DataFrame> + Send,
    cancel: &Cancel,
) -> Result<(), ExtractError> {
    thread::scope(|scope| {
        let mut batches = BatchesAhead::start(scope, next);
        while let Some(batch) = batches.next()? {
            // Sending fails if the table could not be written; the writing thread reports that at its end.
            if cancel.is_cancelled() || to.send(frame(batch)).is_err() {
                break;
            }
        }
        Ok(cancel.check()?)
    })
}

/// Maximum number of table parts waiting for the thread that encodes them.
const PARTS_WAITING: usize = 1;

/// Thread that encodes a table while its rows are made, or while another table is written.
///
/// If it is dropped unfinished, it takes no more parts.
pub struct TableAhead {
    thread: JoinHandle<Result<EncodedTable, ArchiveError>>,
    wanted: Arc<()>,
}

impl TableAhead {
    /// Starts the thread, which takes parts of the table until their sender is dropped.
    pub fn start<P: Send + 'static>(
        encoder: TableEncoder,
        table: Table,
        frame: fn(P) -> PolarsResult<DataFrame>,
    ) -> (SyncSender<P>, Self) {
        let (sender, parts) = sync_channel(PARTS_WAITING);
        (sender, Self::from_parts(encoder, table, move || parts.recv().ok().map(frame)))
    }

    /// Starts the thread, which calls `next` for parts of the table until that returns `None`.
    pub fn from_parts(
        encoder: TableEncoder,
        table: Table,
        mut next: impl FnMut() -> Option<PolarsResult<DataFrame>> + Send + 'static,
    ) -> Self {
        let wanted = Arc::new(());
        let is_wanted = Arc::downgrade(&wanted);
        let next = move || if is_wanted.strong_count() > 0 { next() } else { None };
        Self { thread: thread::spawn(move || encoder.encode_in_parts(table, next)), wanted }
    }

    /// Returns the whole table, once the last part has come.
    pub fn finish(self) -> Result<EncodedTable, ArchiveError> {
        let Self { thread, wanted } = self;
        let encoded = joined(thread.join());
        drop(wanted);
        encoded
    }
}
