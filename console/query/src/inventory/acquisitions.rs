//! The details of single acquisitions.

use handlescope_model::tables::{Events, Names, Objects, Processes, ResourceEnd, Resources};
use handlescope_model::{
    EventIdx, Flags, NameIdx, Numbers, ObjectIdx, ProcessIdx, ResourceIdx, StackIdx, Texts, Trace,
};

use super::groups::{InventoryGroup, Members};
use crate::allocations::{Needed, ResourceTable};
use crate::error::QueryError;
use crate::groups::Opened;
use handlescope_session::trace::unseen_values;

/// A handle, a mapped view, or an allocation or part of one.
pub struct Acquisition<'c> {
    pub opened_ns: i64,
    /// Time at which it was released, whatever released it; the latest possible one where the trace lost the event.
    pub closed_ns: Option<i64>,
    /// End of its process, if it was open then.
    pub ended_ns: Option<i64>,
    pub tid: Option<u32>,
    /// Handle value, or address of the view or block.
    pub key: Option<u64>,
    /// Number of the object, as answers show it.
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

/// Columns that have them.
pub struct AcquisitionColumns {
    /// Ends of processes, by row.
    process_end_ns: Numbers<i64>,
    time_ns: Numbers<i64>,
    tid: Numbers<u32>,
    handle: Numbers<u64>,
    stack: Numbers<StackIdx>,
    view_base: Numbers<u64>,
    view_size: Numbers<u64>,
    closed_before_ns: Numbers<i64>,
    closed_at_exit: Flags,
    name: Numbers<NameIdx>,
    names: Texts,
    resources: ResourceTable,
    resource_key: Numbers<u64>,
    resource_tid: Numbers<u32>,
}

impl AcquisitionColumns {
    pub fn load(trace: &Trace) -> Result<Self, QueryError> {
        Ok(Self {
            process_end_ns: trace.values(Processes::end_ns)?,
            time_ns: trace.values(Events::time_ns)?,
            tid: trace.values(Events::tid)?,
            handle: trace.values(Events::handle)?,
            stack: trace.values(Events::stack)?,
            view_base: trace.values(Events::view_base)?,
            view_size: trace.values(Events::view_size)?,
            closed_before_ns: unseen_values(trace, Events::closed_before_ns)?,
            closed_at_exit: trace.values(Events::closed_at_exit)?,
            name: trace.values(Objects::name)?,
            names: trace.values(Names::name)?,
            resources: ResourceTable::load(trace, Needed { end_time: true, end_stack: true })?,
            resource_key: trace.values(Resources::key)?,
            resource_tid: trace.values(Resources::tid)?,
        })
    }

    pub fn stack_of_event(&self, event: EventIdx) -> Option<StackIdx> {
        self.stack.get(event.row())
    }

    /// The acquisitions of a group, in the order of time.
    pub fn of(&self, group: &InventoryGroup) -> Vec<Acquisition<'_>> {
        let mut rows: Vec<Acquisition<'_>> = match &group.members {
            Members::Handles(handles) => {
                handles.iter().filter_map(|handle| self.handle(*handle, group.process)).collect()
            }
            Members::Allocations(rows) => {
                rows.iter().filter_map(|row| self.allocation(*row)).collect()
            }
        };
        rows.sort_by_key(|row| row.opened_ns);
        rows
    }

    fn handle(&self, handle: Opened, owner: Option<ProcessIdx>) -> Option<Acquisition<'_>> {
        let event = handle.opened.row();
        let closing = handle.closed();
        let unseen_ns = self.closed_before_ns.get(event);
        let closed_ns = closing.map_or(unseen_ns, |event| self.time_ns.get(event.row()));
        let ended = match (closing, unseen_ns) {
            (Some(_), _) if self.closed_at_exit.get(event) => "closed_at_exit",
            (Some(_), _) => "closed",
            (None, Some(_)) => "closed_unseen",
            (None, None) => "open",
        };
        let name = self.name.get(handle.object.row()).map(|name| self.names.text(name.row()));
        Some(Acquisition {
            opened_ns: self.time_ns.get(event)?,
            closed_ns,
            ended_ns: owner.and_then(|row| self.process_end_ns.get(row.row())),
            tid: self.tid.get(event),
            key: self.handle.get(event).or_else(|| self.view_base.get(event)),
            object: Some(object_id(handle.object)),
            object_name: name.filter(|name| !name.is_empty()),
            bytes: self.view_size.get(event).and_then(|size| i64::try_from(size).ok()),
            ended,
            is_leaked: ended == "open",
            is_part: false,
            close_stack: closing.and_then(|event| self.stack_of_event(event)),
        })
    }

    fn allocation(&self, resource: ResourceIdx) -> Option<Acquisition<'_>> {
        let row = resource.row();
        let end = self.resources.end(resource);
        Some(Acquisition {
            opened_ns: self.resources.time_ns.get(row)?,
            closed_ns: self.resources.end_time_ns.get(row),
            ended_ns: None,
            tid: self.resource_tid.get(row),
            key: self.resource_key.get(row),
            object: None,
            object_name: None,
            bytes: self.resources.size.get(row),
            ended: end.map_or("unknown", ResourceEnd::name),
            is_leaked: end == Some(ResourceEnd::Open),
            is_part: self.resources.is_further_part(resource),
            close_stack: self.resources.end_stack.get(row),
        })
    }
}

/// Number of an object, as answers show it.
fn object_id(object: ObjectIdx) -> u64 {
    u64::from(object.0) + 1
}
