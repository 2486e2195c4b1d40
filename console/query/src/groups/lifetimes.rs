//! Handles and views, each from its opening to its close.

use std::sync::Arc;

use handlescope_model::tables::Acquisitions;
use handlescope_model::{
    AcquisitionIdx, EventIdx, EventKind, EventTable, Numbers, ObjectIdx, ProcessIdx, sentinel,
};

use super::counted::Handle;
use crate::context::FileContext;
use crate::error::QueryError;
use crate::events::{EventColumns, EventProcesses};
use crate::info::trace_info;
use crate::selection::{EventMask, Selected};
use handlescope_session::trace::lists_open_handles;

/// A handle or view: what is known of its opening and its close, and what of both a query counts.
///
/// An object without any has one with nothing but the event that created the object.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lifetime {
    /// Row of the object.
    pub object: ObjectIdx,
    /// Its row; none for an object without any.
    pub row: Option<AcquisitionIdx>,
    /// The event that opened it; none for what was open before the trace.
    pub opened: Option<usize>,
    /// The event that closed it.
    pub closed: Option<usize>,
    /// Kind of the event that opened it, if that event is left.
    pub opening: Option<EventKind>,
    /// Kind of the event that closed it, if that event is left.
    pub closing: Option<EventKind>,
    /// Whether it was left open, by an event that is left.
    pub is_leaked: bool,
    /// Whether only the end of its process closed it, and its opening is left.
    pub is_closed_at_exit: bool,
    /// Whether the trace lost its close, and its opening is left.
    pub is_closed_unseen: bool,
    /// Whether it was open at the end of the trace.
    pub is_open_at_end: bool,
    /// Whether it is not a handle or view, but an object without any.
    pub is_bare: bool,
    /// The process that has it; of an object without any, the one that created it; `None` if unknown.
    pub owner: Option<ProcessIdx>,
}

/// The times of events.
pub struct Times {
    table: Arc<EventTable>,
    has_clock: bool,
}

impl Times {
    pub fn load(file: &FileContext<'_>) -> Result<Self, QueryError> {
        let has_clock = trace_info(file.trace)?.has_clock();
        Ok(Self { table: Arc::clone(&file.objects.table), has_clock })
    }

    /// Times of the first and the last event of a handle that count, nanoseconds.
    pub fn span(&self, handle: Handle) -> Option<(i64, i64)> {
        let (has_opened, has_closed) = handle.events();
        let numbering = self.table.numbering;
        let opened = if has_opened { self.of(numbering.opening(handle.row.row())) } else { None };
        let closed = if has_closed { self.of(numbering.ending(handle.row.row())) } else { None };
        let (first, last) = (opened.or(closed)?, closed.or(opened)?);
        Some((first.min(last), first.max(last)))
    }

    /// Time of an event, nanoseconds; in a trace without clock the times are only an order.
    pub fn of(&self, event: usize) -> Option<i64> {
        self.table.time_ns(event).filter(|_| self.has_clock)
    }
}

/// The columns that say what became of handles and views.
pub struct LifeTables {
    table: Arc<EventTable>,
    pub times: Times,
    process: Numbers<ProcessIdx>,
    /// The processes of the events that create objects.
    creator: EventProcesses,
    has_end_rundown: bool,
}

impl LifeTables {
    pub fn load(file: &FileContext<'_>) -> Result<Self, QueryError> {
        let trace = file.trace;
        Ok(Self {
            table: Arc::clone(&file.objects.table),
            times: Times::load(file)?,
            process: trace.values(Acquisitions::process)?,
            creator: EventColumns::of_all(trace)?.processes()?,
            has_end_rundown: lists_open_handles(trace)?,
        })
    }

    /// A handle or view, as far as `mask` leaves its events.
    fn lifetime(&self, object: ObjectIdx, row: usize, mask: &EventMask) -> Lifetime {
        let (table, state) = (&self.table, self.table.state(row));
        let (opened, closed) = (table.opening(row), table.ending(row));
        let is_left = opened.is_some_and(|event| mask.contains(event));
        let opening = match state {
            _ if !is_left => None,
            state if state.is_copy() => Some(EventKind::HandleDuplicate),
            state if state.is_view() => Some(EventKind::Map),
            _ => Some(EventKind::HandleCreate),
        };
        let closing = closed
            // An unmap closes all views of its process, and counts once.
            .filter(|event| *event == table.numbering.ending(row) && mask.contains(*event))
            .map(|_| if state.is_view() { EventKind::Unmap } else { EventKind::HandleClose });
        let is_leaked = is_left && state.is_leaked();
        Lifetime {
            object,
            row: Some(AcquisitionIdx::of(row)),
            opened,
            closed,
            opening,
            closing,
            is_leaked,
            is_closed_at_exit: is_left && state.is_closed_at_exit(),
            is_closed_unseen: is_left && state.is_closed_unseen(),
            is_open_at_end: match self.has_end_rundown {
                true => state.is_listed(),
                false => is_leaked && !state.is_view(),
            },
            is_bare: false,
            owner: self.process.get(row),
        }
    }
}

/// Follows the handles and views of objects, one object after the other.
pub struct Lifetimes<'a> {
    tables: &'a LifeTables,
    lifetimes: Vec<Lifetime>,
}

impl<'a> Lifetimes<'a> {
    pub fn new(tables: &'a LifeTables) -> Self {
        Self { tables, lifetimes: Vec::new() }
    }

    /// Handles and views of an object, as far as something of them is left; never empty. Those that were open before the trace
    /// come last.
    pub fn of_object(&mut self, selected: Selected, mask: &EventMask) -> &[Lifetime] {
        let tables = self.tables;
        let object = selected.object();
        self.lifetimes.clear();
        for has_opening in [true, false] {
            let rows = tables.table.acquisitions(object);
            let rows = rows.filter(|row| tables.table.opening(*row).is_some() == has_opening);
            let lifetimes = rows.map(|row| tables.lifetime(object, row, mask));
            self.lifetimes.extend(lifetimes.filter(|lifetime| {
                lifetime.opening.is_some() || lifetime.closing.is_some() || lifetime.is_open_at_end
            }));
        }
        if self.lifetimes.is_empty() {
            let created = selected.create().map(EventIdx::row);
            self.lifetimes.push(Lifetime {
                object,
                opened: created,
                is_bare: true,
                owner: created.and_then(|event| tables.creator.get(event)),
                ..Lifetime::default()
            });
        }
        &self.lifetimes
    }
}

/// A row number, or [`sentinel`] for none.
pub fn code(row: Option<usize>) -> u32 {
    row.and_then(|row| u32::try_from(row).ok()).unwrap_or(sentinel())
}
