//! The columns of events that causes are found in.

use handlescope_model::rules::OPENING;
use handlescope_model::tables::Events;
use handlescope_model::{
    ArchiveError, EventIdx, EventKind, Flags, Numbers, ProcessIdx, StackIdx, Trace,
};

use crate::query::owners::Owners;

pub(super) struct EventColumns {
    kind: Numbers<u32>,
    pub(super) time_ns: Numbers<i64>,
    pub(super) owners: Owners,
    source_process: Numbers<ProcessIdx>,
    pub(super) source_handle: Numbers<u64>,
    pub(super) view_size: Numbers<u64>,
    caller_process: Numbers<ProcessIdx>,
    pub(super) tid: Numbers<u32>,
    pub(super) handle: Numbers<u64>,
    pub(super) stack: Numbers<StackIdx>,
    closing_event: Numbers<EventIdx>,
    closed_at_exit: Flags,
}

impl EventColumns {
    pub(super) fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        Ok(Self {
            kind: trace.values(Events::kind)?,
            time_ns: trace.values(Events::time_ns)?,
            owners: Owners::load(trace)?,
            source_process: trace.values(Events::source_process)?,
            source_handle: trace.values(Events::source_handle)?,
            view_size: trace.values(Events::view_size)?,
            caller_process: trace.values(Events::caller_process)?,
            tid: trace.values(Events::tid)?,
            handle: trace.values(Events::handle)?,
            stack: trace.values(Events::stack)?,
            closing_event: trace.values(Events::closing_event)?,
            closed_at_exit: trace.values(Events::closed_at_exit)?,
        })
    }

    pub(super) fn kind(&self, event: usize) -> Option<EventKind> {
        EventKind::from_code(self.kind.get(event)?)
    }

    pub(super) fn is_opening(&self, event: usize) -> bool {
        self.kind.get(event).is_some_and(|kind| OPENING.contains_code(kind))
    }

    /// The process a duplicate was made of, and the one that made it.
    pub(super) fn duplicated(&self, event: usize) -> (Option<ProcessIdx>, Option<ProcessIdx>) {
        (self.source_process.get(event), self.caller_process.get(event))
    }

    /// Whether nothing closed what an event opened.
    pub(super) fn is_open(&self, event: usize) -> bool {
        self.closing_event.get(event).is_none()
    }

    /// The event by which the program closed what an event opened.
    pub(super) fn closed_by_program(&self, event: usize) -> Option<usize> {
        let closing = self.closing_event.get(event).map(EventIdx::row);
        closing.filter(|_| !self.closed_at_exit.get(event))
    }
}
