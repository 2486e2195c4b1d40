//! The groups of the innermost level; there may be millions.
//!
//! They are not looked up for each handle. The handles of a group of the level above stay together, and only those of a
//! shown group are sorted and counted.

use std::ops::Range;

use handlescope_model::{AcquisitionIdx, sentinel};
use hashbrown::HashSet;

use super::counted::CompactHandle;
use super::lifetimes::HandleTimes;
use super::process_stacks::NumberedStacks;
use super::stats::GroupStats;
use crate::program_frames::AcquiringFunctions;

/// Handles with their codes in the innermost column.
#[derive(Default)]
pub struct CodedHandles {
    codes: Vec<u32>,
    handles: Vec<CompactHandle>,
}

/// The handles in one group of the level above the innermost, as pieces of parts, in order.
#[derive(Default)]
pub struct Leaves(Vec<Piece>);

/// A range of rows in a part.
struct Piece {
    part: u32,
    rows: Range<u32>,
}

/// A group of the innermost level.
#[derive(Clone)]
pub struct Leaf {
    pub code: u32,
    /// Where the opened handles of the group are in the result of [`SortedHandles::groups`].
    pub opened: Range<u32>,
    pub stats: GroupStats,
}

/// Handles sorted by code in the innermost column; those of one group stay in order.
pub struct SortedHandles<'a> {
    parts: &'a [CodedHandles],
    order: Vec<HandleRef>,
}

/// A part and a row in it.
type HandleRef = (u32, u32);

/// The functions that open handles on the stacks of the innermost column, if it has stacks.
pub struct LeakingStacks<'a> {
    pub functions: Option<&'a AcquiringFunctions>,
    pub numbers: &'a NumberedStacks,
}

impl LeakingStacks<'_> {
    fn function(&self, code: u32) -> Option<u32> {
        self.functions?.of_stack(self.numbers.row(code))
    }
}

impl CodedHandles {
    /// Copies rows in the given order.
    pub fn ordered(order: &[u32], codes: &[u32], handles: &[CompactHandle]) -> Self {
        Self {
            codes: order.iter().filter_map(|row| codes.get(*row as usize)).copied().collect(),
            handles: order.iter().filter_map(|row| handles.get(*row as usize)).copied().collect(),
        }
    }
}

impl Leaves {
    pub fn push(&mut self, part: u32, rows: Range<u32>) {
        self.0.push(Piece { part, rows });
    }

    pub fn sorted<'a>(&self, parts: &'a [CodedHandles]) -> SortedHandles<'a> {
        let width = self
            .codes(parts)
            .map(|(code, _)| code)
            .filter(|code| *code != sentinel())
            .max()
            .map_or(1, |largest| largest as usize + 2);
        let count = self.0.iter().map(|piece| piece.rows.len()).sum();
        let order = if width <= count { self.counted(parts, width) } else { self.compared(parts) };
        SortedHandles { parts, order }
    }

    /// Returns the handles with their codes in the innermost column.
    pub fn handles<'a>(
        &'a self,
        parts: &'a [CodedHandles],
    ) -> impl Iterator<Item = (u32, CompactHandle)> + 'a {
        self.0.iter().flat_map(|piece| {
            let (start, end) = (piece.rows.start as usize, piece.rows.end as usize);
            let part = parts.get(piece.part as usize);
            let codes = part.and_then(|part| part.codes.get(start..end)).unwrap_or_default();
            let handles = part.and_then(|part| part.handles.get(start..end)).unwrap_or_default();
            codes.iter().copied().zip(handles.iter().copied())
        })
    }

    /// Returns the handle references with their codes in the innermost column.
    fn codes<'a>(
        &'a self,
        parts: &'a [CodedHandles],
    ) -> impl Iterator<Item = (u32, HandleRef)> + Clone + 'a {
        self.0.iter().flat_map(|Piece { part, rows }| {
            let codes = parts.get(*part as usize).map_or(&[][..], |part| &part.codes);
            let codes = codes.get(rows.start as usize..rows.end as usize).unwrap_or_default();
            codes.iter().copied().zip(rows.clone().map(|row| (*part, row)))
        })
    }

    /// Sorts by comparing codes.
    fn compared(&self, parts: &[CodedHandles]) -> Vec<HandleRef> {
        let mut order: Vec<(u32, HandleRef)> = self.codes(parts).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, handle)| handle).collect()
    }

    /// Sorts by counting, if there are fewer codes than handles; [`sentinel`] counts as the last code.
    fn counted(&self, parts: &[CodedHandles], width: usize) -> Vec<HandleRef> {
        let last = width - 1;
        let slots = self.codes(parts).map(|(code, handle)| ((code as usize).min(last), handle));
        counting_sort(slots, width).0
    }
}

