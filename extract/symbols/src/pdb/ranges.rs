//! Sets of relative addresses.

use std::ops::Range;

/// Sorted ranges of RVAs that are not empty and do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Range<u32>>);

impl Ranges {
    /// Returns every address that a module can have.
    pub fn all() -> Self {
        Self(vec![Range { start: 0, end: u32::MAX }])
    }

    pub fn contains(&self, address: u64) -> bool {
        let Ok(address) = u32::try_from(address) else { return false };
        let after = self.0.partition_point(|range| range.start <= address);
        let last = after.checked_sub(1).and_then(|index| self.0.get(index));
        last.is_some_and(|range| address < range.end)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Range<u32>> {
        self.0.iter()
    }
}

/// Accepts ranges in any order, even overlapping ones.
impl FromIterator<Range<u32>> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range<u32>>>(ranges: I) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, range| {
            let touches = next.start <= range.end;
            if touches {
                range.end = range.end.max(next.end);
            }
            touches
        });
        Self(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_or_overlap_become_one() {
        let ranges: Ranges = [8..9, 1..3, 3..4, 20..30, 22..24, 5..5].into_iter().collect();
        assert_eq!(ranges.iter().cloned().collect::<Vec<_>>(), [1..4, 8..9, 20..30]);
        let inside: Vec<u64> = (0..32).filter(|&address| ranges.contains(address)).collect();
        assert_eq!(inside, [&[1, 2, 3, 8][..], &(20..30).collect::<Vec<_>>()].concat());
        assert!(Ranges::all().contains(0) && !Ranges::all().contains(1 << 32));
    }
}
