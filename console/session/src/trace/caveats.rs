//! Caveats about the answers of a trace, in the words of its users.

use std::path::Path;

use handlescope_extract::is_loss;
use handlescope_model::rules::{EXIT_FUNCTIONS, LossTimes, WITH_HANDLE};
use handlescope_model::tables::{
    Acquisitions, EventCounts, Objects, Processes, TraceInfo, TraceInfos, Warnings, is_ring,
};
use handlescope_model::{
    ArchiveError, EventKind, ObjectIdx, Table, TableRows, Trace, TypeId, Untrusted,
};
use indicatif::HumanCount;
use serde::Serialize;

use super::losses::{has_end_rundown, loss_times, unseen_closes};
use crate::terminal::Messages;
use crate::values::{CountedNoun, Length, finding, listed};

/// How to record what is missing.
const RECORD: &str = "record with `wpr -start Handle`, reproduce the leak, `wpr -stop trace.etl`";

/// Maximum number of modules in one message.
const MAX_MODULES: usize = 4;

/// Something that makes answers wrong or incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Caveat {
    pub kind: CaveatKind,
    /// A sentence without a full stop.
    pub text: String,
}

/// Kinds of caveats, named as in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CaveatKind {
    NoHandleEvents,
    NoClock,
    CoarseClock,
    LostWhileRecording,
    MissingInFile,
    ClosedUnseen,
    NoEndRundown,
    PartOfSession,
    ExitsDoubtful,
    ProgramsDiffer,
    StacksMissing,
    SymbolsMissing,
    /// Symbols are missing that a filter needs.
    #[serde(rename = "symbols_missing")]
    FilterLacksSymbols,
    MethodsUnnamed,
    BuildsDiffer,
    NoResourceEvents,
    OlderUnknown,
    ProcessesUnknown,
}

impl Caveat {
    /// Returns the caveats that apply to any answer about a trace.
    ///
    /// # Errors
    /// If the archive is damaged.
    pub fn for_trace(trace: &Trace) -> Result<Vec<Caveat>, ArchiveError> {
        let mut caveats = Vec::new();
        let mut add = |kind, text| caveats.push(Caveat { kind, text });
        let has_rundown = has_end_rundown(trace)?;
        let has_handles =
            trace.values(Acquisitions::in_rundown)?.any() || has_handle_events(trace)?;
        if let Some(text) = without_clock(trace)? {
            add(CaveatKind::NoClock, text);
        } else if !has_handles {
            let hint = match trace.height(Table::Allocators)? {
                0 => "",
                _ => "its allocations are in .dump Resource and .why; for handles ",
            };
            let info = trace.info()?;
            let text = if info.is_converted() {
                format!(
                    "no handle events: the extract has no object references; {hint}extract the trace \
                     with them, or load the trace itself"
                )
            } else {
                format!("no handle events: not recorded with handle tracing; {hint}{RECORD}")
            };
            add(CaveatKind::NoHandleEvents, text);
        } else if !has_rundown {
            let text = "no rundown of open handles at the end of the trace: handles older than the trace \
                 are unknown, and open handles are derived from events";
            add(CaveatKind::NoEndRundown, text.to_owned());
        }
        caveats.extend(Caveat::for_ring(trace)?);
        let coarse = coarse_clock(trace)?.filter(|_| has_handles);
        caveats.extend(coarse.map(|text| Caveat { kind: CaveatKind::CoarseClock, text }));
        caveats.extend(Caveat::for_losses(trace, "objects, closes and leaks")?);
        caveats.extend(Caveat::for_unseen_closes(trace)?);
        Ok(caveats)
    }

    /// Returns the caveats worth showing before anything is asked. Missing handles matter in a trace of allocations
    /// only to a user who asks for handles.
    ///
    /// # Errors
    /// If the archive is damaged.
    pub fn for_load(trace: &Trace) -> Result<Vec<Caveat>, ArchiveError> {
        let mut caveats = Caveat::for_trace(trace)?;
        if trace.height(Table::Allocators)? > 0 {
            caveats.retain(|caveat| caveat.kind != CaveatKind::NoHandleEvents);
        }
        Ok(caveats)
    }

