//! State of a trace while filters are applied: objects with their creation and end, and a mask over the events.

use std::sync::Arc;

use handlescope_model::{
    ArchiveError, EventColumns, EventIdx, EventTable, EventTimes, EventValues, ObjectIdx, RowSet,
    StackIdx, Table, Trace,
};
use rayon::prelude::*;

use super::objects::ObjectTable;
use super::stacks::StackSet;
use handlescope_session::cancel::{Cancel, Cancelled, Poll};

/// Rows of a mask that one thread processes at a time.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Objects that one thread processes at a time.
pub const OBJECTS_AT_ONCE: usize = 1 << 18;

/// An object that passed the filters so far.
///
/// Twelve bytes, because there may be tens of millions of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selected {
    object: ObjectIdx,
    /// The creation that the filters left: [`UNFILTERED`] for that of the object, and that of no row for none.
    create: EventIdx,
    /// Whether a filter removed the event that ended it.
    is_end_removed: bool,
}

/// Stands for the event that created an object before any filter.
const UNFILTERED: EventIdx = EventIdx(u32::MAX - 1);

impl Selected {
    /// Row of the object in the objects table; its id is one more.
    pub fn object(self) -> ObjectIdx {
        self.object
    }

    /// The id that users see, from 1.
    pub fn id(self) -> u64 {
        u64::from(self.object.0) + 1
    }

    /// The event that counts as creation after the filters.
    pub fn create(self, table: &EventTable) -> Option<EventIdx> {
        match self.create {
            UNFILTERED => table.create_event(self.object),
            create => create.known(),
        }
    }

    /// The event that ended the object, unless a filter removed it.
    pub fn end(self, times: &EventTimes) -> Option<EventIdx> {
        if self.is_end_removed { None } else { times.destroy_event(self.object) }
    }

    /// Whether it has an end, unless a filter removed that.
    pub fn has_end(self, table: &EventTable) -> bool {
        !self.is_end_removed && table.has_destroy_event(self.object)
    }

    pub fn set_create(&mut self, event: Option<EventIdx>) {
        self.create = event.unwrap_or(EventIdx::NONE);
    }

    pub fn remove_end(&mut self) {
        self.is_end_removed = true;
    }
}

/// The objects that passed, in id order, and the events that are left of them.
#[derive(Debug, Clone)]
pub struct Selection {
    pub objects: Vec<Selected>,
    pub events: EventMask,
    /// Modules whose symbols a filter on stacks needs and does not have.
    pub needs_symbols: Vec<String>,
}

impl Selection {
    /// The objects that a predicate over the unfiltered table lets pass, with all their events.
    pub fn new(
        objects: &ObjectTable,
        cancel: &Cancel,
        mut passes: impl FnMut(ObjectIdx) -> bool,
    ) -> Result<Self, Cancelled> {
        let mut poll = Poll::new(cancel);
        let mut selected = Vec::with_capacity(objects.len());
        for object in objects.iter() {
            poll.round()?;
            if passes(object) {
                selected.push(Selected { object, create: UNFILTERED, is_end_removed: false });
            }
        }
        Ok(Self { objects: selected, events: EventMask::All, needs_symbols: Vec::new() })
    }

    /// The objects with any such handle or view, by its row, before events are removed.
    pub fn with_any(&self, objects: &ObjectTable, passes: impl Fn(usize) -> bool) -> Self {
        let selected = self.objects.iter().copied();
        let selected = selected.filter(|it| objects.table.acquisitions(it.object()).any(&passes));
        Self { objects: selected.collect(), events: EventMask::All, needs_symbols: Vec::new() }
    }

    /// Keeps the objects that pass. The predicate may remove events of its object.
    pub fn retain(
        &mut self,
        cancel: &Cancel,
        mut passes: impl FnMut(&mut Selected, &mut EventMask) -> bool,
    ) -> Result<(), Cancelled> {
        let Self { objects, events, .. } = self;
        let mut poll = Poll::new(cancel);
        let mut result = Ok(());
        objects.retain_mut(|selected| {
            result = result.and_then(|()| poll.round());
            result.is_ok() && passes(selected, events)
        });
        result
    }

    /// The objects that `filter` leaves, as it leaves them; tested by all threads.
    pub fn par_filter(
        &self,
        cancel: &Cancel,
        filter: impl Fn(&Selected) -> Option<Selected> + Sync,
    ) -> Result<Vec<Selected>, Cancelled> {
        let parts = self.objects.par_chunks(OBJECTS_AT_ONCE).map(|part| {
            let mut poll = Poll::new(cancel);
            let mut left = Vec::new();
            for selected in part {
                poll.round()?;
                left.extend(filter(selected));
            }
            Ok(left)
        });
        Ok(parts.collect::<Result<Vec<_>, Cancelled>>()?.concat())
    }

    pub fn objects(&self) -> &[Selected] {
        &self.objects
    }

    /// The stacks that `add` adds for the objects, of a table of `height`.
    pub fn stacks(
        &self,
        height: usize,
        cancel: &Cancel,
        add: impl Fn(&Selected, &mut StackSet) + Sync,
    ) -> Result<StackSet, Cancelled> {
        let parts = self.objects.par_chunks(OBJECTS_AT_ONCE).map(|part| {
            let mut needed = StackSet::new(height);
            let mut poll = Poll::new(cancel);
            for selected in part {
                poll.round()?;
                add(selected, &mut needed);
            }
            Ok(needed)
        });
        Ok(united(&parts.collect::<Result<Vec<StackSet>, Cancelled>>()?, height))
    }

