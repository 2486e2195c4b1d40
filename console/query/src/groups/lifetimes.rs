//! Handles and views, each from its opening to its close.

use std::ops::Range;
use std::sync::Arc;

use handlescope_model::tables::{AcquisitionKind, Acquisitions, End, Events, Objects, Origin};
use handlescope_model::{
    AcquisitionIdx, EventIdx, EventKind, EventOrder, Flags, Numbers, ObjectIdx, ProcessIdx,
    RowCount, Trace, sentinel,
};

use crate::context::FileContext;
use crate::error::QueryError;
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
    /// Row of the event that opened it; none for what was open before the trace.
    pub opened: Option<EventIdx>,
    /// Row of the event that closed it.
    pub closed: Option<EventIdx>,
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
    time_ns: Numbers<i64>,
    has_clock: bool,
}

impl Times {
    pub fn load(trace: &Trace) -> Result<Self, QueryError> {
        let has_clock = trace_info(trace)?.has_clock();
        Ok(Self { time_ns: trace.values(Events::time_ns)?, has_clock })
    }

    /// Times of the first and the last of some events, nanoseconds.
    pub fn span(&self, events: impl Iterator<Item = usize>) -> Option<(i64, i64)> {
        let times = events.filter_map(|event| self.of(event));
        times.map(|time| (time, time)).reduce(|span, time| (span.0.min(time.0), span.1.max(time.1)))
    }

    /// Time of an event, nanoseconds; in a trace without clock the times are only an order.
    pub fn of(&self, event: usize) -> Option<i64> {
        self.time_ns.get(event).filter(|_| self.has_clock)
    }
}

/// The columns that say what became of handles and views.
pub struct LifeTables {
    order: Arc<EventOrder>,
    pub times: Times,
    first: Numbers<AcquisitionIdx>,
    count: Numbers<RowCount<AcquisitionIdx>>,
    kind: Numbers<u32>,
    process: Numbers<ProcessIdx>,
    origin: Numbers<u32>,
    end: Numbers<u32>,
    in_rundown: Flags,
    /// The processes of the events that create objects.
    creator: Numbers<ProcessIdx>,
    has_end_rundown: bool,
}

impl LifeTables {
    pub fn load(file: &FileContext<'_>) -> Result<Self, QueryError> {
        let trace = file.trace;
        Ok(Self {
            order: trace.event_order()?,
            times: Times::load(trace)?,
            first: trace.values(Objects::first_acquisition)?,
            count: trace.values(Objects::acquisition_count)?,
            kind: trace.values(Acquisitions::kind)?,
            process: trace.values(Acquisitions::process)?,
            origin: trace.values(Acquisitions::origin)?,
            end: trace.values(Acquisitions::end)?,
            in_rundown: trace.values(Acquisitions::in_rundown)?,
            creator: trace.values(Events::process)?,
            has_end_rundown: lists_open_handles(trace)?,
        })
    }

    /// Rows of the handles and views of an object.
    fn rows(&self, object: ObjectIdx) -> Range<usize> {
        let first = self.first.get(object.row()).map_or(0, AcquisitionIdx::row);
        let count = self.count.get(object.row()).map_or(0, |count| count.0 as usize);
        let end = self.order.allocations;
        first.min(end)..first.saturating_add(count).min(end)
    }

    /// A handle or view, as far as `mask` leaves its events.
    fn lifetime(&self, object: ObjectIdx, row: usize, mask: &EventMask) -> Lifetime {
        let (opened, closed) = (self.order.opened(row), self.order.ended(row));
        let is_view = self.kind.get(row) == Some(AcquisitionKind::View.code());
        let life = self.origin.get(row).and_then(Origin::from_code);
        let life = life.zip(self.end.get(row).and_then(End::from_code));
        let opening = opened
            .filter(|event| mask.contains(event.row()))
            .and_then(|_| life.and_then(|(origin, _)| origin.event()));
        let closing = closed
            // An unmap closes all views of its process, and counts once.
            .filter(|event| self.order.acquisition(*event) == Some(AcquisitionIdx::of(row)))
            .filter(|event| mask.contains(event.row()))
            .map(|_| if is_view { EventKind::Unmap } else { EventKind::HandleClose });
        let left = life.filter(|_| opening.is_some());
        let is_leaked = left.is_some_and(|(origin, end)| origin.is_leak(end));
        Lifetime {
            object,
            opened,
            closed,
            opening,
            closing,
            is_leaked,
            is_closed_at_exit: left.is_some_and(|(origin, end)| origin.is_leak_at_exit(end)),
            is_closed_unseen: left.is_some_and(|(_, end)| end.unseen().is_some()),
            is_open_at_end: match self.has_end_rundown {
                true => self.in_rundown.get(row),
                false => is_leaked && !is_view,
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
            let rows = tables.rows(object);
            let rows = rows.filter(|row| tables.order.opened(*row).is_some() == has_opening);
            let lifetimes = rows.map(|row| tables.lifetime(object, row, mask));
            self.lifetimes.extend(lifetimes.filter(|lifetime| {
                lifetime.opening.is_some() || lifetime.closing.is_some() || lifetime.is_open_at_end
            }));
        }
        if self.lifetimes.is_empty() {
            let created = selected.create();
            self.lifetimes.push(Lifetime {
                object,
                opened: created,
                is_bare: true,
                owner: created.and_then(|event| tables.creator.get(event.row())),
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
