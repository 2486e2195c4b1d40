//! The text of a page before its script runs. It is all that is visible if scripts are blocked, as in mail, chats and
//! trackers.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use indicatif::HumanCount;

use super::ReportAnswer;
use super::html::{BreakableName, EscapedText, paragraph, suspects};
use super::suspects::{FUNCTION, SuspectLine, columns, line};
use crate::kinds::{first_lines, listed_and_others, stacks_with_lines};
use crate::no_match::InOptions;
use crate::text::{lines_of_not_counted, lines_of_zombies, more, trace_name};
use crate::time::TraceClock;
use handlescope_query::{AllocatedKind, Amount, Suspect, WhyAnswer};
use handlescope_session::trace::CaveatKind;
use handlescope_session::values::{CountedNoun, Length, Size};

/// Maximum number of programs named at the top; the others are counted.
const PROGRAMS: usize = 5;

/// The program that wrote the page.
pub const EXPORTER: &str = concat!("handlescope ", env!("CARGO_PKG_VERSION"));

/// Says what needs the script.
pub const REST: &str = "Stacks, pictures, search and copying need the script of this page: save the \
                        file and open it in a browser.";

/// Returns the title of a page about traces or a dataset with these names.
pub fn title(names: impl Iterator<Item = String>) -> String {
    format!("{} - handlescope report", names.collect::<Vec<String>>().join(", "))
}

/// Returns the names of traces.
pub fn names(answers: &[ReportAnswer<'_>]) -> impl Iterator<Item = String> {
    answers.iter().map(|answer| trace_name(answer.why.file.about.path))
}

/// Returns the part of a page about traces that is visible without its script, after the options that selected handles.
pub fn of_traces(answers: &[ReportAnswer<'_>], command_line: Option<&str>) -> String {
    let mut html = limited(command_line);
    for (index, (answer, name)) in answers.iter().zip(names(answers)).enumerate() {
        let _ = writeln!(html, "<article id=\"file-{index}\">\n<h1>{}</h1>", EscapedText(&name));
        of_trace(&mut html, answer);
        html.push_str("</article>\n");
    }
    paragraph(&mut html, "static", REST);
    html
}

/// Returns the line about the options that limit the page.
pub fn limited(command_line: Option<&str>) -> String {
    let mut html = String::new();
    if let Some(line) = command_line {
        paragraph(&mut html, "dim", &format!("Limited to: {line}"));
    }
    html
}

fn of_trace(html: &mut String, answer: &ReportAnswer<'_>) {
    let why = &answer.why;
    for (index, line) in first_lines(why, &why.suspects).into_iter().enumerate() {
        // Without suspects, only the first line is a verdict.
        if index == 0 || !why.suspects.is_empty() {
            headline(html, &line);
        } else {
            paragraph(html, "dim", &line);
        }
    }
    paragraph(html, "about", &about(why));
    paragraph(html, "dim", &why.file.about.path.to_string_lossy());
    if has_handles(why) {
        paragraph(html, "totals", &totals(why));
    }
    let overviews = answer.allocations.iter();
    for kind in overviews.flat_map(|overview| &overview.kinds) {
        paragraph(html, "totals", &totals_of_kind(kind));
    }
    let caveats = why
        .file
        .about
        .caveats
        .iter()
        .chain(answer.allocation_caveats())
        .map(|caveat| caveat.text.clone());
    let no_match = why.file.about.no_match.as_ref();
    for text in caveats.chain(no_match.map(|no_match| InOptions(no_match).to_string())) {
        paragraph(html, "caveat", &text);
    }
    if !why.suspects.is_empty() {
        listed_suspects(html, why);
        lines_of_not_counted(why).for_each(|line| paragraph(html, "dim", &line));
    }
    lines_of_zombies(why).iter().for_each(|line| paragraph(html, "dim", line));
}

/// Adds a sentence about everything that leaks.
pub fn headline(html: &mut String, text: &str) {
    let _ = writeln!(html, "<p class=\"headline\"><b>{}</b></p>", EscapedText(text));
}

/// Describes when the trace was recorded, what leaks in it, and what wrote the page.
fn about(why: &WhyAnswer<'_>) -> String {
    let info = &why.file.about.info;
    let mut parts = Vec::new();
    if info.has_clock() {
        let length = info
            .recorded_ns()
            .map(|time| time.end().saturating_sub(*time.start()))
            .map(|ns| format!(" for {}", Length(ns)))
            .unwrap_or_default();
        parts.push(format!("Recorded {}{length}", TraceClock::recorded_start(info)));
    }
    // The program that leaks most is first.
    let mut seen = BTreeSet::new();
    let programs: Vec<&str> =
        why.suspects.iter().map(Suspect::program).filter(|program| seen.insert(*program)).collect();
    if !programs.is_empty() {
        let noun = if programs.len() == 1 { "Program" } else { "Programs" };
        let named: Vec<&str> = programs.iter().copied().take(PROGRAMS).collect();
        let more = match programs.len().saturating_sub(PROGRAMS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        parts.push(format!("{noun}: {}{more}", named.join(", ")));
    }
    parts.push(format!("Written by {EXPORTER}"));
    parts.join(" · ")
}

/// Whether the trace has any information about handles.
pub fn has_handles(why: &WhyAnswer<'_>) -> bool {
    !why.file.about.caveats.iter().any(|caveat| caveat.kind == CaveatKind::NoHandleEvents)
}

fn totals(why: &WhyAnswer<'_>) -> String {
    let totals = &why.file.totals;
    let opened = totals.handles_created.saturating_add(totals.handles_duplicated);
    let leaked = totals.leaked_handles.saturating_sub(totals.leaked_views);
    let views = match totals.leaked_views {
        0 => String::new(),
        views => format!(", {}", CountedNoun(views, "leaked view")),
    };
    format!(
        "{} opened, {} closed ({} only by process exit), {} leaked{views}",
        CountedNoun(opened, "handle"),
        HumanCount(totals.handles_closed),
        HumanCount(totals.closed_at_exit),
        HumanCount(leaked)
    )
}

fn totals_of_kind(kind: &AllocatedKind) -> String {
    let AllocatedKind { name, stats } = kind;
    let sized = |Amount { count, bytes }: Amount| {
        let size = if kind.has_bytes() { format!(" ({})", Size(bytes)) } else { String::new() };
        format!("{}{size}", HumanCount(count))
    };
    format!(
        "{name}: {} allocated, {} leaked, {} freed only by process exit",
        sized(stats.allocated),
        sized(stats.outstanding),
        sized(stats.at_exit)
    )
}

/// Adds the table of `.why`'s first look, and the number of other suspects.
fn listed_suspects(html: &mut String, why: &WhyAnswer<'_>) {
    let stacks = stacks_with_lines(why);
    let (listed, others) = listed_and_others(why);
    let lines: Vec<SuspectLine> =
        listed.into_iter().map(|suspect| line(suspect, &stacks)).collect();
    let columns = columns(&lines);
    let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
    let cell = |line: &SuspectLine, at: usize| {
        let text = line.get(at).map_or("", String::as_str);
        if at < FUNCTION { EscapedText(text).to_string() } else { BreakableName(text).to_string() }
    };
    let rows = lines.iter().map(|line| columns.iter().map(|column| cell(line, column.at)));
    let others = (!others.is_empty()).then(|| more(&others));
    suspects(html, &titles, rows, others.as_deref());
}
