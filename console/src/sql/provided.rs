//! The columns of the view over kept events of providers.

use handlescope_model::Table;
use handlescope_model::tables::{EventCounts, EventFields, EventValues, Processes, ProviderEvents};

use super::columns::TableColumn;
use super::paths::Origin::{self, Value};
use super::paths::{ViewColumn, maybe, path, view};

const EVENT: TableColumn = TableColumn::of(EventValues::event);
const KIND: TableColumn = TableColumn::of(ProviderEvents::event);
const PROCESS: TableColumn = TableColumn::of(ProviderEvents::process);
const STACK: TableColumn = TableColumn::of(ProviderEvents::stack);
const FIELD: TableColumn = TableColumn::of(EventValues::field);

const fn value(columns: &'static [TableColumn]) -> Origin {
    Value(path(Table::EventValues, columns))
}

pub(super) static PROVIDED: &[ViewColumn] = &[
    view(
        "file_index",
        "Number of the file among those that are loaded.",
        value(&[TableColumn::file_index(Table::EventValues)]),
    ),
    view(
        "time_ns",
        "When the event happened.",
        value(&[EVENT, TableColumn::of(ProviderEvents::time_ns)]),
    ),
    maybe(
        "provider",
        "The provider of the event; null where nothing names it.",
        value(&[EVENT, KIND, TableColumn::of(EventCounts::provider)]),
    ),
    maybe(
        "event",
        "The name of the event; null where nothing names it.",
        value(&[EVENT, KIND, TableColumn::of(EventCounts::name)]),
    ),
    view(
        "kind",
        "The kind of the event, as in event_counts.",
        value(&[EVENT, KIND, TableColumn::of(EventCounts::kind)]),
    ),
    maybe(
        "process",
        "Executable of its header.",
        value(&[EVENT, PROCESS, TableColumn::of(Processes::name)]),
    ),
    maybe(
        "pid",
        "Process id of its header.",
        value(&[EVENT, TableColumn::of(ProviderEvents::pid)]),
    ),
    maybe("tid", "Thread id of its header.", value(&[EVENT, TableColumn::of(ProviderEvents::tid)])),
    view("field", "The name of the field.", value(&[FIELD, TableColumn::of(EventFields::name)])),
    maybe(
        "item",
        "Number of the value in the array of its field, from 0; null outside of arrays.",
        value(&[TableColumn::of(EventValues::item)]),
    ),
    maybe(
        "signed",
        "The value, if it is a signed integer.",
        value(&[TableColumn::of(EventValues::signed)]),
    ),
    maybe(
        "unsigned",
        "The value, if it is an unsigned integer, pointer, truth value or FILETIME.",
        value(&[TableColumn::of(EventValues::unsigned)]),
    ),
    maybe(
        "float",
        "The value, if it is a floating point number.",
        value(&[TableColumn::of(EventValues::float)]),
    ),
    maybe(
        "text",
        "The value, if it is a text, GUID, security identifier or SYSTEMTIME.",
        value(&[TableColumn::of(EventValues::text)]),
    ),
    maybe("bytes", "The value, if it is bytes.", value(&[TableColumn::of(EventValues::bytes)])),
    maybe("stack", "The stack that the event carries.", value(&[EVENT, STACK])),
    maybe(
        "stack_text",
        "Its frames, a line for each.",
        value(&[EVENT, STACK, TableColumn::STACK_TEXT]),
    ),
    view("event_row", "The event, in provider_events.", value(&[EVENT])),
    maybe("process_row", "The process.", value(&[EVENT, PROCESS])),
];
