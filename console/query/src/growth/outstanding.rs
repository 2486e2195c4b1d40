//! The number of open handles of a group over time.

use rayon::prelude::*;

use super::lifetime::{Lifetime, TimeWindow};

/// Bars from lowest to highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Counts the handles open at the end of each of `buckets` equal parts of the window.
///
/// Handles opened before the window count from its start; those opened after it do not count.
pub fn outstanding<'l>(
    lifetimes: impl IntoIterator<Item = &'l Lifetime>,
    window: TimeWindow,
    buckets: usize,
) -> Vec<u32> {
    let parts = TimeParts::new(window, buckets);
    let mut changes = vec![0i64; parts.width()];
    for lifetime in lifetimes {
        let (opened, closed) = parts.of_lifetime(*lifetime);
        changes[opened] += 1;
        if let Some(closed) = closed {
            changes[closed] -= 1;
        }
    }
    let open = parts.sums(&changes).into_iter();
    open.map(|open| u32::try_from(open).unwrap_or(u32::MAX)).collect()
}

/// Formats numbers as a line of bars, scaled from 0 to the largest.
pub fn sparkline<N: Copy + Into<u64>>(numbers: &[N]) -> String {
    let numbers = || numbers.iter().map(|number| (*number).into());
    let largest = numbers().max().unwrap_or_default();
    // The product with a bar fits in 64 bits then.
    let shift = (u64::BITS - largest.leading_zeros()).saturating_sub(u32::BITS);
    let (largest, steps) = ((largest >> shift).max(1), BARS.len() as u64 - 1);
    // Rounded up, so that only 0 gets the lowest bar.
    numbers()
        .map(|number| (number >> shift).max(u64::from(number > 0)))
        .map(|scaled| BARS[(scaled * steps).div_ceil(largest) as usize])
        .collect()
}

/// Time of a change in nanoseconds since session start, and its amount.
pub type TimedChange = (i64, i64);

/// Returns the largest sum at any time, after all changes at that time; it is 0 before the first change.
pub fn most_at_once(mut changes: Vec<TimedChange>) -> u64 {
    changes.par_sort_unstable_by_key(|(time_ns, _)| *time_ns);
    let (mut previous_ns, mut sum, mut most) = (i64::MIN, 0_i64, 0);
    for (time_ns, change) in changes {
        if time_ns != previous_ns {
            most = sum.max(most);
        }
        (previous_ns, sum) = (time_ns, sum.saturating_add(change));
    }
    u64::try_from(sum.max(most)).unwrap_or_default()
}

/// A window split into equal parts.
pub struct TimeParts {
    window: TimeWindow,
    parts: usize,
}

impl TimeParts {
    pub fn new(window: TimeWindow, parts: usize) -> Self {
        Self { window, parts }
    }

    /// Returns the number of parts plus one for later events.
    pub fn width(&self) -> usize {
        self.parts + 1
    }

    /// Returns the first part that ends at or after a time.
    pub fn part_of(&self, time_ns: i64) -> usize {
        let length = i128::from(self.window.length_ns()).max(1);
        let since = i128::from(time_ns) - i128::from(self.window.start_ns);
        let ends = (since.max(1) * self.parts as i128 + length - 1) / length;
        usize::try_from(ends - 1).unwrap_or(usize::MAX).min(self.parts)
    }

    /// Returns the parts in which something is opened and closed; it is not closed before it is opened.
    pub fn of_lifetime(&self, lifetime: Lifetime) -> (usize, Option<usize>) {
        let opened = self.part_of(lifetime.opened_ns);
        (opened, lifetime.closed_ns.map(|closed_ns| self.part_of(closed_ns).max(opened)))
    }

    /// Returns the end of part number `step`, from 1.
    pub fn end_of(&self, step: usize) -> i64 {
        let length = i128::from(self.window.length_ns()) * step as i128 / self.parts.max(1) as i128;
        self.window.start_ns.saturating_add(i64::try_from(length).unwrap_or(i64::MAX))
    }

