//! The objects table as the queries need it: where the events and handles of an object stand.

use handlescope_model::tables::{Events, ObjectSpans, Objects};
use handlescope_model::{
    ArchiveError, EventIdx, ExistingIdx, FILE_MAPPING_TYPE, Numbers, ObjectIdx, ProcessIdx,
    RowCount, RowSet, Sparse, Table, Trace, TypeId,
};
use std::ops::Range;
use std::sync::Arc;

/// The columns of the objects table that every query reads.
///
/// Row numbers from a damaged archive are clamped to the heights of their tables, so that these ranges lie within the
/// columns.
pub struct ObjectTable {
    /// Objects that are read.
    rows: Arc<RowSet>,
    type_id: Sparse<Numbers<TypeId>>,
    first_event: Sparse<Numbers<EventIdx>>,
    event_count: Sparse<Numbers<RowCount<EventIdx>>>,
    first_existing: Sparse<Numbers<ExistingIdx>>,
    existing_count: Sparse<Numbers<RowCount<ExistingIdx>>>,
    create_event: Sparse<Numbers<EventIdx>>,
    destroy_event: Sparse<Numbers<EventIdx>>,
    events: usize,
    existing: usize,
}

impl ObjectTable {
    /// Reads all objects.
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        Self::of_rows(trace, RowSet::all(trace.height(Table::ObjectSpans)?))
    }

    /// Reads the objects with any of some events. The others, which may be nearly all, take no memory.
    pub fn with_any(
        trace: &Trace,
        is_selected: impl Fn(usize) -> bool,
    ) -> Result<Self, ArchiveError> {
        let (first, count) =
            (trace.values(ObjectSpans::first_event)?, trace.values(ObjectSpans::event_count)?);
        let height = trace.height(Table::Events)?;
        let objects = trace.height(Table::ObjectSpans)?;
        let rows = (0..objects).filter(|row| {
            let first = first.get(*row).map_or(0, EventIdx::row);
            within(first, count.get(*row), height).any(&is_selected)
        });
        Self::of_rows(trace, RowSet::new(objects, rows))
    }

    fn of_rows(trace: &Trace, rows: RowSet) -> Result<Self, ArchiveError> {
        let rows = Arc::new(rows);
        Ok(Self {
            type_id: trace.values_at(Objects::type_id, &rows)?,
            first_event: trace.values_at(ObjectSpans::first_event, &rows)?,
            event_count: trace.values_at(ObjectSpans::event_count, &rows)?,
            first_existing: trace.values_at(ObjectSpans::first_existing, &rows)?,
            existing_count: trace.values_at(ObjectSpans::existing_count, &rows)?,
            create_event: trace.values_at(ObjectSpans::create_event, &rows)?,
            destroy_event: trace.values_at(ObjectSpans::destroy_event, &rows)?,
            events: trace.height(Table::Events)?,
            existing: trace.height(Table::ExistingHandles)?,
            rows,
        })
    }

    /// Number of objects, also of those that are not read.
    pub fn len(&self) -> usize {
        self.rows.height()
    }

    /// The objects that are read.
    pub fn iter(&self) -> impl Iterator<Item = ObjectIdx> + '_ {
        self.rows.iter().map(ObjectIdx::of)
    }

    /// Number of events of all objects.
    pub fn event_count(&self) -> usize {
        self.events
    }

    pub fn type_id(&self, object: ObjectIdx) -> TypeId {
        self.type_id.get(object.row()).unwrap_or_default()
    }

    pub fn is_mapping(&self, object: ObjectIdx) -> bool {
        self.type_id(object) == FILE_MAPPING_TYPE
    }

    /// Rows of the object's events.
    #[inline]
    pub fn events(&self, object: ObjectIdx) -> Range<usize> {
        let first = self.first_event.get(object.row()).map_or(0, EventIdx::row);
        within(first, self.event_count.get(object.row()), self.events)
    }

    /// Rows of the object's handles in the end rundown.
    #[inline]
    pub fn existing(&self, object: ObjectIdx) -> Range<usize> {
        // Most objects have none.
        let count = self.existing_count.get(object.row()).filter(|count| count.0 > 0);
        let first = count.and_then(|_| self.first_existing.get(object.row()));
        within(first.map_or(0, ExistingIdx::row), count, self.existing)
    }

    /// Row of the event that created the object, before any filter.
    pub fn create_event(&self, object: ObjectIdx) -> Option<EventIdx> {
        self.create_event.get(object.row()).filter(|event| event.row() < self.events)
    }

    /// Row of the event that ended the object, before any filter.
    pub fn destroy_event(&self, object: ObjectIdx) -> Option<EventIdx> {
        self.destroy_event.get(object.row()).filter(|event| event.row() < self.events)
    }
}

/// The rows from `first` on that are there.
fn within<I>(first: usize, count: Option<RowCount<I>>, height: usize) -> Range<usize> {
    let first = first.min(height);
    let count = count.map_or(0, |count| count.0 as usize);
    first..first.saturating_add(count).min(height)
}

/// The columns of events that say whose handles they open.
pub struct Owners {
    process: Numbers<ProcessIdx>,
    inherited_by: Numbers<ProcessIdx>,
}

impl Owners {
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        Ok(Self {
            process: trace.values(Events::process)?,
            inherited_by: trace.values(Events::inherited_by)?,
        })
    }

    /// Owner of the handle that an event opened: the child that inherited it, or else the process of the event.
    pub fn of(&self, event: usize) -> Option<ProcessIdx> {
        self.inherited_by(event).or_else(|| self.process(event))
    }

    /// The child that inherited the handle of a duplicate.
    pub fn inherited_by(&self, event: usize) -> Option<ProcessIdx> {
        self.inherited_by.get(event)
    }

    /// The process that an event belongs to: of an inherited handle the parent.
    pub fn process(&self, event: usize) -> Option<ProcessIdx> {
        self.process.get(event)
    }
}
