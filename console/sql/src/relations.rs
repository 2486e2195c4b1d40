//! Relations that a query may name after `FROM`: the tables of a trace with some additional columns, and views that
//! shorten common queries.

use handlescope_model::{ColumnSpec, Table};

use super::columns::{RelationColumn, added, specs};
use super::views::{View, Views};

/// A table or view, and its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation<'a> {
    /// A table, including columns computed when a query uses them.
    Table(Table),
    /// Rows that need no joins.
    View(&'a View),
}

/// The tables that queries can name. Queries name a view instead of the stored acquisitions, which contain row numbers
/// and codes.
pub fn queried_by_name() -> impl Iterator<Item = Table> {
    Table::queried().filter(|table| *table != Table::Acquisitions)
}

/// Returns the name of a table in the text of views.
pub fn table_name(table: Table) -> &'static str {
    match table {
        Table::Acquisitions => "_acquisitions",
        table => table.name(),
    }
}

impl Views {
    /// Every relation, views first.
    pub fn relations(&self) -> impl Iterator<Item = Relation<'_>> {
        self.all().map(Relation::View).chain(queried_by_name().map(Relation::Table))
    }

    pub fn relation(&self, name: &str) -> Option<Relation<'_>> {
        let table = queried_by_name().find(|table| table.name().eq_ignore_ascii_case(name));
        self.named(name).map(Relation::View).or(table.map(Relation::Table))
    }
}

impl Relation<'static> {
    /// Every relation of the program, views first.
    pub fn all() -> impl Iterator<Item = Relation<'static>> {
        Views::built_in().relations()
    }

    pub fn named(name: &str) -> Option<Relation<'static>> {
        Views::built_in().relation(name)
    }
}

impl<'a> Relation<'a> {
    /// Returns the name in queries.
    pub fn name(self) -> &'a str {
        match self {
            Relation::Table(table) => table.name(),
            Relation::View(view) => &view.file.name,
        }
    }

    /// Describes the rows.
    pub fn doc(self) -> &'a str {
        match self {
            Relation::Table(table) => table.doc(),
            Relation::View(view) => &view.file.doc,
        }
    }

    /// Returns the columns, in order.
    pub fn columns(self) -> Vec<RelationColumn> {
        match self {
            Relation::Table(table) => specs(table).map(|spec| RelationColumn::new(&spec)).collect(),
            Relation::View(view) => view.columns.clone(),
        }
    }

    /// Columns that a table has only in queries; they precede its own.
    pub fn added(self) -> impl Iterator<Item = &'static ColumnSpec> {
        let table = if let Relation::Table(table) = self { Some(table) } else { None };
        table.into_iter().flat_map(added).map(|(.., spec)| spec)
    }
}
