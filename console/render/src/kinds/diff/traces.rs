//! `.diff` of two traces, for handles or allocations.

use std::io;

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::{
    ComparisonHead, DiffRow, TraceSpan, add_side, add_state, compared_rows, compared_title,
    diff_document, group_columns, growth, rates, write_group,
};
use crate::findings::{Findings, LeakFinding};
use crate::{
    table::{AnswerTable, Columns, FileRows, Show},
    text::{line_of_ignored, line_of_others_ignored, shown_path},
    traces::{OfTraces, traces},
};
use handlescope_query::{
    ComparedGroup, ComparedLeaks, Domain, Frames, TraceAnswer, TracesDiff, Verdict,
};
use handlescope_session::paths;
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::values::Size;

type TracesRow<'a> = DiffRow<'a, ComparedGroup>;

/// Returns groups that got worse, or may have, as findings. Only groups that did get worse fail the gate.
pub fn diff_findings<'t, F: TraceAnswer<'t>>(answer: &TracesDiff<F>) -> Findings {
    let counted = counted(answer);
    let is_finding = |group: &&ComparedGroup| {
        (group.leaks.got_worse || group.leaks.is_uncertain) && group.site.ignored.is_none()
    };
    let list =
        answer.groups.iter().filter(is_finding).map(|ComparedGroup { site, leaks, .. }| {
            let program = site.program.clone().unwrap_or_default();
            let rates = reliable_rates(leaks)
                .map(|[before, after]| format!("{before} and {after} per minute"));
            let growth = growth(&leaks.sides[1]).map(|growth| format!("growth {growth}"));
            let finding = LeakFinding {
                rule: leaks.state.word(),
                title: format!("{program} {}: {}", site.type_name, counts(leaks, counted)),
                program,
                sentences: rates.into_iter().chain(growth).collect(),
                is_failure: leaks.got_worse,
                ..LeakFinding::default()
            };
            let frames =
                answer.files.get(site.side).and_then(|file| file.frames()).map(Frames::named);
            finding.at(frames.as_ref(), site.stack)
        });
    let list = list.collect();
    let paths: Vec<String> =
        answer.files.iter().map(|file| shown_path(file.about().path)).collect();
    let headline = line_of_ignored(answer.ignored, "group").into_iter().collect();
    Findings { about: paths.join(" -> "), headline, list }
}

/// Returns the rates in both traces, unless either trace has too little data.
fn reliable_rates(leaks: &ComparedLeaks) -> Option<[String; 2]> {
    let is_short = leaks.sides.iter().any(|side| side.verdict == Some(Verdict::Short));
    rates(leaks).filter(|_| !is_short)
}

fn counts(leaks: &ComparedLeaks, counted: &str) -> String {
    let [before, after] = leaks.sides.map(|side| HumanCount(side.leaked.count));
    format!("{before} {counted} before, {after} after")
}

/// Returns the word for what the traces count.
fn counted<'t, F: TraceAnswer<'t>>(answer: &TracesDiff<F>) -> &'static str {
    if answer.are_of_one_moment() { "open" } else { "leaked" }
}

/// The names of columns about the trace before and the trace after.
const GROWTHS: [(usize, &str); 2] = [(0, "before_growth"), (1, "after_growth")];

const GROWTH: &str = "only of two traces: the growth verdict of [growth.md](growth.md); null: \
                      nothing leaked";

/// Declares the columns of a group.
pub fn trace_columns<'a>(domain: Domain) -> Columns<'a, TracesRow<'a>> {
    let amounts = match domain {
        Domain::Handles => add_handles,
        Domain::Allocations => add_allocations,
    };
    group_columns(domain, false, amounts)
}

fn add_handles<'a>(columns: &mut Columns<'a, TracesRow<'a>>) {
    const LEAKED: &str = "only of two traces: handles and views never closed, or closed only by the \
                          end of their process; of two dumps: handles that were open";
    const RATE: &str = "only of two traces: the same per minute that processes with this name ran \
                        in the trace; null: no clock";
    for (side, title) in [((0, "before"), "Before"), ((1, "after"), "After")] {
        add_side(columns, side, LEAKED, leaks, |side| side.leaked.count).title(title);
    }
    for side in [(0, "before_per_minute"), (1, "after_per_minute")] {
        add_side(columns, side, RATE, leaks, |side| side.per_minute);
    }
    columns
        .add(
            "change",
            "never closed, or closed only by process exit: number in the trace after minus number \
             in the trace before",
            |row| change(&row.group.leaks),
        )
        .title("Change")
        .rows_only();
    let meanings = [
        "only of two traces: `new`, `gone`, `worse`, `better`, `uncertain` or `same`",
        "only of two traces: whether the trace after leaks more than chance and a \
         factor of 1.5 explain",
        "only of two traces: whether lost events, or stacks missing in dumps, may be why it got \
         worse or did not",
        "only of two traces: the probability that the trace after leaks this many or \
         more if nothing changed",
    ];
    add_state(columns, meanings, leaks, true);
    for side in GROWTHS {
        add_side(columns, side, GROWTH, leaks, growth).follows("after_per_minute");
    }
}

