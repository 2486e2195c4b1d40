//! Conversion of the entries of all listings, with their stacks, processes and history of handles,
//! to the tables of a trace.

use std::collections::HashMap;
use std::path::Path;

use handlescope_model::rules::{is_exit_function, is_leak, is_leak_at_exit};
use handlescope_model::tables::{
    Event, EventCount, EventCounts, Events, Frame, Frames, Module, Modules, NO_CLOCK, Object,
    Objects, Process, Processes, Stack, StackEvent, StackEvents, Stacks, Symbol, Symbols,
    TraceInfo, Warning,
};
use handlescope_model::{
    EventIdx, EventKind, ExistingIdx, FrameIdx, ModuleIdx, ObjectIdx, ProcessIdx, RowCount,
    SCHEMA_VERSION, StackIdx, TypeId,
};

use super::frame::{FrameLine, Location};
use super::grammar::Operation;
use super::history::History;
use super::output::Entry;
use crate::etl::{Diagnostics, WarningKind};
use crate::filetime::of_unix_ns;
use crate::intern::{ByteInterner, Interner};
use crate::source::SourceIdentity;

/// Open and close of a handle, of which one may be missing.
#[derive(Debug, Clone, Copy, Default)]
struct Life {
    /// Positions in the history.
    open: Option<u32>,
    close: Option<u32>,
    /// The value was opened again, so it had been closed, though the text lacks the close.
    is_reopened: bool,
    at_exit: bool,
}

/// Columns of the handles.
#[derive(Default)]
pub(super) struct Handles {
    pub(super) objects: Objects,
    pub(super) events: Events,
    pub(super) leaked: u64,
    pub(super) closed_at_exit: u64,
}

