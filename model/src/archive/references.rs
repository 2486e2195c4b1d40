//! Checks that a column that counts rows of another table fits that table, so that a reader visits each row once.

use polars::prelude::{Column, PolarsError};

use crate::column::{ColumnSpec, Reference};
use crate::noting::PolarsReason;
use crate::table::Table;

/// Reasons why a column does not fit the other table.
#[derive(Debug, thiserror::Error)]
pub enum Misfit {
    #[error("{name} adds up to {claimed}, but {counted} has {rows} rows")]
    Count { name: &'static str, claimed: u64, counted: &'static str, rows: u64 },
    #[error("{}", PolarsReason(.0))]
    Type(#[from] PolarsError),
}

/// Returns the table whose rows a column counts.
pub fn counted(spec: &ColumnSpec) -> Option<Table> {
    match spec.refers_to {
        Some(Reference::Count(counted)) => Some(counted),
        _ => None,
    }
}

/// Refuses a column whose counts add up to more than the rows of `counted`.
pub fn check_counts(
    spec: &ColumnSpec,
    column: &Column,
    counted: Table,
    rows: u64,
) -> Result<(), Misfit> {
    let claimed: u64 = column.u32()?.iter().flatten().map(u64::from).sum();
    if claimed <= rows {
        Ok(())
    } else {
        Err(Misfit::Count { name: spec.name, claimed, counted: counted.name(), rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Events, Objects};

    #[test]
    fn counts_add_up_to_no_more_than_the_rows_of_the_other_table() {
        let spec = Objects::acquisition_count.spec();
        let column = Column::new(spec.name.into(), [2_u32, 3]);
        let misfit = |rows| check_counts(&spec, &column, Table::Acquisitions, rows).err();
        assert!(misfit(5).is_none() && misfit(6).is_none());
        let message = "acquisition_count adds up to 5, but acquisitions has 4 rows";
        assert_eq!(misfit(4).map(|misfit| misfit.to_string()).as_deref(), Some(message));
    }

    #[test]
    fn only_columns_of_counts_are_compared() {
        assert_eq!(counted(&Objects::acquisition_count.spec()), Some(Table::Acquisitions));
        assert_eq!(counted(&Events::stack.spec()), None);
    }
}
