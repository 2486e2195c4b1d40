//! What the columns of a row are made of.

use std::collections::BTreeSet;

use handlescope_model::ProcessIdx;

use crate::query::{FileAnswer, Listing, ProcessInfo, Selected};
use crate::render::event_item::EventItem;
use crate::render::text::ProcessStyle;
use crate::render::time::Clock;
use crate::settings::Display;

/// One row.
pub(super) struct Row<'a> {
    /// The command, in the first row of the file.
    pub(super) options: &'a str,
    pub(super) file: &'a FileFacts<'a>,
    pub(super) object: &'a ObjectFacts<'a>,
    pub(super) item: EventItem<'a>,
    pub(super) stack: String,
    pub(super) has_command_line: bool,
}

/// What the rows of a trace have in common.
pub(super) struct FileFacts<'a> {
    pub(super) answer: &'a FileAnswer<'a>,
    pub(super) listing: &'a Listing,
    /// File name without extension.
    pub(super) name: String,
    /// When the recording began; empty where that is unknown.
    pub(super) date: String,
    pub(super) clock: Clock,
    style: ProcessStyle,
}

/// What the rows of an object have in common. Whatever filters removed of its events, this stays.
pub(super) struct ObjectFacts<'a> {
    pub(super) id: u64,
    pub(super) pointer: Option<u64>,
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    /// `None` when creation or end is unknown, or when they were.
    pub(super) lifetime_ns: Option<i64>,
    /// Whether creation and end are known.
    pub(super) is_ended: bool,
    pub(super) is_multiprocess: bool,
    pub(super) is_overlapped: bool,
    pub(super) max_ref_count: i64,
    /// Children that inherited a handle, in the order they started.
    pub(super) inherited_by: String,
}

impl<'a> FileFacts<'a> {
    pub(super) fn new(answer: &'a FileAnswer<'a>, listing: &'a Listing, display: &Display) -> Self {
        Self {
            answer,
            listing,
            name: answer.path().file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            date: match answer.info.has_clock() {
                true => Clock::session_start(&answer.info),
                false => String::new(),
            },
            clock: Clock::new(&answer.info, display.time_format, display.time_digits),
            style: ProcessStyle::new(&answer.info, display),
        }
    }

    /// The process of a row.
    pub(super) fn process(&self, row: ProcessIdx) -> &ProcessInfo {
        self.answer.file.processes.get(row)
    }

    /// Its name.
    pub(super) fn process_name<'p>(&self, process: &'p ProcessInfo) -> &'p str {
        self.style.name(process)
    }

    /// `name.exe(pid)` with its start and end.
    pub(super) fn marked(&self, process: &ProcessInfo) -> String {
        match process.known_pid() {
            Some(pid) => {
                format!("{}({pid}){}", self.style.name(process), self.style.suffix(process))
            }
            None => self.style.name(process).to_owned(),
        }
    }
}

impl<'a> ObjectFacts<'a> {
    pub(super) fn new(file: &FileFacts<'a>, selected: Selected) -> Self {
        let (listing, tables) = (file.listing, &file.answer.file);
        let object = selected.object();
        Self {
            id: selected.id(),
            pointer: listing.pointer(object),
            name: listing.name(object).unwrap_or_default(),
            kind: tables.types.get(tables.objects.type_id(object)),
            lifetime_ns: file.answer.lifetime_ns(listing, selected),
            is_ended: tables.objects.create_event(object).is_some()
                && tables.objects.destroy_event(object).is_some(),
            is_multiprocess: listing.is_multiprocess(object),
            is_overlapped: listing.is_overlapped(object),
            max_ref_count: max_ref_count(file, object),
            inherited_by: inherited_by(file, object),
        }
    }
}

/// The highest reference count, as far as the trace shows: it starts at 0.
fn max_ref_count(file: &FileFacts<'_>, object: usize) -> i64 {
    let events = file.answer.file.objects.events(object);
    let deltas = events.filter_map(|event| file.listing.ref_delta(event));
    let mut count = 0_i64;
    let counts = deltas.map(|delta| {
        count += i64::from(delta);
        count
    });
    counts.max().unwrap_or_default().max(0)
}

fn inherited_by(file: &FileFacts<'_>, object: usize) -> String {
    let events = file.answer.file.objects.events(object);
    let children = events.filter_map(|event| file.listing.inherited_by(event));
    let by_start: BTreeSet<_> =
        children.map(|child| (file.process(child).start_ns, child)).collect();
    let labels = by_start.into_iter().map(|(_, child)| file.marked(file.process(child)));
    labels.collect::<Vec<_>>().join(", ")
}

impl Row<'_> {
    /// What stands behind the program in the command line of the process.
    pub(super) fn arguments(&self) -> &str {
        if self.has_command_line { behind_program(&self.item.process().command_line) } else { "" }
    }
}

/// A command line without what stands in front of its arguments; the whole if no program ends in
/// `.exe`.
fn behind_program(command_line: &str) -> &str {
    const EXE: &[u8] = b".exe";
    let bytes = command_line.as_bytes();
    let found = bytes.windows(EXE.len()).position(|part| part.eq_ignore_ascii_case(EXE));
    let behind = found.and_then(|at| command_line.get(at + EXE.len()..)).unwrap_or(command_line);
    behind.strip_prefix('"').filter(|_| found.is_some()).unwrap_or(behind)
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
