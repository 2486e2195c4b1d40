//! The lists in the document of `.dump Resource` without `-GroupBy`: totals, and what was never freed, by its stacks.

use std::rc::Rc;

use handlescope_model::tables::ResourceEnd;
use serde::Serialize;

use super::row::{FileStyle, Row};
use crate::{
    query::{ResourceColumn, ResourceCriteria, ResourceFigures, ResourceGroups, ResourcesAnswer},
    render::{
        json::{Array, Document},
        table::Part,
    },
};

/// A group of allocations of one kind, allocator and process.
#[derive(Serialize)]
struct GroupJson<'a> {
    file: usize,
    kind: Option<&'static str>,
    allocator: Option<&'a str>,
    process: Option<String>,
    pid: Option<u32>,
    process_start_ns: Option<i64>,
    #[serde(flatten)]
    counted: CountedJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over_time: Option<&'a [i64]>,
}

/// What is counted of a group: everything, or what was never freed.
#[derive(Serialize)]
#[serde(untagged)]
enum CountedJson<'a> {
    All {
        #[serde(flatten)]
        figures: &'a ResourceFigures,
        // The names that handles have; those of the figures stay for one version.
        leaked: u64,
        leaked_bytes: i64,
        closed_at_exit: u64,
        closed_at_exit_bytes: i64,
    },
    Lost {
        stack: Option<u64>,
        by: Option<String>,
        count: u64,
        bytes: i64,
        first_ns: Option<i64>,
        last_ns: Option<i64>,
    },
}

/// Some of the groups of an answer.
type GroupsOf<'a> = fn(&'a ResourcesAnswer<'a>) -> Option<&'a ResourceGroups>;

/// Adds the lists; of the groups that a table shows, `parts` are what is left, in its order.
pub(super) fn with_lists<'d, 'a: 'd>(
    document: Document<'d>,
    files: &'d [Rc<FileStyle<'a>>],
    criteria: &'d ResourceCriteria,
    parts: &'d [Part],
) -> Document<'d> {
    let rows = move |of: GroupsOf<'a>| {
        let files = files.iter().zip(parts);
        files.flat_map(move |(file, part)| rows_of(file, of(file.answer), criteria, part))
    };
    let of_end = move |end: ResourceEnd| {
        let rows = rows(|answer| answer.lost.as_ref());
        rows.filter(move |row| row.group.end() == Some(end)).map(|row| lost(&row))
    };
    let totals = move || rows(|answer| answer.totals.as_ref()).map(|row| total(&row));
    document
        .with("totals", Array(totals))
        .with("outstanding", Array(move || of_end(ResourceEnd::Open)))
        .with("at_exit", Array(move || of_end(ResourceEnd::AtExit)))
        .with("leaked", Array(move || of_end(ResourceEnd::Open)))
        .with("closed_at_exit", Array(move || of_end(ResourceEnd::AtExit)))
}

/// Some of the groups of a trace: in the order of the table if it shows these.
fn rows_of<'a>(
    file: &Rc<FileStyle<'a>>,
    groups: Option<&'a ResourceGroups>,
    criteria: &ResourceCriteria,
    part: &Part,
) -> impl Iterator<Item = Row<'a>> + use<'a> {
    let shown = file.answer.shown(criteria);
    let is_shown = shown.zip(groups).is_some_and(|(one, other)| std::ptr::eq(one, other));
    let all = groups.map(|groups| groups.rows.as_slice()).unwrap_or_default();
    let order: Vec<usize> =
        if is_shown { part.own_rows().collect() } else { (0..all.len()).collect() };
    let file = Rc::clone(file);
    let group = move |at| Some(Row { file: Rc::clone(&file), group: all.get(at)? });
    order.into_iter().filter_map(group)
}

fn json<'a>(row: &Row<'a>, counted: CountedJson<'a>) -> GroupJson<'a> {
    let answer = row.file.answer;
    let process = answer.process(row.group);
    GroupJson {
        file: answer.about.index,
        kind: answer.kind(row.group),
        allocator: answer.allocator(row.group),
        process: row.text(ResourceColumn::Process),
        pid: process.as_ref().map(|own| own.pid),
        process_start_ns: process.and_then(|own| own.start_ns),
        counted,
        over_time: row.group.over_time.as_deref(),
    }
}

fn total<'a>(row: &Row<'a>) -> GroupJson<'a> {
    let figures = &row.group.figures;
    let all = CountedJson::All {
        figures,
        leaked: figures.outstanding,
        leaked_bytes: figures.outstanding_bytes,
        closed_at_exit: figures.at_exit,
        closed_at_exit_bytes: figures.at_exit_bytes,
    };
    json(row, all)
}

fn lost<'a>(row: &Row<'a>) -> GroupJson<'a> {
    let figures = &row.group.figures;
    let lost = CountedJson::Lost {
        stack: row.number(row.group.create_stack()),
        by: row.text(ResourceColumn::Caller),
        count: figures.lost(),
        bytes: figures.lost_bytes(),
        first_ns: figures.first_ns,
        last_ns: figures.last_ns,
    };
    json(row, lost)
}