    /// The stacks of their events that are in a mask, of a table of `height`.
    pub fn event_stacks(
        &self,
        table: &EventTable,
        mask: &EventMask,
        stack: &EventValues<StackIdx>,
        height: usize,
        cancel: &Cancel,
    ) -> Result<StackSet, Cancelled> {
        if mask.is_partial() || self.objects.len() < table.objects {
            return self.stacks(height, cancel, |selected, needed| {
                let events = table.events(selected.object()).filter(|event| mask.contains(*event));
                events.for_each(|event| needed.add(stack.get(event)));
            });
        }
        // Of all objects, column by column.
        let parts = (0..table.allocations.div_ceil(OBJECTS_AT_ONCE)).into_par_iter().map(|part| {
            cancel.check()?;
            let (first, mut needed) = (part * OBJECTS_AT_ONCE, StackSet::new(height));
            for row in first..(first + OBJECTS_AT_ONCE).min(table.allocations) {
                needed.add(stack.opened(row));
                needed.add(stack.ended(row));
            }
            Ok(needed)
        });
        let mut needed = united(&parts.collect::<Result<Vec<StackSet>, Cancelled>>()?, height);
        stack.others().for_each(|stack| needed.add(Some(stack)));
        Ok(needed)
    }

    /// Rows of the objects.
    pub fn object_rows(&self, objects: &ObjectTable) -> Arc<RowSet> {
        let rows = self.objects.iter().map(|selected| selected.object().row());
        Arc::new(RowSet::new(objects.height(), rows))
    }

    /// Rows of the handles and views of the objects, in a table of `height`; all of them where most objects are left.
    pub fn acquisition_rows(&self, objects: &ObjectTable, height: usize) -> Arc<RowSet> {
        if self.objects.len() > objects.len() / 2 {
            return Arc::new(RowSet::all(height));
        }
        let rows =
            self.objects.iter().flat_map(|selected| objects.table.acquisitions(selected.object()));
        Arc::new(RowSet::new(height, rows))
    }

    /// The columns of their events.
    pub fn columns<'a>(
        &self,
        trace: &'a Trace,
        objects: &ObjectTable,
    ) -> Result<EventColumns<'a>, ArchiveError> {
        let height = trace.height(Table::Acquisitions)?;
        EventColumns::of_rows(trace, self.acquisition_rows(objects, height))
    }
}

fn united(parts: &[StackSet], height: usize) -> StackSet {
    let mut all = StackSet::new(height);
    parts.iter().for_each(|part| all.add_all(part));
    all
}

/// Events that are left.
#[derive(Debug, Clone)]
pub enum EventMask {
    /// No filter removed any.
    All,
    /// Whether an event is left, by its number.
    Some(Vec<bool>),
}

impl EventMask {
    /// Whether a filter removed events.
    pub fn is_partial(&self) -> bool {
        matches!(self, Self::Some(_))
    }

    /// Whether an event is left.
    pub fn contains(&self, event: usize) -> bool {
        match self {
            Self::All => true,
            Self::Some(is_left) => is_left.get(event).copied().unwrap_or_default(),
        }
    }

    /// Whether each event of a trace with `height` numbers is left.
    fn by_row(&mut self, height: usize) -> &mut [bool] {
        if matches!(self, Self::All) {
            *self = Self::Some(vec![true; height]);
        }
        match self {
            Self::Some(is_left) => is_left,
            Self::All => &mut [],
        }
    }

    /// Removes the events that do not pass, those of objects that are gone, too.
    ///
    /// `height` is that of the events of the trace.
    pub fn retain(
        &mut self,
        height: usize,
        cancel: &Cancel,
        passes: impl Fn(usize) -> bool + Sync,
    ) -> Result<(), Cancelled> {
        retain_rows(self.by_row(height), cancel, passes)
    }

    /// Removes some events that do not pass; returns whether any of them is left.
    ///
    /// `height` is that of the events of the trace.
    pub fn restrict(
        &mut self,
        height: usize,
        events: impl Iterator<Item = usize>,
        mut passes: impl FnMut(usize) -> bool,
    ) -> bool {
        let is_left = self.by_row(height);
        let mut has_event = false;
        for event in events {
            if let Some(is_left) = is_left.get_mut(event) {
                *is_left = *is_left && passes(event);
                has_event |= *is_left;
            }
        }
        has_event
    }
}

/// Removes from a mask the rows that do not pass; tested by all threads.
pub fn retain_rows(
    is_left: &mut [bool],
    cancel: &Cancel,
    passes: impl Fn(usize) -> bool + Sync,
) -> Result<(), Cancelled> {
    is_left.par_chunks_mut(ROWS_AT_ONCE).enumerate().try_for_each(|(part, is_left)| {
        cancel.check()?;
        // Two at once, because openings and ends of handles take turns.
        let (pairs, rest) = is_left.as_chunks_mut::<2>();
        let mut row = part * ROWS_AT_ONCE;
        for [first, second] in pairs {
            *first = *first && passes(row);
            *second = *second && passes(row + 1);
            row += 2;
        }
        rest.iter_mut().for_each(|is_left| *is_left = *is_left && passes(row));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_without_restriction_holds_every_event() {
        assert!(EventMask::All.contains(7));
    }

    #[test]
    fn a_removed_event_stays_removed() {
        let mut mask = EventMask::All;
        assert!(mask.restrict(4, 1..3, |event| event == 2));
        assert!(!mask.restrict(4, 1..3, |event| event == 1));
        let left: Vec<_> = (0..5).filter(|&event| mask.contains(event)).collect();
        assert_eq!(left, [0, 3]);
    }
}
