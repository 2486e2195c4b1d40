//! Handles and views, each from its opening to its close.

use std::collections::HashMap;
use std::sync::Arc;

use handlescope_model::rules::{CLOSING, OPENING, handle_slot, is_leaked_handle};
use handlescope_model::tables::{Events, ExistingHandles};
use handlescope_model::{
    EventIdx, EventKind, Flags, Numbers, ObjectIdx, ProcessIdx, RowSet, Sparse, Trace, sentinel,
};

use crate::context::FileContext;
use crate::error::QueryError;
use crate::info::trace_info;
use crate::objects::ObjectTable;
use crate::objects::Owners;
use crate::selection::{EventMask, Selected};
use handlescope_session::trace::{lists_open_handles, unseen_values};

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
pub struct LifeTables<'a> {
    objects: &'a ObjectTable,
    kind: Numbers<u32>,
    pub times: Times,
    owners: Owners,
    /// Values of the handles to objects that the rundown at the end lists.
    handle: Sparse<Numbers<u64>>,
    closing_event: Numbers<EventIdx>,
    leaked: Flags,
    closed_at_exit: Flags,
    closed_unseen: Numbers<u32>,
    existing_owner: Numbers<ProcessIdx>,
    existing_handle: Numbers<u64>,
    has_end_rundown: bool,
}

impl<'a> LifeTables<'a> {
    pub fn load(file: &'a FileContext<'_>) -> Result<Self, QueryError> {
        let (trace, objects) = (file.trace, &file.objects);
        let listed = objects.iter().filter(|object| !objects.existing(*object).is_empty());
        let rows = listed.flat_map(|object| objects.events(object));
        let rows = Arc::new(RowSet::new(objects.event_count(), rows));
        Ok(Self {
            objects,
            kind: trace.values(Events::kind)?,
            times: Times::load(trace)?,
            owners: Owners::load(trace)?,
            handle: trace.values_at(Events::handle, &rows)?,
            closing_event: trace.values(Events::closing_event)?,
            leaked: trace.values(Events::leaked)?,
            closed_at_exit: trace.values(Events::closed_at_exit)?,
            closed_unseen: unseen_values(trace, Events::closed_unseen)?,
            existing_owner: trace.values(ExistingHandles::process)?,
            existing_handle: trace.values(ExistingHandles::handle)?,
            has_end_rundown: lists_open_handles(trace)?,
        })
    }

    fn kind_of(&self, event: usize) -> Option<EventKind> {
        EventKind::from_code(self.kind.get(event)?)
    }

    /// Handle or view that an event opened.
    fn opened_by(&self, object: ObjectIdx, event: usize, mask: &EventMask) -> Lifetime {
        let closed = self.closing_event.get(event);
        let kind = self.kind_of(event);
        let opening = kind.filter(|_| mask.contains(event));
        let is_left = opening.is_some();
        let is_leaked = is_left && self.leaked.get(event);
        Lifetime {
            object,
            opened: Some(EventIdx::of(event)),
            closed,
            opening,
            closing: closed
                .map(EventIdx::row)
                .filter(|&row| mask.contains(row))
                .and_then(|row| self.kind_of(row)),
            is_leaked,
            is_closed_at_exit: is_left && self.closed_at_exit.get(event),
            is_closed_unseen: is_left && self.closed_unseen.get(event).is_some(),
            is_open_at_end: !self.has_end_rundown
                && kind.is_some_and(|kind| is_leaked_handle(kind, is_leaked)),
            is_bare: false,
            owner: self.owners.of(event),
        }
    }
}

/// Follows the handles and views of objects, one object after the other.
pub struct Lifetimes<'a> {
    tables: &'a LifeTables<'a>,
    /// Whether each event of the current object closes something that an event opened.
    is_matched: Vec<bool>,
    lifetimes: Vec<Lifetime>,
}

impl<'a> Lifetimes<'a> {
    pub fn new(tables: &'a LifeTables<'a>) -> Self {
        Self { tables, is_matched: Vec::new(), lifetimes: Vec::new() }
    }

    /// Handles and views of an object, as far as something of them is left; never empty.
    pub fn of_object(&mut self, selected: Selected, mask: &EventMask) -> &[Lifetime] {
        let tables = self.tables;
        self.lifetimes.clear();
        let object = selected.object();
        let events = tables.objects.events(object);
        self.is_matched.clear();
        self.is_matched.resize(events.len(), false);
        for event in events.clone() {
            if tables.kind_of(event).is_some_and(|kind| OPENING.contains(kind)) {
                let lifetime = tables.opened_by(object, event, mask);
                let index = lifetime.closed.and_then(|it| it.row().checked_sub(events.start));
                let is_matched = index.and_then(|index| self.is_matched.get_mut(index));
                // An unmap closes all views of its process.
                let is_second = is_matched.is_some_and(|flag| std::mem::replace(flag, true));
                let closing = lifetime.closing.filter(|_| !is_second);
                self.lifetimes.push(Lifetime { closing, ..lifetime });
            }
        }
        for (event, is_matched) in events.zip(&self.is_matched) {
            let kind = tables.kind_of(event).filter(|kind| CLOSING.contains(*kind));
            if let (Some(kind), false, true) = (kind, is_matched, mask.contains(event)) {
                self.lifetimes.push(Lifetime {
                    object,
                    closed: Some(EventIdx::of(event)),
                    closing: Some(kind),
                    owner: tables.owners.process(event),
                    ..Lifetime::default()
                });
            }
        }
        if tables.has_end_rundown {
            self.mark_existing(object);
        }
        self.lifetimes.retain(|lifetime| {
            lifetime.opening.is_some() || lifetime.closing.is_some() || lifetime.is_open_at_end
        });
        if self.lifetimes.is_empty() {
            let created = selected.create();
            self.lifetimes.push(Lifetime {
                object,
                opened: created,
                is_bare: true,
                owner: created.and_then(|event| tables.owners.process(event.row())),
                ..Lifetime::default()
            });
        }
        &self.lifetimes
    }

    /// Marks what the rundown at the end lists of an object, and adds what was open before the trace.
    fn mark_existing(&mut self, object: ObjectIdx) {
        let tables = self.tables;
        let existing = tables.objects.existing(object);
        if existing.is_empty() {
            return;
        }
        let owners = tables.existing_owner.range(existing.clone());
        let mut open: HashMap<(ProcessIdx, u64), u32> = HashMap::new();
        for handle in owners.zip(tables.existing_handle.range(existing)) {
            *open.entry((handle.0, handle_slot(handle.1))).or_default() += 1;
        }
        // Of the handles with one value, the last opened are the open ones.
        for lifetime in self.lifetimes.iter_mut().rev().filter(|it| it.closed.is_none()) {
            let value = lifetime.opened.and_then(|event| tables.handle.get(event.row()));
            let value = value.map(handle_slot);
            let count = lifetime.owner.zip(value).and_then(|handle| open.get_mut(&handle));
            if let Some(count) = count.filter(|count| **count > 0) {
                *count -= 1;
                lifetime.is_open_at_end = true;
            }
        }
        let mut before: Vec<_> = open.into_iter().filter(|(_, count)| *count > 0).collect();
        before.sort_unstable();
        for ((owner, _), count) in before {
            let lifetime = Lifetime {
                object,
                is_open_at_end: true,
                owner: Some(owner),
                ..Lifetime::default()
            };
            self.lifetimes.extend((0..count).map(|_| lifetime));
        }
    }
}

/// A row number, or [`sentinel`] for none.
pub fn code(row: Option<usize>) -> u32 {
    row.and_then(|row| u32::try_from(row).ok()).unwrap_or(sentinel())
}
