//! The tables of a dataset: their columns and rows.

mod about;
mod acquired;
mod leaks;
mod place;

pub use self::about::{DatasetProcessRow, ModuleRow, TraceRow};
pub use self::acquired::{AcquisitionRow, DatasetGroupRow, DatasetGrowthRow};
pub use self::leaks::{DatasetSuspectRow, StackRow};
pub use self::place::{Build, Owner, Place, What};

use polars::prelude::{Column, DataType, Schema};

use super::column::{DatasetCell, DatasetColumn, schema};

/// Version of the layout and of the tables. A version only adds columns, so readers of an older one go on.
pub const SCHEMA_VERSION: i32 = 2;

/// A table as readers see it.
pub struct DatasetTable {
    /// Its name, which is a folder in the dataset.
    pub name: &'static str,
    pub doc: &'static str,
    /// Maximum number of rows in memory, and in a row group.
    pub batch_rows: usize,
    /// Its columns, without the partition columns.
    pub columns: fn() -> Vec<DatasetColumn>,
}

/// A row of a table.
pub trait DatasetRow: Sized {
    const TABLE: DatasetTable;

    /// Converts rows to columns.
    fn columns_of(rows: &[Self]) -> Vec<Column>;
}

/// Columns of every table, from the names of folders.
pub const PARTITIONS: [DatasetColumn; 2] = [
    DatasetColumn { name: DATE, dtype: DataType::Date, doc: "Day of the session start, UTC." },
    DatasetColumn {
        name: TRACE,
        dtype: DataType::String,
        doc: "Id of the trace: 32 hexadecimal digits.",
    },
];
pub const DATE: &str = "date";
pub const TRACE: &str = "trace";

impl DatasetTable {
    /// Returns the names and types of its columns, without the partition columns.
    pub fn schema(&self) -> Schema {
        schema(&(self.columns)())
    }

    /// Returns the same of merged files, which have the column `trace`.
    pub fn merged_schema(&self) -> Schema {
        let mut schema = self.schema();
        schema.with_column(TRACE.into(), DataType::String);
        schema
    }
}

/// Number of rows of a table in memory, and of a table with the texts of stacks. These texts take most of a row's
/// memory.
const ROWS: usize = 1 << 17;
const ROWS_WITH_TEXTS: usize = 1 << 14;

/// Declares the tables: their names, rows in memory, and meanings.
macro_rules! tables {
    ($( $row:ident = $name:literal, $batch_rows:ident, $doc:literal; )+) => {
        $(
            impl DatasetRow for $row<'_> {
                const TABLE: DatasetTable = DatasetTable {
                    name: $name,
                    doc: $doc,
                    batch_rows: $batch_rows,
                    columns: || <&$row<'static>>::specs("", ""),
                };

                fn columns_of(rows: &[Self]) -> Vec<Column> {
                    <&Self>::columns("", rows.iter())
                }
            }
        )+

        /// All tables. A trace is complete when the last one has it.
        pub const TABLES: [DatasetTable; [$( $name, )+].len()] = [$( $row::TABLE, )+];
    };
}

tables! {
    AcquisitionRow = "acquisitions", ROWS,
        "Handles, mapped views, and allocations or parts of them, one row each.";
    DatasetGroupRow = "groups", ROWS_WITH_TEXTS,
        "Sums of acquisitions by process, type and stack.";
    DatasetGrowthRow = "growth", ROWS,
        "Open handles and allocations of each process and type at 60 equal steps of the trace.";
    DatasetSuspectRow = "suspects", ROWS_WITH_TEXTS, "Suspects that .why lists for the trace.";
    StackRow = "stacks", ROWS_WITH_TEXTS, "Stacks that acquired or released something.";
    DatasetProcessRow = "processes", ROWS, "Processes, one row per lifetime.";
    ModuleRow = "modules", ROWS, "Modules, one row per file identity.";
    TraceRow = "traces", ROWS, "Traces, one row each.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_are_unique_and_no_keyword_of_sql() {
        for table in &TABLES {
            let mut names: Vec<&str> = (table.columns)().iter().map(|column| column.name).collect();
            names.extend([DATE, TRACE]);
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", table.name);
            for keyword in ["user", "end", "order", "type_name", "group", "table"] {
                assert!(!names.contains(&keyword), "{}: {keyword}", table.name);
            }
        }
    }
}
