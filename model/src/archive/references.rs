//! Whether a column fits the table that its numbers of rows belong to.
//!
//! Archives of older layouts have no manifest, so only these checks detect a table that is empty or from another trace.

use polars::prelude::{Column, PolarsError, PolarsResult, UInt32Chunked};

use crate::column::{ColumnSpec, ColumnType, Reference};
use crate::noting::PolarsReason;
use crate::table::Table;

/// Reasons why a column does not fit.
#[derive(Debug, thiserror::Error)]
pub(super) enum Misfit {
    #[error("{name} adds up to {claimed}, but {counted} has {rows} rows")]
    Count { name: &'static str, claimed: u64, counted: &'static str, rows: u64 },
    #[error("{name} refers to row {last} of {target}, which has {rows} rows")]
    Row { name: &'static str, last: u64, target: &'static str, rows: u64 },
    #[error("{name} refers to rows of {target}, which has none")]
    Key { name: &'static str, target: &'static str },
    #[error("it has {rows} rows, of which other tables refer to {named}")]
    Unnamed { rows: u64, named: u64 },
    #[error("a frame is at offset {offset:#x} of a module of {size:#x} bytes")]
    Offset { offset: u64, size: u64 },
    #[error("{}", PolarsReason(.0))]
    Type(#[from] PolarsError),
}

/// Tables that a trace fills with what its other tables refer to, so that these name the last row.
pub(super) const REFERENCED: [Table; 3] = [Table::Names, Table::Stacks, Table::Frames];

/// The columns with row numbers of a table, and the tables that have them.
pub(super) fn columns_of_rows(table: Table) -> impl Iterator<Item = (Table, &'static ColumnSpec)> {
    let columns = Table::ALL.into_iter().flat_map(|by| by.columns().iter().map(move |c| (by, c)));
    columns.filter(move |(_, spec)| spec.rows_of() == Some(table))
}

/// The table that a column is compared with. Without `is_strict`, only excessive costs are checked.
pub(super) fn compared_with(spec: &ColumnSpec, is_strict: bool) -> Option<Table> {
    match spec.refers_to {
        Some(Reference::Count(counted)) => Some(counted),
        Some(Reference::Row(target) | Reference::Key(target, _)) if is_strict => Some(target),
        _ => None,
    }
}

/// Compares a column with the number of rows of that table.
pub(super) fn check(
    table: Table,
    spec: &ColumnSpec,
    column: &Column,
    rows: u64,
    is_strict: bool,
) -> Result<(), Misfit> {
    match spec.refers_to {
        Some(Reference::Count(counted)) => check_counts(spec, column, counted, rows, is_strict),
        Some(Reference::Row(target)) => check_rows(table, spec, column, target, rows),
        // Output of !htrace knows no types, and its objects have 0.
        Some(Reference::Key(target, _)) if rows == 0 && largest(spec, column)? > Some(0) => {
            Err(Misfit::Key { name: spec.name, target: target.name() })
        }
        _ => Ok(()),
    }
}

/// Refuses a table whose rows have more rows of another table in all than that has, so that a reader visits each row
/// once.
fn check_counts(
    spec: &ColumnSpec,
    column: &Column,
    counted: Table,
    rows: u64,
    is_strict: bool,
) -> Result<(), Misfit> {
    let claimed: u64 = column.u32()?.iter().flatten().map(u64::from).sum();
    if claimed == rows || (claimed < rows && !is_strict) {
        return Ok(());
    }
    Err(Misfit::Count { name: spec.name, claimed, counted: counted.name(), rows })
}

/// Refuses numbers of rows that the other table does not have.
fn check_rows(
    table: Table,
    spec: &ColumnSpec,
    column: &Column,
    target: Table,
    rows: u64,
) -> Result<(), Misfit> {
    let Some(last) = largest(spec, column)?.map(u64::from) else { return Ok(()) };
    // The first of no rows may be the one after the last.
    let counts = Some(Reference::Count(target));
    let begins = table.columns().iter().any(|spec| spec.refers_to == counts);
    if last < rows || (begins && last == rows) {
        return Ok(());
    }
    Err(Misfit::Row { name: spec.name, last, target: target.name(), rows })
}

/// Compares the last row of a table that other tables name with its number of rows.
pub(super) fn check_last(last: Option<u32>, rows: u64) -> Result<(), Misfit> {
    let named = last.map_or(0, |last| u64::from(last) + 1);
    if named == rows { Ok(()) } else { Err(Misfit::Unnamed { rows, named }) }
}

/// The largest number in a column of numbers, or of lists of them.
pub(super) fn largest(spec: &ColumnSpec, column: &Column) -> PolarsResult<Option<u32>> {
    let largest = |numbers: &UInt32Chunked| numbers.iter().flatten().max();
    match spec.dtype {
        ColumnType::U32List => Ok(largest(column.list()?.get_inner().u32()?)),
        _ => Ok(largest(column.u32()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Columns;
    use crate::tables::{Events, ExistingHandles, Objects, Stacks};

    fn misfit<C: Columns>(
        name: &str,
        values: &[u32],
        rows: u64,
        is_strict: bool,
    ) -> Option<String> {
        let spec = C::TABLE.column(name).unwrap();
        let column = Column::new(name.into(), values);
        check(C::TABLE, spec, &column, rows, is_strict).err().map(|misfit| misfit.to_string())
    }

    #[test]
    fn counts_add_up_to_the_rows_of_the_target_table() {
        let count = |rows, is_strict| misfit::<Objects>("event_count", &[2, 3], rows, is_strict);
        assert_eq!(count(5, true), None);
        assert_eq!(count(6, false), None);
        let message = "event_count adds up to 5, but events has 6 rows";
        assert_eq!(count(6, true).as_deref(), Some(message));
        assert!(count(4, false).is_some());
    }

    #[test]
    fn rows_that_are_named_exist() {
        assert_eq!(misfit::<ExistingHandles>("object", &[0, 4], 5, true), None);
        let message = "object refers to row 4 of objects, which has 4 rows";
        assert_eq!(misfit::<ExistingHandles>("object", &[0, 4], 4, true).as_deref(), Some(message));
        assert_eq!(misfit::<Objects>("first_event", &[0, 5], 5, true), None, "an empty slice");
        assert!(misfit::<Objects>("type_id", &[0, 7], 0, true).is_some());
        assert_eq!(misfit::<Objects>("type_id", &[0, 0], 0, true), None, "no types are known");
        assert_eq!(misfit::<Objects>("type_id", &[7], 1, true), None);
    }

    #[test]
    fn the_last_row_is_named() {
        let misfit = |last, rows| check_last(last, rows).err().map(|misfit| misfit.to_string());
        assert_eq!((misfit(None, 0), misfit(Some(4), 5)), (None, None));
        let message = "it has 6 rows, of which other tables refer to 5";
        assert_eq!(misfit(Some(4), 6).as_deref(), Some(message));
        let by: Vec<_> = columns_of_rows(Table::Names).map(|(by, spec)| (by, spec.name)).collect();
        assert_eq!(by, [(Table::Objects, "name"), (Table::StartHandles, "name")]);
    }

    #[test]
    fn only_an_archive_without_a_manifest_has_its_rows_compared() {
        let compared = |spec, is_strict| compared_with(&spec, is_strict);
        assert_eq!(compared(Events::stack.spec(), true), Some(Table::Stacks));
        assert_eq!(compared(Events::stack.spec(), false), None);
        assert_eq!(compared(Stacks::frames.spec(), true), Some(Table::Frames));
        assert_eq!(compared(Objects::event_count.spec(), false), Some(Table::Events));
        assert_eq!(compared(Events::time_ns.spec(), true), None);
    }
}
