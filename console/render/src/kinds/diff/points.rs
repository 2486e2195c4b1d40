//! `.diff` between two points of a trace, for handles or allocations.

use std::io;

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::{ComparisonHead, DiffRow, TraceSpan, diff_document, group_columns, rate};
use crate::{
    kinds::no_match_line,
    table::{AnswerTable, Columns, FileRows, Show},
    text::line_of_others_ignored,
    traces::{OfTraces, traces},
};
use handlescope_query::{Amount, Domain, OpenedGroup, PointAmounts, PointsDiff, TraceAnswer};
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::terminal::Role;
use handlescope_session::trace::CaveatKind;
use handlescope_session::values::Size;

type PointsRow<'a> = DiffRow<'a, OpenedGroup>;

/// Declares the columns of a group.
pub fn point_columns<'a>(domain: Domain) -> Columns<'a, PointsRow<'a>> {
    let amounts = match domain {
        Domain::Handles => add_handles,
        Domain::Allocations => add_allocations,
    };
    let mut columns = group_columns(domain, true, amounts);
    if domain == Domain::Handles {
        columns.add("sample_ids", "only between points: ids of up to three objects", |row| {
            row.group
                .between
                .sample_ids
                .iter()
                .filter_map(|id| u32::try_from(*id).ok())
                .collect::<Vec<u32>>()
        });
    }
    columns
}

fn add_handles<'a>(columns: &mut Columns<'a, PointsRow<'a>>) {
    columns
        .add(
            "opened",
            "only between points: handles and views opened after `a` and until `b`",
            |row| row.group.between.opened.count,
        )
        .title("Opened");
    columns
        .add("still_open", "only between points: how many of these are open at `b`", |row| {
            row.group.between.kept.count
        })
        .title("Still open");
    columns
        .add(
            "per_minute",
            "only between points: `still_open` divided by the minutes from `a` to `b`; \
             null: the trace has no clock",
            |row| row.group.per_minute,
        )
        .title("Per minute");
}

fn add_allocations<'a>(columns: &mut Columns<'a, PointsRow<'a>>) {
    for (names, title, meaning, amount) in AMOUNTS {
        columns.add(names[0], meaning, move |row| amount(&row.group.between).count).title(title);
        columns.add(names[1], meaning, move |row| amount(&row.group.between).bytes);
    }
    let per_minute = columns.add(
        "bytes_per_minute",
        "only between points: `outstanding_bytes` divided by the minutes from `a` to \
         `b`; null: the trace has no clock",
        |row| row.group.bytes_per_minute,
    );
    per_minute.title("Per minute").show(Show::Bytes).follows("outstanding_bytes");
}

