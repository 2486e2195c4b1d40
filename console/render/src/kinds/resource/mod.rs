//! `.dump Resource`

mod document;
mod row;

use std::{io, rc::Rc};

use indicatif::HumanCount;

use self::document::ResourceLists;
pub use self::document::{leak_columns, resource_document, total_columns};
pub use self::row::add_amounts;
use self::row::{AllocationRow, AllocationStyle, OVER_TIME, add_owner};
use super::{groups::key_members, index};
use crate::{
    output::LEFT_OUT,
    table::{AnswerTable, Columns, FileRows, MemberMeaning, Show},
    traces::{OfTraces, traces},
};
use handlescope_query::{
    AcquisitionCriteria, Domain, GroupColumn, GroupCriteria, KeyKind, ResourceStats,
    ResourcesAnswer, StackNames, sparkline,
};
use handlescope_session::settings::Display;
use handlescope_session::values::{CountedNoun, Format, Size};

/// Declares the columns of a group. `has_text`: files have the frames of its stacks.
pub fn resource_columns<'a>(
    criteria: &AcquisitionCriteria,
    has_text: bool,
) -> Columns<'a, AllocationRow<'a>> {
    let mut columns = Columns::<AllocationRow<'a>>::default();
    columns.add("file", "index of the trace", |row| index(row.file.answer.about.index));
    let by: Rc<[GroupColumn]> = criteria.columns_of_allocations().into();
    let keys = Rc::clone(&by);
    columns
        .nest(
            "keys",
            "object",
            "for each column, the value shared by the allocations of the group; null for \
             nothing",
            move |row| row.keys(&keys),
        )
        .inner(key_members(Domain::Allocations));
    for column in by.iter() {
        add_key(&mut columns, *column, has_text);
    }
    if criteria.lists_leaked_allocations() {
        let count =
            columns.add("count", "allocations never freed", |row| row.stats().unreleased().count);
        count.title("Count").show(Show::Grouped).rank(-2);
        let bytes =
            columns.add("bytes", "their remaining bytes", |row| row.stats().unreleased().bytes);
        bytes.title("Bytes").show(Show::Bytes).rank(-2);
    } else {
        add_amounts(&mut columns, AllocationRow::stats);
    }
    if criteria.groups.buckets.is_some() {
        columns.nest("over_time", "array", OVER_TIME, |row| row.group.over_time.as_ref());
    }
    let first = columns
        .add("first_ns", "time of the first allocation; null if there are none", |row| {
            row.stats().first_ns
        })
        .title("First");
    first.texts(|row| row.file.clock.text(row.stats().first_ns));
    let last = columns
        .add("last_ns", "time of the last allocation; null if there are none", |row| {
            row.stats().last_ns
        })
        .title("Last");
    last.texts(|row| row.file.clock.text(row.stats().last_ns));
    if criteria.groups.buckets.is_some() {
        let over_time = |row: &AllocationRow<'a>| row.group.over_time.clone().unwrap_or_default();
        let over_time = columns.add("over_time", OVER_TIME, over_time).title("Over time");
        over_time.texts(|row| bars(row.group.over_time.as_deref())).rows_only();
    }
    columns
}

/// Returns the members of a `-GroupBy` group in a document, including all that options add.
pub fn resource_group_members() -> Vec<MemberMeaning> {
    let groups = GroupCriteria { buckets: Some(1), ..GroupCriteria::new([GroupColumn::Process]) };
    let criteria = AcquisitionCriteria { groups, ..AcquisitionCriteria::default() };
    resource_columns(&criteria, false).members()
}

/// Returns a row for each group: totals, or leaks, or the groups of `-GroupBy`.
///
/// # Errors
/// None that a caller could do anything about.
pub fn resources<'a>(
    answers: &'a [ResourcesAnswer<'a>],
    criteria: &'a AcquisitionCriteria,
    command: &'a str,
    format: Format,
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let traces = traces(answers);
    let files: Rc<[Rc<AllocationStyle<'a>>]> = answers
        .iter()
        .zip(traces.iter())
        .map(|(answer, trace)| {
            Rc::new(AllocationStyle::new(answer, trace.numbers, criteria.stacks, display))
        })
        .collect();
    let rows = files.iter().flat_map(|file| {
        file.answer.shown_groups().map(|group| AllocationRow { file: Rc::clone(file), group })
    });
    let has_text = !matches!(format, Format::Text | Format::Json(_));
    let (mut columns, display) = (resource_columns(criteria, has_text), *display);
    if criteria.stacks.show && criteria.has_stacks_of_allocations() {
        let by = criteria.columns_of_allocations();
        columns.row_text(move |row, out| row.write(by, &display, out));
    }
    let file_rows = answers.iter().map(|answer| file_rows(answer, criteria, &display));
    let spare = LEFT_OUT.into_iter().filter(|title| {
        criteria.groups.by.is_none()
            || GroupColumn::ALL.iter().all(|column| column.title() != *title)
    });
    let table = AnswerTable::new(columns, rows.collect(), file_rows)?.with_spare(spare);
    let Some(by) = &criteria.groups.by else {
        return Ok(table.arranged_in(resource_document(), move |file_rows| {
            let (traces, files) = (Rc::clone(&traces), Rc::clone(&files));
            let rest = ResourceLists { command, files, criteria, file_rows: file_rows.to_vec() };
            OfTraces { traces, rest }
        }));
    };
    let left_out: usize = answers
        .iter()
        .filter_map(|answer| answer.groups.as_ref())
        .map(|groups| groups.left_out)
        .sum();
    let rest = ResourceGroupsHead {
        command,
        by: by.iter().map(|column| column.word()).collect(),
        left_out: Some(left_out).filter(|left_out| *left_out > 0),
        shows_stacks: criteria.stacks.show,
    };
    Ok(table.within(resource_group_document(), OfTraces { traces, rest }))
}

