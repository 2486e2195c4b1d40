//! Which frames distinguish the stacks of a suspect from all others on which its process lost the same: handles of
//! the type, or allocations of the kind.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;

use handlescope_model::{FrameIdx, ProcessIdx, StackIdx};

use crate::filter::{Wildcard, word};
use crate::query::frame_names::NamedFrames;
use crate::query::groups::TrimmedStacks;

/// Only what has no stack passes: a stack has a line, and a line a character.
const WITHOUT_STACK: &str = "!?*";

/// Groups that a filter leaves out by frames of theirs at most; a trace may have hundred thousands.
const MOST: usize = 64;

/// Lines of a group that are tried.
const MOST_LINES: usize = 8;

/// What leaves groups out.
struct LeftOut {
    lines: Vec<u32>,
    /// Whether some stay.
    misses: bool,
}

/// What the other criteria of a command choose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// The process, where the command has what distinguishes it from others with its id.
    pub(super) process: Option<ProcessIdx>,
    /// The filter on processes.
    pub(super) filter: Option<String>,
    /// The type, or the kind with the filter on allocators.
    pub(super) what: String,
}

/// The stacks of all groups that lose something; `K` names a group.
pub(super) struct LostStacks<K> {
    /// The lines of frames, as stack filters see them.
    lines: Vec<Line>,
    stacks: HashMap<Scope, GroupStacks<K>>,
}

/// Lines that a filter cannot distinguish are one.
struct Line {
    text: String,
    /// The filter that it passes.
    word: String,
    /// Whether it is a function of a program, not of the system.
    is_own: bool,
}

/// The groups that only a filter on stacks distinguishes.
struct GroupStacks<K> {
    /// Numbers of the lines of each group, the innermost frame first.
    stacks: Vec<Vec<u32>>,
    places: HashMap<K, usize>,
    /// The groups of each line.
    with_line: HashMap<u32, Vec<usize>>,
}

/// Numbers the lines of frames.
pub(super) struct LineNumbers<'a> {
    named: NamedFrames<'a>,
    trims: Option<&'a TrimmedStacks>,
    of_frames: HashMap<FrameIdx, Vec<u32>>,
    of_classes: HashMap<String, u32>,
}

/// What a filter sees of a text: it does not distinguish capital letters, nor what `?` stands for.
fn class(text: &str) -> String {
    word(text).to_lowercase()
}

