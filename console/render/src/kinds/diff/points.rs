//! `.diff` between two points of a trace, for handles or allocations.

use std::io::{self, Write};

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::{
    CREATE_STACK, ComparisonHead, FUNCTION, PROCESS, TraceSpan, diff_document, rate, shown,
    write_ignored, write_stack,
};
use crate::{
    kinds::{index, no_match_line},
    table::{AnswerTable, Columns, FileRows, Show},
    text::{StackStyle, line_of_ignored},
    traces::{OfTraces, StackOffset, traces},
};
use handlescope_query::{Amount, Domain, OpenedGroup, PointAmounts, PointsDiff, TraceAnswer};
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::terminal::Role;
use handlescope_session::trace::CaveatKind;
use handlescope_session::values::Size;

/// A group and its presentation.
pub struct GrowthRow<'a> {
    file: u32,
    group: &'a OpenedGroup,
    numbers: StackOffset,
    stacks: StackStyle<'a>,
    /// Whether columns show names of executables.
    is_plain: bool,
}

/// Declares the columns of a group.
pub fn point_columns<'a>(domain: Domain) -> Columns<'a, GrowthRow<'a>> {
    let mut columns = Columns::<GrowthRow<'a>>::default();
    columns.add("file", "only between points: index of the trace", |row| row.file);
    match domain {
        Domain::Handles => add_handles(&mut columns),
        Domain::Allocations => add_allocations(&mut columns),
    }
    let function = columns.add("function", FUNCTION, |row| row.group.function.as_deref());
    function.title("Function").follows("create_stack");
    columns
        .add("stack", "the frames of the stack, one per line", |row| {
            row.stacks.text(row.group.create_stack)
        })
        .rows_only();
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

fn add_handles<'a>(columns: &mut Columns<'a, GrowthRow<'a>>) {
    columns
        .add("process", PROCESS, |row| row.process(row.is_plain).unwrap_or_default())
        .title("Process");
    columns.add(
        "pid",
        "only between points: process id of the owner; null if unknown",
        GrowthRow::pid,
    );
    let name = |row: &GrowthRow<'a>| {
        format!("{} {}", row.process(row.is_plain).unwrap_or_default(), row.group.type_name)
    };
    columns.add("name", "owner and type", name).rows_only();
    columns.add("type", "type of the objects", |row| row.group.type_name.as_str()).title("Type");
    columns.nest("create_stack", "integer?", CREATE_STACK, GrowthRow::stack_number).detail();
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

fn add_allocations<'a>(columns: &mut Columns<'a, GrowthRow<'a>>) {
    columns.add("process", PROCESS, |row| row.process(true)).title("Process");
    columns.add(
        "pid",
        "only between points: process id of the owner; null if unknown",
        GrowthRow::pid,
    );
    columns
        .add("kind", "as in `.dump Resource`", |row| Some(row.group.type_name.as_str()))
        .title("Kind");
    columns
        .add(
            "allocator",
            "as in `.dump Resource`; of two traces, null for heaps, because their handles differ",
            |row| row.group.allocator.as_deref(),
        )
        .title("Allocator");
    columns.nest("create_stack", "integer?", CREATE_STACK, GrowthRow::stack_number).detail();
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
        let (numbers, style) =
            (trace.numbers, || StackStyle::for_answer(&answer.file, shown(stacks)));
        let file = index(answer.file.about().index);
        answer.groups.iter().map(move |group| GrowthRow {
            file,
            group,
            numbers,
            stacks: style(),
            is_plain,
        })
    });
    let (mut columns, display) = (point_columns(F::DOMAIN), *display);
    columns.row_text(move |row, out| match F::DOMAIN {
        Domain::Handles => row.write_handles(stacks.show, &display, out),
        Domain::Allocations => row.write_allocations(points, stacks.show, &display, out),
    });
    let spans = answers.iter().map(|answer| {
        let about = answer.file.about();
        TraceSpan::new(about.index, about.info.has_clock().then_some(answer.window))
    });
    let [from, to] = points;
    let ignored = answers.iter().map(|answer| answer.ignored).sum();
    let rest = ComparisonHead { a: from, b: to, spans: spans.collect(), ignored };
    let files = answers.iter().map(|answer| file_rows(answer, from, to));
    let table = AnswerTable::new(columns, rows.collect(), files)?;
    Ok(table.within(diff_document(F::DOMAIN), OfTraces { traces, rest }))
}