fn add_allocations<'a>(columns: &mut Columns<'a, TracesRow<'a>>) {
    const LEAKED: &str = "only of two traces: allocations never freed, or freed only by the end of \
                          their process";
    const BYTES: &str = "only of two traces: the bytes of these allocations";
    const AS_OF_HANDLES: &str = "only of two traces: as in `.dump Diff`";
    for (side, [count, bytes], [title, bytes_title]) in [
        (0, ["before", "before_bytes"], ["Before", "Bytes before"]),
        (1, ["after", "after_bytes"], ["After", "Bytes after"]),
    ] {
        let counts = add_side(columns, (side, count), LEAKED, leaks, |side| side.leaked.count);
        counts.title(title).show(Show::Grouped);
        let bytes = add_side(columns, (side, bytes), BYTES, leaks, |side| side.leaked.bytes);
        bytes.title(bytes_title).show(Show::Bytes);
    }
    for side in GROWTHS {
        add_side(columns, side, GROWTH, leaks, growth);
    }
    columns.add(
        "expected_bytes",
        "only of two traces: bytes that the trace after would leak if nothing had \
         changed; for a group without a rate, this is a range, and the value is the \
         number in it nearest to `after_bytes`",
        |row| row.group.expected_bytes,
    );
    let got_worse = "only of two traces: whether the trace after leaks more than chance and a \
                     factor of 1.5 explain, and for memory at least 64 KiB more";
    let meanings = [AS_OF_HANDLES, got_worse, AS_OF_HANDLES, AS_OF_HANDLES];
    add_state(columns, meanings, leaks, false);
}

fn leaks<'r>(row: &'r TracesRow<'_>) -> &'r ComparedLeaks {
    &row.group.leaks
}

/// Returns the increase in leaked handles per minute, or in leaked handles if the durations are unknown.
fn change(leaks: &ComparedLeaks) -> f64 {
    let [before, after] = leaks.sides;
    let by_time = after.per_minute.zip(before.per_minute);
    by_time.map_or(after.leaked.count as f64 - before.leaked.count as f64, |(after, before)| {
        after - before
    })
}

/// Returns a row for each group that leaks in either trace.
///
/// # Errors
/// None that a caller could do anything about.
pub fn diff_traces<'a, 't: 'a, F: TraceAnswer<'t>>(
    answer: &'a TracesDiff<F>,
    stacks: StackDisplayArgs,
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let traces = traces(&answer.files);
    let files: Vec<_> = answer.files.iter().zip(traces.iter()).collect();
    let rows = answer
        .groups
        .iter()
        .filter_map(|group| {
            let (file, process) = (files.get(group.site.side)?, group.site.program.clone());
            Some(DiffRow::new(*file, (group, &group.site), process, stacks))
        })
        .collect();
    let (mut columns, display) = (trace_columns(F::DOMAIN), *display);
    match F::DOMAIN {
        Domain::Handles => {
            let counted = counted(answer);
            columns.row_text(move |row, out| {
                let title = handles_title(row.group, counted, &display);
                row.write(&title, stacks.show, &display, out)
            });
        }
        Domain::Allocations if stacks.show => {
            columns.row_text(move |row, out| {
                let frames = row.stacks.text(row.site.stack);
                let frames = frames.unwrap_or_else(|| "no stack".to_owned());
                let frames: Vec<String> = frames.lines().map(str::to_owned).collect();
                let (title, ignored) = (allocations_title(row.group), row.site.ignored.as_deref());
                write_group(&title, &frames, ignored, &display, out)
            });
        }
        Domain::Allocations => {}
    }
    let windows = answer.files.iter().zip(&answer.windows);
    let spans = windows.map(|(file, window)| TraceSpan::new(file, *window)).collect();
    let index = |position: usize| answer.files.get(position).map(|file| file.about().index);
    let rest = ComparisonHead { a: index(0), b: index(1), spans, ignored: answer.ignored };
    let table = AnswerTable::new(columns, rows, [file_rows(answer)])?;
    Ok(table.within(diff_document(F::DOMAIN), OfTraces { traces, rest }))
}

/// Returns the traces with their lengths, and the number of groups in each state.
fn file_rows<'t, F: TraceAnswer<'t>>(answer: &TracesDiff<F>) -> FileRows {
    let is_of_handles = F::DOMAIN == Domain::Handles;
    let side = |side: usize| {
        let path = answer.files.get(side).map(|file| paths::shown(file.about().path));
        let minutes = answer.minutes.get(side).copied().flatten().filter(|_| is_of_handles);
        let length = minutes.map(|minutes| format!(" ({:.1} s)", minutes * 60.0));
        format!("{}{}", Untrusted(path.unwrap_or_default()), length.unwrap_or_default())
    };
    let noun = if is_of_handles { "" } else { " of allocations" };
    let reasons = answer.groups.iter().map(|group| group.site.ignored.as_ref());
    let ignored = line_of_others_ignored(answer.ignored, "group", reasons);
    compared_rows(&[side(0), side(1)], noun, &answer.totals(), ignored)
}

fn handles_title(group: &ComparedGroup, counted: &str, display: &Display) -> String {
    let ComparedGroup { site, leaks, .. } = group;
    let process = site.program.as_deref().unwrap_or_default();
    let name = site.allocator.as_deref().map(|name| format!(" {}", Untrusted(name)));
    let heading = format!("{} {}", Untrusted(process), Untrusted(&site.type_name));
    let heading = heading + &name.unwrap_or_default();
    let growth = leaks.sides[1].verdict.filter(|_| counted == "leaked");
    let rates = reliable_rates(leaks);
    compared_title(leaks, heading, counts(leaks, counted), rates, growth, display)
}

fn allocations_title(group: &ComparedGroup) -> String {
    let ComparedGroup { site, leaks, .. } = group;
    let process = site.program.as_deref().unwrap_or("unknown");
    let names = [process, &site.type_name].into_iter().chain(site.allocator.as_deref());
    let [before, after] = leaks.sides.map(|side| side.leaked);
    format!(
        "{}: {} ({}) after {} ({}), {}",
        Untrusted(&names.collect::<Vec<_>>().join(" ")),
        HumanCount(after.count),
        Size(after.bytes),
        HumanCount(before.count),
        Size(before.bytes),
        leaks.state.word()
    )
}
