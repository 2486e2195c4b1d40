//! Tables written in parts.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle, Scope, ScopedJoinHandle};

use handlescope_model::guard::joined;
use handlescope_model::{
    ArchiveError, ArchiveWriter, Cancel, Cancelled, EncodedTable, Table, TableEncoder,
};
use polars::prelude::{DataFrame, PolarsResult};

use crate::error::ExtractError;

/// Parts made ahead at most.
const BATCHES_AHEAD: usize = 1;

/// Parts of a table that a second thread makes ahead.
pub struct BatchesAhead<'scope, P> {
    batches: Receiver<P>,
    maker: Option<ScopedJoinHandle<'scope, Result<(), Cancelled>>>,
}

impl<'scope, P: Send + 'scope> BatchesAhead<'scope, P> {
    /// Starts the thread; `make` makes the parts, `None` after the last one.
    pub fn start(
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
/// A second thread makes the next parts, a third their frames, while this thread encodes and compresses the last.
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

/// Writes the frames that `send` sends as a table, on another thread. They go straight into the archive.
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

/// Sends parts of a table that `next` returns to the thread that writes it, until `next` returns `None`: one thread makes the
/// parts, another their frames.
pub fn send_in_batches<P: Send>(
    to: &SyncSender<PolarsResult<DataFrame>>,
    next: impl FnMut() -> Result<Option<P>, Cancelled> + Send,
    frame: impl Fn(P) -> PolarsResult<DataFrame> + Send,
    cancel: &Cancel,
) -> Result<(), ExtractError> {
    thread::scope(|scope| {
        let mut batches = BatchesAhead::start(scope, next);
        while let Some(batch) = batches.next()? {
            // Fails when the table could not be written, which its thread says at its end.
            if cancel.is_cancelled() || to.send(frame(batch)).is_err() {
                break;
            }
        }
        Ok(cancel.check()?)
    })
}

/// Parts of a table that wait for the thread that encodes it at most.
const PARTS_WAITING: usize = 1;

/// Thread that encodes a table while its rows are made, or beside the table that is written.
///
/// Dropped unfinished, it asks for no further part.
pub struct TableAhead {
    thread: JoinHandle<Result<EncodedTable, ArchiveError>>,
    wanted: Arc<()>,
}

impl TableAhead {
    /// Starts the thread, which takes the parts of the table until their sender is dropped.
    pub fn start<P: Send + 'static>(
        encoder: TableEncoder,
        table: Table,
        frame: fn(P) -> PolarsResult<DataFrame>,
    ) -> (SyncSender<P>, Self) {
        let (sender, parts) = sync_channel(PARTS_WAITING);
        (sender, Self::of_parts(encoder, table, move || parts.recv().ok().map(frame)))
    }

    /// Starts the thread, which calls `next` for the parts of the table until it returns `None`.
    pub fn of_parts(
        encoder: TableEncoder,
        table: Table,
        mut next: impl FnMut() -> Option<PolarsResult<DataFrame>> + Send + 'static,
    ) -> Self {
        let wanted = Arc::new(());
        let is_wanted = Arc::downgrade(&wanted);
        let next = move || if is_wanted.strong_count() > 0 { next() } else { None };
        Self { thread: thread::spawn(move || encoder.encode_in_parts(table, next)), wanted }
    }

    /// The whole table, once the last part came.
    pub fn finish(self) -> Result<EncodedTable, ArchiveError> {
        let Self { thread, wanted } = self;
        let encoded = joined(thread.join());
        drop(wanted);
        encoded
    }
}
