//! Counts by key or name, as expressions that polars carries out.

use handlescope_model::rules::Kinds;
use handlescope_model::tables::Events;
use polars::prelude::{
    Column, DataFrame, DataType, Expr, IntoLazy, LazyFrame, PolarsResult, SortMultipleOptions, col,
    len, lit,
};

use crate::values::TopN;

const NAME: &str = "name";
const COUNT: &str = "count";

/// Whether the kind of an event is one of some.
pub(super) fn is_one_of(kinds: Kinds) -> Expr {
    let kind = || col(Events::kind.name());
    kinds.codes().map(|code| kind().eq(lit(code))).reduce(Expr::or).unwrap_or(lit(false))
}

/// How many rows have each combination of values of these columns: the column `count`, 64 bits.
pub(super) fn row_counts(rows: LazyFrame, keys: &[&str]) -> PolarsResult<(DataFrame, Column)> {
    let keys: Vec<Expr> = keys.iter().map(|key| col(*key)).collect();
    let count = len().cast(DataType::UInt64).alias(COUNT);
    let counted = rows.group_by(keys).agg([count]).collect()?;
    let counts = counted.column(COUNT)?.clone();
    Ok((counted, counts))
}

/// Names with their counts, the largest first; among equal counts the names decide, so that the same
/// query has the same answer.
#[derive(Debug, Clone)]
pub(super) struct NameCounts(DataFrame);

impl NameCounts {
    /// Sums up counts; several may have one name.
    pub(super) fn new(names: Vec<String>, counts: Vec<u64>) -> PolarsResult<Self> {
        let columns = vec![Column::new(NAME.into(), names), Column::new(COUNT.into(), counts)];
        Self::summed(DataFrame::new_infer_height(columns)?)
    }

    /// Sums up the counts of several traces.
    pub(super) fn of_all<'a>(parts: impl Iterator<Item = &'a Self>) -> PolarsResult<Self> {
        let mut all = Self::new(Vec::new(), Vec::new())?.0;
        for NameCounts(part) in parts {
            all.vstack_mut(part)?;
        }
        Self::summed(all)
    }

    fn summed(frame: DataFrame) -> PolarsResult<Self> {
        let order = SortMultipleOptions::default().with_order_descending_multi([true, false]);
        let sums = frame.lazy().group_by([col(NAME)]).agg([col(COUNT).sum()]);
        sums.sort([COUNT, NAME], order).collect().map(Self)
    }

    pub(super) fn len(&self) -> usize {
        self.0.height()
    }

    /// The `take` largest after the `skip` largest, the largest last.
    pub(super) fn rows(&self, top: Option<TopN>) -> Vec<(&str, u64)> {
        let (Ok(names), Ok(counts)) = (self.0.column(NAME), self.0.column(COUNT)) else {
            return Vec::new();
        };
        let (Ok(names), Ok(counts)) = (names.str(), counts.u64()) else { return Vec::new() };
        let TopN { take, skip } = top.unwrap_or(TopN { take: usize::MAX, skip: 0 });
        let rows = names.iter().flatten().zip(counts.iter().flatten());
        let mut rows: Vec<_> = rows.skip(skip).take(take).collect();
        rows.reverse();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> NameCounts {
        let names = ["Event", "File", "Key", "Thread", "Job"].map(str::to_owned).to_vec();
        NameCounts::new(names, vec![7, 3, 3, 9, 1]).expect("counts")
    }

    #[test]
    fn rows_ascend_to_the_largest_and_equal_counts_go_by_name() {
        let counts = counts();
        let names: Vec<_> = counts.rows(None).iter().map(|row| row.0).collect();
        assert_eq!(names, ["Job", "Key", "File", "Event", "Thread"]);
    }

    #[test]
    fn top_n_with_skip_leaves_the_largest_out() {
        let counts = counts();
        let top = |take, skip| counts.rows(Some(TopN { take, skip }));
        assert_eq!(top(2, 0), [("Event", 7), ("Thread", 9)]);
        assert_eq!(top(2, 1), [("File", 3), ("Event", 7)]);
        assert_eq!(top(10, 4), [("Job", 1)]);
        assert_eq!(top(1, 9), []);
    }

    #[test]
    fn several_traces_add_up_by_name() {
        let all = NameCounts::of_all([&counts(), &counts()].into_iter()).expect("counts");
        assert_eq!(all.rows(Some(TopN { take: 1, skip: 0 })), [("Thread", 18)]);
    }
}
