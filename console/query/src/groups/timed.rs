//! The handles of each group, for what depends on their times.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use handlescope_model::tables::{Events, Processes, TraceInfo};
use handlescope_model::{Flags, Numbers, ProcessIdx, Trace};

use super::counted::Opened;
use super::tree::{GroupTree, NodeIdx};
use crate::error::QueryError;
use crate::growth;
use crate::objects::Owners;
use handlescope_session::trace::unseen_values;

/// The handles of all groups, those of a group of the innermost level one after the other.
pub struct TimedGroups {
    handles: Vec<Opened>,
    time_ns: Numbers<i64>,
    owners: Owners,
    /// When each process ended, by its row.
    process_end_ns: Numbers<i64>,
    closed_at_exit: Flags,
    /// Time from which the trace has all events; 0 unless a ring overwrote older ones.
    from_ns: i64,
    /// The latest time at which each that was closed unseen may have been closed.
    closed_before_ns: Numbers<i64>,
}

impl TimedGroups {
    /// Takes the handles of all groups, in the order of [`GroupTree::arrange`].
    pub fn new(trace: &Trace, handles: Vec<Opened>, info: &TraceInfo) -> Result<Self, QueryError> {
        Ok(Self {
            handles,
            time_ns: trace.values(Events::time_ns)?,
            owners: Owners::load(trace)?,
            process_end_ns: trace.values(Processes::end_ns)?,
            closed_at_exit: trace.values(Events::closed_at_exit)?,
            from_ns: info.recorded_ns().map_or(0, |time| *time.start()),
            closed_before_ns: unseen_values(trace, Events::closed_before_ns)?,
        })
    }

    pub fn handles(&self, tree: &GroupTree, node: NodeIdx) -> Cow<'_, [Opened]> {
        self.handles_of(tree, &[node])
    }

    /// The handles of several groups, one group after the other.
    pub fn handles_of(&self, tree: &GroupTree, nodes: &[NodeIdx]) -> Cow<'_, [Opened]> {
        let range = |range: Range<usize>| self.handles.get(range).unwrap_or_default();
        let ranges = nodes.iter().flat_map(|node| tree.handles(*node));
        match ranges.collect::<Vec<_>>().as_slice() {
            [only] => range(only.clone()).into(),
            ranges => ranges.iter().flat_map(|part| range(part.clone())).copied().collect(),
        }
    }

    /// Owner of these handles, where they have only one.
    pub fn owner(&self, handles: &[Opened]) -> Option<ProcessIdx> {
        self.owners.of(handles.first()?.opened.row())
    }

    /// The handles of each process. Those of one name that had one id after another are in one group.
    pub fn by_owner(&self, handles: &[Opened]) -> Vec<(Option<ProcessIdx>, Vec<Opened>)> {
        let mut indexes: HashMap<Option<ProcessIdx>, usize> = HashMap::new();
        let mut by_owner: Vec<(Option<ProcessIdx>, Vec<Opened>)> = Vec::new();
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
    pub fn owners(&self, handles: &[Opened]) -> Vec<Option<ProcessIdx>> {
        let mut known = HashSet::new();
        let owners = self.runs(handles).map(|run| self.owner(run));
        owners.filter(|owner| known.insert(*owner)).collect()
    }

    /// Handles of one process that stand together.
    fn runs<'h>(&self, handles: &'h [Opened]) -> impl Iterator<Item = &'h [Opened]> {
        let owner = |handle: &Opened| self.owners.of(handle.opened.row());
        handles.chunk_by(move |one, next| owner(one) == owner(next))
    }

    /// Times at which the handles of a group were opened and were open no more: the close, whatever made it, or the
    /// end of their process, which leaves none open even where the trace has no close.
    pub fn open_times(&self, handles: &[Opened]) -> Vec<growth::Lifetime> {
        handles.iter().filter_map(|handle| self.open_time(*handle)).collect()
    }

    /// Times at which one handle was opened and was open no more, likewise.
    pub fn open_time(&self, handle: Opened) -> Option<growth::Lifetime> {
        let lifetime = self.lifetime(handle)?;
        let end_ns = || {
            let owner = self.owners.of(handle.opened.row())?;
            self.process_end_ns.get(owner.row())
        };
        Some(growth::Lifetime { closed_ns: lifetime.closed_ns.or_else(end_ns), ..lifetime })
    }

    /// Times at which the handles of a group were opened and closed, without closes by the end of the process, and only
    /// for handles opened when the trace has all events: of older ones a ring has only some, and not all of their
    /// closes.
    pub fn program_times(&self, handles: &[Opened]) -> Vec<growth::Lifetime> {
        let program_time = |handle: &Opened| {
            let lifetime = self.lifetime(*handle)?;
            let closed_ns = lifetime.closed_ns.filter(|_| !self.is_closed_at_exit(*handle));
            Some(growth::Lifetime { closed_ns, ..lifetime })
        };
        let times = handles.iter().filter_map(program_time);
        times.filter(|lifetime| !self.is_before(lifetime)).collect()
    }

    /// Number of handles that leaked and were opened before the trace has all events.
    pub fn unreleased_before(&self, handles: &[Opened]) -> u64 {
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
    pub fn is_closed_at_exit(&self, handle: Opened) -> bool {
        self.closed_at_exit.get(handle.opened.row())
    }

    /// Times at which a handle was opened and closed, whatever closed it; for an unseen close the latest possible
    /// time, so that no handle counts as closed before it was.
    pub fn lifetime(&self, handle: Opened) -> Option<growth::Lifetime> {
        let opened = handle.opened.row();
        Some(growth::Lifetime {
            opened_ns: self.time_ns.get(opened)?,
            closed_ns: match handle.closed() {
                Some(event) => self.time_ns.get(event.row()),
                None => self.closed_before_ns.get(opened),
            },
        })
    }

    /// Handles that nothing closed, or only the end of their process.
    pub fn unreleased(&self) -> impl Iterator<Item = Opened> {
        self.handles.iter().copied().filter(|handle| self.is_unreleased(*handle))
    }

    /// Whether nothing closed a handle, or only the end of its process.
    pub fn is_unreleased(&self, handle: Opened) -> bool {
        self.is_closed_at_exit(handle) || self.is_leaked(handle)
    }

    /// Whether nothing closed a handle.
    pub fn is_leaked(&self, handle: Opened) -> bool {
        handle.closed().is_none() && self.closed_before_ns.get(handle.opened.row()).is_none()
    }

    /// Time of the last event, nanoseconds.
    pub fn last_ns(&self) -> i64 {
        self.time_ns.values().iter().copied().max().unwrap_or_default()
    }
}
