//! What the frames of stacks are called, as columns.

use std::fmt::Write;

use handlescope_model::{StackIdx, Table, Trace};
use polars::prelude::{
    DataFrame, IntoColumn, NewChunkedArray, PlSmallStr, StringChunked, UInt32Chunked,
};

use super::error::SqlError;
use crate::{
    cancel::{Cancel, Poll},
    query::{FrameNames, Frames},
    trace::FrameNameCache,
};

/// `depth` and `text` of every stack of some traces, one behind the other. Looks for the names of all
/// their frames.
///
/// # Errors
/// When an archive is damaged, or `cancel` asks to stop.
pub(super) fn stack_texts<'a>(
    traces: impl Iterator<Item = (&'a Trace, &'a FrameNameCache)>,
    names: &dyn FrameNames,
    cancel: &Cancel,
) -> Result<DataFrame, SqlError> {
    let (mut depths, mut texts) = (Vec::new(), Vec::<String>::new());
    for (trace, memory) in traces {
        let stacks = trace.height(Table::Stacks)?;
        let frames = Frames::load(trace, names, memory, cancel)?;
        frames.resolve((0..stacks).map(StackIdx::of))?;
        let named = frames.named();
        let mut poll = Poll::new(cancel);
        for stack in (0..stacks).map(StackIdx::of) {
            poll.round()?;
            let (mut depth, mut text) = (0_u32, String::new());
            for frame in named.stack(stack) {
                let line_end = if depth > 0 { "\n" } else { "" };
                // Writing to a string does not fail.
                let _ = write!(text, "{line_end}{frame}");
                depth += 1;
            }
            depths.push(depth);
            texts.push(text);
        }
    }
    let depths = UInt32Chunked::from_vec(PlSmallStr::from_static("depth"), depths).into_column();
    let texts = StringChunked::from_iter_values(PlSmallStr::from_static("text"), texts.into_iter());
    Ok(DataFrame::new(depths.len(), vec![depths, texts.into_column()])?)
}
