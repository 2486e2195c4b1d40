//! The details of single acquisitions.

use std::sync::Arc;

use handlescope_model::tables::{Acquisitions, End, Names, Objects, ResourceEnd};
use handlescope_model::{AcquisitionIdx, NameIdx, Numbers, StackIdx, Texts, Trace};

use super::groups::InventoryGroup;
use crate::acquisition_table::AcquisitionTable;
use crate::error::QueryError;

/// A handle, a mapped view, or an allocation or part of one.
pub struct Acquisition<'c> {
    pub opened_ns: i64,
    /// When it was released, whatever released it; the latest possible time if the trace lost the event.
    pub closed_ns: Option<i64>,
    /// When its process ended, if it was open then.
    pub ended_ns: Option<i64>,
    pub tid: Option<u32>,
    /// Handle value, or address of the view or block.
    pub key: Option<u64>,
    /// Number of the object as shown in answers.
    pub object: Option<u64>,
    pub object_name: Option<&'c str>,
    pub bytes: Option<i64>,
    /// How it ended: `open`, `closed`, `closed_at_exit`, `closed_unseen`, or the end of an allocation.
    pub ended: &'static str,
    /// Whether nothing released it.
    pub is_leaked: bool,
    /// Whether it is a further part of an allocation that ended in parts.
    pub is_part: bool,
    /// The stack that released it.
    pub close_stack: Option<StackIdx>,
}

/// The columns that acquisitions are read from.
pub struct AcquisitionColumns {
    table: Arc<AcquisitionTable>,
    key: Numbers<u64>,
    opened_tid: Numbers<u32>,
    name: Numbers<NameIdx>,
    names: Texts,
}

impl AcquisitionColumns {
    pub fn load(trace: &Trace, table: &Arc<AcquisitionTable>) -> Result<Self, QueryError> {
        Ok(Self {
            table: Arc::clone(table),
            key: trace.values(Acquisitions::key)?,
            opened_tid: trace.values(Acquisitions::opened_tid)?,
            name: trace.values(Objects::name)?,
            names: trace.values(Names::name)?,
        })
    }

    /// Returns the acquisitions of a group in time order.
    pub fn of(&self, group: &InventoryGroup) -> Vec<Acquisition<'_>> {
        let mut rows: Vec<Acquisition<'_>> =
            group.members.iter().filter_map(|row| self.row(*row)).collect();
        rows.sort_by_key(|row| row.opened_ns);
        rows
    }

    fn row(&self, acquisition: AcquisitionIdx) -> Option<Acquisition<'_>> {
        let (table, row) = (&self.table, acquisition.row());
        let (end, object) = (table.end(acquisition)?, table.object(acquisition));
        let name = object.and_then(|object| self.name.get(object.row()));
        let name = name.map(|name| self.names.text(name.row()));
        Some(Acquisition {
            opened_ns: table.opened_ns.get(row)?,
            closed_ns: table.ended_ns.get(row),
            // Process exit does not end a handle.
            ended_ns: table.owner_end_ns(acquisition),
            tid: self.opened_tid.get(row),
            key: self.key.get(row),
            object: object.map(|object| u64::from(object.0) + 1),
            object_name: name.filter(|name| !name.is_empty()),
            bytes: table.size.get(row),
            ended: match end {
                End::AtExit if object.is_none() => end.name(),
                End::AtExit if table.unreleased(acquisition) == Some(ResourceEnd::AtExit) => {
                    "closed_at_exit"
                }
                End::AtExit => End::Closed.name(),
                end if end.unseen().is_some() => "closed_unseen",
                end => end.name(),
            },
            is_leaked: end == End::Open,
            is_part: table.is_further_part(acquisition),
            close_stack: table.ended_stack.get(row),
        })
    }
}
