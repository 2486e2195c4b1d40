//! Open handles by process, counted while events come.
//!
//! `rules::derive` pairs the events of one object that is known from its first event to its last, and says of each
//! open what closed it. Here objects have no end yet and events are forgotten once they are counted, so that a close
//! only takes its handle off a set; which kinds open and close is up to the rules here, too.

use std::collections::{HashMap, HashSet};

use handlescope_model::EventKind;
use handlescope_model::rules::{CLOSING, WITH_HANDLE};

use crate::collect::Collector;
use crate::etl::Event;
use crate::kernel::Processes;
use crate::lifecycle::event_kind;
use crate::raw::{EventFamily, Shared, UNKNOWN_ID, id_in_file};
use crate::stacks::StackUse;

/// Rows after which what was decoded is forgotten; what is open stays.
const MAX_ROWS: usize = 1 << 16;

/// The handles of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenHandles {
    /// Its image file name; empty while no event names it.
    pub name: String,
    /// Object and value of the handles that were opened and not closed since the session started.
    handles: HashSet<(u64, u32)>,
}

impl OpenHandles {
    /// How many handles are open.
    pub fn count(&self) -> u64 {
        self.handles.len() as u64
    }
}

/// Counts the handles that are open: created in, or duplicated into, a process since the session started, and
/// neither closed nor gone with it. A handle that a child inherits is not counted.
///
/// Payloads and stacks are decoded by the families. An event whose header has no process counts when its stack names
/// one.
#[derive(Default)]
pub struct LiveCounts {
    processes: HashMap<u32, OpenHandles>,
    collected: Collector,
    /// Rows that were looked at.
    seen: usize,
    /// Those whose process was not known, by raw time.
    waiting: HashMap<i64, Vec<usize>>,
}

impl LiveCounts {
    /// Takes an event, and calls `changed` with each process of which handles were opened.
    pub fn event(&mut self, event: &Event<'_>, mut changed: impl FnMut(u32, &OpenHandles)) {
        let event = Event { id: id_in_file(event.id), ..*event };
        if Processes::EVENTS.iter().any(|(id, _)| *id == event.id) {
            self.process(&event);
            return;
        }
        self.collected.event(&event);
        let rows = self.collected.shared.timeline.len();
        let waiting = match StackUse::of(&event) {
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

    /// Takes the name of a process that no event has named yet.
    pub fn name(&mut self, pid: u32, name: &str) {
        name.clone_into(&mut self.processes.entry(pid).or_default().name);
    }

    /// The processes with handles, by process id.
    pub fn processes(&self) -> impl Iterator<Item = (u32, &OpenHandles)> {
        self.processes.iter().map(|(pid, process)| (*pid, process))
    }

    fn process(&mut self, event: &Event<'_>) {
        let mut decoded = Processes::default();
        decoded.take(event, &mut Shared::default());
        for row in decoded.rows {
            let pid = row.process.pid;
            if row.end.is_some() {
                self.processes.remove(&pid);
            } else {
                self.processes.entry(pid).or_default().name = row.process.name;
            }
        }
    }

    fn row(&mut self, row: usize, changed: &mut impl FnMut(u32, &OpenHandles)) {
        let Collector { handles, duplicates, shared: Shared { timeline, .. }, .. } =
            &self.collected;
        let (kind, at, pid) = (timeline.kind[row], timeline.row[row] as usize, timeline.pid[row]);
        let Some(kind) = event_kind(kind).filter(|kind| WITH_HANDLE.contains(*kind)) else {
            return;
        };
        if pid == UNKNOWN_ID {
            self.waiting.entry(timeline.time[row]).or_default().push(row);
            return;
        }
        if CLOSING.contains(kind) {
            if let Some(process) = self.processes.get_mut(&pid) {
                process.handles.remove(&(handles.object[at], handles.handle[at]));
            }
            return;
        }
        let (owner, object, handle) = match kind {
            EventKind::HandleDuplicate => {
                let row = &duplicates.rows[at];
                if row.is_inherited() {
                    return;
                }
                // Of a file, the owner is the caller if no event names the target; here one may come later.
                let target = Some(row.target_pid).filter(|target| *target != 0);
                (target.unwrap_or(pid), row.object, row.target_handle)
            }
            _ => (pid, handles.object[at], handles.handle[at]),
        };
        let process = self.processes.entry(owner).or_default();
        if process.handles.insert((object, handle)) {
            changed(owner, process);
        }
    }

    /// Forgets what was decoded, so that memory depends on what is open.
    fn start_over(&mut self) {
        self.collected = Collector::default();
        self.seen = 0;
        self.waiting.clear();
    }
}
