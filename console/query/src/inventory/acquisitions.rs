//! The details of single acquisitions.

use handlescope_model::tables::{Acquisitions, End, Names, Objects, Origin, Processes};
use handlescope_model::{
    AcquisitionIdx, NameIdx, Numbers, ObjectIdx, ProcessIdx, StackIdx, Texts, Trace,
};

use super::groups::InventoryGroup;
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
    /// When processes ended, by row.
    process_end_ns: Numbers<i64>,
    process: Numbers<ProcessIdx>,
    object: Numbers<ObjectIdx>,
    key: Numbers<u64>,
    size: Numbers<i64>,
    origin: Numbers<u32>,
    opened_ns: Numbers<i64>,
    opened_tid: Numbers<u32>,
    end: Numbers<u32>,
    ended_ns: Numbers<i64>,
    ended_stack: Numbers<StackIdx>,
    part_of: Numbers<AcquisitionIdx>,
    name: Numbers<NameIdx>,
    names: Texts,
}

impl AcquisitionColumns {
    pub fn load(trace: &Trace) -> Result<Self, QueryError> {
        Ok(Self {
            process_end_ns: trace.values(Processes::end_ns)?,
            process: trace.values(Acquisitions::process)?,
            object: trace.values(Acquisitions::object)?,
            key: trace.values(Acquisitions::key)?,
            size: trace.values(Acquisitions::size)?,
            origin: trace.values(Acquisitions::origin)?,
            opened_ns: trace.values(Acquisitions::opened_ns)?,
            opened_tid: trace.values(Acquisitions::opened_tid)?,
            end: trace.values(Acquisitions::end)?,
            ended_ns: trace.values(Acquisitions::ended_ns)?,
            ended_stack: trace.values(Acquisitions::ended_stack)?,
            part_of: trace.values(Acquisitions::part_of)?,
            name: trace.values(Objects::name)?,
            names: trace.values(Names::name)?,
        })
    }

    /// Returns the stack that released an acquisition.
    pub fn stack_of_end(&self, acquisition: AcquisitionIdx) -> Option<StackIdx> {
        self.ended_stack.get(acquisition.row())
    }

    /// Returns the acquisitions of a group in time order.
    pub fn of(&self, group: &InventoryGroup) -> Vec<Acquisition<'_>> {
        let mut rows: Vec<Acquisition<'_>> =
            group.members.iter().filter_map(|row| self.row(row.row())).collect();
        rows.sort_by_key(|row| row.opened_ns);
        rows
    }

    fn row(&self, row: usize) -> Option<Acquisition<'_>> {
        let end = self.end.get(row).and_then(End::from_code)?;
        let origin = self.origin.get(row).and_then(Origin::from_code)?;
        let object = self.object.get(row);
        let name = object.and_then(|object| self.name.get(object.row()));
        let name = name.map(|name| self.names.text(name.row()));
        // Process exit does not end a handle.
        let owner = self.process.get(row).filter(|_| object.is_some());
        Some(Acquisition {
            opened_ns: self.opened_ns.get(row)?,
            closed_ns: self.ended_ns.get(row),
            ended_ns: owner.and_then(|row| self.process_end_ns.get(row.row())),
            tid: self.opened_tid.get(row),
            key: self.key.get(row),
            object: object.map(object_id),
            object_name: name.filter(|name| !name.is_empty()),
            bytes: self.size.get(row),
            ended: match end {
                End::AtExit if object.is_some() && origin.is_leak_at_exit(end) => "closed_at_exit",
                End::AtExit if object.is_some() => End::Closed.name(),
                end if end.unseen().is_some() => "closed_unseen",
                end => end.name(),
            },
            is_leaked: end == End::Open,
            is_part: self.part_of.get(row).is_some(),
            close_stack: self.ended_stack.get(row),
        })
    }
}

/// Returns the number of an object as shown in answers.
fn object_id(object: ObjectIdx) -> u64 {
    u64::from(object.0) + 1
}
