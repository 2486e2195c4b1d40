//! `.dump ObjectRef -GroupBy` over a dataset.

use std::io::{self, Write};
use std::rc::Rc;

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::stack::lines;
use super::{AS_IN_WHY, add_caveats};
use crate::json::Document;
use crate::table::{AnswerTable, Columns, FileRows, MemberMeaning, Show};
use crate::text::fleet::count;
use handlescope_fleet::dataset::short;
use handlescope_fleet::{Amounts, FleetGroup, FleetGroups};
use handlescope_query::GroupColumn;
use handlescope_session::settings::Display;
use handlescope_session::values::{CountedNoun, Size};

/// Columns that the text drops, in this order, if the screen is too narrow for all.
const SPARE: [&str; 8] =
    ["Share", "Closed", "Allocated", "Bytes", "At exit", "Opened", "Traces", "Unfreed"];

type GroupAmount = fn(&FleetGroup) -> i64;

/// Declares the columns of a group. `has_bytes`: some groups are of allocations.
pub fn fleet_group_columns<'a>(by: &[GroupColumn], has_bytes: bool) -> Columns<'a, &'a FleetGroup> {
    let mut columns = Columns::<&FleetGroup>::default();
    let columns_of_keys: Rc<[GroupColumn]> = by.into();
    let keys = GroupColumn::OF_FLEET.into_iter().map(|column| {
        let is_stack = column == GroupColumn::CreateStack;
        MemberMeaning::new(column.word(), if is_stack { "identity of the stack" } else { "text" })
    });
    let frames = "only with `createstack`: frames of the stack, one per line";
    columns
        .nest(
            "keys",
            "object",
            "for each column, the value shared by the group; null for nothing",
            move |group| keys_of(group, &columns_of_keys),
        )
        .inner(keys.chain([MemberMeaning::new("stack", frames)]).collect());
    let number = "number of machines with something in the group";
    columns.add("machines", number, |group| group.machines as u64).title("Machines");
    let number = "number of traces with something in the group";
    columns.add("traces", number, |group| group.traces as u64).title("Traces");
    let title = |of_allocations| if has_bytes { of_allocations } else { "" };
    let amounts: [(_, _, _, GroupAmount); 7] = [
        ("leaked", "handles and views never released", "Leaked", |of| of.handles.leaked),
        (
            "closed_at_exit",
            "handles and views released only by the end of their process",
            "At exit",
            |of| of.handles.closed_at_exit,
        ),
        ("created", "handles and views opened", "Opened", |of| of.handles.acquired),
        ("closed", "handles and views closed by the program", "Closed", |of| of.handles.released),
        ("unfreed", "allocations never freed", title("Unfreed"), |of| of.allocations.leaked),
        ("freed_at_exit", "allocations freed only by the end of their process", "", |of| {
            of.allocations.closed_at_exit
        }),
        ("allocations", "allocations", title("Allocated"), |of| of.allocations.acquired),
    ];
    for (name, meaning, title, amount) in amounts {
        let column = columns.add(name, meaning, move |group| count(amount(group)));
        if !title.is_empty() {
            column.title(title).show(Show::Grouped);
        }
    }
    columns.add("bytes_created", "bytes of the allocations", |group| group.bytes_acquired);
    let bytes = columns
        .add("bytes", "bytes of the allocations never freed", |group| group.bytes_unreleased);
    if has_bytes {
        bytes.title("Bytes").show(Show::Bytes);
    }
    let share = columns
        .add(
            "share",
            "share of this group, 0 to 1, in what all groups leak, or acquire if nothing leaks",
            |group| group.share,
        )
        .title("Share");
    share.texts(|group| format!("{:.1} %", group.share * 100.0));
    for (level, column) in by.iter().copied().enumerate() {
        let key = columns
            .add(column.word(), column.help_of_fleet(), move |group| key(group, level))
            .rows_only()
            .rank(1);
        key.title(column.title_of_fleet());
        match column {
            GroupColumn::CreateStack => {
                key.texts(|group| {
                    group.stack.as_ref().map_or_else(String::new, |texts| texts.function.clone())
                });
                key.unknown("no stack");
                columns
                    .add("stack", "the frames of the stack, one per line", |group| {
                        stack_lines(group)
                    })
                    .rows_only();
            }
            GroupColumn::Trace => {
                key.texts(move |group| short_id(group, level));
            }
            _ => {
                key.unknown("");
            }
        }
    }
    columns
}

