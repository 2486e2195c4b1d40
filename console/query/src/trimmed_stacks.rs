//! Equality of stacks: stacks with the same functions are equal, whatever their addresses. Code with neither module nor
//! name is equal only at the same address in the same process.

use std::hash::{BuildHasher, Hash, Hasher};

use handlescope_model::{FrameIdx, StackIdx, sentinel};
use hashbrown::HashTable;
use rayon::prelude::*;

use crate::context::FileContext;
use crate::criteria::StackTrims;
use crate::error::QueryError;
use crate::frame_names::{Frames, NamedFrames};
use crate::frame_view::FrameView;
use crate::program_frames::representative;
use crate::selection::{EventMask, Selection};
use crate::stacks::StackSet;
use handlescope_session::filter::Filter;

/// The trimmed stacks of a trace that groups need, each mapped to the first equal one.
pub struct TrimmedStacks {
    /// First equal stack, by row of the stacks table.
    equal: Vec<StackIdx>,
    /// Facts about frames, by row of the frames table.
    frames: Vec<FrameFacts>,
    has_start: bool,
    /// Stacks with unknown code of a program; `None` if there are none.
    of_one_process: Option<StackSet>,
}

/// Facts about a row of the frames table.
#[derive(Debug, Clone, Copy)]
struct FrameFacts {
    /// The first frame with this text; [`sentinel`] while unknown.
    text: u32,
    is_folded: bool,
    is_start: bool,
    /// Whether it is an address that means this code in one process only.
    is_of_one_process: bool,
}

impl TrimmedStacks {
    /// Compares the stacks of openings or closes; `None` if no frames are loaded.
    pub fn needed<'s>(
        file: &FileContext<'_>,
        selections: impl Iterator<Item = &'s Selection>,
        (opening, closing): (bool, bool),
        trims: &StackTrims,
    ) -> Result<Option<Self>, QueryError> {
        let Some(frames) = &file.frames else { return Ok(None) };
        let height = frames.stacks.len();
        let mut needed = StackSet::new(height);
        for selection in selections {
            let columns = selection.columns(file.trace, &file.objects)?;
            let stack = columns.stacks_of((opening, closing))?;
            let (table, mask) = (&file.objects.table, &EventMask::All);
            needed.add_all(&selection.event_stacks(table, mask, &stack, height, file.cancel)?);
        }
        Self::compare(frames, &needed, trims).map(Some)
    }

    /// Looks up the names of the frames of some stacks, and compares them.
    pub fn compare(
        frames: &Frames<'_>,
        needed: &StackSet,
        trims: &StackTrims,
    ) -> Result<Self, QueryError> {
        let needed_stacks: Vec<StackIdx> = needed.iter().collect();
        let is_needed = frames.marked(&needed_stacks, 0);
        frames.resolve_marked(&is_needed)?;
        let mut stacks = Self {
            equal: vec![StackIdx::NONE; frames.stacks.len()],
            frames: frame_facts(&frames.named(), &is_needed, trims),
            has_start: trims.from.is_some(),
            of_one_process: None,
        };
        if stacks.frames.iter().any(|facts| facts.is_of_one_process) {
            let is_of_one_process = |stack| {
                let mut left = stacks.frames(frames, stack);
                left.any(|frame| {
                    stacks.frames.get(frame.row()).is_some_and(|facts| facts.is_of_one_process)
                })
            };
            stacks.of_one_process = Some(needed.par_filter(is_of_one_process));
        }
        let hasher = hashbrown::DefaultHashBuilder::default();
        let hashes: Vec<(u64, StackIdx)> = needed_stacks
            .into_par_iter()
            .map(|stack| {
                let mut hash = hasher.build_hasher();
                stacks.texts(frames, stack).for_each(|text| hash.write_u32(text));
                (hash.finish(), stack)
            })
            .collect();
        let firsts =
            firsts(&hashes, |one, other| stacks.texts(frames, one).eq(stacks.texts(frames, other)));
        for ((_, stack), first) in hashes.iter().zip(firsts) {
            if let Some(slot) = stacks.equal.get_mut(stack.row()) {
                *slot = first;
            }
        }
        Ok(stacks)
    }

    /// Returns the number of rows of the stacks table.
    pub fn height(&self) -> usize {
        self.equal.len()
    }

    /// Returns the first stack equal to this one; `StackIdx::NONE` if it was not compared or is itself none.
    pub fn equal(&self, stack: StackIdx) -> StackIdx {
        self.equal.get(stack.row()).copied().unwrap_or(StackIdx::NONE)
    }

    /// Whether a stack contains unknown code of a program, so that an equal stack in another process is a different
    /// one.
    pub fn is_of_one_process(&self, stack: StackIdx) -> bool {
        self.of_one_process.as_ref().is_some_and(|stacks| stacks.has(stack))
    }

    /// Whether there is any such stack.
    pub fn has_stacks_of_one_process(&self) -> bool {
        self.of_one_process.is_some()
    }

    /// Returns the remaining frames of a stack, innermost first.
    pub fn frames(&self, frames: &Frames<'_>, stack: StackIdx) -> impl Iterator<Item = FrameIdx> {
        let facts = |frame: &FrameIdx| self.frames.get(frame.row());
        let frames = || frames.stacks.get(stack.row());
        let start = if self.has_start {
            frames().position(|frame| facts(&frame).is_some_and(|facts| facts.is_start))
        } else {
            None
        };
        frames()
            .skip(start.unwrap_or_default())
            .filter(move |frame| facts(frame).is_none_or(|facts| !facts.is_folded))
    }

    /// Returns the views of a stack's remaining frames; all frames without `trims`.
    pub fn views<'n>(
        trims: Option<&Self>,
        named: &'n NamedFrames<'_>,
        stack: StackIdx,
    ) -> impl Iterator<Item = FrameView<'n>> {
        let whole = trims.is_none().then(|| named.stack(stack));
        let trimmed = trims
            .map(|trims| trims.frames(named.frames(), stack))
            .into_iter()
            .flatten()
            .flat_map(|frame| named.frames_at(frame));
        whole.into_iter().flatten().chain(trimmed)
    }

    /// Returns the most informative of these views.
    pub fn representative_view<'n>(
        trims: Option<&Self>,
        named: &'n NamedFrames<'_>,
        stack: StackIdx,
    ) -> Option<FrameView<'n>> {
        representative(Self::views(trims, named, stack))
    }

    fn texts(&self, frames: &Frames<'_>, stack: StackIdx) -> impl Iterator<Item = u32> {
        self.frames(frames, stack)
            .map(|frame| self.frames.get(frame.row()).map_or(sentinel(), |facts| facts.text))
    }

    /// Returns the modules of representative frames without names, in order, each once.
    pub fn unnamed(frames: &Frames<'_>, stacks: impl Iterator<Item = StackIdx>) -> Vec<String> {
        let named = frames.named();
        let mut modules: Vec<String> = Vec::new();
        for view in stacks.filter_map(|stack| named.representative(stack)) {
            if let (Some(module), None) = (view.module_name(), view.function())
                && !modules.iter().any(|known| known == module)
            {
                modules.push(module.to_owned());
            }
        }
        modules
    }

    /// Returns the text of a stack's representative frame.
    pub fn function(&self, frames: &Frames<'_>, stack: StackIdx) -> String {
        let named = frames.named();
        let view = Self::representative_view(Some(self), &named, stack);
        view.map(|view| view.to_string()).unwrap_or_default()
    }

    /// Returns the module of that frame.
    pub fn module(&self, frames: &Frames<'_>, stack: StackIdx) -> String {
        let named = frames.named();
        let view = Self::representative_view(Some(self), &named, stack);
        let module = view.and_then(|view| view.module_name()).map(str::to_owned);
        module.unwrap_or_else(|| self.function(frames, stack))
    }
}