impl Handles {
    /// Gives each lifetime of a handle value its object, because tracing does not show which handles share one.
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
        for index in [open, close].into_iter().flatten() {
            let Some(entry) = history.get(index as usize) else { continue };
            let kind = match Some(index) == open {
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
                time_ns: i64::from(index),
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

/// The lifetimes of all handle values in order of their ends; those without an end follow in order of their starts.
fn lives(history: &[&Entry], entries: &Entries, findings: &mut Diagnostics) -> Vec<Life> {
    let (mut ended, mut open) = (Vec::new(), HashMap::<(u32, u64), Life>::new());
    for (index, entry) in (0..).zip(history) {
        let handle = (entry.process, entry.handle);
        match entry.operation {
            Operation::BadReference => {}
            Operation::Open => {
                let life = Life { open: Some(index), ..Life::default() };
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
                ended.push(Life { close: Some(index), at_exit, ..life });
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
    (0..)
        .zip(entries.history.events())
        .map(|(index, entry)| StackEvent {
            time_ns: index,
            process: Some(ProcessIdx(entry.process)),
            pid: pids.get(entry.process as usize).copied().unwrap_or_default(),
            tid: entry.thread,
            stack: entry.stack.map(StackIdx),
        })
        .collect()
}

/// Counts of events by operation, each event once.
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
        snapshots: Some(entries.history.snapshots().to_vec())
            .filter(|snapshots| !snapshots.is_empty()),
        // 32-bit programs run on 64-bit systems.
        pointer_size: if entries.has_wide_address { 8 } else { 0 },
        events_total: entries.history.len() as u64,
        stacks_total,
        ..TraceInfo::default()
    }
}

/// The findings, whose offsets are numbers of lines.
pub(super) fn warnings(findings: &Diagnostics) -> Vec<Warning> {
    findings
        .warnings()
        .into_iter()
        .map(|warning| Warning { first_line: warning.first_offset, first_offset: None, ..warning })
        .collect()
}

/// Entries read so far.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) history: History,
    /// Kind and number of each process.
    processes: Interner<(ProcessKey, u64)>,
    /// The program of each pid; `None` when several were named.
    programs: HashMap<u32, Option<String>>,
    /// The frames of each stack, and the addresses of each.
    stacks: Interner<u32>,
    addresses: Interner<u64>,
    /// Address and text of each frame.
    frames: ByteInterner,
    frame_rows: Frames,
    symbols: Symbols,
    modules: ByteInterner,
    /// The stack being read.
    stack: Vec<u32>,
    stack_addresses: Vec<u64>,
    scratch: Vec<u8>,
    /// Whether an address does not fit into 32 bits.
    pub(super) has_wide_address: bool,
}

/// Identification of a process in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum ProcessKey {
    Pid,
    KernelAddress,
    #[default]
    Unknown,
}

impl Entries {
    /// Frames of the stack being read.
    pub(super) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Adds a frame to the stack being read.
    pub(super) fn frame(&mut self, frame: &FrameLine<'_>) {
        let FrameLine { address, location, .. } = *frame;
        self.has_wide_address |= address > u64::from(u32::MAX);
        let key = &mut self.scratch;
        key.clear();
        key.extend_from_slice(&address.to_le_bytes());
        match location {
            Location::Function { module, function, offset } => {
                key.extend_from_slice(&[1, u8::from(offset.is_some())]);
                key.extend_from_slice(&offset.unwrap_or_default().to_le_bytes());
                key.extend_from_slice(module.as_bytes());
                key.push(b'!');
                key.extend_from_slice(function.as_bytes());
            }
            Location::Module { module, rva } => {
                key.push(2);
                key.extend_from_slice(&rva.to_le_bytes());
                key.extend_from_slice(module.as_bytes());
            }
            Location::Unknown => {}
        }
        let row = self.frames.intern(key);
        if row as usize == self.frame_rows.len() {
            self.add_frame(row, frame);
        }
        self.stack.push(row);
        self.stack_addresses.push(address);
    }

    /// Adds the rows of a frame that was not seen before.
    fn add_frame(&mut self, row: u32, frame: &FrameLine<'_>) {
        let mut module = |name: &str| Some(ModuleIdx(self.modules.intern(name.as_bytes())));
        let address = Some(frame.address);
        self.frame_rows.push(match frame.location {
            Location::Function { module: name, offset, .. } => {
                // An address without an offset would look like the start of the function.
                let address = address.filter(|_| offset.is_some());
                Frame { module: module(name), address, ..Frame::default() }
            }
            Location::Module { module: name, rva } => {
                Frame { module: module(name), rva: Some(rva), address, ..Frame::default() }
            }
            Location::Unknown => Frame { address, ..Frame::default() },
        });
        if let Location::Function { function, offset, .. } = frame.location {
            let (frame, function) = (FrameIdx(row), function.to_owned());
            self.symbols.push(Symbol { frame, function, offset, ..Symbol::default() });
        }
    }

    /// The row of the stack that was read, if it has frames, and the number of its addresses.
    pub(super) fn take_stack(&mut self) -> (Option<u32>, u32) {
        let addresses = self.addresses.intern(&self.stack_addresses);
        let stack = (!self.stack.is_empty()).then(|| self.stacks.intern(&self.stack));
        self.stack.clear();
        self.stack_addresses.clear();
        (stack, addresses)
    }

    /// The row of a process with a pid, else with a kernel address, else of the unknown process.
    pub(super) fn process(&mut self, pid: Option<u32>, kernel_address: Option<u64>) -> u32 {
        self.processes.intern(&[match (pid, kernel_address) {
            (Some(pid), _) => (ProcessKey::Pid, u64::from(pid)),
            (None, Some(address)) => (ProcessKey::KernelAddress, address),
            (None, None) => (ProcessKey::Unknown, 0),
        }])
    }

    /// Notes the program of a pid.
    pub(super) fn program(&mut self, pid: u32, path: &str) {
        let path = path.to_owned();
        let known = self.programs.entry(pid).or_insert_with(|| Some(path.clone()));
        // A reused pid belongs to both programs.
        *known = known.take().filter(|known| *known == path);
    }

    pub(super) fn process_table(&self) -> Processes {
        self.processes
            .iter()
            .map(|key| match *key {
                [(ProcessKey::Pid, pid)] => {
                    let pid = pid as u32;
                    let path = self.programs.get(&pid).cloned().flatten();
                    let name = path.as_deref().and_then(|path| path.rsplit(['\\', '/']).next());
                    let name = name.unwrap_or_default().to_owned();
                    Process { pid, name, image_path: path, ..Process::default() }
                }
                [(ProcessKey::KernelAddress, key)] => Process { key, ..Process::default() },
                _ => Process::default(),
            })
            .collect()
    }

    pub(super) fn module_table(&self) -> Modules {
        let rows = 0..self.modules.len();
        let row = |row| {
            let name = self.modules.text(row);
            Module { path: name.clone(), name, ..Module::default() }
        };
        rows.map(row).collect()
    }

    pub(super) fn stack_table(&self) -> Stacks {
        let frames = |stack: &[u32]| stack.iter().map(|frame| FrameIdx(*frame)).collect();
        self.stacks.iter().map(|stack| Stack { frames: frames(stack) }).collect()
    }

    /// The frames, and the names of those that have one.
    pub(super) fn take_frames(&mut self) -> (Frames, Symbols) {
        (std::mem::take(&mut self.frame_rows), std::mem::take(&mut self.symbols))
    }

    /// Whether a function on a stack is one of some.
    pub(super) fn has_function(&self, stack: u32, is_it: impl Fn(&str) -> bool) -> bool {
        // Symbols stand in the order of their frames.
        let function = |frame: &u32| {
            let row = self.symbols.frame.binary_search(&FrameIdx(*frame)).ok()?;
            self.symbols.function.get(row)
        };
        self.stacks.get(stack).iter().filter_map(function).any(|name| is_it(name))
    }
}