    /// Sums changes up to the end of each part; `changes` may be shorter than the parts.
    pub fn sums(&self, changes: &[i64]) -> Vec<i64> {
        (0..self.parts)
            .scan(0_i64, |sum, part| {
                *sum = sum.saturating_add(changes.get(part).copied().unwrap_or_default());
                Some(*sum)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: TimeWindow = TimeWindow { start_ns: 100, end_ns: 200 };

    fn open(lifetimes: &[(i64, Option<i64>)], buckets: usize) -> Vec<u32> {
        let lifetimes = lifetimes.iter().map(|(opened_ns, closed_ns)| Lifetime {
            opened_ns: *opened_ns,
            closed_ns: *closed_ns,
        });
        outstanding(&lifetimes.collect::<Vec<_>>(), WINDOW, buckets)
    }

    #[test]
    fn a_bucket_has_what_is_open_at_its_end() {
        assert_eq!(open(&[(105, Some(115)), (115, None), (150, None)], 5), [1, 1, 2, 2, 2]);
        assert_eq!(open(&[(121, Some(139))], 5), [0; 5], "opened and closed within one");
        assert_eq!(open(&[(120, Some(140))], 5), [1, 0, 0, 0, 0], "at their ends");
    }

    #[test]
    fn handles_from_before_the_window_count_and_later_ones_do_not() {
        assert_eq!(open(&[(0, Some(150)), (i64::MIN, None)], 4), [2, 1, 1, 1]);
        assert_eq!(open(&[(201, None), (i64::MAX, Some(i64::MIN))], 4), [0; 4]);
    }

    #[test]
    fn windows_and_bucket_counts_of_any_size_do_no_harm() {
        assert_eq!(open(&[(120, None)], 0), [0u32; 0]);
        assert_eq!(
            outstanding(&[], TimeWindow { start_ns: i64::MAX, end_ns: i64::MIN }, 2),
            [0, 0]
        );
        let lifetime = Lifetime { opened_ns: 7, closed_ns: None };
        let half_range = TimeWindow { start_ns: i64::MIN / 2, end_ns: i64::MAX / 2 };
        assert_eq!(outstanding(&[lifetime], half_range, 2), [0, 1]);
        assert_eq!(outstanding(&[lifetime], TimeWindow { start_ns: 7, end_ns: 7 }, 2), [0, 1]);
    }

    #[test]
    fn the_largest_number_is_the_full_bar_and_only_none_the_empty_one() {
        assert_eq!(sparkline(&[0u32, 1, 2, 3, 4, 5, 6, 7]), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[0, 1, u32::MAX]), "▁▂█");
        assert_eq!(sparkline(&[0, 1, u64::MAX / 7, u64::MAX]), "▁▂▂█");
        assert_eq!(sparkline(&[0u32, 0]), "▁▁");
        assert_eq!(sparkline::<u64>(&[]), "");
    }

    #[test]
    fn the_peak_does_not_depend_on_the_order_of_changes() {
        assert_eq!(most_at_once(vec![(5, 1), (1, 1), (3, -1), (2, 1), (9, -1)]), 2);
        assert_eq!(most_at_once(vec![(1, 4096), (2, 512), (3, -4096)]), 4608);
        assert_eq!(most_at_once(Vec::new()), 0);
    }

    #[test]
    fn changes_of_one_time_are_one() {
        assert_eq!(most_at_once(vec![(1, 10), (2, 20), (2, -10)]), 20, "a reallocation");
        assert_eq!(most_at_once(vec![(7, 1), (7, -1)]), 0);
    }

    #[test]
    fn numbers_of_any_size_do_no_harm() {
        assert_eq!(most_at_once(vec![(1, i64::MAX), (2, i64::MAX)]), i64::MAX as u64);
        assert_eq!(most_at_once(vec![(i64::MIN, i64::MIN), (i64::MAX, -1)]), 0);
    }
}
