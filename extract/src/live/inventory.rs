//! Counts open handles by process while events come in. For a replay, it also has what the whole file says about its
//! system: records at its end name types, processes and modules.
//!
//! `rules::derive` pairs the events of an object that is known from its first event to its last, and tells what closed
//! each open. Here objects have no end yet, and events are forgotten once counted. So a close only removes its handle
//! from a set. Which kinds open and close still follows the rules.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use handlescope_model::rules::{CLOSING, WITH_HANDLE, handle_slot, is_kernel_handle};
use handlescope_model::{Cancel, EventKind};

use crate::collect::Collector;
use crate::error::ExtractError;
use crate::etl::{Event, EventId, Selector};
use crate::kernel::{ImageRow, Images, ObjectTypes, ProcessRow, Processes, System};
use crate::lifecycle::event_kind;
use crate::options::ExtractOptions;
use crate::raw::{EventFamily, PassState, UNKNOWN_ID, id_in_file};
use crate::recording::OpenRecording;
use crate::stacks::StackUse;

/// Types, processes and modules of a trace, with the raw times at which they came and went.
#[derive(Default)]
pub struct Inventory {
    processes: Vec<ProcessRow>,
    images: Images,
    object_types: ObjectTypes,
    system: System,
}

/// Selects the events for an inventory.
struct OfSystem;

impl Selector for OfSystem {
    fn select(&mut self, event: &Event<'_>) -> bool {
        let families: [&[(EventId, &str)]; 4] =
            [Processes::EVENTS, Images::EVENTS, ObjectTypes::EVENTS, System::EVENTS];
        families.iter().any(|events| events.iter().any(|(id, _)| *id == event.id))
    }
}

impl Inventory {
    /// Reads a trace from beginning to end.
    ///
    /// # Errors
    /// Fails if it cannot be read, or `cancel` requests a stop.
    pub fn read(path: &Path, cancel: &Cancel) -> Result<Self, ExtractError> {
        let limits = ExtractOptions::default().limits;
        let open = OpenRecording::open_cancellable(path, &limits, cancel)?;
        let mut collected = Collector::default();
        let flow = |_| {
            if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        open.read(&mut OfSystem, flow, |event| collected.event(event))?;
        collected.finish();
        let Collector { processes, images, object_types, system, .. } = collected;
        Ok(Self { processes: processes.rows, images, object_types, system })
    }

    /// Returns the names of processes older than the trace, by process id.
    pub fn older_processes(&self) -> impl Iterator<Item = (u32, &str)> {
        self.processes
            .iter()
            .filter(|process| process.start.is_none())
            .map(|process| (process.process.pid, process.process.name.as_str()))
    }

    /// Replaces what the events so far said with what existed until a raw time.
    pub fn fill(&self, collected: &mut Collector, until: i64) {
        let has_begun = |start: Option<i64>| start.is_none_or(|start| start <= until);
        let ended = |end: Option<i64>| end.filter(|end| *end <= until);
        let processes = self.processes.iter().filter(|process| has_begun(process.start));
        let process =
            |process: &ProcessRow| ProcessRow { end: ended(process.end), ..process.clone() };
        collected.processes.rows = processes.map(process).collect();
        let Images { rows, paths, versions, .. } = &self.images;
        let images = rows.iter().filter(|image| has_begun(image.load));
        let image = |image: &ImageRow| ImageRow { unload: ended(image.unload), ..image.clone() };
        let mut known = Images::default();
        known.rows = images.map(image).collect();
        (known.paths, known.versions) = (paths.clone(), versions.clone());
        collected.images = known;
        collected.object_types.names.clone_from(&self.object_types.names);
        collected.system.clone_from(&self.system);
    }
}

/// Pid of the System process.
const SYSTEM_PID: u32 = 4;

/// Number of rows after which decoded data is forgotten. What is open stays.
const MAX_ROWS: usize = 1 << 16;

/// Maximum number of threads with last calls remembered beyond that.
const MAX_THREADS: usize = 1 << 16;

/// Handles of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessHandles {
    /// Image file name; empty until an event names it.
    pub name: String,
    /// Object and [`handle_slot`] of each handle opened since the session started and not closed.
    handles: HashSet<(u64, u64)>,
}

impl ProcessHandles {
    /// Returns the number of open handles.
    pub fn count(&self) -> u64 {
        self.handles.len() as u64
    }
}

/// Counts open handles: those created in or duplicated into a process since the session started, and neither closed nor
/// gone with the process. A kernel handle counts for System. A handle that a child inherits is not counted.
///
/// The families decode payloads and stacks. If an event's header has no process, the event counts once its stack names
/// one.
#[derive(Default)]
pub struct LiveCounts {
    processes: HashMap<u32, ProcessHandles>,
    collected: Collector,
    /// Number of rows already examined.
    seen: usize,
    /// Rows of handles with an unknown process, by raw time.
    waiting: HashMap<i64, Vec<usize>>,
    /// Object and [`handle_slot`] of each thread's last close.
    just_closed: HashMap<u32, (u64, u64)>,
    /// What each thread duplicated for a process it is creating.
    calls: HashMap<u32, ChildCall>,
}

