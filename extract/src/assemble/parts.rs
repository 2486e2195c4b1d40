//! Tables written in parts.

use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::thread;

use handlescope_model::{ArchiveWriter, Cancel, Cancelled, Table};
use polars::prelude::{DataFrame, PolarsResult};

use crate::error::ExtractError;

/// Writes a table of which `next` makes the parts, `None` behind the last one.
///
/// One thread makes the next part while this one encodes and compresses the last.
pub(super) fn write_in_parts<P: Send>(
    writer: &mut ArchiveWriter,
    table: Table,
    mut next: impl FnMut() -> Result<Option<P>, Cancelled> + Send,
    frame: impl Fn(P) -> PolarsResult<DataFrame>,
    cancel: &Cancel,
) -> Result<(), ExtractError> {
    thread::scope(|scope| {
        let (parts, encode) = sync_channel(2);
        let build = scope.spawn(move || {
            while let Some(part) = next()? {
                if parts.send(part).is_err() {
                    break;
                }
            }
            Ok::<_, Cancelled>(())
        });
        let encoded = writer.encoder().encode_in_parts(table, || {
            let part = encode.recv().ok().filter(|_| !cancel.is_cancelled());
            part.map(&frame)
        });
        // Without a receiver the builder ends after the part at hand.
        drop(encode);
        build.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        cancel.check()?;
        Ok(writer.append(encoded?)?)
    })
}
