//! Columns that the tables and the document of allocations share.

use super::row::AllocationRow;
use crate::table::{Columns, Show};
use handlescope_query::ResourceStats;

/// Adds the columns that identify the owner.
pub fn add_owner<'a>(columns: &mut Columns<'a, AllocationRow<'a>>) {
    columns.add("pid", |row| row.file.answer.process(row.group).map(|process| process.pid));
    columns.add("process_start_ns", |row| row.file.answer.process(row.group)?.start_ns);
}

/// Adds the counts, with their bytes.
pub fn add_amounts<'a, R>(
    columns: &mut Columns<'a, R>,
    stats: impl Fn(&R) -> &'a ResourceStats + Copy + 'a,
) {
    columns.add("allocs", move |row| stats(row).allocs).title("Allocs").show(Show::Grouped);
    let alloc = columns.add("alloc_bytes", move |row| stats(row).alloc_bytes);
    alloc.title("Allocated").show(Show::Bytes);
    columns.add("frees", move |row| stats(row).frees).title("Frees").show(Show::Grouped);
    columns.add("freed_bytes", move |row| stats(row).freed_bytes);
    columns.add("replaced", move |row| stats(row).replaced);
    columns.add("replaced_bytes", move |row| stats(row).replaced_bytes);
    columns.add("destroyed", move |row| stats(row).destroyed);
    columns.add("destroyed_bytes", move |row| stats(row).destroyed_bytes);
    let orphan_frees = columns.add("orphan_frees", move |row| stats(row).orphan_frees);
    orphan_frees.title("Orphan frees").show(Show::Grouped);
    columns.add("orphan_bytes", move |row| stats(row).orphan_bytes);
    columns.add("ignored", move |row| stats(row).ignored);
    let at_exit = columns.add("closed_at_exit", move |row| stats(row).at_exit);
    at_exit.title("At exit").show(Show::Grouped);
    let at_exit = columns.add("closed_at_exit_bytes", move |row| stats(row).at_exit_bytes);
    at_exit.title("Bytes at exit").show(Show::Bytes);
    let leaked = columns.add("leaked", move |row| stats(row).outstanding);
    leaked.title("Leaked").show(Show::Grouped);
    let leaked = columns.add("leaked_bytes", move |row| stats(row).outstanding_bytes);
    leaked.title("Bytes leaked").show(Show::Bytes);
}