/// Handles for a process that does not exist yet.
#[derive(Default)]
struct ChildCall {
    /// Process that the child inherits from.
    parent: u32,
    /// Object and [`handle_slot`].
    handles: HashSet<(u64, u64)>,
}

impl LiveCounts {
    /// Handles an event, and calls `changed` with each process that got new handles.
    pub fn event(&mut self, event: &Event<'_>, mut changed: impl FnMut(u32, &ProcessHandles)) {
        let event = Event { id: id_in_file(event.id), ..*event };
        if Processes::EVENTS.iter().any(|(id, _)| *id == event.id) {
            self.process(&event);
            return;
        }
        self.collected.event(&event);
        let rows = self.collected.shared.timeline.len();
        let waiting = match StackUse::new(&event) {
            Some(StackUse::Part { event_time, .. }) => self.waiting.remove(&event_time),
            _ => None,
        };
        for row in waiting.into_iter().flatten().chain(self.seen..rows) {
            self.row(row, &mut changed);
        }
        self.seen = rows;
        if rows > MAX_ROWS {
            self.start_over();
        }
    }

    /// Sets the name of a process that no event has named yet.
    pub fn name(&mut self, pid: u32, name: &str) {
        name.clone_into(&mut self.processes.entry(pid).or_default().name);
    }

    /// Returns the processes with handles, by process id.
    pub fn processes(&self) -> impl Iterator<Item = (u32, &ProcessHandles)> {
        self.processes.iter().map(|(pid, process)| (*pid, process))
    }

    fn process(&mut self, event: &Event<'_>) {
        let mut decoded = Processes::default();
        decoded.take(event, &mut PassState::default());
        for row in decoded.rows {
            let pid = row.process.pid;
            if row.end.is_some() {
                self.processes.remove(&pid);
            } else {
                self.processes.entry(pid).or_default().name = row.process.name;
            }
            // The start ends the call of its thread. If the event names another thread, it ends all calls of the
            // parent.
            if row.start.is_some() && event.tid.is_none_or(|tid| self.calls.remove(&tid).is_none())
            {
                self.calls.retain(|_, call| call.parent != row.process.parent_pid);
            }
        }
    }

    fn row(&mut self, row: usize, changed: &mut impl FnMut(u32, &ProcessHandles)) {
        let Collector { handles, duplicates, shared: PassState { timeline, .. }, .. } =
            &self.collected;
        let (kind, at, pid) = (timeline.kind[row], timeline.row[row] as usize, timeline.pid[row]);
        let tid = timeline.tid[row];
        let Some(kind) = event_kind(kind).filter(|kind| WITH_HANDLE.contains(*kind)) else {
            return;
        };
        if pid == UNKNOWN_ID {
            self.waiting.entry(timeline.time[row]).or_default().push(row);
            return;
        }
        if CLOSING.contains(kind) {
            let value = handles.handle[at].into();
            let owner = if is_kernel_handle(value) { SYSTEM_PID } else { pid };
            let closed = (handles.object[at], handle_slot(value));
            // If creating a process fails, the call sweeps what it duplicated.
            if self.calls.get_mut(&tid).is_some_and(|call| call.handles.remove(&closed)) {
                return;
            }
            self.just_closed.insert(tid, closed);
            if let Some(process) = self.processes.get_mut(&owner) {
                process.handles.remove(&closed);
            }
            return;
        }
        let just_closed = self.just_closed.remove(&tid);
        let (owner, object, handle) = match kind {
            EventKind::HandleDuplicate => {
                let row = &duplicates.rows[at];
                // `DUPLICATE_CLOSE_SOURCE` closes first, by a thread of any process, and may give the same value again.
                let source = (row.object, handle_slot(row.source_handle.into()));
                let is_moved = just_closed == Some(source);
                if let Some(process) = row.source_pid.filter(|_| is_moved) {
                    let process = self.processes.get_mut(&process);
                    process.map(|process| process.handles.remove(&source));
                }
                // A child has no pid yet when its creator duplicates a handle for it.
                let is_without_target = row.target_pid == 0;
                if is_without_target && !is_kernel_handle(row.target_handle.into()) {
                    let call = self.calls.entry(tid).or_default();
                    call.parent = row.source_pid.unwrap_or(pid);
                    call.handles.insert((row.object, handle_slot(row.target_handle.into())));
                }
                if is_without_target || row.is_inherited() && !is_moved {
                    return;
                }
                // For a file, the owner is the caller if no event names the target. Here such an event may still come.
                (row.target_pid, row.object, u64::from(row.target_handle))
            }
            _ => (pid, handles.object[at], u64::from(handles.handle[at])),
        };
        let owner = if is_kernel_handle(handle) { SYSTEM_PID } else { owner };
        let process = self.processes.entry(owner).or_default();
        if process.handles.insert((object, handle_slot(handle))) {
            changed(owner, process);
        }
    }

    /// Forgets decoded data, so that memory depends only on what is open.
    fn start_over(&mut self) {
        self.collected = Collector::default();
        self.seen = 0;
        self.waiting.clear();
        if self.calls.len().max(self.just_closed.len()) > MAX_THREADS {
            self.calls.clear();
            self.just_closed.clear();
        }
    }
}
