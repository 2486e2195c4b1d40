//! Counts by key or name, as polars expressions.

use handlescope_model::Cell;
use polars::prelude::{Column, DataFrame, Expr, IntoLazy, PolarsResult, SortMultipleOptions, col};

use super::criteria::CountOrder;
use handlescope_session::values::TopN;

const NAME: &str = "name";
const COUNT: &str = "count";
const FILE: &str = "file";

/// Names with their counts and traces, largest first. Equal counts are ordered by name, so that the same query always
/// has the same answer.
#[derive(Debug, Clone)]
pub struct NameCounts(Vec<NameCount>);

#[derive(Debug, Clone)]
struct NameCount {
    name: String,
    count: u64,
    file: u64,
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
    pub fn new(names: Vec<String>, counts: Vec<u64>, file: usize) -> PolarsResult<Self> {
        let files = vec![file as u64; names.len()];
        Self::summed(
            [String::column(NAME, names), u64::column(COUNT, counts), u64::column(FILE, files)],
            &[NAME],
        )
    }

    /// Makes the count of one name in trace number `file`.
    pub fn from_name(name: String, count: u64, file: usize) -> Self {
        Self(vec![NameCount { name, count, file: file as u64 }])
    }

    /// Sums up the counts of several traces by name.
    pub fn from_all<'a>(parts: impl Iterator<Item = &'a Self>) -> PolarsResult<Self> {
        Self::from_parts(parts, &[NAME])
    }

    /// Combines the counts of several traces, keeping traces apart.
    pub fn from_each<'a>(parts: impl Iterator<Item = &'a Self>) -> PolarsResult<Self> {
        Self::from_parts(parts, &[NAME, FILE])
    }

    fn from_parts<'a>(
        mut parts: impl Iterator<Item = &'a Self>,
        keys: &[&str],
    ) -> PolarsResult<Self> {
        let Some(first) = parts.next() else { return Ok(Self(Vec::new())) };
        let mut rows = first.0.clone();
        rows.extend(parts.flat_map(|part| part.0.iter().cloned()));
        // The counts of a single trace are already summed.
        if rows.len() == first.len() {
            return Ok(Self(rows));
        }
        let counts = u64::column(COUNT, rows.iter().map(|row| row.count).collect());
        let files = u64::column(FILE, rows.iter().map(|row| row.file).collect());
        let names = String::column(NAME, rows.into_iter().map(|row| row.name).collect());
        Self::summed([names, counts, files], keys)
    }

    fn summed(columns: [Column; 3], keys: &[&str]) -> PolarsResult<Self> {
        let order =
            SortMultipleOptions::default().with_order_descending_multi([true, false, false]);
        let by: Vec<Expr> = keys.iter().map(|key| col(*key)).collect();
        let mut sums = vec![col(COUNT).sum()];
        if !keys.contains(&FILE) {
            sums.push(col(FILE).min());
        }
        let frame = DataFrame::new_infer_height(columns.into())?;
        let sums =
            frame.lazy().group_by(by).agg(sums).sort([COUNT, NAME, FILE], order).collect()?;
        let names = String::read(sums.column(NAME)?)?;
        let (counts, files) = (u64::read(sums.column(COUNT)?)?, u64::read(sums.column(FILE)?)?);
        let rows = names.into_iter().zip(counts).zip(files);
        Ok(Self(rows.map(|((name, count), file)| NameCount { name, count, file }).collect()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the `take` largest after the `skip` largest, in the given order.
    pub fn rows(&self, top: Option<TopN>, order: CountOrder) -> CountRows<'_> {
        let TopN { take, skip } = top.unwrap_or(TopN { take: usize::MAX, skip: 0 });
        let mut table = CountRows::default();
        for (index, &NameCount { ref name, count, file }) in self.0.iter().enumerate() {
            if index < skip || index - skip >= take {
                table.left_out += 1;
                table.left_out_sum += count;
            } else {
                table.rows.push(CountRow { name, file: file as usize, count });
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
        let names = ["Event", "File", "Key", "Thread", "Job"].map(str::to_owned).to_vec();
        NameCounts::new(names, vec![7, 3, 3, 9, 1], 0).expect("counts")
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
        let thread = NameCounts::new(vec!["Thread".to_owned()], vec![1], 1).expect("counts");
        let traces = [&counts(), &thread];
        let summed = NameCounts::from_all(traces.into_iter()).expect("counts");
        assert_eq!(pairs(&rows(&summed, Some(TopN { take: 1, skip: 0 }))), [("Thread", 10)]);
        let by_trace = NameCounts::from_each(traces.into_iter()).expect("counts");
        let threads: Vec<_> = rows(&by_trace, None).rows;
        let threads: Vec<_> = threads.iter().filter(|row| row.name == "Thread").collect();
        let threads: Vec<_> = threads.iter().map(|row| (row.file, row.count)).collect();
        assert_eq!(threads, [(1, 1), (0, 9)]);
    }
}
