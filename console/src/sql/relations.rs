//! What a query may name behind `FROM`: the tables of a trace with some columns more, and views that
//! make common questions short.

use handlescope_model::{ColumnSpec, ColumnType, Table};

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
    /// What nothing in the trace closes.
    Leaks,
}

/// Columns that each table has in front of its own.
static ROWS: &[ColumnSpec] = &[
    column("file_index", ColumnType::U32, "", "Number of the file, as .list shows it."),
    column(
        "row",
        ColumnType::U32,
        "",
        "What other tables point to; with several files it counts on.",
    ),
];

static OBJECTS: &[ColumnSpec] = &[
    column("id", ColumnType::U32, "", "The number of the object as .dump ObjectRef shows it."),
    column("type", ColumnType::Text, "", "Name of the type, as in Event."),
];

static EVENTS: &[ColumnSpec] =
    &[column("kind_name", ColumnType::Text, "", "The kind, as in handle_create.")];

static STACKS: &[ColumnSpec] = &[
    column("depth", ColumnType::U32, "", "Number of frames; functions inlined into others count."),
    column("text", ColumnType::Text, "", "A line for each frame, as in leaky.exe!main."),
];

/// Where the column of a view comes from, seen from the event that opens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// Columns to follow, each but the last a row number or one that a trace has.
    Path(&'static [&'static str]),
    /// The same, a number written like 0xC0.
    Hex(&'static [&'static str]),
    /// Time between two paths.
    Between(&'static [&'static str], &'static [&'static str]),
}

/// A column of a view.
pub(super) struct ViewColumn {
    pub(super) spec: ColumnSpec,
    pub(super) origin: Origin,
}

use ColumnType::{Bool, I64, Text, U32};
use Origin::{Between, Hex, Path};

/// The columns of both views.
pub(super) static OPENED: &[ViewColumn] = &[
    view("file_index", U32, "", "Number of the file, as .list shows it.", Path(&["file_index"])),
    view(
        "id",
        U32,
        "",
        "Number of the object, as .dump ObjectRef shows it.",
        Path(&["object", "id"]),
    ),
    view("type", Text, "", "Type of the object, as in Event.", Path(&["object", "type"])),
    maybe("name", Text, "", "Name of the object.", Path(&["object", "name", "name"])),
    view("kind", Text, "", "handle_create, handle_duplicate or map.", Path(&["kind_name"])),
    maybe("handle", Text, "", "Handle value like 0xC0; null for a mapped view.", Hex(&["handle"])),
    maybe("process", Text, "", "Executable that owns the handle.", Path(&["process", "name"])),
    maybe("pid", U32, "", "Its process id.", Path(&["process", "pid"])),
    view("tid", U32, "", "Thread that opened it.", Path(&["tid"])),
    view("open_ns", I64, "ns since session start", "When it was opened.", Path(&["time_ns"])),
    maybe("close_ns", I64, "ns since session start", "When it was closed.", Path(CLOSED)),
    maybe("lifetime_ns", I64, "ns", "How long it was open.", Between(&["time_ns"], CLOSED)),
    view("leaked", Bool, "", "Whether nothing in the trace closes it.", Path(&["leaked"])),
    maybe("stack", U32, "row of stacks", "Stack that opened it.", Path(&["stack"])),
    maybe(
        "close_stack",
        U32,
        "row of stacks",
        "Stack that closed it.",
        Path(&["closing_event", "stack"]),
    ),
    maybe(
        "close_process",
        Text,
        "",
        "Executable that closed it.",
        Path(&["closing_event", "process", "name"]),
    ),
    maybe(
        "source_process",
        Text,
        "",
        "Executable it was duplicated from.",
        Path(&["source_process", "name"]),
    ),
    maybe("inherited_by", Text, "", "Child that inherited it.", Path(&["inherited_by", "name"])),
    view("pointer", Text, "", "Kernel address of the object.", Hex(&["object", "pointer"])),
    view("object", U32, "row of objects", "The object.", Path(&["object"])),
    view("event", U32, "row of events", "The event that opened it.", Path(&["row"])),
    view("process_row", U32, "row of processes", "The process.", Path(&["process"])),
];

const CLOSED: &[&str] = &["closing_event", "time_ns"];

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
            View::Leaks => "Those of handles that nothing in the trace closes.",
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
        let (rows, own) = match self {
            Relation::Table(Table::Objects) => (ROWS, OBJECTS),
            Relation::Table(Table::Events) => (ROWS, EVENTS),
            Relation::Table(Table::Stacks) => (ROWS, STACKS),
            Relation::Table(_) => (ROWS, &[][..]),
            Relation::View(_) => (&[][..], &[][..]),
        };
        rows.iter().chain(own)
    }
}

const fn column(
    name: &'static str,
    dtype: ColumnType,
    unit: &'static str,
    doc: &'static str,
) -> ColumnSpec {
    ColumnSpec { name, dtype, nullable: false, unit, doc }
}

const fn view(
    name: &'static str,
    dtype: ColumnType,
    unit: &'static str,
    doc: &'static str,
    origin: Origin,
) -> ViewColumn {
    ViewColumn { spec: column(name, dtype, unit, doc), origin }
}

/// A column with values that are unknown or do not apply.
const fn maybe(
    name: &'static str,
    dtype: ColumnType,
    unit: &'static str,
    doc: &'static str,
    origin: Origin,
) -> ViewColumn {
    let spec = ColumnSpec { nullable: true, ..column(name, dtype, unit, doc) };
    ViewColumn { spec, origin }
}