/// Returns a row for each group.
///
/// # Errors
/// None that a caller could do anything about.
pub fn fleet_groups<'a>(
    answer: &'a FleetGroups,
    command: &'a str,
    shows_stacks: bool,
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let has_bytes = answer.groups.iter().any(|group| group.bytes_acquired != 0);
    let (mut columns, display) = (fleet_group_columns(&answer.by, has_bytes), *display);
    if shows_stacks && answer.by.contains(&GroupColumn::CreateStack) {
        columns.row_text(move |group, out| write_group(group, &answer.by, &display, out));
    }
    let mut amounts = sums(answer, |group| group.handles, ["opened", "leaked", "closed"]);
    if has_bytes {
        let of_allocations = sums(answer, |group| group.allocations, ["made", "unfreed", "freed"]);
        amounts += &format!(" of handles; {of_allocations} of allocations");
    }
    let below = format!(
        "{amounts}, in {} of {}",
        CountedNoun(answer.traces as u64, "trace"),
        CountedNoun(answer.machines as u64, "machine"),
    );
    let part = FileRows::rows_of(answer.groups.len()).below(below);
    let table = AnswerTable::new(columns, answer.groups.iter().collect(), [part])?;
    Ok(table.within(fleet_group_document(), (answer, command)).with_spare(SPARE))
}

/// Formats the total amounts of all groups, with the given words.
fn sums(
    answer: &FleetGroups,
    of: fn(&FleetGroup) -> Amounts,
    [acquired, leaked, released]: [&str; 3],
) -> String {
    let sum = |amount: fn(&Amounts) -> i64| -> HumanCount {
        HumanCount(answer.groups.iter().map(|group| count(amount(&of(group)))).sum())
    };
    format!(
        "{} {acquired}, {} {leaked}, {} {released} only by process exit",
        sum(|amounts| amounts.acquired),
        sum(|amounts| amounts.leaked),
        sum(|amounts| amounts.closed_at_exit),
    )
}

/// Returns the group's value in each column; a stack has its identity, function and frames.
fn keys_of<'a>(group: &'a FleetGroup, by: &[GroupColumn]) -> Document<'a> {
    by.iter().zip(&group.keys).fold(Document::default(), |keys, (column, key)| {
        let keys = keys.with(column.word(), key);
        match &group.stack {
            Some(texts) if *column == GroupColumn::CreateStack => {
                keys.with("stack", &texts.lines).with("function", &texts.function)
            }
            _ => keys,
        }
    })
}

fn key(group: &FleetGroup, level: usize) -> Option<&str> {
    group.keys.get(level)?.as_deref()
}

fn short_id(group: &FleetGroup, level: usize) -> String {
    short(key(group, level).unwrap_or_default()).to_owned()
}

fn stack_lines(group: &FleetGroup) -> Option<&str> {
    group.stack.as_ref().map(|texts| texts.lines.as_str())
}

/// Writes a line about the group, then a line for each frame of its stack.
fn write_group(
    group: &FleetGroup,
    by: &[GroupColumn],
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    let FleetGroup { machines, traces, handles, allocations, .. } = *group;
    let Amounts { leaked, closed_at_exit, acquired, .. } = handles;
    let mut text = format!(
        "{}, {}: {} leaked of {}",
        CountedNoun(machines as u64, "machine"),
        CountedNoun(traces as u64, "trace"),
        HumanCount(count(leaked)),
        HumanCount(count(acquired)),
    );
    if closed_at_exit > 0 {
        text += &format!(", {} closed only by process exit", HumanCount(count(closed_at_exit)));
    }
    if allocations.acquired > 0 {
        let Amounts { leaked, closed_at_exit, acquired, .. } = allocations;
        let (leaked, acquired) =
            (HumanCount(count(leaked)), CountedNoun(count(acquired), "allocation"));
        text += &format!("; {leaked} unfreed of {acquired}");
        if closed_at_exit > 0 {
            text += &format!(", {} freed only by process exit", HumanCount(count(closed_at_exit)));
        }
    }
    if group.bytes_unreleased > 0 {
        text += &format!(", {}", Size(group.bytes_unreleased));
    }
    for (level, column) in
        by.iter().enumerate().filter(|(_, column)| **column != GroupColumn::CreateStack)
    {
        let key = match *column {
            GroupColumn::Trace => short_id(group, level),
            _ => key(group, level).unwrap_or("unknown").to_owned(),
        };
        text += &format!("   {} {key}", column.word());
    }
    writeln!(out, "{}", display.whole(&Untrusted(&text).to_string()))?;
    for frame in lines(stack_lines(group)) {
        writeln!(out, "{}{}", display.indent(1), Untrusted(&frame))?;
    }
    writeln!(out)
}

/// Declares the document of `.dump ObjectRef -GroupBy` over a dataset.
pub fn fleet_group_document<'a>() -> Columns<'a, (&'a FleetGroups, &'a str)> {
    let mut document = Columns::<(&FleetGroups, &str)>::default();
    document.kind("`\"FleetGroups\"`", "FleetGroups");
    document.member("command", "the command line", |(_, command)| *command).for_programs();
    document.member("machines", AS_IN_WHY, |(answer, _)| answer.machines);
    document.member("traces", AS_IN_WHY, |(answer, _)| answer.traces);
    document.member("group_by", "the columns as typed", |(answer, _)| {
        answer.by.iter().map(|column| column.word()).collect::<Vec<_>>()
    });
    document.left_out("groups", "number of omitted groups");
    document.rows("groups", "the groups, most leaked first, see below");
    add_caveats(&mut document, [AS_IN_WHY; 4], |(answer, _)| &answer.caveats);
    document
}
