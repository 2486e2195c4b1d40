//! How columns of views are declared: ways from a row of a table along row numbers to values.

use handlescope_model::{ColumnSpec, ColumnType, Table};

use super::columns::TableColumn;

/// The way from a row to a value: columns to follow, each but the last a row number of the next one's table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path(pub(super) &'static [TableColumn]);

/// Where the column of a view comes from, seen from the row that the view shows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// The value at the end of a path.
    Value(Path),
    /// The same, a number written like 0xC0.
    Hex(Path),
    /// Time between two paths.
    Between(Path, Path),
}

pub(super) struct ViewColumn {
    pub(super) spec: ColumnSpec,
    pub(super) origin: Origin,
}

/// A path from the rows of a table, checked while this is compiled.
pub(super) const fn path(from: Table, columns: &'static [TableColumn]) -> Path {
    assert!(columns[0].table as u8 == from as u8);
    let mut at = 1;
    while at < columns.len() {
        let is_pointed_to = match columns[at - 1].spec.rows_of() {
            Some(table) => table as u8 == columns[at].table as u8,
            None => false,
        };
        assert!(is_pointed_to, "the column before has row numbers of another table");
        at += 1;
    }
    Path(columns)
}

/// A column whose type and unit are those of its origin.
pub(super) const fn view(name: &'static str, doc: &'static str, origin: Origin) -> ViewColumn {
    let spec = match origin {
        Origin::Value(Path(columns)) => columns[columns.len() - 1].spec,
        Origin::Hex(Path(columns)) => {
            ColumnSpec { dtype: ColumnType::Text, unit: "", ..columns[columns.len() - 1].spec }
        }
        Origin::Between(Path(columns), _) => {
            ColumnSpec { unit: "ns", ..columns[columns.len() - 1].spec }
        }
    };
    ViewColumn { spec: ColumnSpec { name, doc, nullable: false, ..spec }, origin }
}

/// A column with values that are unknown or do not apply.
pub(super) const fn maybe(name: &'static str, doc: &'static str, origin: Origin) -> ViewColumn {
    let ViewColumn { spec, origin } = view(name, doc, origin);
    ViewColumn { spec: ColumnSpec { nullable: true, ..spec }, origin }
}
