//! Computes the texts of stacks as columns.

use handlescope_model::{StackIdx, Table, Trace};
use polars::prelude::{DataFrame, IntoColumn, PlSmallStr, StringChunkedBuilder, UInt32Chunked};

use super::error::SqlError;
use super::memory::QueryMemory;
use handlescope_query::{FrameNames, Frames, frame_lines};
use handlescope_session::cancel::{Cancel, Poll};
use handlescope_session::filter::SystemModules;
use handlescope_session::trace::FrameNameCache;

/// Bytes of text between two checks of memory.
const CHECK_EVERY: usize = 16 << 20;

/// Returns `depth`, `function` and `text` of every stack of some traces, one after the other. Resolves the names of all
/// their frames.
///
/// # Errors
/// If an archive is damaged, the texts take too much memory, or `cancel` is set.
pub fn stack_texts<'a>(
    traces: impl Iterator<Item = (&'a Trace, &'a FrameNameCache)>,
    names: &dyn FrameNames,
    system: &SystemModules,
    memory: &mut QueryMemory,
    cancel: &Cancel,
) -> Result<DataFrame, SqlError> {
    let (mut depths, mut texts) = (Vec::new(), StringChunkedBuilder::new("text".into(), 0));
    let mut functions = StringChunkedBuilder::new("function".into(), 0);
    let mut bytes = 0;
    for (trace, known) in traces {
        let stacks = trace.height(Table::Stacks)?;
        let frames = Frames::load(trace, names, known, system, cancel)?;
        frames.resolve((0..stacks).map(StackIdx::from_row))?;
        let named = frames.named();
        let mut poll = Poll::new(cancel);
        for stack in (0..stacks).map(StackIdx::from_row) {
            poll.round()?;
            let (text, depth) = frame_lines(named.stack(stack));
            let function = named.representative(stack);
            functions.append_value(function.map_or_else(String::new, |frame| frame.to_string()));
            bytes += text.len();
            if bytes > CHECK_EVERY {
                memory.check()?;
                bytes = 0;
            }
            depths.push(u32::try_from(depth).unwrap_or(u32::MAX));
            texts.append_value(text);
        }
    }
    let depths = UInt32Chunked::from_vec(PlSmallStr::from_static("depth"), depths).into_column();
    let functions = functions.finish().into_column();
    Ok(DataFrame::new(depths.len(), vec![depths, functions, texts.finish().into_column()])?)
}
