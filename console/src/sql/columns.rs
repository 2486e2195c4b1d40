//! The columns of tables as queries see them: those of the archive, and some more that are made when they
//! are asked for.

use handlescope_model::tables::Events;
use handlescope_model::{Cell, ColumnSpec, ColumnType, Columns, Key, Reference, Table};

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
    LeakClass,
    Evidence,
    StackDepth,
    StackText,
    ResourceKind,
    EndName,
    AtExit,
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

/// Of views only.
const AT_EXIT: (Values, ColumnSpec) = (
    Values::AtExit,
    column("at_exit", ColumnType::Bool, "Whether only the end of its process freed it."),
);

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

/// Of views only.
const LEAK_CLASS: (Values, ColumnSpec) = (
    Values::LeakClass,
    ColumnSpec {
        nullable: true,
        ..column(
            "class",
            ColumnType::Text,
            "never_closed, closed_at_exit (nothing else closed it), or null for what was closed.",
        )
    },
);

/// Of views only.
const EVIDENCE: (Values, ColumnSpec) = (
    Values::Evidence,
    ColumnSpec {
        nullable: true,
        ..column("closed_unseen", ColumnType::Text, "What shows a close that the trace lost.")
    },
);

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

    /// The row numbers of a table.
    pub(super) const fn row(table: Table) -> TableColumn {
        let (values, spec) = ROW;
        let refers_to = Some(Reference::Row(table));
        TableColumn { table, values, spec: ColumnSpec { refers_to, ..spec } }
    }

    pub(super) const fn file_index(table: Table) -> TableColumn {
        Self::added(table, FILE_INDEX)
    }

    const fn added(table: Table, (values, spec): (Values, ColumnSpec)) -> TableColumn {
        TableColumn { table, spec, values }
    }

    /// When an event happened, where the trace has a clock.
    pub(super) const TIME: TableColumn =
        TableColumn { values: Values::Time, ..TableColumn::of(Events::time_ns) };

    pub(super) const ID: TableColumn = Self::added(Table::Objects, ID);
    pub(super) const TYPE: TableColumn = Self::added(Table::Objects, TYPE);
    pub(super) const LEAK_CLASS: TableColumn = Self::added(Table::Events, LEAK_CLASS);
    pub(super) const EVIDENCE: TableColumn = Self::added(Table::Events, EVIDENCE);
    pub(super) const KIND_NAME: TableColumn = Self::added(Table::Events, KIND_NAME);
    pub(super) const STACK_TEXT: TableColumn = Self::added(Table::Stacks, STACK_TEXT);
    pub(super) const RESOURCE_KIND: TableColumn = Self::added(Table::Allocators, RESOURCE_KIND);
    pub(super) const END_NAME: TableColumn = Self::added(Table::Resources, END_NAME);
    pub(super) const AT_EXIT: TableColumn = Self::added(Table::Resources, AT_EXIT);
}
