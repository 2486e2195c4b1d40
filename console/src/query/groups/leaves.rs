//! The groups of the innermost level, of which there may be millions.
//!
//! They are not searched for each handle: the handles of a group of the level above stay together, and only
//! those of a group that is shown are sorted and counted, each such group by itself.

use std::ops::Range;

use handlescope_model::sentinel;

use super::counted::{Counted, Opened};
use super::figures::Figures;

/// The handles within one group of the level above the innermost.
#[derive(Default)]
pub(super) struct Leaves {
    /// What each handle has in the innermost column.
    codes: Vec<u32>,
    handles: Vec<Counted>,
}

/// A group of the innermost level.
#[derive(Clone)]
pub(super) struct Leaf {
    pub(super) code: u32,
    /// Those of its handles that an event opened, in the order of [`Sorted::opened`].
    pub(super) opened: Range<u32>,
    pub(super) figures: Figures,
}

/// Handles by what they have in the innermost column, those of one group in their order.
pub(super) struct Sorted<'a> {
    leaves: &'a Leaves,
    /// Rows of the handles.
    order: Vec<u32>,
}

impl Leaves {
    pub(super) fn push(&mut self, code: u32, handle: Counted) {
        self.codes.push(code);
        self.handles.push(handle);
    }

    pub(super) fn sorted(&self) -> Sorted<'_> {
        let known = self.codes.iter().filter(|code| **code != sentinel());
        let width = known.max().map_or(1, |last| *last as usize + 2);
        let order = if width <= self.codes.len() { self.counted(width) } else { self.compared() };
        Sorted { leaves: self, order }
    }

    /// The order where numbers are compared.
    fn compared(&self) -> Vec<u32> {
        let mut order: Vec<(u32, u32)> = self.codes.iter().copied().zip(0..).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, row)| row).collect()
    }

    /// The same where numbers are fewer than handles: a counting sort. [`sentinel`] is the last number.
    fn counted(&self, width: usize) -> Vec<u32> {
        let place = |code: u32| (code as usize).min(width - 1);
        let mut ends = vec![0_u32; width + 1];
        for code in &self.codes {
            if let Some(count) = ends.get_mut(place(*code) + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let mut order = vec![0; self.codes.len()];
        for (code, row) in self.codes.iter().zip(0..) {
            let Some(next) = ends.get_mut(place(*code)) else { continue };
            if let Some(slot) = order.get_mut(*next as usize) {
                *slot = row;
            }
            *next += 1;
        }
        order
    }
}

impl Sorted<'_> {
    fn handle(&self, row: u32) -> Option<Counted> {
        self.leaves.handles.get(row as usize).copied()
    }

    fn code(&self, row: u32) -> u32 {
        self.leaves.codes.get(row as usize).copied().unwrap_or(sentinel())
    }

    /// The groups.
    pub(super) fn groups(&self) -> impl Iterator<Item = Leaf> {
        let mut end = 0;
        let is_same = |one: &u32, other: &u32| self.code(*one) == self.code(*other);
        self.order.chunk_by(is_same).map(move |group| {
            let start = end;
            let mut figures = Figures::default();
            for handle in group.iter().filter_map(|row| self.handle(*row)) {
                figures.add(handle);
                end += u32::from(handle.is_opened());
            }
            let code = group.first().map_or(sentinel(), |row| self.code(*row));
            Leaf { code, opened: start..end, figures }
        })
    }

    /// The handles that an event opened, those of each group one behind the other.
    pub(super) fn opened(&self) -> impl Iterator<Item = Opened> {
        let handles = self.order.iter().filter_map(|row| self.handle(*row));
        handles.filter(|handle| handle.is_opened()).map(Opened::of)
    }
}
