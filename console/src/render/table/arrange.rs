//! `-SortBy`, `-TopN` and `-Columns`.

use polars::prelude::{Column, DataFrame, DataType, IdxSize, PolarsResult, SortOptions};

use super::{ColumnSpec, FileRows, Scope, Table, columns::FILE};
use crate::{
    render::output::{COLUMNS, OutputError, OutputOptions},
    values::{ColumnChoice, Format, TopN},
};

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
        let Some((at, column)) = found else {
            return Err(OutputError::unknown_column("-SortBy", name, self.column_names()));
        };
        let column = column.clone();
        let heading = self.specs.get(at).and_then(ColumnSpec::heading);
        self.spare.retain(|spare| heading.as_deref() != Some(*spare));
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

    /// Keeps the columns that are wanted, in their order. A document has all.
    pub(in crate::render) fn choose(&mut self, options: &OutputOptions) -> Result<(), OutputError> {
        let names = match &options.columns {
            _ if options.is_document() => return Ok(()),
            ColumnChoice::Fitting => return Ok(()),
            ColumnChoice::All => {
                self.spare.clear();
                return Ok(());
            }
            ColumnChoice::Named(names) => names,
        };
        let is_text = options.format() == Format::Text;
        let mut chosen: Vec<usize> = Vec::new();
        for name in names {
            let known = self.data_columns().map(|(at, _)| self.name(at));
            let at = self
                .column_named(name, is_text)
                .ok_or_else(|| OutputError::unknown_column(COLUMNS, name, known))?;
            if !chosen.contains(&at) {
                chosen.push(at);
            }
        }
        let columns = chosen.iter().filter_map(|at| self.frame.columns().get(*at).cloned());
        let frame = DataFrame::new(self.frame.height(), columns.collect());
        let specs = chosen.iter().filter_map(|at| self.specs.get(*at).cloned());
        self.specs = specs.zip(&chosen).map(|(spec, at)| spec.chosen(self.name(*at))).collect();
        self.frame = frame.map_err(std::io::Error::other)?;
        (self.spare, self.groups, self.row_text) = (Vec::new(), None, None);
        Ok(())
    }

    /// A column by its heading or its name; in text, that with the heading shows more.
    fn column_named(&self, name: &str, is_text: bool) -> Option<usize> {
        let columns = self.specs.iter().enumerate();
        let written = columns.filter(|(_, spec)| is_text || spec.scope != Scope::Text);
        let mut titled = written.clone().filter(|(_, spec)| spec.is_titled(name));
        let mut named = written.filter(|(at, _)| self.name(*at).eq_ignore_ascii_case(name));
        titled.next().or_else(|| named.next()).map(|(at, _)| at)
    }
}

/// The rows of a part by a column: the largest number first, texts from a to z in any case, unknown
/// values last.
fn sorted(column: &Column, part: &FileRows) -> PolarsResult<Vec<usize>> {
    let mut rows: Vec<usize> = part.rows().collect();
    if *column.dtype() == DataType::String {
        let texts = column.str()?;
        rows.sort_by_cached_key(|&row| {
            let text = texts.get(row).map(str::to_lowercase);
            (text.is_none(), text)
        });
        return Ok(rows);
    }
    let places: Vec<IdxSize> = rows.iter().map(|row| *row as IdxSize).collect();
    let values = column.as_materialized_series().take_slice(&places)?;
    let options = SortOptions::new()
        .with_order_descending(true)
        .with_nulls_last(true)
        .with_maintain_order(true);
    let order = values.arg_sort(options);
    Ok(order.iter().flatten().filter_map(|place| rows.get(place as usize).copied()).collect())
}

impl FileRows {
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
