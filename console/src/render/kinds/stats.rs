//! `.dump Stats` as text: first what speaks against the trace, then what it is, then what it holds.

use std::fmt::{self, Write};
use std::io;

use handlescope_extract::is_loss;
use handlescope_model::Untrusted;
use handlescope_model::tables::{EventCount, TraceInfo, Warning};
use indicatif::HumanCount;

use super::index;
use crate::filter::Filter;
use crate::query::StatsAnswer;
use crate::render::json;
use crate::render::table::{Columns, Part, Show, Table};
use crate::render::time::{Seconds, Utc7};
use crate::settings::Display;
use crate::terminal::Role;
use crate::values::{Counted, Length, TimeDigits, kind_of};

/// A kind of events, with the number of its file.
pub(crate) type Row<'a> = (u32, &'a EventCount);

/// What is said of a kind of events.
pub(crate) fn stats_columns<'a>() -> Columns<'a, Row<'a>> {
    let mut columns = Columns::<Row<'a>>::default();
    columns.add("file", |(file, _)| *file);
    columns.add("count", |(_, event)| event.count).title("Count").show(Show::Grouped);
    columns.add("name", |(_, event)| event.name.as_deref()).title("Event").unknown("");
    columns.add("kind", |(_, event)| event.kind.as_str()).title("Kind");
    columns
}

/// A row for each kind of event, below what is known of the trace; JSON has that, too.
///
/// # Errors
/// None that a caller could do anything about.
pub fn stats<'a>(answers: &'a [StatsAnswer<'_>], display: &Display) -> io::Result<Table<'a>> {
    let rows = answers
        .iter()
        .flat_map(|answer| answer.events.iter().map(|event| (index(answer.index), event)));
    let parts: Result<Vec<Part>, fmt::Error> = answers
        .iter()
        .map(|answer| {
            let above = about(answer, display)?;
            Ok(Part::of(answer.path, answer.events.len()).above(above))
        })
        .collect();
    let parts = parts.map_err(io::Error::other)?;
    let table = Table::new("files", stats_columns(), rows.collect(), parts)?;
    Ok(table.with_document(|parts, mode, out| json::stats(answers, parts, mode, out)))
}

/// What ETWAnalyzer calls some of the properties.
const ETW_ANALYZER: [(&str, &str); 11] = [
    ("Machine", "computer"),
    ("SourceETLFileName", "source_etl"),
    ("OSName", "product"),
    ("OSBuild", "os_build_string"),
    ("OSVersion", "os_version"),
    ("MemorySizeMB", "memory_mb"),
    ("NumberOfProcessors", "cpu_count"),
    ("CPUSpeedMHz", "cpu_mhz"),
    ("SessionStart", "session_start_utc"),
    ("SessionEnd", "session_end_utc"),
    ("BootTime", "boot_time_utc"),
];

/// A row for each property whose name a filter lets pass.
///
/// # Errors
/// None that a caller could do anything about.
pub fn properties<'a>(answers: &[StatsAnswer<'_>], filter: &Filter) -> io::Result<Table<'a>> {
    let (mut rows, mut parts) = (Vec::new(), Vec::new());
    for answer in answers {
        let before = rows.len();
        let members = json::stats_members(answer)?.into_iter();
        let meant = members.filter(|(name, _)| is_meant(name, filter));
        let meant = meant.map(|(name, value)| (name_asked(name, filter), value));
        rows.extend(meant.map(|(name, value)| (index(answer.index), name, value)));
        parts.push(Part::of(answer.path, rows.len() - before));
    }
    let mut columns = Columns::<(u32, String, Option<String>)>::default();
    columns.add("file", |(file, ..)| *file);
    columns.add("name", |(_, name, _)| name.clone()).title("Property");
    columns.add("value", |(.., value)| value.clone()).title("Value").unknown("unknown");
    Table::new("properties", columns, rows, parts)
}

/// Whether a filter lets a property pass by its name or by that of ETWAnalyzer.
fn is_meant(name: &str, filter: &Filter) -> bool {
    let theirs = ETW_ANALYZER.iter().filter(|(_, ours)| *ours == name).map(|(theirs, _)| *theirs);
    filter.matches_lines([name].into_iter().chain(theirs))
}