    /// Returns a caveat if a trace has only the end of its session.
    ///
    /// # Errors
    /// If the archive is damaged.
    fn for_ring(trace: &Trace) -> Result<Option<Caveat>, ArchiveError> {
        let info = trace.info()?;
        let text = part_of_session(&info);
        Ok(text.map(|text| Caveat { kind: CaveatKind::PartOfSession, text }))
    }

    /// Returns caveats about missing events, and about what may be wrong because of them.
    ///
    /// # Errors
    /// If the archive is damaged.
    pub fn for_losses(trace: &Trace, subject: &str) -> Result<Vec<Caveat>, ArchiveError> {
        let mut caveats = Vec::new();
        let mut add = |kind, text| caveats.push(Caveat { kind, text });
        let events = trace.values(TraceInfos::events_lost)?.get(0).unwrap_or_default();
        let buffers = trace.values(TraceInfos::buffers_lost)?.get(0).unwrap_or_default();
        if let Some(text) = lost_while_recording(events, buffers, subject) {
            add(CaveatKind::LostWhileRecording, text);
        }
        if let Some(text) = missing_in_file(trace, subject)? {
            add(CaveatKind::MissingInFile, text);
        }
        Ok(caveats)
    }

    /// Warns that two traces have different builds of modules, so that functions cannot be compared.
    pub fn for_other_builds(modules: &[String]) -> Option<Caveat> {
        let text = format!(
            "{}: the builds differ and function names are missing, so groups are compared by module, not by \
             frame; for symbols of both builds, see .help .sympath",
            listed(modules, MAX_MODULES)
        );
        (!modules.is_empty()).then_some(Caveat { kind: CaveatKind::BuildsDiffer, text })
    }

    /// Returns a caveat about handles whose close events are missing.
    fn for_unseen_closes(trace: &Trace) -> Result<Option<Caveat>, ArchiveError> {
        let count = unseen_closes(trace)?;
        let times = loss_times(trace)?;
        let (handles, values) = match count {
            1 => ("1 handle or view was".to_owned(), "its value was"),
            _ => (format!("{} handles and views were", HumanCount(count)), "their values were"),
        };
        let reason = if times.is_empty() {
            "as the ring overwrote closes".to_owned()
        } else {
            format!("as events are missing{}", times_text(&times))
        };
        let text = format!(
            "{handles} closed unseen, {reason}: {values} reused, or no longer open at process exit \
             or at the end of the trace, so not counted as leaked"
        );
        Ok((count > 0).then_some(Caveat { kind: CaveatKind::ClosedUnseen, text }))
    }

    /// Returns a caveat about closes at exit whose stacks have names, but no function of process exit.
    pub fn for_doubtful_exits(closes: u64) -> Option<Caveat> {
        let text = format!(
            "the stacks of {} have no process exit function ({}): the program may have closed these handles itself",
            CountedNoun(closes, "close"),
            EXIT_FUNCTIONS.join(", ")
        );
        (closes > 0).then_some(Caveat { kind: CaveatKind::ExitsDoubtful, text })
    }

    /// Returns a caveat about creates without stacks; none if only a few lack one.
    pub fn for_missing_stacks(without: u64, opened: u64) -> Option<Caveat> {
        // Rounded down, so less than one per cent is not reported.
        let percent = without.saturating_mul(100).checked_div(opened)?;
        let text = match percent {
            0 => return None,
            100 => format!("creates, duplicates and maps have no stacks; {RECORD}"),
            _ => format!("stacks are missing for {percent} % of creates, duplicates and maps"),
        };
        Some(Caveat { kind: CaveatKind::StacksMissing, text })
    }

