//! The facts behind the columns of a row.

use std::collections::BTreeSet;
use std::path::Path;

use handlescope_model::ProcessIdx;

use crate::event_item::EventItem;
use crate::text::{ProcessStyle, TargetStyle};
use crate::time::TraceClock;
use handlescope_query::{
    FileAnswer, ListedObject, PerProcess, ProcessInfo, Target, UNKNOWN_LIFETIME_NS,
};
use handlescope_session::settings::Display;

pub struct CsvRow<'a> {
    /// The command, in the first row of the file.
    pub options: &'a str,
    pub file: &'a FileFacts<'a>,
    pub object: &'a ObjectFacts<'a>,
    pub item: EventItem<'a>,
    pub stack: String,
}

/// The facts that the rows of a trace share.
pub struct FileFacts<'a> {
    pub answer: &'a FileAnswer<'a>,
    /// File name without extension; includes folders if another file has the same name.
    pub name: String,
    /// Start of the recording; empty if unknown.
    pub date: String,
    processes: PerProcess<CsvProcessFacts<'a>>,
    style: ProcessStyle,
    clock: TraceClock,
}

/// The facts that the rows of a process share.
pub struct CsvProcessFacts<'a> {
    /// `name.exe(pid)` with its start and end.
    pub marked: String,
    pub name: &'a str,
    /// Start of the process, if known.
    pub start: String,
    /// The part of the command line after the program.
    pub arguments: &'a str,
}

/// The facts that the rows of an object share, even if filters removed some of its events.
pub struct ObjectFacts<'a> {
    pub id: String,
    pub pointer: String,
    pub name: &'a str,
    pub kind: &'a str,
    /// Seconds; empty if creation and end are known, but not both of their times.
    pub lifetime: String,
    pub is_multiprocess: bool,
    pub is_overlapped: bool,
    pub max_ref_count: String,
    /// Children that inherited a handle, in the order they started.
    pub inherited_by: String,
    /// Empty unless that is asked for and known.
    pub target: TargetFacts,
}

/// The process or thread that handles refer to.
#[derive(Default)]
pub struct TargetFacts {
    /// `name.exe(pid)`, of a thread with its id in front.
    pub label: String,
    /// Start; empty if it is unknown or before the trace.
    pub start: String,
    /// End, or a word.
    pub end: String,
    /// `name.exe(pid)`
    pub started_by: String,
    /// The function that a thread was started with.
    pub function: String,
}

impl<'a> FileFacts<'a> {
    pub fn new(
        answer: &'a FileAnswer<'a>,
        name: &Path,
        has_command_line: bool,
        display: &Display,
    ) -> Self {
        let clock = TraceClock::new(&answer.about.info, display.time_format, display.time_digits);
        let style = ProcessStyle::new(&answer.about.info, display);
        let processes = &answer.file.processes;
        Self {
            answer,
            name: name.to_string_lossy().into_owned(),
            date: if answer.about.info.has_clock() {
                TraceClock::session_start(&answer.about.info)
            } else {
                String::new()
            },
            processes: processes
                .each(|process| CsvProcessFacts::new(process, &style, &clock, has_command_line)),
            style,
            clock,
        }
    }

    /// Returns the process of a row, or the invalid one if it is unknown.
    pub fn process(&self, row: Option<ProcessIdx>) -> &CsvProcessFacts<'a> {
        self.processes.get(row)
    }
}

impl<'a> CsvProcessFacts<'a> {
    fn new(
        process: &'a ProcessInfo,
        style: &ProcessStyle,
        clock: &TraceClock,
        has_command_line: bool,
    ) -> Self {
        let name = style.name(process);
        Self {
            marked: match process.known_pid() {
                Some(pid) => format!("{name}({pid}){}", style.suffix(process)),
                None => name.to_owned(),
            },
            name,
            start: clock.text(process.start_ns),
            arguments: if has_command_line { behind_program(&process.command_line) } else { "" },
        }
    }
}

impl TargetFacts {
    fn new(target: &Target, file: &FileFacts<'_>) -> Self {
        let FileFacts { style, clock, .. } = file;
        Self {
            label: TargetStyle { processes: style, clock }.label(target),
            start: clock.text(target.start_ns),
            end: match target.end.time_ns() {
                Some(end) => clock.at(end).to_string(),
                None => target.end.name().to_owned(),
            },
            started_by: target.started_by.as_ref().map(|by| style.label(by)).unwrap_or_default(),
            function: target.start_function.clone().unwrap_or_default(),
        }
    }
}

impl<'a> ObjectFacts<'a> {
    pub fn new(file: &FileFacts<'a>, object: ListedObject<'a>) -> Self {
        Self {
            id: object.id().to_string(),
            pointer: object.pointer().map(hex).unwrap_or_default(),
            name: object.name().unwrap_or_default(),
            kind: object.type_name(),
            lifetime: match object.lifetime_ns() {
                None if object.has_create() && object.has_end() => String::new(),
                lifetime => seconds(lifetime.unwrap_or(UNKNOWN_LIFETIME_NS)),
            },
            is_multiprocess: object.is_multiprocess(),
            is_overlapped: object.is_overlapped(),
            max_ref_count: object.max_ref_count().to_string(),
            inherited_by: inherited_by(file, object),
            target: object
                .target()
                .flatten()
                .map_or_else(TargetFacts::default, |it| TargetFacts::new(it, file)),
        }
    }
}

/// Formats seconds with as many digits as they have.
fn seconds(ns: i64) -> String {
    (ns as f64 / 1e9).to_string()
}

pub fn hex(value: u64) -> String {
    format!("0x{value:X}")
}

fn inherited_by(file: &FileFacts<'_>, object: ListedObject<'_>) -> String {
    let processes = &file.answer.file.processes;
    let by_start: BTreeSet<_> =
        object.inherited().map(|(_, child)| (processes.get(child).start_ns, child)).collect();
    by_start
        .into_iter()
        .map(|(_, child)| file.process(Some(child)).marked.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

impl<'a> CsvRow<'a> {
    /// Returns the process that acted, or that has the handle.
    pub fn process(&self) -> &CsvProcessFacts<'a> {
        self.file.process(Some(self.item.actor()))
    }
}

/// Returns the arguments in a command line; all of it if no program in it ends in `.exe`.
fn behind_program(command_line: &str) -> &str {
    const EXE: &[u8] = b".exe";
    let bytes = command_line.as_bytes();
    let start = bytes.windows(EXE.len()).position(|window| window.eq_ignore_ascii_case(EXE));
    let behind = start.and_then(|start| command_line.get(start + EXE.len()..));
    behind.map_or(command_line, |behind| behind.strip_prefix('"').unwrap_or(behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_behind_the_program() {
        assert_eq!(behind_program(r#""C:\a b\App.EXE" -x y.exe"#), " -x y.exe");
        assert_eq!(behind_program("app.exe"), "");
        assert_eq!(behind_program("\"tool\" /ä"), "\"tool\" /ä");
        assert_eq!(behind_program(""), "");
    }
}
