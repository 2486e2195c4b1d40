//! The objects table as the queries need it: where the events and handles of an object stand.

use std::ops::Range;

use handlescope_model::{ArchiveError, FILE_MAPPING_TYPE, Table, Trace};

use crate::trace::columns::U32s;

/// The columns of the objects table that every query reads.
///
/// Row numbers out of a damaged archive are cut to the tables they point into, so that whoever
/// uses these ranges stays inside of the columns.
pub(crate) struct ObjectTable {
    type_id: U32s,
    first_event: U32s,
    event_count: U32s,
    first_existing: U32s,
    existing_count: U32s,
    create_event: U32s,
    destroy_event: U32s,
    events: usize,
    existing: usize,
}

impl ObjectTable {
    pub(crate) fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let column = |name| U32s::load(trace, Table::Objects, name);
        Ok(Self {
            type_id: column("type_id")?,
            first_event: column("first_event")?,
            event_count: column("event_count")?,
            first_existing: column("first_existing")?,
            existing_count: column("existing_count")?,
            create_event: column("create_event")?,
            destroy_event: column("destroy_event")?,
            events: trace.height(Table::Events)?,
            existing: trace.height(Table::ExistingHandles)?,
        })
    }

    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        self.type_id.values().len()
    }

    /// Number of events of all objects.
    pub(crate) fn event_count(&self) -> usize {
        self.events
    }

    pub(crate) fn type_id(&self, object: usize) -> u32 {
        self.type_id.values().get(object).copied().unwrap_or_default()
    }

    pub(crate) fn is_mapping(&self, object: usize) -> bool {
        self.type_id(object) == FILE_MAPPING_TYPE
    }

    /// Rows of the object's events.
    pub(crate) fn events(&self, object: usize) -> Range<usize> {
        slice(&self.first_event, &self.event_count, object, self.events)
    }

    /// Rows of the object's handles in the end rundown.
    pub(crate) fn existing(&self, object: usize) -> Range<usize> {
        slice(&self.first_existing, &self.existing_count, object, self.existing)
    }

    /// Row of the event that created the object, before any filter.
    pub(crate) fn create_event(&self, object: usize) -> Option<u32> {
        self.create_event.get(object).filter(|&event| (event as usize) < self.events)
    }

    /// Row of the event that ended the object, before any filter.
    pub(crate) fn destroy_event(&self, object: usize) -> Option<u32> {
        self.destroy_event.get(object).filter(|&event| (event as usize) < self.events)
    }
}

fn slice(first: &U32s, count: &U32s, object: usize, height: usize) -> Range<usize> {
    let first = first.values().get(object).map_or(0, |&first| first as usize).min(height);
    let count = count.values().get(object).map_or(0, |&count| count as usize);
    first..first.saturating_add(count).min(height)
}
