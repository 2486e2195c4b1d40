//! Groups of the innermost level of which few are shown: all are ranked by little, and only of those that are
//! shown everything is counted.

use handlescope_model::sentinel;
use hashbrown::HashMap;

use super::counted::Handle;
use super::cut::{Cut, GroupsLeftOut, Rank};
use super::leaves::{Handles, Leaf, Leaves};
use super::lifetimes::Times;
use super::stats::Stats;

/// Places of groups by what they have in the innermost column; its memory serves one group of the level above
/// after the other.
#[derive(Default)]
pub struct Slots {
    /// Places of small numbers, after that of [`sentinel`].
    near: Vec<u32>,
    far: HashMap<u32, u32>,
}

impl Slots {
    /// Rows of most tables are below; 4 MiB.
    const DENSE_LIMIT: usize = 1 << 20;

    fn get(&self, code: u32) -> Option<usize> {
        let near = self.near.get(code.wrapping_add(1) as usize).copied();
        let slot = near.filter(|slot| *slot != sentinel()).or_else(|| self.far_slot(code));
        slot.map(|slot| slot as usize)
    }

    fn far_slot(&self, code: u32) -> Option<u32> {
        // Most groups have no large numbers.
        if self.far.is_empty() { None } else { self.far.get(&code).copied() }
    }

    fn set(&mut self, code: u32, slot: u32) {
        let index = code.wrapping_add(1) as usize;
        if index >= Self::DENSE_LIMIT {
            self.far.insert(code, slot);
            return;
        }
        if self.near.len() <= index {
            self.near.resize(index + 1, sentinel());
        }
        if let Some(near) = self.near.get_mut(index) {
            *near = slot;
        }
    }

    fn clear(&mut self, codes: impl Iterator<Item = u32>) {
        self.far.clear();
        for code in codes {
            if let Some(near) = self.near.get_mut(code.wrapping_add(1) as usize) {
                *near = sentinel();
            }
        }
    }
}

/// The groups of some handles that are shown, and what is left out.
pub fn shown(
    leaves: &Leaves,
    parts: &[Handles],
    cut: Cut<'_>,
    times: &Times,
    slots: &mut Slots,
) -> (Vec<Leaf>, GroupsLeftOut) {
    let mut ranks: Vec<(u32, Rank)> = Vec::new();
    for (code, handle) in leaves.handles(parts) {
        let slot = slots.get(code).unwrap_or_else(|| {
            slots.set(code, ranks.len() as u32);
            ranks.push((code, Rank::default()));
            ranks.len() - 1
        });
        if let Some((_, rank)) = ranks.get_mut(slot) {
            rank.add(handle);
        }
    }
    slots.clear(ranks.iter().map(|(code, _)| *code));
    let (shown, left_out) = cut.by_rank(&ranks, |(code, rank)| (*rank, *code));
    let leaf = |(code, _)| Leaf { code, opened: 0..0, stats: Stats::default() };
    let mut shown: Vec<Leaf> = shown.into_iter().map(leaf).collect();
    for (slot, leaf) in (0..).zip(&shown) {
        slots.set(leaf.code, slot);
    }
    for (code, handle) in leaves.handles(parts) {
        if let Some(leaf) = slots.get(code).and_then(|slot| shown.get_mut(slot)) {
            leaf.stats.add(handle, times.span(handle));
        }
    }
    slots.clear(shown.iter().map(|leaf| leaf.code));
    (shown, left_out)
}

impl Rank {
    fn add(&mut self, handle: Handle) {
        if !handle.has(Handle::BESIDE) {
            self.handles += u32::from(!handle.is_bare());
            self.open_at_end += u32::from(handle.has(Handle::OPEN_AT_END));
        }
        self.unreleased += u32::from(handle.is_unreleased());
    }
}
