//! From the history of handles to the tables of a trace.

use std::collections::HashMap;
use std::path::Path;

use handlescope_model::rules::{is_exit_function, is_leak, is_leak_at_exit};
use handlescope_model::tables::{
    Event, EventCount, EventCounts, Events, NO_CLOCK, Object, Objects, StackEvent, StackEvents,
    TraceInfo, Warning,
};
use handlescope_model::{
    EventIdx, EventKind, ExistingIdx, ObjectIdx, ProcessIdx, RowCount, SCHEMA_VERSION, StackIdx,
    TypeId,
};

use super::entries::Entries;
use super::grammar::Operation;
use super::output::Entry;
use crate::etl::{Diagnostics, WarningKind};
use crate::filetime::of_unix_ns;
use crate::source::SourceIdentity;

/// From an open to its close, of which one may be missing.
#[derive(Debug, Clone, Copy, Default)]
struct Life {
    /// Places in the history.
    open: Option<u32>,
    close: Option<u32>,
    /// The value was opened again, so that it was closed, though that is not in the text.
    is_reopened: bool,
    at_exit: bool,
}

/// What became of the handles.
#[derive(Default)]
pub(super) struct Handles {
    pub(super) objects: Objects,
    pub(super) events: Events,
    pub(super) leaked: u64,
    pub(super) closed_at_exit: u64,
}

impl Handles {
    /// Gives each life of a handle value an object: tracing does not say which handles are of one object.
    pub(super) fn of(entries: &Entries, findings: &mut Diagnostics) -> Self {
        let history: Vec<&Entry> = entries.history.events().collect();
        let mut handles = Self::default();
        for life in lives(&history, entries, findings) {
            handles.add(life, &history);
        }
        handles
    }

    fn add(&mut self, life: Life, history: &[&Entry]) {
        let Life { open, close, is_reopened, at_exit } = life;
        let object = ObjectIdx(self.objects.len() as u32);
        let first = self.events.len() as u32;
        let closing = close.filter(|_| open.is_some()).map(|_| EventIdx(first + 1));
        for place in [open, close].into_iter().flatten() {
            let Some(entry) = history.get(place as usize) else { continue };
            let kind = match Some(place) == open {
                true => EventKind::HandleCreate,
                false => EventKind::HandleClose,
            };
            let leaked = is_leak(kind, closing.is_some() || is_reopened);
            let closed_at_exit = at_exit
                && (kind == EventKind::HandleClose || is_leak_at_exit(kind, false, at_exit));
            self.leaked += u64::from(leaked);
            self.closed_at_exit += u64::from(closed_at_exit && kind == EventKind::HandleCreate);
            self.events.push(Event {
                object,
                kind: kind.code(),
                time_ns: i64::from(place),
                process: ProcessIdx(entry.process),
                tid: entry.thread,
                handle: Some(entry.handle),
                leaked,
                closed_at_exit: Some(closed_at_exit),
                closing_event: closing.filter(|_| kind == EventKind::HandleCreate),
                stack: entry.stack.map(StackIdx),
                ..Event::default()
            });
        }
        self.objects.push(Object {
            pointer: 0,
            type_id: TypeId(0),
            name: None,
            first_event: EventIdx(first),
            event_count: RowCount::new(self.events.len() as u32 - first),
            first_existing: ExistingIdx(0),
            existing_count: RowCount::new(0),
            create_event: open.map(|_| EventIdx(first)),
            destroy_event: closing,
            is_multiprocess: false,
            is_overlapped: false,
        });
    }
}

/// The lives of all handle values in the order of their ends; those without an end follow, in the order of their
/// starts.
fn lives(history: &[&Entry], entries: &Entries, findings: &mut Diagnostics) -> Vec<Life> {
    let (mut ended, mut open) = (Vec::new(), HashMap::<(u32, u64), Life>::new());
    for (place, entry) in (0..).zip(history) {
        let handle = (entry.process, entry.handle);
        match entry.operation {
            Operation::BadReference => {}
            Operation::Open => {
                let life = Life { open: Some(place), ..Life::default() };
                if let Some(before) = open.insert(handle, life) {
                    findings.count(WarningKind::ReopenedHandle, None);
                    ended.push(Life { is_reopened: true, ..before });
                }
            }
            Operation::Close => {
                let life = open.remove(&handle).unwrap_or_else(|| {
                    findings.count(WarningKind::CloseWithoutObject, None);
                    Life::default()
                });
                let at_exit =
                    entry.stack.is_some_and(|stack| entries.has_function(stack, is_exit_function));
                ended.push(Life { close: Some(place), at_exit, ..life });
            }
        }
    }
    let mut open: Vec<Life> = open.into_values().collect();
    open.sort_unstable_by_key(|life| life.open);
    ended.extend(open);
    ended
}

/// Every entry with its stack, references to invalid handles among them.
pub(super) fn stack_events(entries: &Entries, pids: &[u32]) -> StackEvents {
    let row = |(place, entry): (i64, &Entry)| StackEvent {
        time_ns: place,
        process: Some(ProcessIdx(entry.process)),
        pid: pids.get(entry.process as usize).copied().unwrap_or_default(),
        tid: entry.thread,
        stack: entry.stack.map(StackIdx),
    };
    (0..).zip(entries.history.events()).map(row).collect()
}

/// How often each operation was printed, each event once.
pub(super) fn event_counts(entries: &Entries) -> EventCounts {
    let count = |operation: Operation| {
        entries.history.events().filter(|entry| entry.operation == operation).count() as u64
    };
    // Sorted by kind.
    let kinds = [
        ("bad_ref", "BadReference", Operation::BadReference),
        ("close", EventKind::HandleClose.event_name(), Operation::Close),
        ("open", EventKind::HandleCreate.event_name(), Operation::Open),
    ];
    let row = |(kind, name, operation): (&str, &str, Operation)| EventCount {
        kind: format!("htrace:{kind}"),
        name: Some(name.to_owned()),
        count: count(operation),
        ..EventCount::default()
    };
    kinds.into_iter().map(row).filter(|row| row.count > 0).collect()
}

/// The row of the trace table.
pub(super) fn info(
    input: &Path,
    identity: &SourceIdentity,
    entries: &Entries,
    stacks_total: u64,
) -> TraceInfo {
    TraceInfo {
        schema_version: SCHEMA_VERSION,
        extractor: format!("handlescope {}", env!("CARGO_PKG_VERSION")),
        source_path: input.to_string_lossy().into_owned(),
        source_name: input.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        source_size: identity.size,
        source_modified_filetime: identity.modified_ns.and_then(of_unix_ns),
        source_modified_ns: identity.modified_ns,
        source_content: Some(identity.content.clone()),
        clock: NO_CLOCK.to_owned(),
        snapshots: Some(entries.history.snapshots().to_vec()).filter(|own| !own.is_empty()),
        // Programs of 32 bits run on systems of 64.
        pointer_size: if entries.has_wide_address { 8 } else { 0 },
        events_total: entries.history.len() as u64,
        stacks_total,
        ..TraceInfo::default()
    }
}

/// The findings, whose places are numbers of lines.
pub(super) fn warnings(findings: &Diagnostics) -> Vec<Warning> {
    let of_lines = |warning: Warning| Warning {
        first_line: warning.first_offset,
        first_offset: None,
        ..warning
    };
    findings.warnings().into_iter().map(of_lines).collect()
}
