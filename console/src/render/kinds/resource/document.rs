//! The lists in the document of `.dump Resource` without `-GroupBy`: totals, and allocations that
//! were never freed, by their stacks.

use std::rc::Rc;

use handlescope_model::tables::ResourceEnd;

use super::columns::{add_amounts, add_owner};
use super::row::{AllocationRow, FileStyle};
use crate::{
    query::{ResourceColumn, ResourceCriteria, ResourceGroups, ResourcesAnswer},
    render::{
        json::Document,
        kinds::index,
        table::{Columns, FileRows, RowsOf},
    },
};

/// Declares the columns of a group of one kind, allocator and process, and of its counts.
fn columns<'a>(
    add_counted: fn(&mut Columns<'a, AllocationRow<'a>>),
) -> Columns<'a, AllocationRow<'a>> {
    let mut columns = Columns::<AllocationRow<'a>>::default();
    columns.add("file", |row| index(row.file.answer.about.index));
    columns.add("kind", |row| row.text(ResourceColumn::Kind));
    columns.add("allocator", |row| row.text(ResourceColumn::Allocator));
    columns.add("process", |row| row.text(ResourceColumn::Process));
    add_owner(&mut columns);
    add_counted(&mut columns);
    let over_time = columns.nest("over_time", "array", |row| row.group.over_time.as_ref());
    over_time.omit_unknown(|row| row.group.over_time.is_some());
    columns
}

/// Adds the counts of allocations that were never freed.
fn add_leaks<'a>(columns: &mut Columns<'a, AllocationRow<'a>>) {
    columns.add("stack", |row| row.number(row.group.create_stack()));
    columns.add("allocated_by", |row| row.text(ResourceColumn::Caller));
    columns.add("by", |row| row.text(ResourceColumn::Caller));
    columns.add("count", |row| row.stats().unreleased());
    columns.add("bytes", |row| row.stats().unreleased_bytes());
    columns.add("first_ns", |row| row.stats().first_ns);
    columns.add("last_ns", |row| row.stats().last_ns);
}

/// Some of the groups of an answer.
type GroupsOf<'a> = fn(&'a ResourcesAnswer<'a>) -> Option<&'a ResourceGroups>;

/// Adds the lists; where a table shows the same groups, `file_rows` are its rows after filters, in its
/// order.
pub(super) fn with_lists<'d, 'a: 'd>(
    document: Document<'d>,
    files: &'d [Rc<FileStyle<'a>>],
    criteria: &'d ResourceCriteria,
    file_rows: &'d [FileRows],
) -> Document<'d> {
    let rows = move |groups_of: GroupsOf<'a>| {
        let files = files.iter().zip(file_rows);
        files.flat_map(move |(file, file_rows)| {
            rows_of(file, groups_of(file.answer), criteria, file_rows)
        })
    };
    let unreleased = Rc::new(columns(add_leaks).in_document());
    let of_end = |end: ResourceEnd| {
        RowsOf(Rc::clone(&unreleased), move || {
            let rows = rows(|answer| answer.unreleased.as_ref());
            rows.filter(move |row| row.group.end() == Some(end))
        })
    };
    let totals =
        Rc::new(columns(|columns| add_amounts(columns, AllocationRow::stats)).in_document());
    document
        .with("totals", RowsOf(totals, move || rows(|answer| answer.totals.as_ref())))
        .with("outstanding", of_end(ResourceEnd::Open))
        .with("at_exit", of_end(ResourceEnd::AtExit))
        .with("leaked", of_end(ResourceEnd::Open))
        .with("closed_at_exit", of_end(ResourceEnd::AtExit))
}

/// Some of the groups of a trace: in the order of the table if it shows these.
fn rows_of<'a>(
    file: &Rc<FileStyle<'a>>,
    groups: Option<&'a ResourceGroups>,
    criteria: &ResourceCriteria,
    file_rows: &FileRows,
) -> impl Iterator<Item = AllocationRow<'a>> + use<'a> {
    let shown = file.answer.shown(criteria);
    let is_shown = shown.zip(groups).is_some_and(|(shown, groups)| std::ptr::eq(shown, groups));
    let rows = groups.map(|groups| groups.rows.as_slice()).unwrap_or_default();
    let order: Vec<usize> =
        if is_shown { file_rows.relative_rows().collect() } else { (0..rows.len()).collect() };
    let file = Rc::clone(file);
    let groups = order.into_iter().filter_map(|row| rows.get(row));
    groups.map(move |group| AllocationRow { file: Rc::clone(&file), group })
}
