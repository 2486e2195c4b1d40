//! `.dump Stats` as text: problems of the trace first, then its properties, then its contents.

use std::fmt::{self, Write};
use std::io;

use handlescope_extract::is_loss;
use handlescope_model::Untrusted;
use handlescope_model::tables::{EventCount, Loss, LossKind, TraceInfo, Warning};
use indicatif::HumanCount;
use serde_json::Value;

use super::index;
use crate::table::{AnswerTable, CellType, ColumnDeclaration, Columns, FileRows, RowOf, Show};
use crate::text::hint_at_zombies;
use crate::time::{Seconds, utc};
use handlescope_query::{StatsAnswer, TraceStats};
use handlescope_session::filter::Filter;
use handlescope_session::settings::Display;
use handlescope_session::terminal::Role;
use handlescope_session::values::{CountedNoun, Length, TimeDigits, finding};

/// A kind of events and the number of its file.
pub type EventStatsRow<'a> = (u32, &'a EventCount);

/// Declares the columns of a kind of events.
pub fn stats_columns<'a>() -> Columns<'a, EventStatsRow<'a>> {
    let mut columns = Columns::<EventStatsRow<'a>>::default();
    columns.add("file", "index of the trace", |(file, _)| *file);
    columns
        .add("count", "number of such events", |(_, event)| event.count)
        .title("Count")
        .show(Show::Grouped);
    columns
        .add("name", "their name; null if nothing names them", |(_, event)| event.name.as_deref())
        .title("Event")
        .unknown("");
    columns.add("kind", "their kind", |(_, event)| event.kind.as_str()).title("Kind");
    columns
}

