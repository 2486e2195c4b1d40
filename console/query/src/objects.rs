//! The objects table as queries need it: types, events and open handles of objects.

use std::sync::Arc;

use handlescope_model::tables::Objects;
use handlescope_model::{
    ArchiveError, EventTable, FILE_MAPPING_TYPE, Numbers, ObjectIdx, RowSet, Sparse, Table, Trace,
    TypeId,
};
use rayon::prelude::*;

use crate::selection::OBJECTS_AT_ONCE;

/// The columns of the objects table that every query reads.
///
/// Row numbers from a damaged archive are clamped to the heights of their tables.
pub struct ObjectTable {
    /// The objects that are loaded.
    rows: Arc<RowSet>,
    type_id: Sparse<Numbers<TypeId>>,
    /// Their events and handles.
    pub table: Arc<EventTable>,
}

impl ObjectTable {
    /// Loads all objects.
    pub fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        let (table, height) = (trace.event_table()?, trace.height(Table::Objects)?);
        let rows = if table.objects == height {
            RowSet::all(height)
        } else {
            RowSet::new(height, 0..table.objects)
        };
        Self::from_rows(trace, table, rows)
    }

    /// Loads the objects with at least one selected handle or view (by row). The others, which may be nearly all, take
    /// no memory.
    pub fn with_any(
        trace: &Trace,
        is_selected: impl Fn(&EventTable, usize) -> bool + Sync,
    ) -> Result<Self, ArchiveError> {
        let table = trace.event_table()?;
        let is_meant = |row: &usize| {
            table.acquisitions(ObjectIdx::from_row(*row)).any(|it| is_selected(&table, it))
        };
        let rows = (0..table.objects).into_par_iter().with_min_len(OBJECTS_AT_ONCE);
        let rows: Vec<usize> = rows.filter(is_meant).collect();
        let rows = RowSet::new(trace.height(Table::Objects)?, rows);
        Self::from_rows(trace, table, rows)
    }

    fn from_rows(
        trace: &Trace,
        table: Arc<EventTable>,
        rows: RowSet,
    ) -> Result<Self, ArchiveError> {
        let rows = Arc::new(rows);
        Ok(Self { type_id: trace.values_at(Objects::type_id, &rows)?, rows, table })
    }

    /// Returns the number of objects, including those that are not loaded.
    pub fn len(&self) -> usize {
        self.table.objects
    }

    /// Returns the number of rows of the objects table.
    pub fn height(&self) -> usize {
        self.rows.height()
    }

    /// Returns the loaded objects.
    pub fn iter(&self) -> impl Iterator<Item = ObjectIdx> + '_ {
        self.rows.iter().map(ObjectIdx::from_row)
    }

    pub fn type_id(&self, object: ObjectIdx) -> TypeId {
        self.type_id.get(object.row()).unwrap_or_default()
    }

    pub fn is_mapping(&self, object: ObjectIdx) -> bool {
        self.type_id(object) == FILE_MAPPING_TYPE
    }

    /// Returns the object's events, unordered.
    #[inline]
    pub fn events(&self, object: ObjectIdx) -> impl Iterator<Item = usize> + '_ {
        self.table.events(object)
    }
}
