//! `.converttime`: converts a point in time to seconds since session start, and back. `.snapshot`: names points in time
//! of the loaded traces.

use std::path::Path;

use handlescope_extract::filetime::UNIX_EPOCH;
use handlescope_model::Untrusted;
use handlescope_model::tables::{TraceInfo, UtcOffsets};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;

use super::shared::groups;
use super::shared::options::files_option;
use super::{Command, CommandError, Context, EnteredLine, Signature};
use handlescope_render::time::{Seconds, TraceClock, instant};
use handlescope_session::filter::Filter;
use handlescope_session::grammar::value::{LOADED_FILES, TEXT, ValueKind};
use handlescope_session::grammar::{Arguments, Example, Opt, OptionGroup, ParseError, to};
use handlescope_session::paths::{names_apart, shown};
use handlescope_session::terminal::table;
use handlescope_session::trace::{self, LoadedTrace};
use handlescope_session::values::{TimeDigits, TimeFormat, nanoseconds};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConvertTimeArgs {
    /// `-time`: a point in time, or seconds since session start.
    pub time: Option<String>,
    /// `-fd`: only loaded files with matching paths; all filters must match.
    pub files: Vec<Filter>,
}

/// A FILETIME counts 100 ns.
const NS_PER_TICK: i64 = 100;

pub struct ConvertTime;

impl Command for ConvertTime {
    type Args = ConvertTimeArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".converttime"],
        group: groups::QUERIES,
        usage: "-time TIME",
        arguments: Arguments::Options,
        summary: "convert a time to seconds since session start, or back",
        details: "Uses the loaded traces whose session contains the time; if none does, all of \
             them, with a note. Seconds become date and time on the recording machine.",
        examples: &Example::lines([
            ".converttime -time 13.123s",
            ".converttime -time 12:46:37.775",
            ".converttime -time 2024-05-10T10:46:37Z",
        ]),
    };
    const OPTIONS: &'static [OptionGroup<ConvertTimeArgs>] = &[OptionGroup {
        title: "Options",
        options: &[
            Opt {
                names: &["-time"],
                help: "2024-05-10 12:46:37.5, 12:46:37, an ISO time, or seconds: 13.123s",
                details: "Without a time zone, a time is local to the recording machine. A time \
                     without a date that lies outside the recording is tried as UTC, too.",
                example: "-time 13.123s",
                take: to(&(
                    ValueKind { placeholder: "TIME", arity: (1, 2), ..TEXT },
                    |args, text| {
                        args.time = Some(text);
                    },
                )),
            },
            files_option(&(LOADED_FILES, |args, filter| args.files.push(filter))),
        ],
    }];

    fn parse(entered: &EnteredLine<'_>) -> Result<ConvertTimeArgs, ParseError> {
        let args = entered.options(Self::OPTIONS)?;
        match &args {
            ConvertTimeArgs { time: None, .. } => {
                Err(entered.missing("-time TIME, a date and time or seconds since session start"))
            }
            _ => Ok(args),
        }
    }

    /// Prints the other form of the time, for every loaded trace.
    fn run(args: ConvertTimeArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { session, out, messages, .. } = context;
        let text = args.time.as_deref().unwrap_or_default();
        let not_a_time = || CommandError::NoTime { text: text.to_owned() };
        let time = When::parse(text).ok_or_else(not_a_time)?;
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        let files = session.choose(&args.files, messages)?;
        let paths: Vec<&Path> = files.iter().map(|(_, file)| file.path.as_path()).collect();
        let name = |path: &Path| shown(path).file_name().unwrap_or_default().to_owned();
        let names = names_apart(&paths, name);
        for ((_, file), name) in files.into_iter().zip(names) {
            let info = file.trace.info()?;
            if !info.has_clock() {
                messages.note(format_args!("{}: has no clock", Untrusted(&file.path)));
                continue;
            }
            let ns = since_start(time, &info).ok_or_else(not_a_time)?;
            let line = format!("{} for file {}", other_form(time, ns, &info), Untrusted(&name));
            if is_recorded(ns, &info) { inside.push(line) } else { outside.push(line) }
        }
        if inside.is_empty() {
            inside = outside.into_iter().map(|line| line + ", outside the recording").collect();
        }
        inside.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        Ok(())
    }
}

