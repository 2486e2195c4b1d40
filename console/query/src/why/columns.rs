//! The columns that causes are found in: those of events, and how processes ended.

use std::sync::Arc;

use handlescope_model::rules::{OPENING, handle_slot};
use handlescope_model::tables::{Events, Processes};
use handlescope_model::{
    ArchiveError, EventIdx, EventKind, Flags, Numbers, ObjectIdx, ProcessIdx, RowSet, Sparse,
    StackIdx, Trace,
};

use crate::context::FileContext;
use crate::objects::Owners;
use crate::tables::ProcessList;

pub struct EventColumns {
    kind: Numbers<u32>,
    pub time_ns: Numbers<i64>,
    pub owners: Owners,
    source_process: Sparse<Numbers<ProcessIdx>>,
    source_handle: Sparse<Numbers<u64>>,
    pub view_size: Sparse<Numbers<u64>>,
    caller_process: Sparse<Numbers<ProcessIdx>>,
    pub tid: Sparse<Numbers<u32>>,
    handle: Sparse<Numbers<u64>>,
    pub stack: Numbers<StackIdx>,
    closing_event: Numbers<EventIdx>,
    closed_at_exit: Flags,
}

impl EventColumns {
    /// Reads the columns that say what became of every handle, and the others of the events of `leaking` objects.
    pub fn load(file: &FileContext<'_>, leaking: &RowSet) -> Result<Self, ArchiveError> {
        let trace = file.trace;
        let rows = leaking.iter().flat_map(|row| file.objects.events(ObjectIdx::of(row)));
        let rows = Arc::new(RowSet::new(file.objects.event_count(), rows));
        Ok(Self {
            kind: trace.values(Events::kind)?,
            time_ns: trace.values(Events::time_ns)?,
            owners: Owners::load(trace)?,
            source_process: trace.values_at(Events::source_process, &rows)?,
            source_handle: trace.values_at(Events::source_handle, &rows)?,
            view_size: trace.values_at(Events::view_size, &rows)?,
            caller_process: trace.values_at(Events::caller_process, &rows)?,
            tid: trace.values_at(Events::tid, &rows)?,
            handle: trace.values_at(Events::handle, &rows)?,
            stack: trace.values(Events::stack)?,
            closing_event: trace.values(Events::closing_event)?,
            closed_at_exit: trace.values(Events::closed_at_exit)?,
        })
    }

    pub fn kind(&self, event: usize) -> Option<EventKind> {
        EventKind::from_code(self.kind.get(event)?)
    }

    pub fn is_opening(&self, event: usize) -> bool {
        self.kind.get(event).is_some_and(|kind| OPENING.contains_code(kind))
    }

    /// The slot of the handle that an event opened or closed.
    pub fn slot(&self, event: usize) -> Option<u64> {
        self.handle.get(event).map(handle_slot)
    }

    /// The slot of the handle that a duplicate was made of.
    pub fn source_slot(&self, event: usize) -> Option<u64> {
        self.source_handle.get(event).map(handle_slot)
    }

    /// The process a duplicate was made of, and the one that made it.
    pub fn duplicated(&self, event: usize) -> (Option<ProcessIdx>, Option<ProcessIdx>) {
        (self.source_process.get(event), self.caller_process.get(event))
    }

    /// Whether nothing closed what an event opened.
    pub fn is_open(&self, event: usize) -> bool {
        self.closing_event.get(event).is_none()
    }

    /// The event by which the program closed what an event opened.
    pub fn closed_by_program(&self, event: usize) -> Option<usize> {
        let closing = self.closing_event.get(event).map(EventIdx::row);
        closing.filter(|_| !self.closed_at_exit.get(event))
    }
}

/// NTSTATUS values with which Windows ends a process that goes wrong, by their meaning in MS-ERREF, section 2.3.1, and
/// those of runtimes: an uncaught exception of C++ (`0xE0000000 | 'msc'`) or of .NET (`0xE0000000 | 'CCR'`).
const CRASHES: [(u32, &str); 13] = [
    (0x8000_0003, "breakpoint"),
    (0xC000_0005, "access violation"),
    (0xC000_0006, "in-page error"),
    (0xC000_001D, "illegal instruction"),
    (0xC000_0025, "noncontinuable exception"),
    (0xC000_0094, "integer division by zero"),
    (0xC000_00FD, "stack overflow"),
    (0xC000_0374, "heap corruption"),
    (0xC000_0409, "fail fast"),
    (0xC000_041D, "unhandled exception in a callback"),
    (0xC000_0420, "assertion failure"),
    (0xE06D_7363, "uncaught C++ exception"),
    (0xE043_4352, "uncaught .NET exception"),
];

/// Exit codes of processes, and which had the pid of another later.
pub struct OwnerEnds {
    pub exit_code: Numbers<i32>,
    /// The next process with the same pid, by row.
    pub next: Vec<Option<ProcessIdx>>,
}

impl OwnerEnds {
    pub fn load(trace: &Trace, processes: &ProcessList) -> Result<Self, ArchiveError> {
        let rows = processes.rows();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|row| (rows[*row].pid, rows[*row].start_ns));
        let mut next = vec![None; rows.len()];
        for pair in order.windows(2).filter(|pair| rows[pair[0]].pid == rows[pair[1]].pid) {
            next[pair[0]] = Some(ProcessIdx::of(pair[1]));
        }
        Ok(Self { exit_code: trace.values(Processes::exit_code)?, next })
    }

    /// Exit status of a crash and what it means.
    pub fn crash(&self, process: ProcessIdx) -> Option<(u32, &'static str)> {
        let code = self.exit_code.get(process.row())?.cast_unsigned();
        CRASHES.into_iter().find(|(status, _)| *status == code)
    }
}
