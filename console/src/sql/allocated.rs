//! The columns of the views over what was allocated.

use handlescope_model::Table;
use handlescope_model::tables::{Allocators, Processes, Resources};

use super::columns::TableColumn;
use super::paths::Origin::{self, Hex, Value};
use super::paths::{ViewColumn, maybe, path, view};

const ALLOCATOR: TableColumn = TableColumn::of(Resources::allocator);
const PROCESS: TableColumn = TableColumn::of(Allocators::process);
const PROCESS_NAME: TableColumn = TableColumn::of(Processes::name);
const STACK: TableColumn = TableColumn::of(Resources::stack);

const fn value(columns: &'static [TableColumn]) -> Origin {
    Value(path(Table::Resources, columns))
}

/// The columns of both views.
pub(super) static ALLOCATED: &[ViewColumn] = &[
    view(
        "file_index",
        "Number of the file among those that are loaded.",
        value(&[TableColumn::file_index(Table::Resources)]),
    ),
    view(
        "kind",
        "heap, commit, reserve, resource, gdi or user.",
        value(&[ALLOCATOR, TableColumn::RESOURCE_KIND]),
    ),
    view(
        "allocator",
        "The heap in hex, VirtualAlloc, what the event names, or the type of the handle.",
        value(&[ALLOCATOR, TableColumn::of(Allocators::name)]),
    ),
    maybe(
        "provider",
        "The provider of the events; null for the kernel and heaps.",
        value(&[ALLOCATOR, TableColumn::of(Allocators::provider)]),
    ),
    maybe("process", "Executable that owns it.", value(&[ALLOCATOR, PROCESS, PROCESS_NAME])),
    maybe("pid", "Its process id.", value(&[ALLOCATOR, TableColumn::of(Allocators::pid)])),
    maybe(
        "by",
        "Executable that allocated it, where that is not the owner.",
        value(&[TableColumn::of(Resources::caller), PROCESS_NAME]),
    ),
    view(
        "key",
        "Address or handle like 0xC0.",
        Hex(path(Table::Resources, &[TableColumn::of(Resources::key)])),
    ),
    view(
        "size",
        "Its bytes; those of the part where an allocation ended in parts.",
        value(&[TableColumn::of(Resources::size)]),
    ),
    view("time_ns", "When it was allocated.", value(&[TableColumn::of(Resources::time_ns)])),
    maybe("tid", "Thread that allocated it.", value(&[TableColumn::of(Resources::tid)])),
    view(
        "end",
        "What became of it, as in open, freed or at_exit.",
        value(&[TableColumn::END_NAME]),
    ),
    maybe("end_ns", "When it ended.", value(&[TableColumn::of(Resources::end_time_ns)])),
    view(
        "at_exit",
        "Whether only the end of its process freed it.",
        value(&[TableColumn::AT_EXIT]),
    ),
    maybe("stack", "Stack that allocated it.", value(&[STACK])),
    maybe("stack_text", "Its frames, a line for each.", value(&[STACK, TableColumn::STACK_TEXT])),
    maybe("end_stack", "Stack that freed it.", value(&[TableColumn::of(Resources::end_stack)])),
    maybe(
        "part_of",
        "The first part of the same allocation; null for this one.",
        value(&[TableColumn::of(Resources::part_of)]),
    ),
    view("resource", "The allocation.", value(&[TableColumn::row(Table::Resources)])),
    view("allocator_row", "Where it was allocated.", value(&[ALLOCATOR])),
    maybe("process_row", "The process.", value(&[ALLOCATOR, PROCESS])),
];

#[cfg(test)]
mod tests {
    use handlescope_model::tables::ResourceKind;

    use super::ALLOCATED;

    #[test]
    fn the_column_of_kinds_names_all() {
        let column = ALLOCATED.iter().find(|column| column.spec.name == "kind").expect("a column");
        let names = column.spec.doc.trim_end_matches('.').replace(" or ", ", ");
        assert_eq!(names, ResourceKind::ALL.map(ResourceKind::name).join(", "));
    }
}