/// Returns a row for each kind of event, below the facts about the trace; JSON also has these facts.
///
/// # Errors
/// None that a caller could do anything about.
pub fn stats<'a>(answers: &'a [StatsAnswer<'_>], display: &Display) -> io::Result<AnswerTable<'a>> {
    let rows = answers
        .iter()
        .flat_map(|answer| answer.list.events.iter().map(|event| (index(answer.index), event)));
    let file_rows = answers.iter().map(|answer| {
        let above = about(answer, display)?;
        Ok(FileRows::new(answer.path, answer.list.events.len()).above(above))
    });
    let file_rows = file_rows.collect::<io::Result<Vec<FileRows>>>()?;
    let table = AnswerTable::new(stats_columns(), rows.collect(), file_rows)?;
    Ok(table.arranged_in(stats_document(), |file_rows| {
        let files = answers.iter().zip(file_rows.to_vec());
        files.map(|(answer, file_rows)| StatsRow { answer, file_rows }).collect()
    }))
}

/// Declares the columns about a trace: members of documents, and lines of the text.
pub fn trace_facts<'a>() -> Columns<'a, StatsRow<'a>> {
    let mut columns = Columns::<StatsRow<'a>>::default();
    add_shown(&mut columns, "Source", source);
    columns.add("file", "index of the trace", |row| index(row.answer.index));
    columns.add("path", "the file name as given", |row| {
        row.answer.path.to_string_lossy().into_owned()
    });
    columns.add("source_etl", "name of the recorded file at extraction", |row| {
        row.info().source_path.as_str()
    });
    columns.add("source_size", "its size in bytes", |row| row.info().source_size);
    columns
        .add("computer", "name of the recording machine", |row| row.info().computer.as_deref())
        .fact("Computer");
    columns.add("os_version", "version of Windows", |row| row.info().known_os_version());
    columns
        .add("os_build", "its build", |row| Some(row.info().os_build).filter(|build| *build != 0));
    columns.add("os_build_string", "its build, as Windows writes it", |row| {
        row.info().os_build_string.as_deref()
    });
    columns.add("product", "its product name", |row| row.info().product.as_deref());
    add_shown(&mut columns, "Windows", windows);
    add_shown(&mut columns, "Processors", processors);
    columns
        .add("session_start_utc", "start of the recording", |row| {
            row.info().start_filetime().map(utc)
        })
        .fact("Session start (UTC)");
    let end = columns.add("session_end_utc", "end of the recording", |row| {
        row.info().session_end_filetime.map(utc)
    });
    end.fact("Session end (UTC)");
    columns.add(
        "recorded_from_ns",
        "start of the time range that the trace covers: after the session start if a ring overwrote \
         older events; null without a clock, and if unknown",
        |row| Some(*row.info().recorded_ns()?.start()),
    );
    columns.add("recorded_to_ns", "end of that time", |row| Some(*row.info().recorded_ns()?.end()));
    add_shown(&mut columns, "Recorded", recorded);
    columns
        .add("boot_time_utc", "boot of the machine", |row| row.info().boot_filetime.map(utc))
        .fact("Boot (UTC)");
    let known = |row: &StatsRow<'a>, minutes: fn(&TraceInfo) -> i32| {
        row.info().knows_utc_offset().then(|| minutes(row.info()))
    };
    columns.add(
        "tz_bias_minutes",
        "its time zone, UTC = local time + bias, without daylight saving time",
        move |row| known(row, |info| info.tz_bias_minutes),
    );
    columns.add(
        "utc_offset_minutes",
        "local time - UTC at the session start, with daylight saving time",
        move |row| known(row, |info| info.utc_offset_minutes),
    );
    add_shown(&mut columns, "Local time", utc_offset);
    columns.add("cpu_count", "number of processors", |row| {
        row.info().known(row.info().cpu_count.into())
    });
    columns.add("cpu_mhz", "processor clock in MHz", |row| row.info().cpu_mhz);
    columns.add("memory_mb", "memory in MB", |row| row.info().memory_mb);
    columns.add("pointer_size", "bytes of a pointer", |row| {
        row.info().known(row.info().pointer_size.into())
    });
    columns.add(
        "clock",
        "`\"qpc\"`, `\"system_time\"` or `\"cpu_cycles\"`; `\"unknown\"` for \
         ETWAnalyzer's extracts",
        |row| row.info().clock.as_str(),
    );
    columns.add(
        "perf_freq",
        "ticks per second of the performance counter; 0 for ETWAnalyzer's extracts",
        |row| perf_freq(row.info()),
    );
    add_shown(&mut columns, "Clock", clock);
    columns
        .add("buffer_size", "bytes of each", |row| row.info().known(row.info().buffer_size.into()));
    columns.add("buffers", "buffers found in the file", |row| row.info().known(row.info().buffers));
    add_shown(&mut columns, "Buffers", buffers);
    columns
        .add("events_total", "events found in the file", |row| row.info().events_total)
        .fact("Events");
    columns.add("events_lost", "events lost while recording", |row| Some(row.info().losses()?.0));
    columns.add("buffers_lost", "buffers lost while recording", |row| Some(row.info().losses()?.1));
    columns.parts("warnings", "damaged or omitted data", warning_columns(), |row| {
        row.stats().warnings.iter().collect()
    });
    columns
        .parts(
            "events",
            "every event of the file, kept or not, by kind",
            event_count_columns(),
            StatsRow::events,
        )
        .detail();
    let kept = columns
        .add("stack_fragments", "stack events of any kind", |row| row.info().stack_fragments);
    kept.fact("Stack events").rank(1);
    columns
        .add(
            "stacks_total",
            "stacks joined with their event and kept, one per event that has one (handles, \
             allocations and kept provider events; every event with `extract -stacks all`)",
            |row| row.info().stacks_total,
        )
        .fact("Stacks kept")
        .rank(1);
    let distinct = columns.add("stacks_distinct", "distinct stacks among them", |row| {
        row.stats().stacks_distinct as u64
    });
    distinct.fact("Distinct stacks").rank(1);
    let distinct = columns.add("frames_distinct", "distinct frames of these stacks", |row| {
        row.stats().frames_distinct as u64
    });
    distinct.fact("Distinct frames").rank(1);
    let of_modules =
        columns.add("frames_in_modules", "frames of the stacks inside a module", |row| {
            row.info().frames_in_modules
        });
    of_modules.fact("Frames in modules").rank(1);
    columns
        .add("objects", "objects and mappings", |row| row.stats().objects as u64)
        .fact("Objects");
    columns
        .add("handle_events", "creates, duplicates and closes of these objects", |row| {
            row.stats().handle_events as u64
        })
        .fact("Handle events");
    columns
        .add(
            "leaked_handles",
            "creates and duplicates never closed; `totals.leaked_handles` of `.dump ObjectRef` \
             includes the leaked views",
            |row| row.stats().leaked_handles as u64,
        )
        .fact("Leaked handles");
    columns
        .add("leaked_views", "views never unmapped", |row| row.stats().leaked_views as u64)
        .fact("Leaked views");
    columns
        .add(
            "closed_at_exit",
            "creates, duplicates and maps closed only by the end of their process",
            |row| row.stats().closed_at_exit,
        )
        .fact("Closed only at exit");
    columns
        .add(
            "closed_unseen",
            "creates, duplicates and maps that other events show to be closed, although the trace \
             lost the close; null: the extract does not record it",
            |row| row.stats().closed_unseen,
        )
        .fact("Closed unseen");
    columns.nest(
        "zombies",
        "integer",
        "processes that have ended and are still in memory",
        |row| row.stats().zombies.count,
    );
    columns.parts("losses", "time ranges in which events may be missing", loss_columns(), |row| {
        row.stats().losses.iter().collect()
    });
    columns
        .nest(
            "attribution",
            "object",
            "number of object events by the source of their process",
            |row| attribution_columns().part(row.info()),
        )
        .inner(attribution_columns().members());
    columns
        .add("extractor", "the program that made the extract", |row| row.info().extractor.as_str());
    columns.add("schema_version", "the layout of the extract", |row| row.info().schema_version);
    add_shown(&mut columns, "Extracted by", extracted).rank(2);
    columns
}

