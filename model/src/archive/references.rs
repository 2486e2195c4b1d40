//! Whether the tables of an archive fit together, as far as their rows refer to each other.
//!
//! Archives of older layouts have no manifest, so that this is all that shows there that a table is empty or of
//! another trace.

use polars::prelude::{Column, PolarsResult};

use super::error::ArchiveError;
use super::manifest;
use super::reader::Trace;
use crate::column::{ColumnSpec, ColumnType, Reference};
use crate::table::Table;

impl Trace {
    /// Refuses a column whose numbers of rows do not fit the table they belong to.
    pub(super) fn check_references(
        &self,
        table: Table,
        spec: &ColumnSpec,
        column: &Column,
    ) -> Result<(), ArchiveError> {
        match spec.refers_to {
            Some(Reference::Count(counted)) => self.check_counts(table, spec, column, counted),
            Some(Reference::Row(rows)) if self.is_tied_by_rows() => {
                self.check_rows(table, spec, column, rows)
            }
            Some(Reference::Key(keys, _))
                if self.is_tied_by_rows() && !column.is_empty() && self.height(keys)? == 0 =>
            {
                let reason = format!("{} names rows of {}, which has none", spec.name, keys.name());
                Err(self.damaged(table, &reason))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an archive of an older layout whose tables lack rows that others count.
    pub(super) fn check_counted(&self) -> Result<(), ArchiveError> {
        for table in Table::ALL {
            for spec in table.columns() {
                if let Some(Reference::Count(_)) = spec.refers_to {
                    self.column(table, spec.name)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses a table whose rows share more rows of another among them than that has, so that a reader
    /// passes over each row once.
    fn check_counts(
        &self,
        table: Table,
        spec: &ColumnSpec,
        column: &Column,
        counted: Table,
    ) -> Result<(), ArchiveError> {
        let counts = column.u32().map_err(|error| self.damaged(table, &error))?;
        let claimed: u64 = counts.iter().flatten().map(u64::from).sum();
        let rows = self.height(counted)? as u64;
        if claimed == rows || (claimed < rows && !self.is_tied_by_rows()) {
            return Ok(());
        }
        let (name, counted) = (spec.name, counted.name());
        let reason = format!("{name} adds up to {claimed}, but {counted} has {rows} rows");
        Err(self.damaged(table, &reason))
    }

    /// Refuses numbers of rows that the other table does not have.
    fn check_rows(
        &self,
        table: Table,
        spec: &ColumnSpec,
        column: &Column,
        others: Table,
    ) -> Result<(), ArchiveError> {
        let last = largest(spec, column).map_err(|error| self.damaged(table, &error))?;
        let Some(last) = last.map(u64::from) else { return Ok(()) };
        let rows = self.height(others)? as u64;
        // The first of no rows may be the one after the last.
        let begins =
            table.columns().iter().any(|spec| spec.refers_to == Some(Reference::Count(others)));
        if last < rows || (begins && last == rows) {
            return Ok(());
        }
        let (name, others) = (spec.name, others.name());
        let reason = format!("{name} names row {last} of {others}, which has {rows}");
        Err(self.damaged(table, &reason))
    }
}

/// The largest number in a column of numbers, or of lists of them.
fn largest(spec: &ColumnSpec, column: &Column) -> PolarsResult<Option<u32>> {
    let largest = |numbers: &polars::prelude::UInt32Chunked| numbers.iter().flatten().max();
    match spec.dtype {
        ColumnType::U32List => Ok(largest(column.list()?.get_inner().u32()?)),
        _ => Ok(largest(column.u32()?)),
    }
}

/// Whether an archive of a layout has a table. Of layouts before the manifest, `is_converted` tells those made of
/// another program's output: their writers left out tables that such output has nothing of.
pub(super) fn is_required(table: Table, layout: u32, is_converted: bool) -> bool {
    /// The first layout with a table that those writers left out.
    const LEFT_OUT: u32 = 4;
    table.since() <= layout
        && (layout >= manifest::SINCE || !is_converted || table.since() < LEFT_OUT)
}