impl<K> Default for LostStacks<K> {
    fn default() -> Self {
        Self { lines: Vec::new(), stacks: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash> LostStacks<K> {
    /// Adds a group that loses something, to all that a command would choose without a filter on stacks.
    pub(super) fn add(
        &mut self,
        scope: Scope,
        group: K,
        stack: Option<StackIdx>,
        numbers: &mut LineNumbers<'_>,
    ) {
        let stack = stack.map(|stack| numbers.stack(stack, &mut self.lines));
        self.stacks.entry(scope).or_default().add(group, stack.unwrap_or_default());
    }

    /// The filter on stacks that keeps what a group lost, and no other group that the command chooses as far
    /// as frames distinguish them: `function`, when that is enough.
    pub(super) fn filter(&self, scope: &Scope, group: K, function: Option<&str>) -> Option<String> {
        let plain = || function.map(word);
        let Some(groups) = self.stacks.get(scope) else { return plain() };
        let Some(place) = groups.places.get(&group).copied() else { return plain() };
        let is_alone = groups.stacks.len() == 1;
        let stack = groups.stacks.get(place).map(Vec::as_slice).unwrap_or_default();
        if stack.is_empty() {
            return (!is_alone).then(|| WITHOUT_STACK.to_owned());
        }
        let count = |line: u32| groups.with_line.get(&line).map_or(0, Vec::len);
        let function = function.map(class);
        let is_function = |line: u32| function == Some(class(self.text(line)));
        // Of equal ones the function, then the innermost one of the program.
        let mut kept = stack.to_vec();
        kept.sort_by_key(|line| {
            (self.is_pattern(*line), count(*line), !is_function(*line), !self.is_own(*line))
        });
        kept.truncate(MOST_LINES);
        let mut filters = kept.iter().map(|line| (line, self.left_out(groups, place, *line)));
        let first = filters.next()?;
        let is_exact = |filter: &(&u32, LeftOut)| !filter.1.misses;
        let exact = if is_exact(&first) { None } else { filters.find(is_exact) };
        let (kept, LeftOut { lines, .. }) = exact.unwrap_or(first);
        let left_out = lines.iter().map(|line| format!("!{}", self.word(*line)));
        let parts: Vec<String> =
            [self.word(*kept).to_owned()].into_iter().chain(left_out).collect();
        Some(parts.join(";"))
    }

    /// The lines by which a filter on a line of a group leaves out the other groups that have it.
    fn left_out(&self, groups: &GroupStacks<K>, place: usize, kept: u32) -> LeftOut {
        let stack = |place: usize| groups.stacks.get(place).map(Vec::as_slice).unwrap_or_default();
        let with_line = self.with_line(groups, kept);
        let own = stack(place);
        let mut left_out = LeftOut { lines: Vec::new(), misses: with_line.len() > MOST };
        for other in with_line.iter().filter(|other| **other != place).take(MOST) {
            let other = stack(*other);
            if other.iter().any(|line| left_out.lines.contains(line)) {
                continue;
            }
            let foreign = other.iter().filter(|line| !own.contains(line));
            let mut foreign: Vec<&u32> = foreign.collect();
            foreign.sort_by_key(|line| (self.is_pattern(**line), !self.is_own(**line)));
            let line = foreign.into_iter().find(|line| !self.covers_any(**line, own));
            left_out.misses |= line.is_none();
            left_out.lines.extend(line);
        }
        left_out
    }

    /// The groups that pass the filter of a line.
    fn with_line<'a>(&self, groups: &'a GroupStacks<K>, line: u32) -> Cow<'a, [usize]> {
        if !self.is_pattern(line) {
            return groups.with_line.get(&line).map(Vec::as_slice).unwrap_or_default().into();
        }
        let covered =
            groups.with_line.iter().filter(|(other, _)| self.covers_any(line, &[**other]));
        let mut found: Vec<usize> = covered.flat_map(|(_, groups)| groups).copied().collect();
        found.sort_unstable();
        found.dedup();
        found.into()
    }

    /// Whether the filter of a line passes one of others.
    fn covers_any(&self, line: u32, others: &[u32]) -> bool {
        if !self.is_pattern(line) {
            return others.contains(&line);
        }
        let pattern = Wildcard::new(self.word(line));
        pattern.is_ok_and(|pattern| others.iter().any(|other| pattern.matches(self.text(*other))))
    }

    fn text(&self, line: u32) -> &str {
        self.lines.get(line as usize).map_or("", |line| line.text.as_str())
    }

    fn word(&self, line: u32) -> &str {
        self.lines.get(line as usize).map_or("", |line| line.word.as_str())
    }

    /// Whether the filter of a line may pass others: names of C++ have `*`.
    fn is_pattern(&self, line: u32) -> bool {
        self.word(line).contains(['*', '?'])
    }

    fn is_own(&self, line: u32) -> bool {
        self.lines.get(line as usize).is_some_and(|line| line.is_own)
    }
}

impl<K> Default for GroupStacks<K> {
    fn default() -> Self {
        Self { stacks: Vec::new(), places: HashMap::new(), with_line: HashMap::new() }
    }
}

impl<K: Eq + Hash> GroupStacks<K> {
    fn add(&mut self, group: K, stack: Vec<u32>) {
        let place = self.stacks.len();
        for line in &stack {
            let groups = self.with_line.entry(*line).or_default();
            if groups.last() != Some(&place) {
                groups.push(place);
            }
        }
        self.places.insert(group, place);
        self.stacks.push(stack);
    }
}

impl<'a> LineNumbers<'a> {
    /// Of frames whose names were looked up; of trimmed stacks those that are left.
    pub(super) fn new(named: NamedFrames<'a>, trims: Option<&'a TrimmedStacks>) -> Self {
        Self { named, trims, of_frames: HashMap::new(), of_classes: HashMap::new() }
    }

    /// The lines of a stack.
    fn stack(&mut self, stack: StackIdx, lines: &mut Vec<Line>) -> Vec<u32> {
        let frames = self.named.frames();
        let numbers: Vec<FrameIdx> = match self.trims {
            Some(trims) => trims.frames(frames, stack).collect(),
            None => frames.stacks.get(stack.row()).collect(),
        };
        numbers.into_iter().flat_map(|frame| self.frame(frame, lines)).collect()
    }

    fn frame(&mut self, frame: FrameIdx, lines: &mut Vec<Line>) -> Vec<u32> {
        if let Some(known) = self.of_frames.get(&frame) {
            return known.clone();
        }
        let mut numbers = Vec::new();
        for view in self.named.frames_at(frame) {
            let text = view.to_string();
            let next = lines.len() as u32;
            let number = *self.of_classes.entry(class(&text)).or_insert(next);
            if number == next {
                let is_own = view.module.is_some_and(|module| !module.is_system);
                lines.push(Line { word: word(&text), text, is_own });
            }
            numbers.push(number);
        }
        self.of_frames.insert(frame, numbers.clone());
        numbers
    }
}