/// Returns the nanoseconds from session start to a point in time, if it was recorded; the time is written as for
/// `.converttime`.
///
/// # Errors
/// If it is not a time.
pub fn recorded_ns(text: &str, info: &TraceInfo) -> Result<Option<i64>, CommandError> {
    let not_a_time = || CommandError::NoTime { text: text.to_owned() };
    let time = When::parse(text).ok_or_else(not_a_time)?;
    let ns = since_start(time, info).ok_or_else(not_a_time)?;
    Ok(Some(ns).filter(|ns| is_recorded(*ns, info)))
}

/// Whether a text is a point in time.
pub fn is_time(text: &str) -> bool {
    When::parse(text).is_some()
}

/// Converts seconds to date and time, or the other way round.
fn other_form(time: When, ns: i64, info: &TraceInfo) -> String {
    let digits = TimeDigits::MAX;
    match time {
        When::SinceStart(_) => TraceClock::new(info, TimeFormat::Local, digits).at(ns).to_string(),
        _ => format!("{} seconds since session start", Seconds { ns, digits }),
    }
}

/// Whether the session was running then. The end is unknown if the session was not closed.
fn is_recorded(ns: i64, info: &TraceInfo) -> bool {
    let ticks =
        info.session_end_filetime.map(|end| end.saturating_sub(info.session_start_filetime));
    ns >= 0 && ticks.is_none_or(|ticks| ns / NS_PER_TICK <= ticks)
}

/// A point in time as typed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    /// Nanoseconds since session start.
    SinceStart(i64),
    /// A date and time with its zone.
    Instant(Timestamp),
    /// A date and time on the recording machine's clock.
    Local(DateTime),
    /// A time of day on the recording machine's clock, or else in UTC.
    TimeOfDay(Time),
}

impl When {
    fn parse(text: &str) -> Option<When> {
        if let Ok(ns) = nanoseconds(text) {
            return Some(When::SinceStart(ns));
        }
        if let Ok(instant) = text.parse() {
            return Some(When::Instant(instant));
        }
        if text.contains('-') {
            return text.parse().ok().map(When::Local);
        }
        text.contains(':').then(|| text.parse().ok().map(When::TimeOfDay)).flatten()
    }
}

/// Returns the nanoseconds from session start; `None` outside the calendar.
fn since_start(time: When, info: &TraceInfo) -> Option<i64> {
    let start = instant(info.session_start_filetime)?;
    let end = info.session_end_filetime.and_then(instant).unwrap_or(Timestamp::MAX);
    let from_start = |t: Timestamp| i64::try_from(t.as_nanosecond() - start.as_nanosecond()).ok();
    match time {
        When::SinceStart(ns) => Some(ns),
        When::Instant(time) => from_start(time),
        When::Local(time) => {
            let instants = recorded_instants(time, info);
            let inside = instants.iter().find(|time| start <= **time && **time <= end);
            from_start(*inside.or(instants.first())?)
        }
        When::TimeOfDay(time) => {
            // The recording may continue past midnight.
            let days = |zone: Offset| {
                let today: Date = zone.to_datetime(start).date();
                [Some(today), today.tomorrow().ok()].into_iter().flatten()
            };
            let local = Offset::from_seconds(info.utc_offset_minutes.checked_mul(60)?).ok()?;
            let recorded =
                days(local).flat_map(|day| recorded_instants(day.to_datetime(time), info));
            let utc = days(Offset::UTC)
                .filter_map(|day| Offset::UTC.to_timestamp(day.to_datetime(time)).ok());
            let candidates: Vec<Timestamp> = recorded.chain(utc).collect();
            let inside = candidates.iter().find(|time| start <= **time && **time <= end);
            from_start(*inside.or(candidates.first())?)
        }
    }
}

/// Returns the instants when the recording machine's clock showed a time, earliest first. There are two if the clock
/// was set back. A time that the clock skipped is converted with the offset before the change.
fn recorded_instants(time: DateTime, info: &TraceInfo) -> Vec<Timestamp> {
    let offsets = UtcOffsets::new(info);
    let candidates = offsets.minutes().into_iter().filter_map(|minutes| {
        let zone = Offset::from_seconds(minutes.checked_mul(60)?).ok()?;
        Some((minutes, zone.to_timestamp(time).ok()?))
    });
    let mut candidates: Vec<(i32, Timestamp)> = candidates.collect();
    candidates.sort_unstable_by_key(|(_, instant)| *instant);
    let mut shown: Vec<Timestamp> = candidates
        .iter()
        .filter(|(minutes, instant)| offsets.minutes_at(of_timestamp(*instant)) == *minutes)
        .map(|(_, instant)| *instant)
        .collect();
    if shown.is_empty() {
        shown.extend(candidates.last().map(|(_, instant)| *instant));
    }
    shown
}

