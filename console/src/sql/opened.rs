//! The columns of the views over what was opened.

use handlescope_model::Table;
use handlescope_model::tables::{Events, Names, Objects, Processes};

use super::columns::TableColumn;
use super::paths::Origin::{self, Between, Hex, Value};
use super::paths::{Path, ViewColumn, maybe, path, view};

const OBJECT: TableColumn = TableColumn::of(Events::object);
const PROCESS: TableColumn = TableColumn::of(Events::process);
const PROCESS_NAME: TableColumn = TableColumn::of(Processes::name);
const CLOSE: TableColumn = TableColumn::of(Events::closing_event);
const TIME: TableColumn = TableColumn::TIME;
const STACK: TableColumn = TableColumn::of(Events::stack);

const OPENED_AT: Path = path(Table::Events, &[TIME]);
const CLOSED_AT: Path = path(Table::Events, &[CLOSE, TIME]);

const fn value(columns: &'static [TableColumn]) -> Origin {
    Value(path(Table::Events, columns))
}

const fn hex(columns: &'static [TableColumn]) -> Origin {
    Hex(path(Table::Events, columns))
}

/// The columns of both views.
pub(super) static OPENED: &[ViewColumn] = &[
    view(
        "file_index",
        "Number of the file among those that are loaded.",
        value(&[TableColumn::file_index(Table::Events)]),
    ),
    view(
        "id",
        "Number of the object, as answers about objects show it.",
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
    maybe(
        "process",
        "Executable that owns the handle; the parent, if a child inherited it.",
        value(&[PROCESS, PROCESS_NAME]),
    ),
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
    maybe(
        "closed_unseen",
        "What shows that it was closed though the trace lost the close: reused, not_in_rundown or process_ended; else null.",
        value(&[TableColumn::EVIDENCE]),
    ),
    maybe(
        "closed_after_ns",
        "If it was closed unseen: it was still open then.",
        value(&[TableColumn::of(Events::closed_after_ns)]),
    ),
    maybe(
        "closed_before_ns",
        "If it was closed unseen: it was closed then at the latest.",
        value(&[TableColumn::of(Events::closed_before_ns)]),
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

#[cfg(test)]
mod tests {
    use handlescope_model::rules::LeakClass;
    use handlescope_model::tables::ClosedUnseen;

    use super::OPENED;

    #[test]
    fn the_column_of_classes_names_all() {
        let column = OPENED.iter().find(|column| column.spec.name == "class").expect("a column");
        for class in LeakClass::ALL {
            assert!(column.spec.doc.contains(class.name()), "{}", class.name());
        }
        let column = OPENED.iter().find(|column| column.spec.name == "closed_unseen");
        for evidence in ClosedUnseen::ALL.map(ClosedUnseen::name) {
            assert!(column.is_some_and(|column| column.spec.doc.contains(evidence)), "{evidence}");
        }
    }
}
