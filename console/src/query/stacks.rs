//! Stack filters: each distinct frame is tested once, each distinct stack judged once.

use std::collections::HashMap;
use std::fmt::Write;

use handlescope_model::{FrameIdx, StackIdx};

use super::frame_names::{Frames, NamedFrames};
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
        frames.resolve(stacks.iter())?;
        let named = frames.named();
        let needs_symbols = named.without_names(stacks.iter());
        let mut lines =
            Lines { filter, frames: &named, verdicts: HashMap::new(), text: String::new() };
        let mut by_stack = vec![false; stacks.0.len()];
        for stack in stacks.iter() {
            if let Some(verdict) = by_stack.get_mut(stack.row()) {
                let frames = frames.stacks.get(stack.row());
                let line = frames.map(|frame| lines.verdict(frame)).reduce(LineMatch::or);
                *verdict = line.map_or(without_stack, |line| filter.accepts(line));
            }
        }
        Ok(Self { by_stack, without_stack, needs_symbols })
    }

    /// Whether an event with this stack passes.
    pub(crate) fn passes(&self, stack: Option<StackIdx>) -> bool {
        stack.map_or(self.without_stack, |stack| {
            self.by_stack.get(stack.row()).copied().unwrap_or_default()
        })
    }
}

/// The verdicts on single frames.
struct Lines<'a> {
    filter: &'a Filter,
    frames: &'a NamedFrames<'a>,
    verdicts: HashMap<FrameIdx, LineMatch>,
    text: String,
}

impl Lines<'_> {
    fn verdict(&mut self, frame: FrameIdx) -> LineMatch {
        if let Some(&verdict) = self.verdicts.get(&frame) {
            return verdict;
        }
        let mut verdict = LineMatch::default();
        for view in self.frames.frames_at(frame) {
            self.text.clear();
            // Writing to a string does not fail.
            let _ = write!(self.text, "{view}");
            verdict = verdict.or(self.filter.line(&self.text));
        }
        self.verdicts.insert(frame, verdict);
        verdict
    }
}
