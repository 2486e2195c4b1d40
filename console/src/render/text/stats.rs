//! `.dump Stats` as text: first what speaks against the trace, then what it is, then what it holds.

use std::io::{self, Write};

use handlescope_model::tables::{TraceInfo, Warning};
use indicatif::HumanCount;
use nu_ansi_term::Color;

use super::tables::write_header;
use crate::query::StatsAnswer;
use crate::render::time::Utc7;
use crate::settings::Display;
use crate::terminal::Clean;
use crate::terminal::Screen;
use crate::terminal::table;

pub(in crate::render) fn stats(
    answers: &[StatsAnswer<'_>],
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let screen = display.screen;
    for answer in answers {
        write_header(answer.path, screen, out)?;
        write_losses(&answer.info, screen, out)?;
        write_warnings(&answer.warnings, screen, out)?;
        for (name, value) in facts(answer) {
            writeln!(out, "{name:<26} {}", Clean(&value))?;
        }
        write_attribution(&answer.info, out)?;
        write_events(answer, screen, out)?;
    }
    Ok(())
}

/// Lost events come first: a lost close looks like a leak.
fn write_losses(info: &TraceInfo, screen: Screen, out: &mut impl Write) -> io::Result<()> {
    if info.events_lost == 0 && info.buffers_lost == 0 {
        return writeln!(out, "No events and no buffers were lost while recording.");
    }
    let (events, buffers) = (HumanCount(info.events_lost), HumanCount(info.buffers_lost));
    let text = format!(
        "LOST while recording: {events} events, {buffers} buffers. A lost close looks like a \
         leak: record again with more or larger buffers before trusting counts."
    );
    writeln!(out, "{}", screen.paint(Color::Red, text))
}

fn write_warnings(warnings: &[Warning], screen: Screen, out: &mut impl Write) -> io::Result<()> {
    if warnings.is_empty() {
        return writeln!(out, "Nothing was damaged or left out.");
    }
    writeln!(out, "{}", screen.paint(Color::Red, "Warnings:"))?;
    for Warning { kind, count, first_offset } in warnings {
        let place = first_offset.map_or_else(String::new, |at| format!(", first at byte {at}"));
        let count = HumanCount(*count).to_string();
        writeln!(out, "{count:>12} x {}{place}", Clean(kind))?;
    }
    Ok(())
}

/// Name and value of everything that is one number or one text.
fn facts(answer: &StatsAnswer<'_>) -> Vec<(&'static str, String)> {
    let StatsAnswer { info, .. } = answer;
    let count = |number: u64| HumanCount(number).to_string();
    let time = |time: Option<i64>| time.map_or_else(unknown, |time| Utc7(time).to_string());
    let build = info.os_build_string.as_deref().map_or_else(String::new, |b| format!(" ({b})"));
    let product = info.product.as_deref().map_or_else(String::new, |p| format!(" {p}"));
    vec![
        ("Source", format!("{} ({} bytes)", info.source_path, count(info.source_size))),
        ("Computer", info.computer.clone().unwrap_or_else(unknown)),
        ("Windows", format!("{} build {}{build}{product}", info.os_version, info.os_build)),
        ("Processors", format!("{}, {} byte pointers", info.cpu_count, info.pointer_size)),
        ("Session start (UTC)", time(Some(info.session_start_filetime))),
        ("Session end (UTC)", time(info.session_end_filetime)),
        ("Boot (UTC)", time(info.boot_filetime)),
        ("Local time", utc_offset(info.utc_offset_minutes)),
        ("Clock", format!("{}, {} ticks per second", info.clock, count(tick_rate(info)))),
        ("Buffers", format!("{} of {} bytes", count(info.buffers), info.buffer_size)),
        ("Events", count(info.events_total)),
        ("Objects", count(answer.objects as u64)),
        ("Handle events", count(answer.handle_events as u64)),
        ("Leaked handles", count(answer.leaked_handles as u64)),
        ("Stack events", count(info.stack_fragments)),
        ("Stacks kept", count(info.stacks_total)),
        ("Distinct stacks", count(answer.stacks_distinct as u64)),
        ("Distinct frames", count(answer.frames_distinct as u64)),
        ("Frames in modules", count(info.frames_in_modules)),
        ("Extracted by", format!("{} (layout {})", info.extractor, info.schema_version)),
    ]
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

fn unknown() -> String {
    "unknown".to_owned()
}

/// Where the process of events came from, from the surest source to none.
fn write_attribution(info: &TraceInfo, out: &mut impl Write) -> io::Result<()> {
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

fn write_events(answer: &StatsAnswer<'_>, screen: Screen, out: &mut impl Write) -> io::Result<()> {
    let mut table = table::table(screen, &["Count", "Event", "Kind"]);
    table::align_right(&mut table, &[0]);
    for event in &answer.events {
        let name = event.name.as_deref().unwrap_or_default();
        table.add_row([
            HumanCount(event.count).to_string(),
            Clean(name).to_string(),
            Clean(&event.kind).to_string(),
        ]);
    }
    write!(out, "{}", table::text(&table))
}
