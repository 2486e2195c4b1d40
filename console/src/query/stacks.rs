//! Stack filters: each distinct frame is tested once, each distinct stack judged once.

use std::collections::HashMap;
use std::fmt::Write;

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
    pub(crate) fn add(&mut self, stack: Option<u32>) {
        if let Some(slot) = stack.and_then(|stack| self.0.get_mut(stack as usize)) {
            *slot = true;
        }
    }

    /// The members, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0_u32..).zip(&self.0).filter(|&(_, &member)| member).map(|(stack, _)| stack)
    }
}

/// Which stacks pass a filter.
#[derive(Debug)]
pub(crate) struct StackVerdicts {
    by_stack: Vec<bool>,
    without_stack: bool,
}

impl StackVerdicts {
    /// Judges some stacks; the names of their frames are looked up for it.
    pub(crate) fn of(
        filter: &Filter,
        stacks: &StackSet,
        frames: &Frames<'_>,
    ) -> Result<Self, Cancelled> {
        // An event without stack has no line of text, which is the empty text to a filter.
        let without_stack = filter.matches("");
        if filter.passes_everything() {
            return Ok(Self { by_stack: vec![true; stacks.0.len()], without_stack });
        }
        frames.resolve(stacks.iter())?;
        let named = frames.named();
        let mut lines = Lines { filter, frames: &named, seen: HashMap::new(), text: String::new() };
        let mut by_stack = vec![false; stacks.0.len()];
        for stack in stacks.iter() {
            if let Some(verdict) = by_stack.get_mut(stack as usize) {
                let frames = frames.stacks.get(stack as usize);
                let line = frames.iter().map(|&frame| lines.verdict(frame)).reduce(LineMatch::or);
                *verdict = line.map_or(without_stack, |line| filter.accepts(line));
            }
        }
        Ok(Self { by_stack, without_stack })
    }

    /// Whether an event with this stack passes.
    pub(crate) fn passes(&self, stack: Option<u32>) -> bool {
        stack.map_or(self.without_stack, |stack| {
            self.by_stack.get(stack as usize).copied().unwrap_or_default()
        })
    }
}

/// The verdicts on single frames.
struct Lines<'a> {
    filter: &'a Filter,
    frames: &'a NamedFrames<'a>,
    seen: HashMap<u32, LineMatch>,
    text: String,
}

impl Lines<'_> {
    fn verdict(&mut self, frame: u32) -> LineMatch {
        if let Some(&known) = self.seen.get(&frame) {
            return known;
        }
        let mut verdict = LineMatch::default();
        for view in self.frames.frames_at(frame) {
            self.text.clear();
            // Writing to a string does not fail.
            let _ = write!(self.text, "{view}");
            verdict = verdict.or(self.filter.line(&self.text));
        }
        self.seen.insert(frame, verdict);
        verdict
    }
}
