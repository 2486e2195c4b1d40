//! The handles of each group, for what depends on their times.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use std::sync::Arc;

use handlescope_model::tables::{Acquisitions, Processes, TraceInfo};
use handlescope_model::{AcquisitionIdx, EventTable, EventTimes, Numbers, ObjectIdx, ProcessIdx};

use super::tree::{GroupTree, NodeIdx};
use crate::context::FileContext;
use crate::error::QueryError;
use crate::growth;

/// The handles of all groups, those of a group of the innermost level one after the other.
pub struct TimedGroups {
    handles: Vec<AcquisitionIdx>,
    table: Arc<EventTable>,
    times: Arc<EventTimes>,
    object: Numbers<ObjectIdx>,
    process: Numbers<ProcessIdx>,
    /// When each process ended, by its row.
    process_end_ns: Numbers<i64>,
    /// Time from which the trace has all events; 0 unless a ring overwrote older ones.
    from_ns: i64,
}

impl TimedGroups {
    /// Takes the handles of all groups, in the order of [`GroupTree::arrange`].
    pub fn new(
        file: &FileContext<'_>,
        handles: Vec<AcquisitionIdx>,
        info: &TraceInfo,
    ) -> Result<Self, QueryError> {
        Ok(Self {
            handles,
            table: Arc::clone(&file.objects.table),
            times: file.trace.event_times()?,
            object: file.trace.values(Acquisitions::object)?,
            process: file.trace.values(Acquisitions::process)?,
            process_end_ns: file.trace.values(Processes::end_ns)?,
            from_ns: info.recorded_ns().map_or(0, |time| *time.start()),
        })
    }

    /// The object of a handle.
    pub fn object(&self, handle: AcquisitionIdx) -> ObjectIdx {
        self.object.get(handle.row()).unwrap_or_default()
    }

    fn owner_of(&self, handle: AcquisitionIdx) -> ProcessIdx {
        self.process.get(handle.row()).unwrap_or(ProcessIdx::NONE)
    }