/// Counting sort: returns the items ordered by slot, in stable order, and where each slot ends. All slots must be below
/// `width`.
pub fn counting_sort<T: Copy + Default>(
    items: impl Iterator<Item = (usize, T)> + Clone,
    width: usize,
) -> (Vec<T>, Vec<u32>) {
    let mut next = vec![0_u32; width];
    for (slot, _) in items.clone() {
        if let Some(count) = next.get_mut(slot) {
            *count += 1;
        }
    }
    let mut sum = 0;
    for count in &mut next {
        sum += std::mem::replace(count, sum);
    }
    let mut order = vec![T::default(); sum as usize];
    for (slot, item) in items {
        let Some(next) = next.get_mut(slot) else { continue };
        if let Some(slot) = order.get_mut(*next as usize) {
            *slot = item;
        }
        *next += 1;
    }
    // Each counter is now where the next slot begins.
    (order, next)
}

impl SortedHandles<'_> {
    fn handle(&self, (part, row): HandleRef) -> Option<CompactHandle> {
        self.parts.get(part as usize)?.handles.get(row as usize).copied()
    }

    fn code(&self, (part, row): HandleRef) -> u32 {
        let part = self.parts.get(part as usize);
        part.and_then(|part| part.codes.get(row as usize)).copied().unwrap_or(sentinel())
    }

    /// Returns the groups with their stats, and the opened handles of each. With `leaking`, leaves out groups that leak
    /// nothing, unless their opening function leaks on another stack.
    pub fn groups(
        &self,
        times: &HandleTimes,
        leaking: Option<&LeakingStacks<'_>>,
    ) -> (Vec<Leaf>, Vec<AcquisitionIdx>) {
        let (mut leaves, mut opened) = (Vec::new(), Vec::new());
        let groups = || self.order.chunk_by(|one, other| self.code(*one) == self.code(*other));
        let code = |group: &[HandleRef]| group.first().map_or(sentinel(), |it| self.code(*it));
        let leaks = |group: &[HandleRef]| {
            group.iter().filter_map(|it| self.handle(*it)).any(CompactHandle::is_unreleased)
        };
        let functions: HashSet<u32> = leaking
            .map(|stacks| {
                groups()
                    .filter(|group| leaks(group))
                    .filter_map(|it| stacks.function(code(it)))
                    .collect()
            })
            .unwrap_or_default();
        for group in groups() {
            let handles = || group.iter().filter_map(|place| self.handle(*place));
            let is_of_leaking_function = |stacks: &LeakingStacks<'_>| {
                stacks.function(code(group)).is_some_and(|function| functions.contains(&function))
            };
            if let Some(stacks) = leaking
                && !leaks(group)
                && !is_of_leaking_function(stacks)
            {
                continue;
            }
            let mut stats = GroupStats::default();
            handles().for_each(|handle| stats.add(handle, times.span(handle)));
            let start = opened.len() as u32;
            opened.extend(handles().filter(|handle| handle.is_opened()).map(|handle| handle.row));
            leaves.push(Leaf { code: code(group), opened: start..opened.len() as u32, stats });
        }
        (leaves, opened)
    }
}
