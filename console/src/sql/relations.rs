//! What a query may name behind `FROM`: the tables of a trace with some columns more, and views that
//! make common queries short.

use handlescope_model::{ColumnSpec, Table};

use super::columns::added;
use super::opened::OPENED;

/// A table or view, and its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// A table, with columns that are made when they are asked for.
    Table(Table),
    /// What was opened, as rows that need no joins.
    View(View),
}

/// A view over the events that open a handle or map a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Everything that was opened.
    Handles,
    /// What nothing in the trace closes, or only the end of the process.
    Leaks,
}

impl View {
    /// Every view.
    pub const ALL: [View; 2] = [View::Leaks, View::Handles];

    /// As a query names it.
    pub fn name(self) -> &'static str {
        match self {
            View::Handles => "handles",
            View::Leaks => "leaks",
        }
    }

    /// What its rows are.
    pub fn doc(self) -> &'static str {
        match self {
            View::Handles => "Every handle that was opened and every view that was mapped.",
            View::Leaks => {
                "Those of handles that nothing in the trace closes, or only the exit of their process: see class."
            }
        }
    }
}

impl Relation {
    /// Every relation, views first.
    pub fn all() -> impl Iterator<Item = Relation> {
        let views = View::ALL.into_iter().map(Relation::View);
        views.chain(Table::ALL.into_iter().map(Relation::Table))
    }

    /// The relation of a name.
    pub fn named(name: &str) -> Option<Relation> {
        Relation::all().find(|relation| relation.name().eq_ignore_ascii_case(name))
    }

    /// As a query names it.
    pub fn name(self) -> &'static str {
        match self {
            Relation::Table(table) => table.name(),
            Relation::View(view) => view.name(),
        }
    }

    /// What its rows are.
    pub fn doc(self) -> &'static str {
        match self {
            Relation::Table(table) => table.doc(),
            Relation::View(view) => view.doc(),
        }
    }

    /// Its columns, in order.
    pub fn columns(self) -> Vec<ColumnSpec> {
        match self {
            Relation::Table(table) => self.added().chain(table.columns()).copied().collect(),
            Relation::View(_) => OPENED.iter().map(|column| column.spec).collect(),
        }
    }

    /// Columns that a table has in queries only, in front of its own.
    pub fn added(self) -> impl Iterator<Item = &'static ColumnSpec> {
        let added = match self {
            Relation::Table(table) => added(table),
            Relation::View(_) => &[],
        };
        added.iter().map(|(_, spec)| spec)
    }
}