/// Adds a line of the text about a trace that says what several members say.
fn add_shown<'c, 'a, T: CellType + 'a>(
    columns: &'c mut Columns<'a, StatsRow<'a>>,
    title: &'static str,
    value: fn(&'a TraceInfo) -> T,
) -> &'c mut ColumnDeclaration<'a, StatsRow<'a>> {
    columns.add(title, "", move |row| value(row.info())).fact(title).text_only()
}

/// A trace and the kinds of events that pass the filters.
#[derive(Clone)]
pub struct StatsRow<'a> {
    answer: &'a StatsAnswer<'a>,
    file_rows: FileRows,
}

impl<'a> StatsRow<'a> {
    fn info(&self) -> &'a TraceInfo {
        &self.answer.info
    }

    fn stats(&self) -> &'a TraceStats {
        &self.answer.list
    }

    fn events(&self) -> Vec<&'a EventCount> {
        self.file_rows.relative_rows().filter_map(|row| self.answer.list.events.get(row)).collect()
    }
}

fn perf_freq(info: &TraceInfo) -> Option<i64> {
    (info.perf_freq != 0 || !info.is_converted()).then_some(info.perf_freq)
}

/// Declares the columns of something that was damaged or left out.
fn warning_columns<'a>() -> Columns<'a, &'a Warning> {
    const WHAT: &str =
        "what, how often, and where first: byte offset in the file, or line of a text";
    let mut columns = Columns::<&Warning>::default();
    columns.member("kind", WHAT, |warning| warning.kind.as_str());
    columns.member("count", WHAT, |warning| warning.count);
    columns.member("first_offset", WHAT, |warning| warning.first_offset);
    columns.member("first_line", WHAT, |warning| warning.first_line);
    columns
}

