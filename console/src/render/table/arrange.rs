//! `-SortBy` and `-TopN`.

use polars::prelude::{Column, DataType, PolarsResult, SortOptions};

use super::{Part, Table};
use crate::{
    render::output::{OutputError, OutputOptions},
    suggest,
    values::TopN,
};

/// The number of a file; its rows stand together anyway.
const FILE: &str = "file";

impl Table<'_> {
    /// Puts the rows of each file into the order that is wanted, and leaves some out.
    pub(super) fn arrange(&mut self, options: &OutputOptions) -> Result<(), OutputError> {
        if let Some(name) = &options.sort_by {
            self.sort_by(name)?;
        }
        if let Some(top) = options.top {
            self.parts.iter_mut().for_each(|part| part.cut(top));
        }
        Ok(())
    }

    /// The rows of each file that the options leave, counted from its first.
    pub(crate) fn rows_left(
        mut self,
        options: &OutputOptions,
    ) -> Result<Vec<Vec<usize>>, OutputError> {
        self.arrange(options)?;
        Ok(self.parts.iter().map(|part| part.own_rows().collect()).collect())
    }

    /// Keeps the first rows without a word about the others, whose number is returned.
    pub(super) fn limit(&mut self, rows: usize) -> usize {
        let mut left_out = 0;
        for part in &mut self.parts {
            let before = part.height();
            let counted = part.left_out;
            part.cut(TopN { take: rows, skip: 0 });
            part.left_out = counted;
            left_out += before - part.height();
        }
        left_out
    }

    /// Orders the rows of each file by a column.
    pub(in crate::render) fn sort_by(&mut self, name: &str) -> Result<(), OutputError> {
        let found = self.sortable().find(|(at, _)| self.is_named(*at, name));
        let Some((_, column)) = found else { return Err(self.unknown_column(name)) };
        let column = column.clone();
        for part in &mut self.parts {
            let sorted = sorted(&column, part).map_err(std::io::Error::other)?;
            part.order = Some(sorted);
        }
        self.groups = None;
        Ok(())
    }

    /// Columns whose values have an order.
    fn sortable(&self) -> impl Iterator<Item = (usize, &Column)> {
        let columns = self.frame.columns().iter().enumerate();
        columns.filter(|(_, column)| !column.dtype().is_nested() && column.name() != FILE)
    }

    pub(in crate::render) fn column_names(&self) -> impl Iterator<Item = &str> {
        self.sortable().map(|(_, column)| column.name().as_str())
    }

    fn is_named(&self, column: usize, name: &str) -> bool {
        self.name(column).eq_ignore_ascii_case(name)
            || self.specs.get(column).is_some_and(|spec| spec.is_titled(name))
    }

    fn unknown_column(&self, name: &str) -> OutputError {
        OutputError::UnknownColumn {
            name: name.to_owned(),
            hint: suggest::hint(name, self.column_names()),
            columns: self.column_names().collect::<Vec<_>>().join(", "),
        }
    }
}

/// The rows of a part by a column: the largest number first, texts from a to z in any case, unknown
/// values last.
fn sorted(column: &Column, part: &Part) -> PolarsResult<Vec<usize>> {
    let mut rows: Vec<usize> = part.rows().collect();
    if *column.dtype() == DataType::String {
        let texts = column.str()?;
        rows.sort_by_cached_key(|&row| {
            let text = texts.get(row).map(str::to_lowercase);
            (text.is_none(), text)
        });
        return Ok(rows);
    }
    let values = column.slice(part.first as i64, part.rows.len());
    let options = SortOptions::new()
        .with_order_descending(true)
        .with_nulls_last(true)
        .with_maintain_order(true);
    let order = values.as_materialized_series().arg_sort(options);
    Ok(order.iter().flatten().map(|row| part.first + row as usize).collect())
}

impl Part {
    /// Keeps some rows, and counts the others.
    fn cut(&mut self, TopN { take, skip }: TopN) {
        let before = self.height();
        match &mut self.order {
            Some(order) => *order = order.iter().copied().skip(skip).take(take).collect(),
            None => {
                let start = self.rows.start.saturating_add(skip).min(self.rows.end);
                self.rows = start..start.saturating_add(take).min(self.rows.end);
            }
        }
        self.left_out += before - self.height();
    }
}
