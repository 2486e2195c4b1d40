//! Tables of a dataset: their columns and rows.

mod about;
mod acquired;
mod leaks;
mod place;

pub use self::about::{ModuleRow, ProcessRow, TraceRow};
pub use self::acquired::{AcquisitionRow, GroupRow, GrowthRow, What};
pub use self::leaks::{StackRow, SuspectRow};
pub use self::place::{Build, Owner, Place};

use polars::prelude::Schema;

use super::column::{DatasetRow, schema};

/// Version of the layout and of the tables. A version only adds columns, so readers of an older one go on.
pub const SCHEMA_VERSION: i32 = 1;

/// A table as readers see it.
pub struct DatasetTable {
    pub name: &'static str,
    pub doc: &'static str,
    /// Names and types of its columns, without those of the partitions.
    pub schema: fn() -> Schema,
    /// Names and meanings of its columns.
    pub docs: fn() -> Vec<(&'static str, &'static str)>,
}

/// All tables. A trace is complete when the last one has it.
pub const TABLES: [DatasetTable; 8] = [
    table::<AcquisitionRow<'static>>(
        "Handles that were opened, views that were mapped, and allocations or parts of them.",
    ),
    table::<GroupRow<'static>>(
        "What each process acquired of one type on one stack: sums of acquisitions.",
    ),
    table::<GrowthRow<'static>>(
        "Open handles and allocations of each process and type at 60 equal steps of the trace.",
    ),
    table::<SuspectRow<'static>>("What .why lists for the trace."),
    table::<StackRow<'static>>("Stacks that acquired or released something."),
    table::<ProcessRow<'static>>("Processes, one row per lifetime."),
    table::<ModuleRow<'static>>("Modules, one row per file identity."),
    table::<TraceRow>("Traces, one row each."),
];

const fn table<R: DatasetRow>(doc: &'static str) -> DatasetTable {
    DatasetTable { name: R::TABLE, doc, schema: schema::<R>, docs: docs::<R> }
}

fn docs<R: DatasetRow>() -> Vec<(&'static str, &'static str)> {
    R::columns().iter().map(|column| (column.name, column.doc)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_are_unique_and_no_keyword_of_sql() {
        for table in &TABLES {
            let mut names: Vec<&str> = (table.docs)().iter().map(|(name, _)| *name).collect();
            names.extend(["date", "trace"]);
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