    pub fn handles(&self, tree: &GroupTree, node: NodeIdx) -> Cow<'_, [AcquisitionIdx]> {
        self.handles_of(tree, &[node])
    }

    /// The handles of several groups, one group after the other.
    pub fn handles_of(&self, tree: &GroupTree, nodes: &[NodeIdx]) -> Cow<'_, [AcquisitionIdx]> {
        let range = |range: Range<usize>| self.handles.get(range).unwrap_or_default();
        let ranges = nodes.iter().flat_map(|node| tree.handles(*node));
        match ranges.collect::<Vec<_>>().as_slice() {
            [only] => range(only.clone()).into(),
            ranges => ranges.iter().flat_map(|part| range(part.clone())).copied().collect(),
        }
    }

    /// Owner of these handles, where they have only one.
    pub fn owner(&self, handles: &[AcquisitionIdx]) -> Option<ProcessIdx> {
        handles.first().map(|handle| self.owner_of(*handle))
    }

    /// The handles of each process. Those of one name that had one id after another are in one group.
    pub fn by_owner(
        &self,
        handles: &[AcquisitionIdx],
    ) -> Vec<(Option<ProcessIdx>, Vec<AcquisitionIdx>)> {
        let mut indexes: HashMap<Option<ProcessIdx>, usize> = HashMap::new();
        let mut by_owner: Vec<(Option<ProcessIdx>, Vec<AcquisitionIdx>)> = Vec::new();
        for handles in self.runs(handles) {
            let owner = self.owner(handles);
            let index = *indexes.entry(owner).or_insert(by_owner.len());
            if index == by_owner.len() {
                by_owner.push((owner, Vec::new()));
            }
            by_owner[index].1.extend(handles);
        }
        by_owner
    }

    /// Owners of these handles, each process once.
    pub fn owners(&self, handles: &[AcquisitionIdx]) -> Vec<Option<ProcessIdx>> {
        let mut known = HashSet::new();
        let owners = self.runs(handles).map(|run| self.owner(run));
        owners.filter(|owner| known.insert(*owner)).collect()
    }

    /// Handles of one process that stand together.
    fn runs<'h>(
        &self,
        handles: &'h [AcquisitionIdx],
    ) -> impl Iterator<Item = &'h [AcquisitionIdx]> {
        let owner = |handle: &AcquisitionIdx| self.owner_of(*handle);
        handles.chunk_by(move |one, next| owner(one) == owner(next))
    }

    /// Times at which the handles of a group were opened and were open no more: the close, whatever made it, or the
    /// end of their process, which leaves none open even where the trace has no close.
    pub fn open_times(&self, handles: &[AcquisitionIdx]) -> Vec<growth::Lifetime> {
        handles.iter().filter_map(|handle| self.open_time(*handle)).collect()
    }

    /// Times at which one handle was opened and was open no more, likewise.
    pub fn open_time(&self, handle: AcquisitionIdx) -> Option<growth::Lifetime> {
        let lifetime = self.lifetime(handle)?;
        let end_ns = || self.process_end_ns.get(self.owner_of(handle).row());
        Some(growth::Lifetime { closed_ns: lifetime.closed_ns.or_else(end_ns), ..lifetime })
    }

    /// Times at which the handles of a group were opened and closed, without closes by the end of the process, and only
    /// for handles opened when the trace has all events: of older ones a ring has only some, and not all of their
    /// closes.
    pub fn program_times(&self, handles: &[AcquisitionIdx]) -> Vec<growth::Lifetime> {
        let program_time = |handle: &AcquisitionIdx| {
            let lifetime = self.lifetime(*handle)?;
            let closed_ns = lifetime.closed_ns.filter(|_| !self.is_closed_at_exit(*handle));
            Some(growth::Lifetime { closed_ns, ..lifetime })
        };
        let times = handles.iter().filter_map(program_time);
        times.filter(|lifetime| !self.is_before(lifetime)).collect()
    }

    /// Number of handles that leaked and were opened before the trace has all events.
    pub fn unreleased_before(&self, handles: &[AcquisitionIdx]) -> u64 {
        if self.from_ns <= 0 {
            return 0;
        }
        let lifetimes = handles
            .iter()
            .filter(|handle| self.is_unreleased(**handle))
            .filter_map(|handle| self.lifetime(*handle));
        lifetimes.filter(|lifetime| self.is_before(lifetime)).count() as u64
    }

    fn is_before(&self, lifetime: &growth::Lifetime) -> bool {
        self.from_ns > 0 && lifetime.opened_ns < self.from_ns
    }

    /// Whether only the end of its process closed a handle.
    pub fn is_closed_at_exit(&self, handle: AcquisitionIdx) -> bool {
        self.table.state(handle.row()).is_closed_at_exit()
    }

    /// Times at which a handle was opened and closed, whatever closed it; for an unseen close the latest possible
    /// time, so that no handle counts as closed before it was.
    pub fn lifetime(&self, handle: AcquisitionIdx) -> Option<growth::Lifetime> {
        let numbering = self.table.numbering;
        let opened_ns = self.times.get(numbering.opening(handle.row()))?;
        let closed_ns = match self.table.state(handle.row()) {
            state if state.is_leaked() => None,
            _ => self.times.get(numbering.ending(handle.row())),
        };
        Some(growth::Lifetime { opened_ns, closed_ns })
    }

    /// Handles that nothing closed, or only the end of their process.
    pub fn unreleased(&self) -> impl Iterator<Item = AcquisitionIdx> {
        self.handles.iter().copied().filter(|handle| self.is_unreleased(*handle))
    }

    /// Whether nothing closed a handle, or only the end of its process.
    pub fn is_unreleased(&self, handle: AcquisitionIdx) -> bool {
        self.is_closed_at_exit(handle) || self.is_leaked(handle)
    }

    /// Whether nothing closed a handle.
    pub fn is_leaked(&self, handle: AcquisitionIdx) -> bool {
        self.table.state(handle.row()).is_leaked()
    }

    /// Time of the last event, nanoseconds.
    pub fn last_ns(&self) -> i64 {
        self.times.last_ns().unwrap_or_default()
    }
}
