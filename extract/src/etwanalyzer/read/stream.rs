//! Tables that are written while they are read, so that they are never in memory as a whole.

use std::mem::take;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use handlescope_model::tables::{Events, ExistingHandles, Objects};
use handlescope_model::{ArchiveError, EncodedTable, Table, TableEncoder};
use polars::prelude::{DataFrame, PolarsResult};

/// Rows of one part of a table.
const PART_ROWS: usize = 1 << 16;

/// Rows of a table.
pub(super) trait Rows: Default + Send {
    const TABLE: Table;
    fn count(&self) -> usize;
    fn frame(self) -> PolarsResult<DataFrame>;
}

macro_rules! rows {
    ($($rows:ident)+) => {$(
        impl Rows for $rows {
            const TABLE: Table = Table::$rows;

            fn count(&self) -> usize {
                self.len()
            }

            fn frame(self) -> PolarsResult<DataFrame> {
                self.into_frame()
            }
        }
    )+};
}

rows! { Events ExistingHandles Objects }

/// A table under construction. Another thread encodes it part by part.
pub(super) struct Stream<'scope, T> {
    part: T,
    sent: u64,
    parts: SyncSender<T>,
    encoded: ScopedJoinHandle<'scope, Result<EncodedTable, ArchiveError>>,
}

impl<'scope, T: Rows + 'scope> Stream<'scope, T> {
    pub(super) fn start<'env>(scope: &'scope Scope<'scope, 'env>, encoder: TableEncoder) -> Self {
        let (parts, encode): (SyncSender<T>, Receiver<T>) = sync_channel(1);
        let encoded = scope.spawn(move || {
            encoder.encode_in_parts(T::TABLE, || encode.recv().ok().map(Rows::frame))
        });
        Self { part: T::default(), sent: 0, parts, encoded }
    }

    /// Number of rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.sent + self.part.count() as u64
    }

    /// The part that takes the next row.
    pub(super) fn part(&mut self) -> &mut T {
        if self.part.count() >= PART_ROWS {
            self.send();
        }
        &mut self.part
    }

    fn send(&mut self) {
        self.sent += self.part.count() as u64;
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
