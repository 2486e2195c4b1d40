//! The state of a trace while filters are applied: objects with their creation and end, and a mask over the events.

use std::sync::Arc;

use handlescope_model::{
    ArchiveError, EventColumns, EventIdx, EventTable, EventTimes, EventValues, ObjectIdx, RowSet,
    StackIdx, Table, Trace,
};
use rayon::prelude::*;

use super::objects::ObjectTable;
use super::stacks::StackSet;
use handlescope_session::cancel::{Cancel, Cancelled, Poll};

/// Number of mask rows that one thread processes at a time.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Number of objects that one thread processes at a time.
pub const OBJECTS_AT_ONCE: usize = 1 << 18;

/// An object that passed the filters so far.
///
/// Twelve bytes, because there may be tens of millions of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectedObject {
    object: ObjectIdx,
    /// The creation that filters left: [`UNFILTERED`] for the object's own, `EventIdx::NONE` for none.
    create: EventIdx,
    /// Whether a filter removed the event that ended it.
    is_end_removed: bool,
}

/// Stands for the event that created an object before any filter.
const UNFILTERED: EventIdx = EventIdx(u32::MAX - 1);

impl SelectedObject {
    /// Returns the row of the object in the objects table; its id is one more.
    pub fn object(self) -> ObjectIdx {
        self.object
    }

    /// Returns the id that users see, from 1.
    pub fn id(self) -> u64 {
        u64::from(self.object.0) + 1
    }

    /// Returns the event that counts as creation after filtering.
    pub fn create(self, table: &EventTable) -> Option<EventIdx> {
        match self.create {
            UNFILTERED => table.create_event(self.object),
            create => create.known(),
        }
    }

    /// Returns the event that ended the object, unless a filter removed it.
    pub fn end(self, times: &EventTimes) -> Option<EventIdx> {
        if self.is_end_removed { None } else { times.destroy_event(self.object) }
    }

    /// Whether it has an end that no filter removed.
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

/// The objects that passed, by id, and their remaining events.
#[derive(Debug, Clone)]
pub struct Selection {
    pub objects: Vec<SelectedObject>,
    pub events: EventMask,
    /// Modules without the symbols that a stack filter needs.
    pub needs_symbols: Vec<String>,
}

impl Selection {
    /// Selects the objects that pass a predicate on the unfiltered table, with all their events.
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
                selected.push(SelectedObject { object, create: UNFILTERED, is_end_removed: false });
            }
        }
        Ok(Self { objects: selected, events: EventMask::All, needs_symbols: Vec::new() })
    }

    /// Selects the objects that have a matching handle or view (by row), before events are removed.
    pub fn with_any(&self, objects: &ObjectTable, passes: impl Fn(usize) -> bool) -> Self {
        let selected = self
            .objects
            .iter()
            .copied()
            .filter(|it| objects.table.acquisitions(it.object()).any(&passes));
        Self { objects: selected.collect(), events: EventMask::All, needs_symbols: Vec::new() }
    }

    /// Keeps the objects that pass. The predicate may remove events of its object.
    pub fn retain(
        &mut self,
        cancel: &Cancel,
        mut passes: impl FnMut(&mut SelectedObject, &mut EventMask) -> bool,
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

    /// Returns what `filter` makes of the objects; runs on all threads.
    pub fn par_filter(
        &self,
        cancel: &Cancel,
        filter: impl Fn(&SelectedObject) -> Option<SelectedObject> + Sync,
    ) -> Result<Vec<SelectedObject>, Cancelled> {
        Ok(self
            .objects
            .par_chunks(OBJECTS_AT_ONCE)
            .map(|part| {
                let mut poll = Poll::new(cancel);
                let mut left = Vec::new();
                for selected in part {
                    poll.round()?;
                    left.extend(filter(selected));
                }
                Ok(left)
            })
            .collect::<Result<Vec<_>, Cancelled>>()?
            .concat())
    }

    pub fn objects(&self) -> &[SelectedObject] {
        &self.objects
    }

    /// Collects the stacks that `add` adds for the objects; the stack table has `height` rows.
    pub fn stacks(
        &self,
        height: usize,
        cancel: &Cancel,
        add: impl Fn(&SelectedObject, &mut StackSet) + Sync,
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

    /// Returns the stacks of the objects' events in a mask; the stack table has `height` rows.
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
        // For all objects, column by column.
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

    /// Returns the rows of the objects.
    pub fn object_rows(&self, objects: &ObjectTable) -> Arc<RowSet> {
        let rows = self.objects.iter().map(|selected| selected.object().row());
        Arc::new(RowSet::new(objects.height(), rows))
    }

    /// Returns the rows of the objects' handles and views in a table of `height` rows; all rows if most objects are
    /// left.
    pub fn acquisition_rows(&self, objects: &ObjectTable, height: usize) -> Arc<RowSet> {
        if self.objects.len() > objects.len() / 2 {
            return Arc::new(RowSet::all(height));
        }
        let rows =
            self.objects.iter().flat_map(|selected| objects.table.acquisitions(selected.object()));
        Arc::new(RowSet::new(height, rows))
    }

    /// Returns the columns of the objects' events.
    pub fn columns<'a>(
        &self,
        trace: &'a Trace,
        objects: &ObjectTable,
    ) -> Result<EventColumns<'a>, ArchiveError> {
        let height = trace.height(Table::Acquisitions)?;
        EventColumns::for_rows(trace, self.acquisition_rows(objects, height))
    }
}

fn united(parts: &[StackSet], height: usize) -> StackSet {
    let mut all = StackSet::new(height);
    parts.iter().for_each(|part| all.add_all(part));
    all
}

/// The remaining events.
#[derive(Debug, Clone)]
pub enum EventMask {
    /// No filter removed any.
    All,
    /// Whether each event is left, by event number.
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

    /// Returns whether each event is left; the trace has `height` event numbers.
    fn by_row(&mut self, height: usize) -> &mut [bool] {
        if matches!(self, Self::All) {
            *self = Self::Some(vec![true; height]);
        }
        match self {
            Self::Some(is_left) => is_left,
            Self::All => &mut [],
        }
    }

    /// Removes the events that do not pass, including those of removed objects.
    ///
    /// `height` is the number of event numbers in the trace.
    pub fn retain(
        &mut self,
        height: usize,
        cancel: &Cancel,
        passes: impl Fn(usize) -> bool + Sync,
    ) -> Result<(), Cancelled> {
        retain_rows(self.by_row(height), cancel, passes)
    }

    /// Removes the given events that do not pass; returns whether any of them is left.
    ///
    /// `height` is the number of event numbers in the trace.
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

/// Clears the mask rows that do not pass; runs on all threads.
pub fn retain_rows(
    is_left: &mut [bool],
    cancel: &Cancel,
    passes: impl Fn(usize) -> bool + Sync,
) -> Result<(), Cancelled> {
    is_left.par_chunks_mut(ROWS_AT_ONCE).enumerate().try_for_each(|(part, is_left)| {
        cancel.check()?;
        // Two at a time, because openings and ends of handles alternate.
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