/// Converts a point in time to a FILETIME.
fn of_timestamp(time: Timestamp) -> i64 {
    let ticks = time.as_nanosecond().div_euclid(i128::from(NS_PER_TICK));
    i64::try_from(ticks).unwrap_or(i64::MAX).saturating_add(UNIX_EPOCH)
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SnapshotArgs {
    /// The new name; `None` to list the names.
    name: Option<String>,
    /// The point in time; `None` for the end.
    time: Option<String>,
    /// `-fd`: only loaded files with matching paths; all filters must match.
    files: Vec<Filter>,
}

pub struct Snapshot;

impl Command for Snapshot {
    type Args = SnapshotArgs;
    const SIGNATURE: Signature = Signature {
        names: &[".snapshot"],
        group: groups::QUERIES,
        usage: "[NAME [TIME]]",
        arguments: Arguments::Points(1),
        summary: "name a point in time for .diff, or list the names",
        details: "TIME is written as for .converttime: seconds since session start, 13.123s, or a \
             date and time. Without it the point is the end of the trace. The name applies to every \
             loaded trace that covers this time. An existing name is moved to the new point. \
             Snapshots last as long as their trace is loaded. In text of !htrace, each !htrace \
             -snapshot is already named snapshot1, snapshot2 and so on.",
        examples: &Example::lines([".snapshot warm 0.5s", ".snapshot", ".diff warm"]),
    };
    const OPTIONS: &'static [OptionGroup<SnapshotArgs>] = &[OptionGroup {
        title: "Options",
        options: &[files_option(&(LOADED_FILES, |args, filter| args.files.push(filter)))],
    }];

    fn parse(entered: &EnteredLine<'_>) -> Result<SnapshotArgs, ParseError> {
        let (args, words) = entered.options_and_words(Self::OPTIONS)?;
        let mut words = words.into_iter().map(|word| word.text.clone());
        let name = words.next();
        // A date and a time are two words.
        let time = words.reduce(|date, time| format!("{date} {time}"));
        Ok(SnapshotArgs { name, time, ..args })
    }

    fn run(args: SnapshotArgs, context: &mut Context<'_, '_>) -> Result<(), CommandError> {
        let Context { session, messages, .. } = context;
        let selected = session.choose(&args.files, messages)?;
        let Some(name) = &args.name else {
            let files: Vec<&LoadedTrace> = selected.into_iter().map(|(_, file)| file).collect();
            let text = list_snapshots(&files, context.screen)?;
            write!(context.out, "{text}")?;
            return Ok(());
        };
        if is_time(name) {
            return Err(CommandError::SnapshotName { name: name.clone() });
        }
        let mut points = Vec::new();
        for (index, file) in selected {
            points.extend(point(file, args.time.as_deref())?.map(|ns| (index, ns)));
        }
        if points.is_empty() {
            return Err(CommandError::NotRecorded { text: args.time.unwrap_or_default() });
        }
        for (index, ns) in points {
            if let Some(file) = session.files.get_mut(index) {
                file.snapshots.retain(|snapshot| !snapshot.name.eq_ignore_ascii_case(name));
                let name = name.clone();
                file.snapshots.push(trace::Snapshot { name, ns, of_debugger: false });
            }
        }
        let time = args.time.as_deref().unwrap_or("the end of the trace");
        messages.note(format_args!("snapshot {} is {}", Untrusted(name), Untrusted(time)));
        Ok(())
    }
}

/// Returns the point of a trace at a time: `Some(None)` for its end, `None` if the trace was not recorded then.
fn point(file: &LoadedTrace, time: Option<&str>) -> Result<Option<Option<i64>>, CommandError> {
    let Some(time) = time else { return Ok(Some(None)) };
    let info = file.trace.info()?;
    if !info.has_clock() {
        return Err(CommandError::NotByTime { path: file.path.clone(), option: "TIME" });
    }
    Ok(recorded_ns(time, &info)?.map(Some))
}