/// Declares the columns of a kind of events.
fn event_count_columns<'a>() -> Columns<'a, &'a EventCount> {
    const KIND: &str = "the kind, see below, its name and its count; TraceLogging events of one kind \
                        with different names have separate rows";
    const TIMES: &str = "its provider, and its first and last time, as in `.dump Events`";
    let mut columns = Columns::<&EventCount>::default();
    columns.member("kind", KIND, |event| event.kind.as_str());
    columns.member("provider", TIMES, |event| event.provider.as_deref());
    columns.member("name", KIND, |event| event.name.as_deref());
    columns.member("count", KIND, |event| event.count);
    columns.member("first_ns", TIMES, |event| event.first_ns);
    columns.member("last_ns", TIMES, |event| event.last_ns);
    columns
}

/// Declares the columns of a time in which events may be missing.
fn loss_columns<'a>() -> Columns<'a, &'a Loss> {
    const TIMES: &str = "start and end; null: anywhere in the trace";
    let mut columns = Columns::<&Loss>::default();
    columns.member(
        "what",
        "`\"missing_buffers\"`, `\"damaged_buffer\"`, `\"loss_flag\"`, \
         `\"loss_record\"`, `\"events_lost\"`, `\"buffers_lost\"`, `\"overwritten\"`: \
         older events of a ring, which are missing before its recorded time, \
         `\"unwritten\"`: the end of a session that was not stopped, or of a ring \
         without its last buffer",
        |loss| LossKind::from_code(loss.what).map(LossKind::name),
    );
    columns.member("from_ns", TIMES, |loss| loss.from_ns);
    columns.member("to_ns", TIMES, |loss| loss.to_ns);
    columns.member(
        "count",
        "number of buffers at most, or of events; null: unknown, or counted in another \
         row, since a missing buffer may belong to any of several processors",
        |loss| loss.count,
    );
    columns
}

/// Declares how many object events took their process from each source, from the most reliable to none.
fn attribution_columns<'a>() -> Columns<'a, &'a TraceInfo> {
    const KNOWN: &str = "their own header, their stack";
    const UNKNOWN: &str = "none: assigned to System, or dropped";
    let mut columns = Columns::<&TraceInfo>::default();
    columns.add("header", KNOWN, |info| info.attributed_header).fact("their own header");
    columns.add("stack", KNOWN, |info| info.attributed_stack).fact("their stack");
    columns
        .add("before_exit", "a process that had ended under the pid", |info| {
            info.attributed_before_exit
        })
        .fact("a process that had ended before");
    columns.add("system", UNKNOWN, |info| info.attributed_system).fact("assumed System");
    columns.add("dropped", UNKNOWN, |info| info.attributed_dropped).fact("nowhere: dropped");
    columns
}

/// Returns the members about a trace that are single values, with their names.
fn single_members(answer: &StatsAnswer<'_>) -> serde_json::Result<Vec<(String, Option<String>)>> {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        number => Some(number.to_string()),
    };
    let row = StatsRow { answer, file_rows: FileRows::default() };
    let file = serde_json::to_value(RowOf(&trace_facts().in_document(), &row))?;
    let members = file.as_object().into_iter().flatten();
    let single =
        members.filter(|(name, value)| !value.is_array() && !value.is_object() && *name != "file");
    Ok(single.map(|(name, value)| (name.clone(), text(value))).collect())
}

/// ETWAnalyzer's names for some of the properties.
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

/// Returns a row for each property with a name that the filter lets pass.
///
/// # Errors
/// None that a caller could do anything about.
pub fn properties<'a>(answers: &[StatsAnswer<'_>], filter: &Filter) -> io::Result<AnswerTable<'a>> {
    let (mut rows, mut file_rows) = (Vec::new(), Vec::new());
    for answer in answers {
        let before = rows.len();
        let selected = single_members(answer)?
            .into_iter()
            .filter(|(name, _)| is_selected(name, filter))
            .map(|(name, value)| (requested_name(name, filter), value));
        rows.extend(selected.map(|(name, value)| (index(answer.index), name, value)));
        file_rows.push(FileRows::new(answer.path, rows.len() - before));
    }
    Ok(AnswerTable::new(property_columns(), rows, file_rows)?.within(property_document(), ()))
}

