//! Ranges of addresses, each with the allocation that owns it.

use std::collections::BTreeMap;

/// Ranges that do not overlap, by their first address.
#[derive(Default)]
pub(super) struct Ranges(BTreeMap<u64, Owned>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owned {
    /// Address behind the range.
    end: u64,
    allocation: u32,
}

impl Ranges {
    /// The allocation that owns an address.
    pub(super) fn owner(&self, address: u64) -> Option<u32> {
        let (_, owned) = self.0.range(..=address).next_back()?;
        (address < owned.end).then_some(owned.allocation)
    }

    /// Where the range of an allocation ends that owns an address: behind all that adjoins it and is its own.
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
        let first = self.0.range(..=address).next_back().filter(|(_, owned)| owned.end > address);
        let first = first.map_or(address, |(start, _)| *start);
        self.0.range(first..).map(|(start, owned)| (*start, *owned))
    }

    fn first_from(&self, address: u64) -> Option<(u64, Owned)> {
        self.from(address).next()
    }

    /// Takes a range away from its owners, and calls `each` with an owner and the bytes that it loses.
    pub(super) fn remove(&mut self, from: u64, to: u64, mut each: impl FnMut(u32, u64)) {
        while let Some((start, owned)) = self.first_from(from).filter(|(start, _)| *start < to) {
            self.0.remove(&start);
            if start < from {
                self.0.insert(start, Owned { end: from, ..owned });
            }
            if owned.end > to {
                self.0.insert(to, owned);
            }
            each(owned.allocation, owned.end.min(to) - start.max(from));
        }
    }

    /// Gives what nothing owns of a range to an allocation, and returns how many bytes that are.
    pub(super) fn fill(&mut self, from: u64, to: u64, allocation: u32) -> u64 {
        let taken: Vec<(u64, u64)> = self
            .from(from)
            .take_while(|(start, _)| *start < to)
            .map(|(start, owned)| (start, owned.end))
            .collect();
        let (mut at, mut bytes) = (from, 0);
        for (start, end) in taken.into_iter().chain([(to, to)]) {
            if at < start {
                self.0.insert(at, Owned { end: start, allocation });
                bytes += start - at;
            }
            at = end.max(at);
        }
        bytes
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
