//! Stack filters: each distinct frame is tested once, and each distinct stack is judged once.

use std::fmt::Write;
use std::sync::Arc;

use handlescope_model::FrameIdx;
use hashbrown::HashMap;

use super::frame_names::{Frames, NamedFrames};
use super::frame_view::{FrameIdentity, FrameView};
use handlescope_session::cancel::Cancelled;
use handlescope_session::filter::{Filter, LineMatch};
pub use handlescope_session::trace::{StackSet, StackVerdicts};

/// Judges stacks by a filter, looking up the names of their frames. Reuses verdicts of earlier queries. Notes each
/// module with missing symbols once.
pub fn judge_noting(
    filter: &Filter,
    stacks: &StackSet,
    frames: &Frames<'_>,
    needs_symbols: &mut Vec<String>,
) -> Result<Arc<StackVerdicts>, Cancelled> {
    let verdicts = judge(filter, stacks, frames)?;
    for module in &verdicts.needs_symbols {
        if !needs_symbols.contains(module) {
            needs_symbols.push(module.clone());
        }
    }
    Ok(verdicts)
}

/// Like [`judge_noting`], but does not note missing symbols.
pub fn judge(
    filter: &Filter,
    stacks: &StackSet,
    frames: &Frames<'_>,
) -> Result<Arc<StackVerdicts>, Cancelled> {
    // For a filter, an event without stack has empty text.
    let without_stack = filter.matches("");
    if filter.passes_everything() {
        let (passed, needs_symbols) = (stacks.clone(), Vec::new());
        return Ok(Arc::new(StackVerdicts { passed, without_stack, needs_symbols }));
    }
    let kept = &frames.name_cache.verdicts;
    if let Some(known) = kept.find(filter, stacks) {
        return Ok(known);
    }
    let distinct = frames.distinct(stacks.iter());
    frames.resolve_frames(distinct.iter().copied())?;
    let named = frames.named();
    let needs_symbols = named.without_names(&distinct);
    let lines = line_matches(filter, &distinct, &named);
    let passed = stacks.par_filter(|stack| {
        let frames = frames.stacks.get(stack.row());
        let line = frames.filter_map(|frame| lines.get(frame.row()).copied()).reduce(LineMatch::or);
        line.map_or(without_stack, |line| filter.accepts(line))
    });
    let verdicts = StackVerdicts { passed, without_stack, needs_symbols };
    Ok(kept.keep(filter, stacks, verdicts))
}

/// Tests the given frames and returns the results by row of the frames table. Each function is tested once, however
/// many frames it has.
fn line_matches(filter: &Filter, frames: &[FrameIdx], named: &NamedFrames<'_>) -> Vec<LineMatch> {
    let mut text = String::new();
    let mut test = |view: &FrameView<'_>| {
        text.clear();
        // Writing to a string does not fail.
        let _ = write!(text, "{view}");
        filter.line(&text)
    };
    let mut functions: HashMap<FrameIdentity<'_>, LineMatch> = HashMap::new();
    let mut lines = vec![LineMatch::default(); named.frames().height()];
    for frame in frames {
        let views = named.frames_at(*frame).map(|view| match view.identity() {
            function @ FrameIdentity::Function { .. } => {
                *functions.entry(function).or_insert_with(|| test(&view))
            }
            _ => test(&view),
        });
        if let (Some(line), Some(slot)) = (views.reduce(LineMatch::or), lines.get_mut(frame.row()))
        {
            *slot = line;
        }
    }
    lines
}