/// Lists all snapshots of some traces.
fn list_snapshots(
    files: &[&LoadedTrace],
    screen: handlescope_session::terminal::Screen,
) -> Result<String, CommandError> {
    if files.iter().all(|file| file.snapshots.is_empty()) {
        return Ok("No snapshots yet; .snapshot NAME TIME makes one.\n".to_owned());
    }
    let mut table = table::table(screen, &["Name", "Seconds", "File"]);
    for file in files {
        let has_clock = file.trace.info()?.has_clock();
        for trace::Snapshot { name, ns, .. } in &file.snapshots {
            let point = match *ns {
                None => "end".to_owned(),
                Some(ns) if has_clock => Seconds { ns, digits: TimeDigits::MAX }.to_string(),
                Some(ns) => format!("after {} events", ns.saturating_add(1)),
            };
            table.add_row([
                Untrusted(name).to_string(),
                point,
                Untrusted(shown(&file.path)).to_string(),
            ]);
        }
    }
    table::align_right(&mut table, &[1]);
    Ok(table::text(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a trace from 10:46:34 to 10:47:34 UTC, which is 12:46:34 where it was recorded.
    fn info() -> TraceInfo {
        TraceInfo {
            session_start_filetime: 133_598_115_940_000_000,
            session_end_filetime: Some(133_598_116_540_000_000),
            utc_offset_minutes: 120,
            ..TraceInfo::default()
        }
    }

    fn converted(text: &str) -> Option<i64> {
        since_start(When::parse(text)?, &info())
    }

    #[test]
    fn every_way_to_write_a_time_is_understood() {
        const EXPECTED: Option<i64> = Some(3_775_000_000);
        for text in [
            "2024-05-10 12:46:37.775",
            "2024-05-10T12:46:37.775",
            "2024-05-10T10:46:37.775Z",
            "2024-05-10T12:46:37.7750000+02:00",
            "12:46:37.775",
            "10:46:37.775", // not in the recording in local time, but in UTC
            "3.775",
            "3.775s",
            "3775ms",
        ] {
            assert_eq!(converted(text), EXPECTED, "{text}");
        }
        assert_eq!(converted("2024-05-10 12:46:33"), Some(-1_000_000_000));
        assert_eq!(
            converted("13:00:00"),
            Some(806_000_000_000),
            "outside: the recording machine's"
        );
    }

    #[test]
    fn a_time_is_looked_for_on_both_sides_of_a_change_of_the_clocks() {
        // 2024-10-27 00:30 to 1:30 UTC; at 1:00 the clocks went back from 3:00 to 2:00.
        let start = 133_744_626_000_000_000;
        let hour = 36_000_000_000;
        let offsets = [(start - 1, 120), (start + hour / 2, 60), (start + 3_672 * hour, 120)];
        let info = TraceInfo {
            session_start_filetime: start,
            session_end_filetime: Some(start + hour),
            utc_offset_minutes: 120,
            utc_offsets: Some(UtcOffsets::text(&offsets)),
            ..TraceInfo::default()
        };
        let minutes = |text: &str| {
            since_start(When::parse(text).expect(text), &info).map(|ns| ns / 60_000_000_000)
        };
        assert_eq!(
            minutes("2024-10-27 02:15:00"),
            Some(45),
            "before the session it was not recorded"
        );
        assert_eq!(minutes("2024-10-27 02:45:00"), Some(15), "the first of two");
        assert_eq!(minutes("02:15:00"), Some(45));
        assert_eq!(minutes("2024-10-27 03:15:00"), Some(105));
        // The clock skips this local time, because the next change leaves out an hour.
        let skipped = DateTime::constant(2025, 3, 29, 2, 30, 0, 0);
        assert_eq!(recorded_instants(skipped, &info).len(), 1);
    }

    #[test]
    fn a_recording_past_midnight_has_times_of_two_days() {
        let late = TraceInfo {
            session_start_filetime: 133_598_115_940_000_000 + 11 * 36_000_000_000, // 23:46:34
            session_end_filetime: Some(133_598_115_940_000_000 + 13 * 36_000_000_000),
            ..info()
        };
        let time = When::parse("00:46:34").expect("a time");
        assert_eq!(since_start(time, &late), Some(3_600_000_000_000));
    }

    #[test]
    fn a_time_is_recorded_from_start_to_end_or_from_start_when_the_end_is_unknown() {
        let open = TraceInfo { session_end_filetime: None, ..info() };
        for (ns, closed, unknown_end) in [
            (-1, false, false),
            (0, true, true),
            (60_000_000_000, true, true),
            (60_000_000_100, false, true),
        ] {
            assert_eq!((is_recorded(ns, &info()), is_recorded(ns, &open)), (closed, unknown_end));
        }
    }

    #[test]
    fn wrong_times_are_refused() {
        for text in ["", "soon", "12:99", "2024-13-01 00:00:00", "10MB", "1 2", "5.5.5"] {
            assert_eq!(When::parse(text), None, "{text}");
        }
    }
}
