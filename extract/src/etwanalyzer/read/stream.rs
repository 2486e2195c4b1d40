//! Tables that are written while they are read, so that they are never in memory as a whole.

use std::mem::take;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use handlescope_model::{ArchiveError, EncodedTable, TableEncoder, TableRows};
use polars::prelude::{DataFrame, PolarsResult};

/// Rows of one part of a table.
const PART_ROWS: usize = 1 << 16;

/// A table under construction. Another thread encodes it part by part.
pub(super) struct Stream<'scope, T> {
    part: T,
    in_part: usize,
    sent: u64,
    parts: SyncSender<T>,
    encoded: ScopedJoinHandle<'scope, Result<EncodedTable, ArchiveError>>,
}

impl<'scope, T: TableRows + Extend<T::Row> + Default + Send + 'scope> Stream<'scope, T> {
    /// Starts a table; `frame` makes a frame of a part.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        encoder: TableEncoder,
        frame: fn(T) -> PolarsResult<DataFrame>,
    ) -> Self {
        let (parts, encode): (SyncSender<T>, Receiver<T>) = sync_channel(1);
        let encoded = scope
            .spawn(move || encoder.encode_in_parts(T::TABLE, || encode.recv().ok().map(frame)));
        Self { part: T::default(), in_part: 0, sent: 0, parts, encoded }
    }

    /// Number of rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.sent + self.in_part as u64
    }

    pub(super) fn push(&mut self, row: T::Row) {
        if self.in_part >= PART_ROWS {
            self.send();
        }
        self.part.extend([row]);
        self.in_part += 1;
    }

    fn send(&mut self) {
        self.sent += take(&mut self.in_part) as u64;
        // If it is not taken, encoding has failed; `finish` says why.
        let _ = self.parts.send(take(&mut self.part));
    }

    /// The encoded table.
    pub(super) fn finish(mut self) -> Result<EncodedTable, ArchiveError> {
        self.send();
        let Self { parts, encoded, .. } = self;
        drop(parts);
        encoded.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