/// Determines the facts about the needed frames, by row of the frames table.
fn frame_facts(named: &NamedFrames<'_>, is_needed: &[bool], trims: &StackTrims) -> Vec<FrameFacts> {
    let identities = |frame| named.frames_at(frame).map(|view| view.identity());
    let hasher = hashbrown::DefaultHashBuilder::default();
    let hashes: Vec<(u64, FrameIdx)> = is_needed
        .par_iter()
        .enumerate()
        .filter(|(_, is_needed)| **is_needed)
        .map(|(row, _)| FrameIdx::from_row(row))
        .map(|frame| {
            let mut hash = hasher.build_hasher();
            identities(frame).for_each(|identity| identity.hash(&mut hash));
            (hash.finish(), frame)
        })
        .collect();
    let is_equal = |one, other| identities(one).eq(identities(other));
    let matches = |frame, filter: &Option<Filter>| {
        filter.as_ref().is_some_and(|filter| {
            named.frames_at(frame).any(|view| filter.matches(&view.to_string()))
        })
    };
    let unknown = FrameFacts {
        text: sentinel(),
        is_folded: false,
        is_start: false,
        is_of_one_process: false,
    };
    let mut facts = vec![unknown; is_needed.len()];
    for (&(_, frame), first) in hashes.iter().zip(firsts(&hashes, is_equal)) {
        if let Some(facts) = facts.get_mut(frame.row()) {
            *facts = FrameFacts {
                text: first.0,
                is_folded: matches(frame, &trims.fold),
                is_start: matches(frame, &trims.from),
                is_of_one_process: named.is_of_one_process(frame),
            };
        }
    }
    facts
}

/// Finds the first equal item for each item; items come with their hashes.
fn firsts<T: Copy>(hashes: &[(u64, T)], is_equal: impl Fn(T, T) -> bool) -> Vec<T> {
    let mut table: HashTable<(u64, T)> = HashTable::with_capacity(hashes.len());
    hashes
        .iter()
        .map(|&(hash, item)| {
            let is_equal =
                |(known_hash, known): &(u64, T)| *known_hash == hash && is_equal(*known, item);
            table.entry(hash, is_equal, |(hash, _)| *hash).or_insert((hash, item)).get().1
        })
        .collect()
}
