//! Counts by value or name.

use std::cmp::Reverse;
use std::hash::Hash;

use hashbrown::HashMap;

use super::criteria::CountOrder;
use handlescope_session::values::TopN;

/// Counts equal values. The most frequent ones come first, equally frequent ones in their order.
pub fn most_frequent<T: Hash + Ord>(values: impl Iterator<Item = T>) -> Vec<(T, u64)> {
    let mut counts: HashMap<T, u64> = HashMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    let mut counts: Vec<(T, u64)> = counts.into_iter().collect();
    counts.sort_unstable_by(|(one, of_one), (other, of_other)| {
        of_other.cmp(of_one).then_with(|| one.cmp(other))
    });
    counts
}

/// Names with their counts and traces, largest first. Equal counts are ordered by name, so that the same query always
/// has the same answer.
#[derive(Debug, Clone)]
pub struct NameCounts(Vec<NameCount>);

#[derive(Debug, Clone)]
struct NameCount {
    name: String,
    count: u64,
    file: usize,
}

/// Rows of a table of counts, and what is left out of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountRows<'a> {
    /// The largest last.
    pub rows: Vec<CountRow<'a>>,
    /// Number of rows left out.
    pub left_out: usize,
    /// Sum of the counts of the rows left out.
    pub left_out_sum: u64,
}

/// A row of a table of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountRow<'a> {
    /// Value of the column that is counted by.
    pub name: &'a str,
    /// Number of the file in the session; the first one if several count together.
    pub file: usize,
    pub count: u64,
}

impl CountRows<'_> {
    /// Returns the sum of the rows in the table.
    pub fn sum(&self) -> u64 {
        self.rows.iter().map(|row| row.count).sum()
    }
}

impl NameCounts {
    /// Sums up counts for trace number `file`; names may repeat.
    pub fn new(counts: impl IntoIterator<Item = (String, u64)>, file: usize) -> Self {
        Self::summed(counts.into_iter().map(|(name, count)| NameCount { name, count, file }), false)
    }

    /// Sums up the counts of several traces by name.
    pub fn from_all<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        Self::summed(parts.flat_map(|part| part.0.iter().cloned()), false)
    }

    /// Combines the counts of several traces, keeping traces apart.
    pub fn from_each<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        Self::summed(parts.flat_map(|part| part.0.iter().cloned()), true)
    }

    fn summed(counts: impl Iterator<Item = NameCount>, keeps_files: bool) -> Self {
        let mut sums: Vec<NameCount> = counts.collect();
        sums.sort_by(|one, other| (&one.name, one.file).cmp(&(&other.name, other.file)));
        sums.dedup_by(|next, sum| {
            let is_same = next.name == sum.name && (!keeps_files || next.file == sum.file);
            if is_same {
                sum.count += next.count;
            }
            is_same
        });
        sums.sort_by_key(|sum| Reverse(sum.count));
        Self(sums)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().map(|row| row.count).sum()
    }

    /// Returns the `take` largest after the `skip` largest, in the given order.
    pub fn rows(&self, top: Option<TopN>, order: CountOrder) -> CountRows<'_> {
        let shown = top.map_or(0..self.len(), |top| top.range(self.len()));
        let mut table = CountRows::default();
        for (index, &NameCount { ref name, count, file }) in self.0.iter().enumerate() {
            if shown.contains(&index) {
                table.rows.push(CountRow { name, file, count });
            } else {
                table.left_out += 1;
                table.left_out_sum += count;
            }
        }
        match order {
            CountOrder::LargestLast => table.rows.reverse(),
            CountOrder::LargestFirst => {}
            CountOrder::Name => table.rows.sort_by_key(|row| (row.name, row.file)),
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> NameCounts {
        let counts = [("Event", 7), ("File", 3), ("Key", 3), ("Thread", 9), ("Job", 1)];
        NameCounts::new(counts.map(|(name, count)| (name.to_owned(), count)), 0)
    }

    fn rows(counts: &NameCounts, top: Option<TopN>) -> CountRows<'_> {
        counts.rows(top, CountOrder::LargestLast)
    }

    fn pairs<'a>(rows: &CountRows<'a>) -> Vec<(&'a str, u64)> {
        rows.rows.iter().map(|row| (row.name, row.count)).collect()
    }

    #[test]
    fn rows_ascend_to_the_largest_and_equal_counts_go_by_name() {
        let counts = counts();
        let names: Vec<_> = rows(&counts, None).rows.iter().map(|row| row.name).collect();
        assert_eq!(names, ["Job", "Key", "File", "Event", "Thread"]);
    }

    #[test]
    fn the_order_may_be_turned_or_that_of_the_names() {
        let counts = counts();
        let names = |order| -> Vec<_> {
            let top = Some(TopN { take: 3, skip: 0 });
            counts.rows(top, order).rows.iter().map(|row| row.name).collect()
        };
        assert_eq!(names(CountOrder::LargestFirst), ["Thread", "Event", "File"]);
        assert_eq!(names(CountOrder::Name), ["Event", "File", "Thread"]);
    }

    #[test]
    fn top_n_with_skip_leaves_the_largest_out() {
        let counts = counts();
        let top = |take, skip| pairs(&rows(&counts, Some(TopN { take, skip })));
        assert_eq!(top(2, 0), [("Event", 7), ("Thread", 9)]);
        assert_eq!(top(2, 1), [("File", 3), ("Event", 7)]);
        assert_eq!(top(10, 4), [("Job", 1)]);
        assert_eq!(top(1, 9), []);
    }

    #[test]
    fn rows_left_out_are_counted() {
        let counts = counts();
        let table = rows(&counts, Some(TopN { take: 2, skip: 1 }));
        assert_eq!((table.sum(), table.left_out, table.left_out_sum), (10, 3, 13));
        assert_eq!(rows(&counts, None).left_out, 0);
    }

    #[test]
    fn several_traces_add_up_by_name_or_stay_apart() {
        let thread = NameCounts::new([("Thread".to_owned(), 1)], 1);
        let traces = [&counts(), &thread];
        let summed = NameCounts::from_all(traces.into_iter());
        assert_eq!(pairs(&rows(&summed, Some(TopN { take: 1, skip: 0 }))), [("Thread", 10)]);
        let by_trace = NameCounts::from_each(traces.into_iter());
        let threads: Vec<_> = rows(&by_trace, None).rows;
        let threads: Vec<_> = threads.iter().filter(|row| row.name == "Thread").collect();
        let threads: Vec<_> = threads.iter().map(|row| (row.file, row.count)).collect();
        assert_eq!(threads, [(1, 1), (0, 9)]);
    }
}