/// Declares the columns of a property.
pub fn property_columns<'a>() -> Columns<'a, (u32, String, Option<String>)> {
    let mut columns = Columns::<(u32, String, Option<String>)>::default();
    columns.add("file", "index of the trace", |(file, ..)| *file);
    columns.add("name", "name of the member", |(_, name, _)| name.clone()).title("Property");
    columns
        .add("value", "its value as text; null: unknown", |(.., value)| value.clone())
        .title("Value")
        .unknown("unknown");
    columns
}

/// Returns ETWAnalyzer's name for a property, if it has one.
fn their_name(name: &str) -> Option<&'static str> {
    ETW_ANALYZER.iter().find(|(_, ours)| *ours == name).map(|(theirs, _)| *theirs)
}

/// Whether a filter matches a property by its name or by ETWAnalyzer's name for it.
fn is_selected(name: &str, filter: &Filter) -> bool {
    filter.matches_lines([name].into_iter().chain(their_name(name)))
}

/// Returns the name of a property that the filter matches: its own, or ETWAnalyzer's.
fn requested_name(name: String, filter: &Filter) -> String {
    let theirs = their_name(&name).filter(|_| !filter.matches(&name));
    theirs.map_or(name, str::to_owned)
}

/// Returns the names and patterns in a filter that match no property.
///
/// # Errors
/// Fails like [`properties`].
pub fn unknown_properties(answers: &[StatsAnswer<'_>], filter: &Filter) -> io::Result<Vec<String>> {
    let Some(answer) = answers.first() else { return Ok(Vec::new()) };
    let members = single_members(answer)?;
    let patterns = filter.text().split(';').map(str::trim);
    let patterns = patterns.filter(|pattern| !pattern.is_empty() && !pattern.starts_with('!'));
    let unknown = patterns.filter(|pattern| {
        let filter = Filter::new(pattern);
        filter.is_ok_and(|filter| !members.iter().any(|(name, _)| is_selected(name, &filter)))
    });
    Ok(unknown.map(str::to_owned).collect())
}

/// Returns the text about everything but the events.
fn about(answer: &StatsAnswer<'_>, display: &Display) -> io::Result<String> {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_losses(answer, display, &mut text);
    let _ = write_warnings(&answer.list.warnings, display, &mut text);
    if let Some(line) = hint_at_zombies(&answer.list.zombies) {
        let _ = writeln!(text, "{}", display.whole(&Untrusted(&line).to_string()));
    }
    let row = StatsRow { answer, file_rows: FileRows::default() };
    for (name, value) in trace_facts().facts(row)? {
        let value = display.whole(&format!(" {value}"));
        let _ = writeln!(text, "{name:<26}{value}");
    }
    text += "Process of object events taken from\n";
    for (name, count) in attribution_columns().facts(&answer.info)? {
        let _ = writeln!(text, "  {name:<36} {count:>15}");
    }
    Ok(text)
}

/// How lost events affect leaks.
const LOST_CLOSES: &str =
    "A handle whose close event was lost looks leaked, unless it is counted as closed unseen";

/// Writes the losses. Lost events come first, because they make leaks doubtful.
fn write_losses(answer: &StatsAnswer<'_>, display: &Display, out: &mut String) -> fmt::Result {
    let text = match answer.info.losses() {
        None => {
            return writeln!(
                out,
                "The extract does not say whether events were lost while \
                 recording."
            );
        }
        Some((0, 0)) if !answer.list.warnings.iter().any(|warning| is_loss(&warning.kind)) => {
            return writeln!(out, "No events and no buffers were lost while recording.");
        }
        Some((0, 0)) => format!(
            "INCOMPLETE: parts of the file are missing or unreadable, see below. {LOST_CLOSES}."
        ),
        Some((events, buffers)) => format!(
            "LOST while recording: {}, {}. {LOST_CLOSES}: record again with more or larger buffers before trusting \
             counts.",
            CountedNoun(events, "event"),
            CountedNoun(buffers, "buffer")
        ),
    };
    writeln!(out, "{}", display.screen.paint(Role::Alarm, display.whole(&text)))
}

fn write_warnings(warnings: &[Warning], display: &Display, out: &mut String) -> fmt::Result {
    if warnings.is_empty() {
        return writeln!(out, "Nothing was damaged or left out.");
    }
    writeln!(out, "{}", display.screen.paint(Role::Alarm, "Warnings:"))?;
    for warning in warnings {
        let text = display.whole(&format!("  {}", Untrusted(finding(warning))));
        writeln!(out, "{text}")?;
    }
    Ok(())
}

/// Returns the time that the trace covers, and the length of the session.
fn recorded(info: &TraceInfo) -> Option<String> {
    let (from_ns, to_ns) = info.recorded_ns()?.into_inner();
    let [from, to] = [from_ns, to_ns].map(|ns| Seconds { ns, digits: TimeDigits::default() });
    let length = Length(to_ns.saturating_sub(from_ns));
    let session = info.length_ns().map_or_else(unknown, |ns| Length(ns).to_string());
    Some(format!("{from} s to {to} s: {length} of {session}"))
}

fn source(info: &TraceInfo) -> String {
    format!("{} ({} bytes)", info.source_path, HumanCount(info.source_size))
}

/// Returns version, build and product, if the source names them.
fn windows(info: &TraceInfo) -> Option<String> {
    let build =
        info.os_build_string.as_deref().map_or_else(String::new, |build| format!(" ({build})"));
    let product = info.product.as_deref().map_or_else(String::new, |product| format!(" {product}"));
    let Some(version) = info.known_os_version() else {
        return info.product.clone();
    };
    let number = match info.os_build {
        0 => String::new(),
        number => format!(" build {number}"),
    };
    Some(format!("{version}{number}{build}{product}"))
}

/// Formats an offset as in `UTC+02:00`.
fn utc_offset(info: &TraceInfo) -> Option<String> {
    let sign = if info.utc_offset_minutes < 0 { '-' } else { '+' };
    let minutes = info.utc_offset_minutes.unsigned_abs();
    info.knows_utc_offset().then(|| format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60))
}

