//! The lists in the document of `.dump Resource` without `-GroupBy`: totals, and never-freed allocations grouped by
//! stack.

use std::rc::Rc;

use handlescope_model::tables::ResourceEnd;

use super::row::{AllocationRow, AllocationStyle, OVER_TIME, add_amounts, add_owner};
use crate::{
    kinds::index,
    table::{Columns, FileRows, PartsOf},
    traces::OfTraces,
};
use handlescope_query::{AcquisitionCriteria, GroupColumn};

/// Declares the columns of a group of one kind, allocator and process, and its counts.
fn columns<'a>(
    add_counted: fn(&mut Columns<'a, AllocationRow<'a>>),
) -> Columns<'a, AllocationRow<'a>> {
    let mut columns = Columns::<AllocationRow<'a>>::default();
    columns.add("file", "index of the trace", |row| index(row.file.answer.about.index));
    columns.add(
        "kind",
        "`\"heap\"`, `\"commit\"`, `\"reserve\"`, `\"resource\"`, `\"gdi\"` or \
         `\"user\"`",
        |row| row.text(GroupColumn::Kind),
    );
    columns.add(
        "allocator",
        "the handle of the heap in hex, `\"VirtualAlloc\"`, the name in the event, or \
         the type of the handle",
        |row| row.text(GroupColumn::Allocator),
    );
    columns.add("process", "the owner, `name.exe(pid)`; null if not even its id is known", |row| {
        row.text(GroupColumn::Process)
    });
    add_owner(&mut columns);
    add_counted(&mut columns);
    let over_time =
        columns.nest("over_time", "array", OVER_TIME, |row| row.group.over_time.as_ref());
    over_time.omit_unknown(|row| row.group.over_time.is_some());
    columns
}

/// Declares the members of the totals.
pub fn total_columns<'a>() -> Columns<'a, AllocationRow<'a>> {
    columns(|columns| add_amounts(columns, AllocationRow::stats))
}

/// Declares the members of allocations that were never freed.
pub fn leak_columns<'a>() -> Columns<'a, AllocationRow<'a>> {
    columns(add_leaks)
}

/// Adds the counts of allocations that were never freed.
fn add_leaks<'a>(columns: &mut Columns<'a, AllocationRow<'a>>) {
    columns.add(
        "stack",
        "number of the allocating stack: one of those with equal functions; null for \
         none",
        |row| Some(row.file.numbers.of(row.group.create_stack()?)),
    );
    columns.add(
        "allocated_by",
        "process that allocated, `name.exe(pid)`; null if it is the owner",
        |row| row.text(GroupColumn::Caller),
    );
    columns.add("count", "number of allocations", |row| row.stats().unreleased().count);
    columns.add("bytes", "their remaining bytes", |row| row.stats().unreleased().bytes);
    columns.add("first_ns", "time of the first allocation", |row| row.stats().first_ns);
    columns.add("last_ns", "time of the last allocation", |row| row.stats().last_ns);
}

/// The lists of an answer. If a table shows the same groups, `file_rows` are its filtered rows in its order.
pub struct ResourceLists<'a> {
    pub command: &'a str,
    pub files: Rc<[Rc<AllocationStyle<'a>>]>,
    pub criteria: &'a AcquisitionCriteria,
    pub file_rows: Vec<FileRows>,
}

impl<'a> ResourceLists<'a> {
    /// Returns the groups of leaks or of totals, in the order of the table if it shows them.
    fn rows(&self, of_leaks: bool) -> impl Iterator<Item = AllocationRow<'a>> {
        let is_shown = of_leaks == self.criteria.is_of_leaks();
        self.files.iter().zip(&self.file_rows).flat_map(move |(file, file_rows)| {
            let groups = if is_shown { &file.answer.groups } else { &file.answer.beside };
            let rows = groups.as_ref().map(|groups| groups.rows.as_slice()).unwrap_or_default();
            let order: Vec<usize> = if is_shown {
                file_rows.relative_rows().collect()
            } else {
                (0..rows.len()).collect()
            };
            let file = Rc::clone(file);
            order
                .into_iter()
                .filter_map(|row| rows.get(row))
                .map(move |group| AllocationRow { file: Rc::clone(&file), group })
        })
    }

    /// Returns allocations that were never freed, or freed only by the end of their process.
    fn unreleased(&self, end: ResourceEnd) -> PartsOf<'a, AllocationRow<'a>> {
        let rows = self.rows(true).filter(|row| row.group.end() == Some(end));
        leak_columns().parts_of(rows.collect())
    }
}

/// Declares the document of `.dump Resource`.
pub fn resource_document<'a>() -> Columns<'a, OfTraces<'a, ResourceLists<'a>>> {
    const AS_IN_OBJECT_REF: &str = "as in `.dump ObjectRef`; with `-Leak` and `-LeakAtExit` nothing matches if nothing \
                                    that they select does";
    let mut document = Columns::<OfTraces<'a, ResourceLists<'a>>>::default();
    document.member("command", "the command as typed", |of| of.rest.command).for_programs();
    document.kind("`\"Resource\"`", "Resource");
    document.member(
        "totals",
        "sums by kind, allocator and process, see below; also with `-Leak` and `-LeakAtExit`, \
         over everything that passed the other filters",
        |of| total_columns().parts_of(of.rest.rows(false).collect()),
    );
    document.member(
        "leaked",
        "allocations not freed, of processes that still ran, by allocating stack, see below; `[]` \
         with `-LeakAtExit` alone",
        |of| of.rest.unreleased(ResourceEnd::Open),
    );
    document.member(
        "closed_at_exit",
        "the same for allocations freed only by the end of their process; `[]` with `-Leak` alone",
        |of| of.rest.unreleased(ResourceEnd::AtExit),
    );
    document.stacks(
        "only with `-ShowStack`: their stacks without the frames removed by `-FoldStack` and \
         `-StackFrom`, as in `.dump ObjectRef`",
        |lists| lists.criteria.stacks.show,
    );
    document.caveats(AS_IN_OBJECT_REF, AS_IN_OBJECT_REF);
    document
}