    /// Returns a caveat about two dumps or texts of different programs.
    pub fn for_two_programs(programs: [&str; 2]) -> Option<Caveat> {
        let [before, after] = programs.map(Untrusted);
        let text = format!(
            "the first is of {before} and the second of {after}: handles of different programs are not compared"
        );
        let differ = !programs.contains(&"") && !programs[0].eq_ignore_ascii_case(programs[1]);
        differ.then_some(Caveat { kind: CaveatKind::ProgramsDiffer, text })
    }

    /// Returns a caveat about processes with unnamed managed methods.
    pub fn for_unnamed_methods(processes: &[String]) -> Option<Caveat> {
        let text = format!(
            ".NET methods have no names in {}, so each address counts as separate code in each process; \
             record with `handlescope record --clr`, or with the profile of \
             `handlescope wprp --clr`",
            listed(processes, MAX_MODULES)
        );
        (!processes.is_empty()).then_some(Caveat { kind: CaveatKind::MethodsUnnamed, text })
    }

    /// Returns a caveat about missing symbols that a filter on stacks needs.
    pub fn for_missing_symbols(modules: &[String]) -> Option<Caveat> {
        let text = format!(
            "{}{FILTER_FAILS}; see .help .sympath",
            no_symbols(&listed(modules, MAX_MODULES))
        );
        (!modules.is_empty()).then_some(Caveat { kind: CaveatKind::FilterLacksSymbols, text })
    }

    /// Returns a caveat about leaking functions without names.
    pub fn for_unnamed_suspects(modules: &[String]) -> Option<Caveat> {
        let text = format!(
            "{}, each counted as a separate function; .dump Symbols lists why, .sympath or \
             --symbol-path sets where to look",
            no_symbols(&listed(modules, MAX_MODULES))
        );
        (!modules.is_empty()).then_some(Caveat { kind: CaveatKind::SymbolsMissing, text })
    }
}

/// Clause for a filter on functions of modules without symbols.
pub const FILTER_FAILS: &str = ", and the filter on stacks cannot match functions there";

/// Returns a text about modules without symbols; clauses may follow it.
pub fn no_symbols(modules: &str) -> String {
    format!("no symbols for {modules}: frames there appear as module+0xOFFSET")
}

/// Reports what makes answers about a trace wrong or incomplete, once per session. Symbols are reported for all traces
/// together ([`Session::warn_of_missing_symbols`](super::Session::warn_of_missing_symbols)).
pub fn warn_of<'c>(
    path: &Path,
    caveats: impl IntoIterator<Item = &'c Caveat>,
    messages: &mut Messages<'_>,
) {
    for Caveat { kind, text } in caveats {
        if !matches!(kind, CaveatKind::SymbolsMissing | CaveatKind::FilterLacksSymbols) {
            messages.caveat(format!("{}: {text}", Untrusted(path)));
        }
    }
}

/// Describes when events are missing, if that is known.
fn times_text(losses: &LossTimes) -> String {
    let seconds = |ns: i64| format!("{:.3} s", ns as f64 / 1e9);
    let spans = losses.spans();
    match (losses.is_anywhere(), spans.first().zip(spans.last())) {
        (false, Some(((from, _), (_, to)))) => {
            let within = if spans.len() == 1 { "" } else { " at times" };
            format!("{within} from {} to {}", seconds(*from), seconds(*to))
        }
        _ => String::new(),
    }
}

/// Returns a text if a trace's events start long after its session.
fn part_of_session(info: &TraceInfo) -> Option<String> {
    let (from_ns, to_ns) = info.recorded_ns()?.into_inner();
    if from_ns <= 0 {
        return None;
    }
    let length = Length(to_ns.saturating_sub(from_ns));
    let session = Length(info.length_ns().unwrap_or(to_ns).max(to_ns));
    let reason = if is_ring(info.log_file_mode) {
        "older events were overwritten"
    } else {
        "older events are missing or incomplete, as in a ring that overwrites them"
    };
    Some(format!("the trace has the last {length} of a session of {session}: {reason}"))
}

