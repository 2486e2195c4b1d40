//! What a query may name after `FROM`: the tables of a trace with some columns more, and views that
//! make common queries short.

use handlescope_model::{ColumnSpec, Table};

use super::allocated::ALLOCATED;
use super::columns::added;
use super::opened::OPENED;
use super::paths::ViewColumn;
use super::provided::PROVIDED;

/// A table or view, and its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// A table, with columns that are made when they are asked for.
    Table(Table),
    /// What was opened, as rows that need no joins.
    View(View),
}

/// A view over the events that open a handle or map a view, over allocations, or over events of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Everything that was opened.
    Handles,
    /// What nothing in the trace closes, or only the end of the process.
    Leaks,
    /// Everything that was allocated.
    Allocations,
    /// What nothing in the trace frees, or only the end of the process.
    ResourceLeaks,
    /// Every value of every kept event of a provider.
    ProviderValues,
}

impl View {
    pub const ALL: [View; 5] =
        [View::Leaks, View::Handles, View::ResourceLeaks, View::Allocations, View::ProviderValues];

    /// As a query names it.
    pub fn name(self) -> &'static str {
        match self {
            View::Handles => "handles",
            View::Leaks => "leaks",
            View::Allocations => "allocations",
            View::ResourceLeaks => "resource_leaks",
            View::ProviderValues => "provider_values",
        }
    }

    /// What its rows are.
    pub fn doc(self) -> &'static str {
        match self {
            View::Handles => "Every handle that was opened and every view that was mapped.",
            View::Leaks => {
                "Those of handles that nothing in the trace closes, or only the exit of their process: see class."
            }
            View::Allocations => {
                "Every allocation, or part of one that ended by itself; several parts have the same part_of."
            }
            View::ResourceLeaks => {
                "Those of allocations that nothing in the trace frees, or only the end of their process: see at_exit."
            }
            View::ProviderValues => {
                "Every value of every kept event of a provider: provider_events, event_fields and event_values joined."
            }
        }
    }
}

impl View {
    /// Whether a column of it has the text of stacks.
    pub(super) fn has_stack_text(self) -> bool {
        matches!(self, View::Allocations | View::ResourceLeaks | View::ProviderValues)
    }

    /// Its columns, in order.
    pub(super) fn columns(self) -> &'static [ViewColumn] {
        match self {
            View::Handles | View::Leaks => OPENED,
            View::Allocations | View::ResourceLeaks => ALLOCATED,
            View::ProviderValues => PROVIDED,
        }
    }
}

impl Relation {
    /// Every relation, views first.
    pub fn all() -> impl Iterator<Item = Relation> {
        let views = View::ALL.into_iter().map(Relation::View);
        views.chain(Table::ALL.into_iter().map(Relation::Table))
    }

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
            Relation::View(view) => view.columns().iter().map(|column| column.spec).collect(),
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
