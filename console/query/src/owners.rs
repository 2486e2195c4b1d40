//! Owners of the handles that events open.

use handlescope_model::tables::Events;
use handlescope_model::{ArchiveError, Numbers, ProcessIdx, Trace};

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
