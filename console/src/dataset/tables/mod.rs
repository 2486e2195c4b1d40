//! Tables of a dataset: their columns and rows.

mod about;
mod acquired;
mod leaks;

pub(super) use self::about::{ModuleRow, ProcessRow, TraceRow};
pub(super) use self::acquired::{AcquisitionRow, GroupRow, GrowthRow, What};
pub(super) use self::leaks::{StackRow, SuspectRow};

use polars::prelude::Schema;

use super::column::{DatasetRow, RowColumn, schema};

/// Version of the layout and of the tables. A version only adds columns, so readers of an older one go on.
pub(crate) const SCHEMA_VERSION: i32 = 1;

/// Digits of each number in a build that sorts as text.
const ORDER_DIGITS: usize = 10;

/// A table as readers see it.
pub(crate) struct DatasetTable {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    /// Names and types of its columns, without those of the partitions.
    pub(crate) schema: fn() -> Schema,
    /// Names and meanings of its columns.
    pub(crate) docs: fn() -> Vec<(&'static str, &'static str)>,
}

/// All tables. A trace is complete when the last one has it.
pub(crate) const TABLES: [DatasetTable; 8] = [
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

/// Build of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Build {
    name: String,
    /// The name with numbers of equal length, so that builds sort as text.
    order: String,
}

impl Build {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), order: sortable(name) }
    }

    /// Build of a file version, whose text may go on behind the numbers; `None` where it has none.
    pub(super) fn of_file_version(version: &str) -> Option<Self> {
        let numbers = version.split_whitespace().next()?;
        let is_version = numbers.starts_with(|first: char| first.is_ascii_digit());
        is_version.then(|| Self::new(numbers))
    }
}

/// A text whose numbers have equal length.
fn sortable(name: &str) -> String {
    let mut text = String::new();
    let mut digits = String::new();
    for letter in name.chars().map(Some).chain([None]) {
        match letter {
            Some(digit) if digit.is_ascii_digit() => digits.push(digit),
            letter => {
                if !digits.is_empty() {
                    let number = digits.trim_start_matches('0');
                    text.extend(std::iter::repeat_n(
                        '0',
                        ORDER_DIGITS.saturating_sub(number.len()),
                    ));
                    text.push_str(number);
                    digits.clear();
                }
                text.extend(letter);
            }
        }
    }
    text
}

/// Machine and build that a row is of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place<'t> {
    pub(super) machine: Option<&'t str>,
    pub(super) build: Option<&'t Build>,
}

/// Process that a row is of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'t> {
    pub(super) place: Place<'t>,
    /// Executable.
    pub(super) process: &'t str,
    /// Row of the process in its trace.
    pub(super) number: Option<i32>,
    pub(super) pid: Option<i64>,
}

/// Rows that are of a machine and a build.
trait Placed {
    fn place(&self) -> &Place<'_>;
}

/// Rows that are of a process.
trait Owned {
    fn owner(&self) -> &Owner<'_>;
}

fn place_columns<R: Placed>() -> Vec<RowColumn<R>> {
    vec![
        RowColumn::text("machine", "Computer that recorded the trace.", |row| row.place().machine),
        RowColumn::text(
            "build",
            "Build of the program: as it was given, or else the file version of the executable.",
            |row| row.place().build.map(|build| build.name.as_str()),
        ),
        RowColumn::text(
            "build_order",
            "The build with numbers of equal length, so that builds sort as text.",
            |row| row.place().build.map(|build| build.order.as_str()),
        ),
    ]
}

fn owner_columns<R: Placed + Owned>() -> Vec<RowColumn<R>> {
    let mut columns = place_columns();
    columns.extend([
        RowColumn::text("process", "Executable of the process, as in app.exe.", |row: &R| {
            Some(row.owner().process).filter(|name| !name.is_empty())
        }),
        RowColumn::int(
            "process_number",
            "Number of the process in its trace: ids are reused.",
            |row: &R| row.owner().number,
        ),
        RowColumn::big_int("pid", "Process id.", |row: &R| row.owner().pid),
    ]);
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_sort_as_text() {
        let builds = ["1.9.0", "1.10.0", "1.10.0-beta2", "1.10.0-beta10", "2"];
        let orders = builds.map(|build| Build::new(build).order);
        assert!(orders.is_sorted(), "{orders:?}");
        assert_eq!(orders[0], "0000000001.0000000009.0000000000");
        let windows = Build::of_file_version("10.0.17763.1 (WinBuild.160101.0800)");
        assert_eq!(windows.map(|build| build.name).as_deref(), Some("10.0.17763.1"));
        assert_eq!(Build::of_file_version("unknown"), None);
    }

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