/// Adds the text of a key column; a document has all keys in one member.
fn add_key<'a>(columns: &mut Columns<'a, AllocationRow<'a>>, column: GroupColumn, has_text: bool) {
    let (name, title, help) = (column.name(), column.title(), column.help(Domain::Allocations));
    match column.kind() {
        KeyKind::Text if column == GroupColumn::Process => {
            columns.add(name, help, move |row| row.text(column)).rows_only();
            add_owner(columns);
            columns
                .add("shown_process", "owner with its start and end", AllocationRow::process)
                .title(title)
                .text_only();
        }
        KeyKind::Text => {
            let text = columns.add(name, help, move |row| row.text(column)).title(title);
            if column == GroupColumn::Caller {
                text.unknown("");
            }
            text.rows_only();
        }
        KeyKind::Stack => {
            let stack = move |row: &AllocationRow<'a>| row.group.stack(column);
            columns.add(name, help, move |row| Some(stack(row)?.0)).title(title).rows_only();
            let Some(StackNames { innermost, text, .. }) = column.frames() else { return };
            let innermost_frame =
                columns.add(innermost.0, "the first frame of the program", move |row| {
                    row.file.stacks.representative_line(stack(row)?)
                });
            innermost_frame.title(innermost.1).unknown("").rank(1).rows_only();
            if has_text {
                columns
                    .add(text, "the frames, one per line", move |row| {
                        row.file.stacks.text(stack(row))
                    })
                    .rows_only();
            }
        }
        KeyKind::Number => {
            columns.add(name, help, move |row| row.group.number(column)).title(title).rows_only();
        }
        KeyKind::Bytes => {
            let bytes = columns.add(name, help, move |row| row.group.bytes(column)).title(title);
            bytes.show(Show::Bytes).rows_only();
        }
    }
}

/// Draws bytes over time as bars.
fn bars(over_time: Option<&[i64]>) -> String {
    let Some(bytes) = over_time else { return String::new() };
    let known = bytes.iter().map(|bytes| u64::try_from(*bytes).unwrap_or_default());
    sparkline(&known.collect::<Vec<u64>>())
}

fn file_rows(
    answer: &ResourcesAnswer<'_>,
    criteria: &AcquisitionCriteria,
    display: &Display,
) -> FileRows {
    let mut sum = ResourceStats::default();
    answer.shown_groups().for_each(|group| sum.add_all(&group.stats));
    let file_rows = FileRows::new(answer.about.path, answer.shown_groups().count())
        .started(&answer.about.info, display);
    let ResourceStats { allocated, freed, outstanding, at_exit, .. } = sum;
    let unreleased = format!(
        "{} leaked ({}), {} freed only by process exit ({})",
        HumanCount(outstanding.count),
        Size(outstanding.bytes),
        HumanCount(at_exit.count),
        Size(at_exit.bytes)
    );
    let allocations = CountedNoun(allocated.count, "allocation");
    if criteria.is_of_leaks() {
        return file_rows.below(format!("{allocations}: {unreleased}"));
    }
    file_rows.below(format!(
        "{allocations} ({}), {} ({}), {unreleased}, {}",
        Size(allocated.bytes),
        CountedNoun(freed.count, "free"),
        Size(freed.bytes),
        CountedNoun(sum.orphan_frees.count, "orphan free")
    ))
}

/// The head of the document of groups.
pub struct ResourceGroupsHead<'a> {
    command: &'a str,
    by: Vec<&'static str>,
    left_out: Option<usize>,
    shows_stacks: bool,
}

/// Declares the document of `.dump Resource -GroupBy`.
pub fn resource_group_document<'a>() -> Columns<'a, OfTraces<'a, ResourceGroupsHead<'a>>> {
    const AS_IN_RESOURCE: &str = "as in `.dump Resource`";
    let mut document = Columns::<OfTraces<'a, ResourceGroupsHead<'a>>>::default();
    document.member("command", AS_IN_RESOURCE, |of| of.rest.command).for_programs();
    document.kind("`\"ResourceGroups\"`", "ResourceGroups");
    document.member("group_by", "the columns", |of| of.rest.by.clone()).for_programs();
    let mut left_out = Columns::<usize>::default();
    left_out.member("groups", "number of omitted groups", |groups| *groups);
    document
        .part_if(
            "left_out",
            "only with `-TopN` and without `-SortBy`, if it omits something",
            left_out,
            |of| of.rest.left_out,
        )
        .for_programs();
    document.rows("groups", "the groups, most bytes never freed first");
    document.stacks(AS_IN_RESOURCE, |rest| rest.shows_stacks);
    document.caveats(AS_IN_RESOURCE, AS_IN_RESOURCE);
    document
}
