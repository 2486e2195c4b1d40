//! The columns of the views over what was opened.

use handlescope_model::tables::{Events, Names, Objects, Processes};
use handlescope_model::{ColumnSpec, ColumnType, Table};

use super::columns::TableColumn;

/// The way from an event to a value: columns to follow, each but the last a row number of the next one's
/// table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path(pub(super) &'static [TableColumn]);

/// Where the column of a view comes from, seen from the event that opens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// The value at the end of a path.
    Value(Path),
    /// The same, a number written like 0xC0.
    Hex(Path),
    /// Time between two paths.
    Between(Path, Path),
}

/// A column of a view.
pub(super) struct ViewColumn {
    pub(super) spec: ColumnSpec,
    pub(super) origin: Origin,
}

/// A path, checked while this is compiled.
const fn path(columns: &'static [TableColumn]) -> Path {
    assert!(columns[0].table as u8 == Table::Events as u8);
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

const OBJECT: TableColumn = TableColumn::of(Events::object);
const PROCESS: TableColumn = TableColumn::of(Events::process);
const PROCESS_NAME: TableColumn = TableColumn::of(Processes::name);
const CLOSE: TableColumn = TableColumn::of(Events::closing_event);
const TIME: TableColumn = TableColumn::TIME;
const STACK: TableColumn = TableColumn::of(Events::stack);

const OPENED_AT: Path = path(&[TIME]);
const CLOSED_AT: Path = path(&[CLOSE, TIME]);

use Origin::{Between, Hex, Value};

const fn value(columns: &'static [TableColumn]) -> Origin {
    Value(path(columns))
}

const fn hex(columns: &'static [TableColumn]) -> Origin {
    Hex(path(columns))
}

/// The columns of both views.
pub(super) static OPENED: &[ViewColumn] = &[
    view(
        "file_index",
        "Number of the file, as .list shows it.",
        value(&[TableColumn::file_index(Table::Events)]),
    ),
    view(
        "id",
        "Number of the object, as .dump ObjectRef shows it.",
        value(&[OBJECT, TableColumn::ID]),
    ),
    view("type", "Type of the object, as in Event.", value(&[OBJECT, TableColumn::TYPE])),
    maybe(
        "name",
        "Name of the object.",
        value(&[OBJECT, TableColumn::of(Objects::name), TableColumn::of(Names::name)]),
    ),
    view("kind", "handle_create, handle_duplicate or map.", value(&[TableColumn::KIND_NAME])),
    maybe(
        "handle",
        "Handle value like 0xC0; null for a mapped view.",
        hex(&[TableColumn::of(Events::handle)]),
    ),
    maybe("process", "Executable that owns the handle.", value(&[PROCESS, PROCESS_NAME])),
    maybe("pid", "Its process id.", value(&[PROCESS, TableColumn::of(Processes::pid)])),
    view("tid", "Thread that opened it.", value(&[TableColumn::of(Events::tid)])),
    maybe("open_ns", "When it was opened.", Value(OPENED_AT)),
    maybe("close_ns", "When it was closed.", Value(CLOSED_AT)),
    maybe("lifetime_ns", "How long it was open.", Between(OPENED_AT, CLOSED_AT)),
    view(
        "leaked",
        "Whether nothing in the trace closes it.",
        value(&[TableColumn::of(Events::leaked)]),
    ),
    maybe(
        "class",
        "never_closed; closed_at_exit, when only the exit of its process closed it; else null.",
        value(&[TableColumn::LEAK_CLASS]),
    ),
    maybe("stack", "Stack that opened it.", value(&[STACK])),
    maybe("close_stack", "Stack that closed it.", value(&[CLOSE, STACK])),
    maybe("close_process", "Executable that closed it.", value(&[CLOSE, PROCESS, PROCESS_NAME])),
    maybe(
        "source_process",
        "Executable it was duplicated from.",
        value(&[TableColumn::of(Events::source_process), PROCESS_NAME]),
    ),
    maybe(
        "inherited_by",
        "Child that inherited it.",
        value(&[TableColumn::of(Events::inherited_by), PROCESS_NAME]),
    ),
    view(
        "pointer",
        "Kernel address of the object.",
        hex(&[OBJECT, TableColumn::of(Objects::pointer)]),
    ),
    view("object", "The object.", value(&[OBJECT])),
    view("event", "The event that opened it.", value(&[TableColumn::row(Table::Events)])),
    view("process_row", "The process.", value(&[PROCESS])),
];

/// A column whose type and unit are those of its origin.
const fn view(name: &'static str, doc: &'static str, origin: Origin) -> ViewColumn {
    let spec = match origin {
        Value(Path(columns)) => columns[columns.len() - 1].spec,
        Hex(Path(columns)) => {
            ColumnSpec { dtype: ColumnType::Text, unit: "", ..columns[columns.len() - 1].spec }
        }
        Between(Path(columns), _) => ColumnSpec { unit: "ns", ..columns[columns.len() - 1].spec },
    };
    ViewColumn { spec: ColumnSpec { name, doc, nullable: false, ..spec }, origin }
}

/// A column with values that are unknown or do not apply.
const fn maybe(name: &'static str, doc: &'static str, origin: Origin) -> ViewColumn {
    let ViewColumn { spec, origin } = view(name, doc, origin);
    ViewColumn { spec: ColumnSpec { nullable: true, ..spec }, origin }
}