fn file_rows<'t, F: TraceAnswer<'t>>(answer: &PointsDiff<F>, from: &str, to: &str) -> FileRows {
    let about = answer.file.about();
    let (rows, domain) = (FileRows::new(about.path, answer.groups.len()), F::DOMAIN);
    let are_shown = answer.groups.iter().any(|group| group.ignored.is_some());
    let ignored = line_of_ignored(answer.ignored, "group").filter(|_| !are_shown);
    let (from, to) = (Untrusted(from), Untrusted(to));
    let mut sum = PointAmounts::default();
    answer.groups.iter().for_each(|group| sum.add_all(&group.between));
    let without = match domain {
        Domain::Handles => CaveatKind::NoHandleEvents,
        Domain::Allocations => CaveatKind::NoResourceEvents,
    };
    let is_unknown = about.caveats.iter().any(|caveat| caveat.kind == without);
    let is_none = sum.kept.count == 0;
    if let Some(no_match) = &about.no_match {
        // Kinds that exist may not have been recorded.
        let is_of_choice = match domain {
            Domain::Handles => true,
            Domain::Allocations => is_none && !(is_unknown && no_match.names_kinds()),
        };
        if is_of_choice {
            return rows.below(no_match_line(no_match));
        }
    }
    let opened = if domain == Domain::Handles { "opened" } else { "allocated" };
    let nothing = if ignored.is_some() { "Nothing else" } else { "Nothing" };
    let rows = rows.below(match domain {
        _ if is_none && is_unknown => format!("Unknown whether anything was {opened}"),
        Domain::Handles if is_none => {
            format!("{nothing} opened after {from} is still open at {to}")
        }
        Domain::Allocations if is_none => {
            format!("{nothing} allocated after {from} is still allocated at {to}")
        }
        Domain::Handles => {
            format!("Opened after {from} and still open at {to}: {}", HumanCount(sum.kept.count))
        }
        Domain::Allocations => format!(
            "Allocated after {from} and still allocated at {to}: {}",
            shown_amount(sum.kept)
        ),
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

impl GrowthRow<'_> {
    fn process(&self, is_plain: bool) -> Option<String> {
        Some(self.group.process.as_ref()?.shown_label(is_plain))
    }

    fn pid(&self) -> Option<u32> {
        self.group.process.as_ref()?.known_pid()
    }

    fn stack_number(&self) -> Option<u64> {
        Some(self.numbers.of(self.group.create_stack?))
    }

    fn write_handles(
        &self,
        all_frames: bool,
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let PointAmounts { opened, kept, sample_ids, .. } = &self.group.between;
        let [open, opened] = [kept, opened].map(|amount| HumanCount(amount.count).to_string());
        let rate = rate(self.group.per_minute).map(|rate| format!(", {rate} per minute"));
        let ids: Vec<String> = sample_ids.iter().map(u64::to_string).collect();
        let text = format!(
            "{open} still open of {opened} opened{} (ids {})",
            rate.unwrap_or_default(),
            ids.join(" ")
        );
        self.write(&text, all_frames, display, out)
    }

    fn write_allocations(
        &self,
        points: [&str; 2],
        all_frames: bool,
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let PointAmounts { opened, kept, at_first, at_second, .. } = self.group.between;
        let [kept, opened] = [kept, opened].map(shown_amount);
        let mut text = format!("{kept} still allocated of {opened} allocated");
        if let Some(rate) = self.group.bytes_per_minute.filter(|rate| *rate != 0.0) {
            text += &format!(", {} per minute", Size(rate as i64));
        }
        if at_first != Amount::default() {
            let [first, second] = [at_first, at_second].map(shown_amount);
            let [from, to] = points.map(Untrusted);
            text += &format!("; at {from} {first}, at {to} {second}");
        }
        self.write(&text, all_frames, display, out)
    }

    /// Writes a line about the group, then a line for each frame.
    fn write(
        &self,
        text: &str,
        all_frames: bool,
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let OpenedGroup { type_name, allocator, create_stack, ignored, .. } = self.group;
        let process = self.process(false).unwrap_or_else(|| "unknown".to_owned());
        let names = [process.as_str(), type_name].into_iter().chain(allocator.as_deref());
        let heading = Untrusted(&names.collect::<Vec<_>>().join(" ")).to_string();
        let heading = display.screen.paint(Role::Heading, heading);
        writeln!(out, "{heading}: {}", display.whole(text))?;
        write_stack(&self.stacks, *create_stack, all_frames, display, out)?;
        write_ignored(ignored.as_ref(), display, out)?;
        writeln!(out)
    }
}
