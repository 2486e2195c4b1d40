//! Stack filters: each distinct frame is tested once, each distinct stack judged once.

use std::fmt::Write;

use handlescope_model::{FrameIdx, StackIdx};
use hashbrown::HashMap;
use rayon::prelude::*;

use super::frame_names::{Frames, NamedFrames};
use super::frame_view::{FrameIdentity, FrameView};
use crate::cancel::Cancelled;
use crate::filter::{Filter, LineMatch};

/// A set of rows of the stacks table.
#[derive(Debug)]
pub(crate) struct StackSet(Vec<bool>);

impl StackSet {
    /// The empty set over a table of `height` stacks.
    pub(crate) fn new(height: usize) -> Self {
        Self(vec![false; height])
    }

    /// Adds the stack of an event, if it has one.
    pub(crate) fn add(&mut self, stack: Option<StackIdx>) {
        if let Some(slot) = stack.and_then(|stack| self.0.get_mut(stack.row())) {
            *slot = true;
        }
    }

    /// Adds the members of another set over the same table.
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(member, other)| *member |= other);
    }

    /// The members, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = StackIdx> + '_ {
        (0..).map(StackIdx).zip(&self.0).filter(|&(_, &member)| member).map(|(stack, _)| stack)
    }
}

/// Verdicts of a filter on stacks.
#[derive(Debug)]
pub(crate) struct StackVerdicts {
    by_stack: Vec<bool>,
    without_stack: bool,
    /// Modules whose functions have no names, so that no filter can match them.
    pub(crate) needs_symbols: Vec<String>,
}

impl StackVerdicts {
    /// Judges some stacks; the names of their frames are looked up for it.
    pub(crate) fn of(
        filter: &Filter,
        stacks: &StackSet,
        frames: &Frames<'_>,
    ) -> Result<Self, Cancelled> {
        // To a filter, an event without stack has the empty text.
        let without_stack = filter.matches("");
        if filter.passes_everything() {
            let by_stack = vec![true; stacks.0.len()];
            return Ok(Self { by_stack, without_stack, needs_symbols: Vec::new() });
        }
        let distinct = frames.distinct(stacks.iter());
        frames.resolve_frames(distinct.iter().copied())?;
        let named = frames.named();
        let needs_symbols = named.without_names(&distinct);
        let lines = line_matches(filter, &distinct, &named);
        let is_needed = stacks.0.par_iter().enumerate();
        let by_stack = is_needed.map(|(stack, is_needed)| {
            let frames = is_needed.then(|| frames.stacks.get(stack)).into_iter().flatten();
            let lines = frames.filter_map(|frame| lines.get(frame.row()).copied());
            let line = lines.reduce(LineMatch::or);
            *is_needed && line.map_or(without_stack, |line| filter.accepts(line))
        });
        let by_stack = by_stack.collect();
        Ok(Self { by_stack, without_stack, needs_symbols })
    }

    /// Whether an event with this stack passes.
    pub(crate) fn passes(&self, stack: Option<StackIdx>) -> bool {
        stack.map_or(self.without_stack, |stack| {
            self.by_stack.get(stack.row()).copied().unwrap_or_default()
        })
    }
}

/// Verdicts on some frames, by row of the frames table: each function is tested once, however many frames it has.
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
