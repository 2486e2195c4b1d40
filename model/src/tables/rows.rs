//! Tables as rows that are typed, instead of columns.

use crate::column::Cell;
use crate::key::{Columns, Key};

/// Source of the values of columns.
pub trait Cells {
    /// Error of reading the values.
    type Error;

    /// Copies at most `count` values of a column, from the row `first` on.
    ///
    /// # Errors
    /// When the column cannot be read.
    fn cells<C: Columns, T: Cell>(
        &self,
        key: Key<C, T>,
        first: usize,
        count: usize,
    ) -> Result<Vec<T>, Self::Error>;
}

/// A table as rows that are typed, instead of columns.
pub trait TableRows: Columns {
    /// A row; its serialization has the names of the columns.
    type Row: serde::Serialize + serde::de::DeserializeOwned;

    /// Copies at most `count` rows, from the row `first` on.
    ///
    /// # Errors
    /// When a column cannot be read.
    fn read_rows<S: Cells>(source: &S, first: usize, count: usize) -> Result<Self, S::Error>;

    /// A copy of one row; `None` after the last.
    fn row(&self, row: usize) -> Option<Self::Row>;

    /// Copies the whole table.
    ///
    /// # Errors
    /// When a column cannot be read.
    fn read<S: Cells>(source: &S) -> Result<Self, S::Error> {
        Self::read_rows(source, 0, usize::MAX)
    }

    /// Copies of all rows.
    fn rows(&self) -> impl Iterator<Item = Self::Row> {
        (0..).map_while(|row| self.row(row))
    }
}
