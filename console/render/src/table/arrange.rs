//! `-SortBy`, `-TopN` and `-Columns`.

use polars::prelude::{Column, DataFrame, DataType, IdxSize, PolarsResult, SortOptions};

use super::{AnswerTable, ColumnFormat, ColumnScope, FileRows, columns::FILE};
use crate::output::{COLUMNS, OutputError, OutputOptions};
use handlescope_session::values::{ColumnChoice, Format, TopN};

impl AnswerTable<'_> {
    /// Sorts the rows of each file as the options say, and drops the rows that they leave out.
    pub fn arrange(&mut self, options: &OutputOptions) -> Result<(), OutputError> {
        if let Some(name) = &options.sort_by {
            self.sort_by(name)?;
        }
        if let Some(top) = options.top {
            self.files.iter_mut().for_each(|file| file.left_out += file.cut(top));
        }
        Ok(())
    }

    /// Returns the rows of each file that the options keep, counted from its first row.
    pub fn rows_left(mut self, options: &OutputOptions) -> Result<Vec<Vec<usize>>, OutputError> {
        self.arrange(options)?;
        Ok(self.files.iter().map(|file| file.relative_rows().collect()).collect())
    }

    /// Keeps the first rows without mentioning the others, and returns how many there are.
    pub fn limit(&mut self, rows: usize) -> usize {
        self.files.iter_mut().map(|file| file.cut(TopN { take: rows, skip: 0 })).sum()
    }

    /// Orders the rows of each file by a column.
    pub fn sort_by(&mut self, name: &str) -> Result<(), OutputError> {
        let column = self.sortable().find(|(index, _)| self.is_named(*index, name));
        let Some((index, column)) = column else {
            let names = self.sortable().map(|(_, column)| column.name().as_str());
            return Err(OutputError::unknown_column("-SortBy", name, names));
        };
        let column = column.clone();
        let heading = self.specs.get(index).and_then(ColumnFormat::heading);
        self.spare.retain(|spare| heading.as_deref() != Some(*spare));
        for file in &mut self.files {
            let sorted = sorted(&column, file).map_err(std::io::Error::other)?;
            file.order = Some(sorted);
        }
        self.groups = None;
        Ok(())
    }

    /// Returns the columns that can be sorted by.
    fn sortable(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.frame
            .columns()
            .iter()
            .enumerate()
            .filter(|(_, column)| !column.dtype().is_nested() && column.name() != FILE)
    }

    fn is_named(&self, column: usize, name: &str) -> bool {
        self.name(column).eq_ignore_ascii_case(name)
            || self.specs.get(column).is_some_and(|spec| spec.is_titled(name))
    }

    /// Keeps the selected columns, in the order given. A document keeps all.
    pub fn choose(&mut self, options: &OutputOptions) -> Result<(), OutputError> {
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
        let mut selected: Vec<usize> = Vec::new();
        for name in names {
            let known = self.data_columns().map(|(index, _)| self.name(index));
            let index = self
                .column_named(name, is_text)
                .ok_or_else(|| OutputError::unknown_column(COLUMNS, name, known))?;
            if !selected.contains(&index) {
                selected.push(index);
            }
        }
        let columns = selected.iter().filter_map(|index| self.frame.columns().get(*index).cloned());
        let frame = DataFrame::new(self.frame.height(), columns.collect());
        let specs = selected.iter().filter_map(|index| self.specs.get(*index).cloned());
        self.specs =
            specs.zip(&selected).map(|(spec, index)| spec.selected_by(self.name(*index))).collect();
        self.frame = frame.map_err(std::io::Error::other)?;
        (self.spare, self.groups, self.row_text) = (Vec::new(), None, None);
        Ok(())
    }

    /// Finds a column by its heading, or else by its name. The heading wins because that column shows more in text.
    fn column_named(&self, name: &str, is_text: bool) -> Option<usize> {
        let written = self
            .specs
            .iter()
            .enumerate()
            .filter(|(_, spec)| is_text || spec.scope != ColumnScope::Text);
        let mut titled = written.clone().filter(|(_, spec)| spec.is_titled(name));
        let mut named = written.filter(|(index, _)| self.name(*index).eq_ignore_ascii_case(name));
        titled.next().or_else(|| named.next()).map(|(index, _)| index)
    }
}

/// Sorts the rows of a file by a column: numbers from the largest, texts from a to z ignoring case, unknown values
/// last.
fn sorted(column: &Column, file: &FileRows) -> PolarsResult<Vec<usize>> {
    let mut rows: Vec<usize> = file.rows().collect();
    if *column.dtype() == DataType::String {
        let texts = column.str()?;
        rows.sort_by_cached_key(|&row| {
            let text = texts.get(row).map(str::to_lowercase);
            (text.is_none(), text)
        });
        return Ok(rows);
    }
    let indexes: Vec<IdxSize> = rows.iter().map(|row| *row as IdxSize).collect();
    let values = column.as_materialized_series().take_slice(&indexes)?;
    let options = SortOptions::new()
        .with_order_descending(true)
        .with_nulls_last(true)
        .with_maintain_order(true);
    let order = values.arg_sort(options);
    Ok(order.iter().flatten().filter_map(|index| rows.get(index as usize).copied()).collect())
}

impl FileRows {
    /// Keeps the selected rows, and returns the number of the others.
    fn cut(&mut self, TopN { take, skip }: TopN) -> usize {
        let before = self.height();
        match &mut self.order {
            Some(order) => *order = order.iter().copied().skip(skip).take(take).collect(),
            None => {
                let start = self.rows.start.saturating_add(skip).min(self.rows.end);
                self.rows = start..start.saturating_add(take).min(self.rows.end);
            }
        }
        before - self.height()
    }
}