/// Returns a text about losses, if there are any.
fn lost_while_recording(events: u64, buffers: u64, subject: &str) -> Option<String> {
    (events > 0 || buffers > 0).then(|| {
        format!(
            "{} and {} were lost while recording; {subject} may be wrong",
            CountedNoun(events, "event"),
            CountedNoun(buffers, "buffer")
        )
    })
}

/// Describes what a source without times does not tell.
fn without_clock(trace: &Trace) -> Result<Option<String>, ArchiveError> {
    let info = trace.info()?;
    if info.is_dump() {
        return of_dump(trace, &info).map(Some);
    }
    if info.is_list() {
        return of_list(trace).map(Some);
    }
    if info.has_clock() {
        return Ok(None);
    }
    let names = trace.values(Processes::name)?;
    let is_unnamed = (0..names.len()).any(|row| names.text(row).is_empty());
    let types = trace.values(Objects::type_id)?;
    let is_untyped = types.iter().any(|type_id| type_id.is_none_or(|id| id == TypeId(0)));
    let is_unlisted = !trace.values(Acquisitions::in_rundown)?.any();
    let unknown = [
        (true, "times"),
        (true, "lifetimes"),
        (is_untyped, "object types and names"),
        (is_unnamed, "programs"),
        (is_unlisted, "earlier handles"),
    ];
    let unknown: Vec<&str> =
        unknown.into_iter().filter(|(is_unknown, _)| *is_unknown).map(|(_, what)| what).collect();
    let (last, others) = unknown.split_last().unwrap_or((&"times", &[]));
    Ok(Some(format!(
        "it is text of !htrace, so {} and {last} are unknown; events have only an order",
        others.join(", ")
    )))
}

/// Describes what a list of handles does not tell.
fn of_list(trace: &Trace) -> Result<String, ArchiveError> {
    let table = trace.event_table()?;
    let open = (0..table.allocations).filter(|row| table.state(*row).is_listed()).count() as u64;
    let keys = trace.values(Acquisitions::key)?;
    let is_counted = open > 0 && (0..keys.len()).all(|row| keys.get(row) == Some(0));
    Ok(format!(
        "it is a list of {}{}, so it does not say what opened them and when; .dump ObjectRef \
         -ShowTotal counts them, and .diff of two lists shows which grow",
        CountedNoun(open, "open handle"),
        if is_counted { " without values and names" } else { "" }
    ))
}

/// Describes what a dump does not tell: when handles were opened, and often where.
fn of_dump(trace: &Trace, info: &TraceInfo) -> Result<String, ArchiveError> {
    let table = trace.event_table()?;
    let open = (0..table.allocations).filter(|row| table.state(*row).is_listed()).count() as u64;
    let is_traced = |object: &ObjectIdx| {
        table.create_event(*object).is_some() && table.listed(*object).next().is_some()
    };
    let traced = (0..table.objects).map(ObjectIdx::from_row).filter(is_traced).count() as u64;
    let opened = match (has_end_rundown(trace)?, trace.height(Table::StackEvents)?) {
        (false, _) => {
            "it does not list the open handles: the dump was written without MiniDumpWithHandleData"
                .to_owned()
        }
        (true, 0) if info.product.is_some() => format!(
            "it does not say what opened its {}; .dump ObjectRef -ShowTotal counts them, and .diff of two \
             dumps shows which grow",
            CountedNoun(open, "file descriptor")
        ),
        (true, 0) => format!(
            "it does not say what opened its {}, because neither handle tracing (!htrace -enable) nor \
             Application Verifier was on; .dump ObjectRef -ShowTotal counts them, and .diff of two dumps \
             shows which grow",
            CountedNoun(open, "handle")
        ),
        (true, _) => format!(
            "it shows what opened {} of its {}",
            HumanCount(traced),
            CountedNoun(open, "open handle")
        ),
    };
    Ok(format!("it is a dump, so times and lifetimes are unknown; {opened}"))
}

