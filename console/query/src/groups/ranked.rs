//! Innermost groups when only a few are shown: ranks all of them cheaply and computes full stats for those shown.

use super::coder::NumberMap;
use super::counted::CompactHandle;
use super::cut::{GroupCut, GroupsLeftOut, Rank};
use super::leaves::{CodedHandles, Leaf, Leaves};
use super::lifetimes::HandleTimes;
use super::stats::GroupStats;

/// Returns the shown groups of some handles and what is left out. `slots` must be empty; its memory is reused for one
/// group of the level above after the other.
pub fn shown(
    leaves: &Leaves,
    parts: &[CodedHandles],
    cut: GroupCut<'_>,
    times: &HandleTimes,
    slots: &mut NumberMap,
) -> (Vec<Leaf>, GroupsLeftOut) {
    let mut ranks: Vec<(u32, Rank)> = Vec::new();
    for (code, handle) in leaves.handles(parts) {
        let slot = slots.get(code).unwrap_or_else(|| {
            let next = ranks.len() as u32;
            slots.set(code, next);
            ranks.push((code, Rank::default()));
            next
        });
        if let Some((_, rank)) = ranks.get_mut(slot as usize) {
            rank.add(handle);
        }
    }
    slots.clear(ranks.iter().map(|(code, _)| *code));
    let (shown, left_out) = cut.by_rank(&ranks, |(code, rank)| (None, *rank, *code));
    let leaf = |(code, _)| Leaf { code, opened: 0..0, stats: GroupStats::default() };
    let mut shown: Vec<Leaf> = shown.into_iter().map(leaf).collect();
    for (slot, leaf) in (0..).zip(&shown) {
        slots.set(leaf.code, slot);
    }
    for (code, handle) in leaves.handles(parts) {
        if let Some(leaf) = slots.get(code).and_then(|slot| shown.get_mut(slot as usize)) {
            leaf.stats.add(handle, times.span(handle));
        }
    }
    slots.clear(shown.iter().map(|leaf| leaf.code));
    (shown, left_out)
}

impl Rank {
    fn add(&mut self, handle: CompactHandle) {
        if !handle.has(CompactHandle::BESIDE) {
            self.handles += u32::from(!handle.is_bare());
            self.open_at_end += u32::from(handle.has(CompactHandle::OPEN_AT_END));
        }
        self.unreleased += u32::from(handle.is_unreleased());
    }
}
