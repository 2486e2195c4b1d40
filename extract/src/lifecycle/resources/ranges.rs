//! Ranges of addresses, each with the allocation that owns it.

use std::collections::BTreeMap;

/// Ranges that do not overlap. What one call takes or gives costs what it changes, in however many pieces it lies.
#[derive(Default)]
pub(super) struct Ranges {
    /// The ranges by their first address.
    pieces: BTreeMap<u64, Owned>,
    /// What they cover together, without gaps: the end of each stretch by its first address.
    covered: BTreeMap<u64, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owned {
    /// Address after the range.
    end: u64,
    allocation: u32,
}

impl Ranges {
    /// The allocation that owns an address.
    pub(super) fn owner(&self, address: u64) -> Option<u32> {
        let (_, owned) = self.pieces.range(..=address).next_back()?;
        (address < owned.end).then_some(owned.allocation)
    }

    /// Where the range of an allocation ends that owns an address: after all that adjoins it and is its own.
    pub(super) fn end_of(&self, address: u64) -> Option<u64> {
        let allocation = self.owner(address)?;
        let mut end = address;
        for (start, owned) in self.from(address) {
            if start > end || owned.allocation != allocation {
                break;
            }
            end = owned.end;
        }
        Some(end)
    }

    /// The ranges from that with an address on.
    fn from(&self, address: u64) -> impl Iterator<Item = (u64, Owned)> + '_ {
        let first = self.pieces.range(..=address).next_back();
        let first = first.filter(|(_, owned)| owned.end > address);
        let first = first.map_or(address, |(start, _)| *start);
        self.pieces.range(first..).map(|(start, owned)| (*start, *owned))
    }

    fn first_from(&self, address: u64) -> Option<(u64, Owned)> {
        self.from(address).next()
    }

    /// Takes a range away from its owners, and calls `each` with an owner and the bytes that it loses.
    pub(super) fn remove(&mut self, from: u64, to: u64, mut each: impl FnMut(u32, u64)) {
        // No bytes are taken out of the middle of a range; it must not be split there.
        if from >= to {
            return;
        }
        while let Some((start, owned)) = self.first_from(from).filter(|(start, _)| *start < to) {
            self.pieces.remove(&start);
            if start < from {
                self.pieces.insert(start, Owned { end: from, ..owned });
            }
            if owned.end > to {
                self.pieces.insert(to, owned);
            }
            each(owned.allocation, owned.end.min(to) - start.max(from));
        }
        while let Some((start, end)) = self.last_covered(to).filter(|(_, end)| *end > from) {
            self.covered.remove(&start);
            if start < from {
                self.covered.insert(start, from);
            }
            if end > to {
                self.covered.insert(to, end);
            }
        }
    }

    /// Gives what nothing owns of a range to an allocation, and returns how many bytes that are.
    pub(super) fn fill(&mut self, from: u64, to: u64, allocation: u32) -> u64 {
        let (mut all_from, mut all_to) = (from, to);
        let (mut at, mut bytes) = (to, 0);
        let mut give = |pieces: &mut BTreeMap<u64, Owned>, start, end| {
            if start < end {
                pieces.insert(start, Owned { end, allocation });
                bytes += end - start;
            }
        };
        // From the last stretch to the first; all become one.
        while let Some((start, end)) = self.last_covered(to).filter(|(_, end)| *end > from) {
            self.covered.remove(&start);
            give(&mut self.pieces, end, at);
            at = start.max(from);
            (all_from, all_to) = (all_from.min(start), all_to.max(end));
        }
        give(&mut self.pieces, from, at);
        if all_from < all_to {
            self.cover(all_from, all_to);
        }
        bytes
    }

    /// The last stretch that is covered and begins before an address.
    fn last_covered(&self, address: u64) -> Option<(u64, u64)> {
        let (start, end) = self.covered.range(..address).next_back()?;
        Some((*start, *end))
    }

    /// Covers a stretch that nothing covers, as one with those that adjoin it.
    fn cover(&mut self, mut from: u64, mut to: u64) {
        if let Some((start, _)) = self.last_covered(from).filter(|(_, end)| *end == from) {
            self.covered.remove(&start);
            from = start;
        }
        if let Some(end) = self.covered.remove(&to) {
            to = end;
        }
        self.covered.insert(from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(ranges: &mut Ranges, from: u64, to: u64) -> Vec<(u32, u64)> {
        let mut lost = Vec::new();
        ranges.remove(from, to, |allocation, bytes| lost.push((allocation, bytes)));
        lost
    }

    #[test]
    fn only_what_nothing_owns_is_given() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.fill(20, 30, 1), 10);
        assert_eq!(ranges.fill(40, 50, 2), 10);
        assert_eq!(ranges.fill(10, 60, 3), 30);
        assert_eq!(ranges.fill(10, 60, 4), 0);
        let owners: Vec<_> = [9, 10, 20, 30, 40, 59, 60].map(|at| ranges.owner(at)).into();
        assert_eq!(owners, [None, Some(3), Some(1), Some(3), Some(2), Some(3), None]);
    }

    #[test]
    fn what_is_filled_and_removed_page_by_page_is_what_pages_say() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let (mut ranges, mut pages) = (Ranges::default(), [None; 40]);
        for allocation in 0..4000 {
            let from = random(40);
            let to = (from + random(12)).min(40);
            let own = &mut pages[from as usize..to as usize];
            if random(2) == 0 {
                let free = own.iter_mut().filter(|page| page.is_none());
                let count = free.map(|page| *page = Some(allocation)).count();
                assert_eq!(ranges.fill(from, to, allocation), count as u64);
            } else {
                let lost = own.iter_mut().filter_map(Option::take).count();
                let removed = removed(&mut ranges, from, to);
                assert_eq!(removed.iter().map(|(_, bytes)| bytes).sum::<u64>(), lost as u64);
            }
            assert!((0..40).all(|page| ranges.owner(page) == pages[page as usize]));
            let runs = pages.chunk_by(|a, b| a.is_some() == b.is_some());
            assert_eq!(ranges.covered.len(), runs.filter(|run| run[0].is_some()).count());
        }
    }

    #[test]
    fn a_hole_leaves_both_sides() {
        let mut ranges = Ranges::default();
        ranges.fill(0, 100, 1);
        assert_eq!(removed(&mut ranges, 40, 60), [(1, 20)]);
        assert_eq!(
            (ranges.owner(39), ranges.owner(40), ranges.owner(60)),
            (Some(1), None, Some(1))
        );
        ranges.fill(45, 50, 2);
        assert_eq!(removed(&mut ranges, 30, 70), [(1, 10), (2, 5), (1, 10)]);
        assert_eq!(removed(&mut ranges, 0, u64::MAX), [(1, 30), (1, 30)]);
    }

    #[test]
    fn a_range_ends_where_its_allocation_does() {
        let mut ranges = Ranges::default();
        ranges.fill(0, 10, 1);
        ranges.fill(0, 20, 2);
        assert_eq!(
            (ranges.end_of(5), ranges.end_of(12), ranges.end_of(20)),
            (Some(10), Some(20), None)
        );
    }
}
