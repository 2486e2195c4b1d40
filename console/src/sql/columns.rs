//! The columns of tables as queries see them: those of the archive, and some more that are made when they
//! are asked for.

use std::borrow::Cow;

use handlescope_model::tables::Events;
use handlescope_model::{Cell, ColumnSpec, ColumnType, Columns, Key, Table};
use polars::prelude::DataType;

use crate::query::type_name;

#[derive(Debug, Clone, Copy)]
pub(super) struct TableColumn {
    pub(super) table: Table,
    pub(super) spec: ColumnSpec,
    pub(super) values: Values,
}

/// Where the values of a column come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Archive,
    /// That of the archive; null in a trace without a clock.
    Time,
    FileIndex,
    Row,
    ObjectId,
    TypeName,
    KindName,
    StackDepth,
    StackText,
    ResourceKind,
    EndName,
    MissName,
}

/// The columns that each table has in front of its own.
static ROWS: &[(Values, ColumnSpec)] = &[FILE_INDEX, ROW];

static OBJECTS: &[(Values, ColumnSpec)] = &[FILE_INDEX, ROW, ID, TYPE];

static EVENTS: &[(Values, ColumnSpec)] = &[FILE_INDEX, ROW, KIND_NAME];

static ALLOCATORS: &[(Values, ColumnSpec)] = &[FILE_INDEX, ROW, RESOURCE_KIND];

static RESOURCES: &[(Values, ColumnSpec)] = &[FILE_INDEX, ROW, END_NAME];

static RESOURCE_MISSES: &[(Values, ColumnSpec)] = &[
    FILE_INDEX,
    ROW,
    (Values::MissName, column("what_name", ColumnType::Text, "What it is, as in orphan_free.")),
];

static STACKS: &[(Values, ColumnSpec)] = &[
    FILE_INDEX,
    ROW,
    (
        Values::StackDepth,
        column("depth", ColumnType::U32, "Number of frames; functions inlined into others count."),
    ),
    STACK_TEXT,
];

const STACK_TEXT: (Values, ColumnSpec) = (
    Values::StackText,
    column("text", ColumnType::Text, "A line for each frame, as in leaky.exe!main."),
);

const RESOURCE_KIND: (Values, ColumnSpec) =
    (Values::ResourceKind, column("kind_name", ColumnType::Text, "The kind, as in heap."));

const END_NAME: (Values, ColumnSpec) =
    (Values::EndName, column("end_name", ColumnType::Text, "How it ended, as in freed."));

const FILE_INDEX: (Values, ColumnSpec) = (
    Values::FileIndex,
    column("file_index", ColumnType::U32, "Number of the file among those that are loaded."),
);

const ROW: (Values, ColumnSpec) = (
    Values::Row,
    column("row", ColumnType::U32, "What other tables point to; with several files it counts on."),
);

const ID: (Values, ColumnSpec) = (
    Values::ObjectId,
    column("id", ColumnType::U32, "The number of the object, as answers about objects show it."),
);

const TYPE: (Values, ColumnSpec) =
    (Values::TypeName, column("type", ColumnType::Text, "Name of the type, as in Event."));

const KIND_NAME: (Values, ColumnSpec) =
    (Values::KindName, column("kind_name", ColumnType::Text, "The kind, as in handle_create."));

const fn column(name: &'static str, dtype: ColumnType, doc: &'static str) -> ColumnSpec {
    ColumnSpec { name, dtype, nullable: false, unit: "", refers_to: None, doc }
}

/// The columns that a table has in queries only, in front of its own.
pub(super) fn added(table: Table) -> &'static [(Values, ColumnSpec)] {
    match table {
        Table::Objects => OBJECTS,
        Table::Events => EVENTS,
        Table::Stacks => STACKS,
        Table::Allocators => ALLOCATORS,
        Table::Resources => RESOURCES,
        Table::ResourceMisses => RESOURCE_MISSES,
        _ => ROWS,
    }
}

/// All columns of a table in queries.
pub(super) fn specs(table: Table) -> impl Iterator<Item = &'static ColumnSpec> {
    added(table).iter().map(|(_, spec)| spec).chain(table.columns())
}

/// What is said of a column of a table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationColumn {
    pub name: Cow<'static, str>,
    pub dtype: DataType,
    /// Whether it has values that are unknown or do not apply.
    pub nullable: bool,
    pub unit: Cow<'static, str>,
    pub doc: Cow<'static, str>,
}

impl RelationColumn {
    pub fn of(spec: &ColumnSpec) -> RelationColumn {
        RelationColumn {
            name: spec.name.into(),
            dtype: spec.dtype.dtype(),
            nullable: spec.nullable,
            unit: spec.unit_text(),
            doc: spec.doc.trim().into(),
        }
    }

    /// Its type, without what says that values may be missing.
    pub(super) fn dtype_text(&self) -> String {
        let dtype = self.dtype.to_string();
        type_name(&dtype).unwrap_or(dtype)
    }

    /// Its type, with `?` if values may be missing.
    pub(crate) fn type_text(&self) -> String {
        format!("{}{}", self.dtype_text(), if self.nullable { "?" } else { "" })
    }
}

impl TableColumn {
    /// The column of a table that has a name.
    pub(super) fn named(table: Table, name: &str) -> Option<TableColumn> {
        let added = added(table).iter().copied();
        let mut all = added.chain(table.columns().iter().map(|spec| (Values::Archive, *spec)));
        let (values, spec) = all.find(|(_, spec)| spec.name == name)?;
        Some(TableColumn { table, spec, values })
    }

    /// A column of the archive.
    pub(super) const fn of<C: Columns, T: Cell>(key: Key<C, T>) -> TableColumn {
        TableColumn { table: C::TABLE, spec: key.spec(), values: Values::Archive }
    }

    /// When an event happened, where the trace has a clock.
    pub(super) const TIME: TableColumn =
        TableColumn { values: Values::Time, ..TableColumn::of(Events::time_ns) };
}
