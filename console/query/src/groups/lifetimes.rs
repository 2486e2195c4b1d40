//! What filters leave of handles and views.

use std::sync::Arc;

use handlescope_model::{AcquisitionIdx, EventTable, EventTimes, ObjectIdx};

use super::counted::CompactHandle;
use crate::context::FileContext;
use crate::error::QueryError;
use crate::selection::{EventMask, SelectedObject};
use handlescope_session::trace::lists_open_handles;

/// The times of events.
pub struct HandleTimes {
    times: Arc<EventTimes>,
    has_clock: bool,
}

impl HandleTimes {
    pub fn load(file: &FileContext<'_>) -> Result<Self, QueryError> {
        let has_clock = file.trace.info()?.has_clock();
        Ok(Self { times: file.trace.event_times()?, has_clock })
    }

    /// Returns the times of a handle's first and last counted events in nanoseconds.
    pub fn span(&self, handle: CompactHandle) -> Option<(i64, i64)> {
        let (has_opened, has_closed) = handle.events();
        let numbering = self.times.table.numbering;
        let opened = if has_opened { self.of(numbering.opening(handle.row.row())) } else { None };
        let closed = if has_closed { self.of(numbering.ending(handle.row.row())) } else { None };
        let (first, last) = (opened.or(closed)?, closed.or(opened)?);
        Some((first.min(last), first.max(last)))
    }

    /// Returns the time of an event in nanoseconds; `None` without a clock, because times are then only an order.
    pub fn of(&self, event: usize) -> Option<i64> {
        self.times.get(event).filter(|_| self.has_clock)
    }
}

/// What became of handles and views.
pub struct LifeTables {
    table: Arc<EventTable>,
    pub times: HandleTimes,
    has_end_rundown: bool,
}

impl LifeTables {
    pub fn load(file: &FileContext<'_>) -> Result<Self, QueryError> {
        Ok(Self {
            table: Arc::clone(&file.objects.table),
            times: HandleTimes::load(file)?,
            has_end_rundown: lists_open_handles(file.trace)?,
        })
    }

    /// Adds the remaining handles and views of an object; those open before the trace come last. If there are none,
    /// adds a placeholder for the object.
    pub fn add(
        &self,
        selected: SelectedObject,
        mask: &EventMask,
        handles: &mut Vec<CompactHandle>,
    ) {
        let (object, first) = (selected.object(), handles.len());
        let mut has_older = false;
        for row in self.table.acquisitions(object) {
            if self.table.state(row).is_opened() {
                handles.extend(self.handle(object, row, mask));
            } else {
                has_older = true;
            }
        }
        if has_older {
            let rows = self.table.acquisitions(object);
            let older = rows.filter(|row| !self.table.state(*row).is_opened());
            handles.extend(older.filter_map(|row| self.handle(object, row, mask)));
        }
        if handles.len() == first {
            handles.push(CompactHandle::bare(object, selected.create(&self.table)));
        }
    }

    /// Makes a handle or view; `None` if nothing is left of it.
    fn handle(&self, object: ObjectIdx, row: usize, mask: &EventMask) -> Option<CompactHandle> {
        let (table, state) = (&self.table, self.table.state(row));
        let is_left = state.is_opened() && mask.contains(table.numbering.opening(row));
        let ending = table.numbering.ending(row);
        // An unmap closes all views of its process but counts once.
        let is_end_left = table.ending(row) == Some(ending) && mask.contains(ending);
        let is_leaked = is_left && state.is_leaked();
        let is_open_at_end =
            if self.has_end_rundown { state.is_listed() } else { is_leaked && !state.is_view() };
        if !is_left && !is_end_left && !is_open_at_end {
            return None;
        }
        let opened = match (state.is_copy(), state.is_view()) {
            (true, _) => CompactHandle::DUPLICATED,
            (_, true) => CompactHandle::MAPPED,
            (false, false) => CompactHandle::CREATED,
        };
        let closed = if state.is_view() { CompactHandle::UNMAPPED } else { CompactHandle::CLOSED };
        let flags = [
            (is_left, opened),
            (is_end_left, closed),
            (is_leaked, CompactHandle::LEAKED),
            (is_left && state.is_closed_at_exit(), CompactHandle::AT_EXIT),
            (is_left && state.is_closed_unseen(), CompactHandle::UNSEEN),
            (is_open_at_end, CompactHandle::OPEN_AT_END),
        ];
        let flags =
            flags.into_iter().fold(0, |flags, (is, flag)| if is { flags | flag } else { flags });
        Some(CompactHandle { object, row: AcquisitionIdx::from_row(row), flags })
    }

    /// Returns the event that opened a handle, filtered out or not. For an object without handles, returns the event
    /// that created it.
    pub fn opening(&self, handle: CompactHandle) -> Option<usize> {
        if handle.is_bare() {
            Some(handle.row).filter(|row| *row != AcquisitionIdx::NONE).map(AcquisitionIdx::row)
        } else {
            self.table.opening(handle.row.row())
        }
    }

    /// Returns the event that closed a handle, filtered out or not.
    pub fn ending(&self, handle: CompactHandle) -> Option<usize> {
        if handle.is_bare() { None } else { self.table.ending(handle.row.row()) }
    }
}