/// The names of a count and of its bytes, the title, the meaning, and the value.
type AmountColumns = ([&'static str; 2], &'static str, &'static str, fn(&PointAmounts) -> Amount);

/// Amounts of a group of allocations.
const AMOUNTS: [AmountColumns; 4] = [
    (
        ["allocated", "allocated_bytes"],
        "Allocated",
        "only between points: allocations made after `a` and until `b`",
        |between| between.opened,
    ),
    (
        ["outstanding", "outstanding_bytes"],
        "Still allocated",
        "only between points: how many of these are still allocated at `b`",
        |between| between.kept,
    ),
    (
        ["at_a", "at_a_bytes"],
        "At A",
        "only between points: allocations of the trace that are still allocated at `a`",
        |between| between.at_first,
    ),
    (
        ["at_b", "at_b_bytes"],
        "At B",
        "only between points: allocations of the trace that are still allocated at `b`",
        |between| between.at_second,
    ),
];

/// Returns a row for each group that still has something open. `points` are the points as typed.
///
/// # Errors
/// None that a caller could do anything about.
pub fn diff_points<'a, 't: 'a, F: TraceAnswer<'t>>(
    answers: &'a [PointsDiff<F>],
    points: [&'a str; 2],
    is_plain: bool,
    stacks: StackDisplayArgs,
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let traces = traces(answers.iter().map(|answer| &answer.file));
    let rows = answers.iter().zip(traces.iter()).flat_map(|(answer, trace)| {
        answer.groups.iter().map(move |group| {
            let process = group.process.as_ref();
            // Columns about allocations always show names of executables.
            let is_plain = is_plain || F::DOMAIN == Domain::Allocations;
            let label = process.map(|process| process.shown_label(is_plain));
            let pid = process.and_then(|process| process.known_pid());
            let row = DiffRow::new((&answer.file, trace), (group, &group.site), label, stacks);
            DiffRow { pid, ..row }
        })
    });
    let (mut columns, display) = (point_columns(F::DOMAIN), *display);
    columns.row_text(move |row, out| {
        let text = match F::DOMAIN {
            Domain::Handles => handles_text(row.group),
            Domain::Allocations => allocations_text(row.group, points),
        };
        let process = row.group.process.as_ref();
        let process = process.map_or("unknown".to_owned(), |process| process.shown_label(false));
        let names = [process.as_str(), &row.site.type_name];
        let names: Vec<&str> = names.into_iter().chain(row.site.allocator.as_deref()).collect();
        let heading = Untrusted(&names.join(" ")).to_string();
        let heading = display.screen.paint(Role::Heading, heading);
        row.write(&format!("{heading}: {}", display.whole(&text)), stacks.show, &display, out)
    });
    let spans = answers.iter().map(|answer| TraceSpan::new(&answer.file, answer.window));
    let [from, to] = points;
    let ignored = answers.iter().map(|answer| answer.ignored).sum();
    let rest = ComparisonHead { a: from, b: to, spans: spans.collect(), ignored };
    let files = answers.iter().map(|answer| file_rows(answer, from, to));
    let table = AnswerTable::new(columns, rows.collect(), files)?;
    Ok(table.within(diff_document(F::DOMAIN), OfTraces { traces, rest }))
}

fn file_rows<'t, F: TraceAnswer<'t>>(answer: &PointsDiff<F>, from: &str, to: &str) -> FileRows {
    let about = answer.file.about();
    let rows = FileRows::new(about.path, answer.groups.len());
    let reasons = answer.groups.iter().map(|group| group.site.ignored.as_ref());
    let ignored = line_of_others_ignored(answer.ignored, "group", reasons);
    let (from, to) = (Untrusted(from), Untrusted(to));
    let mut sum = PointAmounts::default();
    answer.groups.iter().for_each(|group| sum.add_all(&group.between));
    let (without, [titled, opened, open], kept) = match F::DOMAIN {
        Domain::Handles => {
            let kept = HumanCount(sum.kept.count).to_string();
            (CaveatKind::NoHandleEvents, ["Opened", "opened", "open"], kept)
        }
        Domain::Allocations => {
            let kept = shown_amount(sum.kept);
            (CaveatKind::NoResourceEvents, ["Allocated", "allocated", "allocated"], kept)
        }
    };
    let is_unknown = about.caveats.iter().any(|caveat| caveat.kind == without);
    let is_none = sum.kept.count == 0;
    if let Some(no_match) = &about.no_match {
        // Kinds that exist may not have been recorded.
        let is_of_choice = match F::DOMAIN {
            Domain::Handles => true,
            Domain::Allocations => is_none && !(is_unknown && no_match.names_kinds()),
        };
        if is_of_choice {
            return rows.below(no_match_line(no_match));
        }
    }
    let nothing = if ignored.is_some() { "Nothing else" } else { "Nothing" };
    let rows = rows.below(match (is_none, is_unknown) {
        (true, true) => format!("Unknown whether anything was {opened}"),
        (true, false) => format!("{nothing} {opened} after {from} is still {open} at {to}"),
        (false, _) => format!("{titled} after {from} and still {open} at {to}: {kept}"),
    });
    ignored.into_iter().fold(rows, FileRows::below)
}

/// Formats a count, with its bytes if it has any.
fn shown_amount(amount: Amount) -> String {
    match amount.bytes {
        0 => HumanCount(amount.count).to_string(),
        sum => format!("{} ({})", HumanCount(amount.count), Size(sum)),
    }
}

fn handles_text(group: &OpenedGroup) -> String {
    let PointAmounts { opened, kept, sample_ids, .. } = &group.between;
    let [open, opened] = [kept, opened].map(|amount| HumanCount(amount.count).to_string());
    let rate = rate(group.per_minute).map(|rate| format!(", {rate} per minute"));
    let ids: Vec<String> = sample_ids.iter().map(u64::to_string).collect();
    format!(
        "{open} still open of {opened} opened{} (ids {})",
        rate.unwrap_or_default(),
        ids.join(" ")
    )
}

fn allocations_text(group: &OpenedGroup, points: [&str; 2]) -> String {
    let PointAmounts { opened, kept, at_first, at_second, .. } = group.between;
    let [kept, opened] = [kept, opened].map(shown_amount);
    let mut text = format!("{kept} still allocated of {opened} allocated");
    if let Some(rate) = group.bytes_per_minute.filter(|rate| *rate != 0.0) {
        text += &format!(", {} per minute", Size(rate as i64));
    }
    if at_first != Amount::default() {
        let [first, second] = [at_first, at_second].map(shown_amount);
        let [from, to] = points.map(Untrusted);
        text += &format!("; at {from} {first}, at {to} {second}");
    }
    text
}
