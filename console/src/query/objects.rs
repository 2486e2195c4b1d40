//! The objects table as the queries need it: where the events and handles of an object stand.

use std::ops::Range;

use handlescope_model::tables::Objects;
use handlescope_model::{
    ArchiveError, EventIdx, ExistingIdx, FILE_MAPPING_TYPE, Numbers, ObjectIdx, RowCount, Table,
    Trace, TypeId,
};

/// The columns of the objects table that every query reads.
///
/// Row numbers from a damaged archive are clamped to the heights of their tables, so that these ranges lie within the
/// columns.
pub(crate) struct ObjectTable {
    type_id: Numbers<TypeId>,
    first_event: Numbers<EventIdx>,
    event_count: Numbers<RowCount<EventIdx>>,
    first_existing: Numbers<ExistingIdx>,
    existing_count: Numbers<RowCount<ExistingIdx>>,
    create_event: Numbers<EventIdx>,
    destroy_event: Numbers<EventIdx>,
    events: usize,
    existing: usize,
}

impl ObjectTable {
    pub(crate) fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        Ok(Self {
            type_id: trace.values(Objects::type_id)?,
            first_event: trace.values(Objects::first_event)?,
            event_count: trace.values(Objects::event_count)?,
            first_existing: trace.values(Objects::first_existing)?,
            existing_count: trace.values(Objects::existing_count)?,
            create_event: trace.values(Objects::create_event)?,
            destroy_event: trace.values(Objects::destroy_event)?,
            events: trace.height(Table::Events)?,
            existing: trace.height(Table::ExistingHandles)?,
        })
    }

    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        self.type_id.len()
    }

    /// Number of events of all objects.
    pub(crate) fn event_count(&self) -> usize {
        self.events
    }

    pub(crate) fn type_id(&self, object: ObjectIdx) -> TypeId {
        self.type_id.get(object.row()).unwrap_or_default()
    }

    pub(crate) fn is_mapping(&self, object: ObjectIdx) -> bool {
        self.type_id(object) == FILE_MAPPING_TYPE
    }

    /// Rows of the object's events.
    #[inline]
    pub(crate) fn events(&self, object: ObjectIdx) -> Range<usize> {
        let first = self.first_event.get(object.row()).map_or(0, EventIdx::row);
        within(first, self.event_count.get(object.row()), self.events)
    }

    /// Rows of the object's handles in the end rundown.
    #[inline]
    pub(crate) fn existing(&self, object: ObjectIdx) -> Range<usize> {
        // Most objects have none.
        let count = self.existing_count.get(object.row()).filter(|count| count.0 > 0);
        let first = count.and_then(|_| self.first_existing.get(object.row()));
        within(first.map_or(0, ExistingIdx::row), count, self.existing)
    }

    /// Row of the event that created the object, before any filter.
    pub(crate) fn create_event(&self, object: ObjectIdx) -> Option<EventIdx> {
        self.create_event.get(object.row()).filter(|event| event.row() < self.events)
    }

    /// Row of the event that ended the object, before any filter.
    pub(crate) fn destroy_event(&self, object: ObjectIdx) -> Option<EventIdx> {
        self.destroy_event.get(object.row()).filter(|event| event.row() < self.events)
    }
}

/// The rows from `first` on that are there.
fn within<I>(first: usize, count: Option<RowCount<I>>, height: usize) -> Range<usize> {
    let first = first.min(height);
    let count = count.map_or(0, |count| count.0 as usize);
    first..first.saturating_add(count).min(height)
}