/// Describes what a clock that stands still between ticks leaves unknown.
fn coarse_clock(trace: &Trace) -> Result<Option<String>, ArchiveError> {
    let info = trace.info()?;
    Ok(info.clock_step_ns().map(|step_ns| {
        format!(
            "it was recorded with the system clock, which advances every {} ms (the timer \
             interval): the order of events with equal times is inferred from what they do, and \
             shorter times, such as races, are unknown",
            step_ns as f64 / 1e6
        )
    }))
}

pub fn has_handle_events(trace: &Trace) -> Result<bool, ArchiveError> {
    let table = trace.event_table()?;
    let has_event = |row: usize| {
        let state = table.state(row);
        !state.is_view() && (state.is_opened() || state.is_ended())
    };
    if (0..table.allocations).any(has_event) {
        return Ok(true);
    }
    // Some may have been left out because their processes are unknown.
    let counts = EventCounts::read(trace)?;
    let mut kinds =
        counts.rows().filter_map(|row| EventKind::from_event_name(row.name.as_deref()?));
    Ok(kinds.any(|kind| WITH_HANDLE.contains(kind)))
}

/// Summarizes in one sentence the damage counted while the trace was read.
fn missing_in_file(trace: &Trace, subject: &str) -> Result<Option<String>, ArchiveError> {
    let damage = counted(trace, is_loss)?;
    Ok(damage.map(|damage| {
        format!("events are missing or unreadable ({damage}); {subject} may be wrong")
    }))
}

/// Lists the warnings of some kinds in one line, each with its count; `None` if there are none.
pub fn counted(
    trace: &Trace,
    is_counted: fn(&str) -> bool,
) -> Result<Option<String>, ArchiveError> {
    let warnings = Warnings::read(trace)?;
    let lines: Vec<String> = warnings
        .rows()
        .filter(|warning| is_counted(&warning.kind))
        .map(|warning| finding(&warning))
        .collect();
    Ok((!lines.is_empty()).then(|| lines.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_stacks_is_said_from_one_percent_on() {
        let text = |without, opened| Caveat::for_missing_stacks(without, opened).map(|c| c.text);
        assert_eq!(text(0, 0), None);
        assert_eq!(text(1, 101), None);
        let some = text(1, 100).expect("a caveat");
        assert_eq!(some, "stacks are missing for 1 % of creates, duplicates and maps");
        assert!(text(7, 7).is_some_and(|text| text.contains("wpr -start Handle")));
    }

    #[test]
    fn missing_symbols_name_a_few_modules() {
        let modules = ["a", "b", "c", "d", "e"].map(str::to_owned);
        let text = |modules| Caveat::for_missing_symbols(modules).map(|caveat| caveat.text);
        assert_eq!(text(&[]), None);
        assert!(text(&modules[..1]).is_some_and(|text| text.contains("symbols for a: ")));
        assert!(
            text(&modules).is_some_and(|text| text.contains("symbols for a, b, c, d and 1 more: "))
        );
    }

    #[test]
    fn a_ring_is_said_with_what_it_has_and_a_whole_session_is_not() {
        let session = TraceInfo {
            clock: "qpc".to_owned(),
            session_end_filetime: Some(36_000_000_000),
            ..TraceInfo::default()
        };
        assert_eq!(part_of_session(&session), None);
        let (from, to) = (Some(3_540_000_000_000), Some(3_600_000_000_000));
        let merged = TraceInfo { recorded_from_ns: from, recorded_to_ns: to, ..session };
        let ring = TraceInfo { log_file_mode: 0x400, ..merged.clone() };
        let text = "the trace has the last 60.0 s of a session of 60.0 min: ";
        for (info, reason) in
            [(ring, "older events were overwritten"), (merged, "older events are missing")]
        {
            let caveat = part_of_session(&info).expect("a caveat");
            assert!(caveat.starts_with(&format!("{text}{reason}")), "{caveat}");
        }
    }

    #[test]
    fn losses_are_said_and_their_absence_is_not() {
        assert_eq!(lost_while_recording(0, 0, "leaks"), None);
        let text = lost_while_recording(12, 1, "leaks");
        assert!(text.is_some_and(|text| text.starts_with("12 events and 1 buffer")));
    }
}