/// The name of a property as the filter has it, which lets it pass by this one or by that of ETWAnalyzer.
fn name_asked(name: String, filter: &Filter) -> String {
    if filter.matches(&name) {
        return name;
    }
    let theirs = ETW_ANALYZER.iter().find(|(_, ours)| *ours == name).map(|(theirs, _)| *theirs);
    theirs.map_or(name, str::to_owned)
}

/// The names and patterns in a filter that no property has.
///
/// # Errors
/// As [`properties`].
pub fn unknown_properties(answers: &[StatsAnswer<'_>], filter: &Filter) -> io::Result<Vec<String>> {
    let Some(answer) = answers.first() else { return Ok(Vec::new()) };
    let members = json::stats_members(answer)?;
    let is_known = |part: &str| {
        let part = Filter::new(part).ok();
        part.is_none_or(|part| members.iter().any(|(name, _)| is_meant(name, &part)))
    };
    let parts = filter.text().split(';').map(str::trim);
    let parts = parts.filter(|part| !part.is_empty() && !part.starts_with('!') && !is_known(part));
    Ok(parts.map(str::to_owned).collect())
}

/// Everything but the events.
fn about(answer: &StatsAnswer<'_>, display: &Display) -> Result<String, fmt::Error> {
    let mut text = String::new();
    write_losses(answer, display, &mut text)?;
    write_warnings(&answer.warnings, display, &mut text)?;
    for (name, value) in facts(answer) {
        let value = display.whole(&format!(" {}", Untrusted(&value)));
        writeln!(text, "{name:<26}{value}")?;
    }
    write_attribution(&answer.info, &mut text)?;
    Ok(text)
}

/// The effect of lost events on leaks.
const LOST_CLOSES: &str =
    "A handle whose close was lost looks leaked, unless it is counted as closed unseen";

/// Lost events come first: they make leaks doubtful.
fn write_losses(answer: &StatsAnswer<'_>, display: &Display, out: &mut String) -> fmt::Result {
    let text = match answer.info.losses() {
        None => return writeln!(out, "The extract does not record what was lost while recording."),
        Some((0, 0)) if !answer.warnings.iter().any(|warning| is_loss(&warning.kind)) => {
            return writeln!(out, "No events and no buffers were lost while recording.");
        }
        Some((0, 0)) => format!(
            "INCOMPLETE: parts of the file are missing or unreadable, see below. {LOST_CLOSES}."
        ),
        Some((events, buffers)) => format!(
            "LOST while recording: {}, {}. {LOST_CLOSES}: record again with more or larger buffers before trusting \
             counts.",
            Counted(events, "event"),
            Counted(buffers, "buffer")
        ),
    };
    writeln!(out, "{}", display.screen.paint(Role::Alarm, display.whole(&text)))
}

fn write_warnings(warnings: &[Warning], display: &Display, out: &mut String) -> fmt::Result {
    if warnings.is_empty() {
        return writeln!(out, "Nothing was damaged or left out.");
    }
    writeln!(out, "{}", display.screen.paint(Role::Alarm, "Warnings:"))?;
    for Warning { kind, count, first_offset, first_line } in warnings {
        let place = match (first_offset, first_line) {
            (Some(at), _) => format!(", first at byte {at}"),
            (None, Some(line)) => format!(", first in line {line}"),
            (None, None) => String::new(),
        };
        let (number, kind) = (HumanCount(*count).to_string(), kind_of(*count, kind));
        let text = display.whole(&format!("{}{place}", Untrusted(kind)));
        writeln!(out, "{number:>12} x {text}")?;
    }
    Ok(())
}

/// Name and value of everything that is one number or one text.
fn facts(answer: &StatsAnswer<'_>) -> Vec<(&'static str, String)> {
    let StatsAnswer { info, .. } = answer;
    let count = |number: u64| HumanCount(number).to_string();
    let time = |time: Option<i64>| time.map_or_else(unknown, |time| Utc7(time).to_string());
    let start = info.has_clock().then_some(info.session_start_filetime);
    let zone = info.has_clock().then(|| utc_offset(info.utc_offset_minutes));
    let build = info.os_build_string.as_deref().map_or_else(String::new, |b| format!(" ({b})"));
    let product = info.product.as_deref().map_or_else(String::new, |p| format!(" {p}"));
    vec![
        ("Source", format!("{} ({} bytes)", info.source_path, count(info.source_size))),
        ("Computer", info.computer.clone().unwrap_or_else(unknown)),
        ("Windows", windows(info).map_or_else(unknown, |windows| windows + &build + &product)),
        ("Processors", processors(info)),
        ("Session start (UTC)", time(start)),
        ("Session end (UTC)", time(info.session_end_filetime)),
        ("Recorded", recorded(info).unwrap_or_else(unknown)),
        ("Boot (UTC)", time(info.boot_filetime)),
        ("Local time", zone.unwrap_or_else(unknown)),
        ("Clock", clock(info)),
        ("Buffers", buffers(info)),
        ("Events", count(info.events_total)),
        ("Objects", count(answer.objects as u64)),
        ("Handle events", count(answer.handle_events as u64)),
        ("Leaked handles", count(answer.leaked_handles as u64)),
        ("Leaked views", count(answer.leaked_views as u64)),
        ("Closed only at exit", answer.closed_at_exit.map_or_else(unknown, count)),
        ("Closed unseen", answer.closed_unseen.map_or_else(unknown, count)),
        ("Stack events", count(info.stack_fragments)),
        ("Stacks kept", count(info.stacks_total)),
        ("Distinct stacks", count(answer.stacks_distinct as u64)),
        ("Distinct frames", count(answer.frames_distinct as u64)),
        ("Frames in modules", count(info.frames_in_modules)),
        ("Extracted by", format!("{} (layout {})", info.extractor, info.schema_version)),
    ]
}

/// The time of which the trace has events, and how much that is of the session.
fn recorded(info: &TraceInfo) -> Option<String> {
    let (from_ns, to_ns) = info.recorded_ns()?.into_inner();
    let [from, to] = [from_ns, to_ns].map(|ns| Seconds { ns, digits: TimeDigits::default() });
    let length = Length(to_ns.saturating_sub(from_ns));
    let session = info.length_ns().map_or_else(unknown, |ns| Length(ns).to_string());
    Some(format!("{from} s to {to} s: {length} of {session}"))
}

/// Version and build, where the source names them.
fn windows(info: &TraceInfo) -> Option<String> {
    let is_known = info.has_clock() || !info.os_version.is_empty();
    is_known.then(|| format!("{} build {}", info.os_version, info.os_build))
}

/// An offset as in `UTC+02:00`.
fn utc_offset(minutes: i32) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.unsigned_abs();
    format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

fn tick_rate(info: &TraceInfo) -> u64 {
    u64::try_from(info.perf_freq).unwrap_or_default()
}

fn processors(info: &TraceInfo) -> String {
    let processors = info.known(info.cpu_count.into()).map_or_else(unknown, |n| n.to_string());
    match info.known(info.pointer_size.into()) {
        Some(size) => format!("{processors}, {size} byte pointers"),
        None => processors,
    }
}

fn clock(info: &TraceInfo) -> String {
    match info.known(tick_rate(info)) {
        Some(rate) => format!("{}, {} ticks per second", info.clock, HumanCount(rate)),
        None => info.clock.clone(),
    }
}

fn buffers(info: &TraceInfo) -> String {
    match info.known(info.buffers) {
        Some(buffers) => format!("{} of {} bytes", HumanCount(buffers), info.buffer_size),
        None => unknown(),
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// Where the process of events came from, from the surest source to none.
fn write_attribution(info: &TraceInfo, out: &mut String) -> fmt::Result {
    writeln!(out, "Process of object events taken from")?;
    for (name, count) in [
        ("their own header", info.attributed_header),
        ("their stack", info.attributed_stack),
        ("a process ended up to 2 ms before", info.attributed_before_exit),
        ("assumed System", info.attributed_system),
        ("nowhere: dropped", info.attributed_dropped),
    ] {
        let count = HumanCount(count).to_string();
        writeln!(out, "  {name:<36} {count:>15}")?;
    }
    Ok(())
}