fn processors(info: &TraceInfo) -> String {
    let processors = info.known(info.cpu_count.into()).map_or_else(unknown, |n| n.to_string());
    match info.known(info.pointer_size.into()) {
        Some(size) => format!("{processors}, {size} byte pointers"),
        None => processors,
    }
}

fn clock(info: &TraceInfo) -> String {
    match info.known(u64::try_from(info.perf_freq).unwrap_or_default()) {
        Some(rate) => format!("{}, {} ticks per second", info.clock, HumanCount(rate)),
        None => info.clock.clone(),
    }
}

fn buffers(info: &TraceInfo) -> Option<String> {
    let buffers = HumanCount(info.known(info.buffers)?);
    Some(format!("{buffers} of {} bytes", info.buffer_size))
}

fn extracted(info: &TraceInfo) -> String {
    format!("{} (layout {})", info.extractor, info.schema_version)
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// Declares the document of `.dump Stats`.
pub fn stats_document<'a>() -> Columns<'a, Vec<StatsRow<'a>>> {
    let mut document = Columns::<Vec<StatsRow<'a>>>::default();
    document
        .member("files", "one element per trace", |files| trace_facts().parts_of(files.clone()));
    document
}

/// Declares the document of `.dump Stats -Properties`.
pub fn property_document<'a>() -> Columns<'a, ()> {
    Columns::with_rows(
        "properties",
        "with `-Properties`, instead of `files`: the chosen members of its elements that are \
         single values",
    )
}
