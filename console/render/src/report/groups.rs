//! Groups of handles and of allocations. The page has their columns once, and each trace has its rows.

use std::cmp::Reverse;

use super::ReportAnswer;
use super::html::clean;
use crate::json::Document;
use crate::kinds::{add_amounts, add_stats};
use crate::pictures::PictureGroup;
use crate::table::{Columns, Show};
use handlescope_query::{
    FileAnswer, GroupStats, Groups, NodeIdx, ResourceGroup, ResourceStats, ResourcesAnswer,
};

/// Maximum number of listed groups of a trace; the others are counted.
const GROUPS: usize = 2_000;

/// The handles of one process, type and stack.
#[derive(Clone, Copy)]
struct ReportGroup<'a> {
    file: &'a FileAnswer<'a>,
    groups: &'a Groups,
    leaf: NodeIdx,
}

/// The allocations of one kind, allocator, process and stack.
struct Allocations<'a> {
    answer: &'a ResourcesAnswer<'a>,
    group: &'a ResourceGroup,
}

/// Returns the columns of both tables.
pub fn columns() -> Document<'static> {
    Document::default()
        .with("allocated", allocation_columns().drawn())
        .with("groups", handle_columns().drawn())
}

/// Adds the groups of a trace.
pub fn with_groups<'a>(document: Document<'a>, answer: &'a ReportAnswer<'a>) -> Document<'a> {
    let overviews = answer.allocations.iter();
    let allocated = overviews.flat_map(|of| Allocations::from_answer(&of.groups)).collect();
    let handles = ReportGroup::for_file(&answer.why.file);
    let names = ["allocated", "allocated_left_out"];
    let document = add_groups(document, names, allocation_columns(), allocated);
    add_groups(document, ["groups", "groups_left_out"], handle_columns(), handles)
}

/// Adds the first groups, and the number of groups left out.
fn add_groups<'a, R: 'a>(
    document: Document<'a>,
    [rows, left_out]: [&'static str; 2],
    columns: Columns<'a, R>,
    mut groups: Vec<R>,
) -> Document<'a> {
    let more = groups.len().saturating_sub(GROUPS);
    groups.truncate(GROUPS);
    document.with(rows, columns.parts_of(groups)).with(left_out, more)
}

fn handle_columns<'a>() -> Columns<'a, ReportGroup<'a>> {
    let mut columns = Columns::<ReportGroup<'a>>::default();
    columns.add("process", "owner", |row| clean(&row.drawn().process));
    columns.add("type", "type of the objects", |row| clean(row.drawn().type_name));
    columns.add("function", "function that opened them", |row| {
        let function = row.groups.function(&row.file.file, row.drawn().stack);
        clean(&function.unwrap_or_default())
    });
    add_stats(&mut columns, ReportGroup::stats);
    columns.add("opened", "handles and views opened", |row| row.stats().opened());
    columns.add("ended", "handles closed and views unmapped", |row| {
        row.stats().closed.saturating_add(row.stats().unmapped)
    });
    columns.only(&[
        ("process", "Process"),
        ("type", "Type"),
        ("function", "Opened by"),
        ("leaked", "Leaked"),
        ("closed_at_exit", "At exit"),
        ("open_at_end", "Open at end"),
        ("opened", "Opened"),
        ("ended", "Closed"),
    ])
}

impl<'a> ReportGroup<'a> {
    /// Returns the groups of a trace; those with the most leaks come first.
    fn for_file(file: &'a FileAnswer<'a>) -> Vec<Self> {
        let mut rows: Vec<Self> = file
            .groups
            .iter()
            .flat_map(|groups| {
                groups.tree.leaves().map(move |leaf| ReportGroup { file, groups, leaf })
            })
            .collect();
        rows.sort_by_key(|row| Reverse((row.stats().unreleased(), row.stats().handles)));
        rows
    }

    fn stats(&self) -> GroupStats {
        self.groups.tree.stats(self.leaf)
    }

    fn drawn(&self) -> PictureGroup<'a> {
        PictureGroup::from_handles(self.groups, self.leaf)
    }
}

fn allocation_columns<'a>() -> Columns<'a, Allocations<'a>> {
    let mut columns = Columns::<Allocations<'a>>::default();
    columns.add("process", "owner", Allocations::process);
    columns.add("kind", "kind of the allocations", |row| row.answer.kind(row.group));
    columns.add("allocator", "heap or other allocator", |row| {
        row.answer.allocator(row.group).map(clean)
    });
    columns.add("function", "function that allocated them", Allocations::function);
    add_amounts(&mut columns, Allocations::stats);
    columns
        .add("bytes", "bytes never freed, or freed only by process exit", |row| {
            row.stats().unreleased().bytes
        })
        .show(Show::Bytes);
    columns.only(&[
        ("process", "Process"),
        ("kind", "Kind"),
        ("allocator", "Allocator"),
        ("function", "Allocated by"),
        ("leaked", "Leaked"),
        ("closed_at_exit", "At exit"),
        ("bytes", "Bytes leaked"),
        ("allocs", "Allocated"),
        ("alloc_bytes", "Bytes allocated"),
    ])
}

impl<'a> Allocations<'a> {
    /// Returns the groups of a trace in the order of the answer, except groups with frees only.
    fn from_answer(answer: &'a ResourcesAnswer<'a>) -> impl Iterator<Item = Self> {
        answer
            .shown_groups()
            .filter(|group| group.stats.allocated.count > 0)
            .map(move |group| Allocations { answer, group })
    }

    fn stats(&self) -> &'a ResourceStats {
        &self.group.stats
    }

    fn process(&self) -> Option<String> {
        Some(clean(&self.answer.process(self.group)?.shown_label(false)))
    }

    fn function(&self) -> Option<String> {
        Some(clean(&self.answer.function(self.group.create_stack()?)?))
    }
}
