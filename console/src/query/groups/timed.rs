//! The handles of each group, for what depends on their times.

use std::ops::Range;

use handlescope_model::tables::Events;
use handlescope_model::{Flags, Numbers, ProcessIdx, Trace, sentinel};
use hashbrown::HashMap;

use super::lives::{Life, code};
use super::tree::{GroupTree, NodeIdx};
use crate::query::error::QueryError;
use crate::query::growth;

/// A handle that was opened in the trace: rows of events, 12 bytes, because there may be tens of millions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opened {
    /// Row of its object.
    pub(crate) object: u32,
    /// Row of the event that opened it.
    pub(crate) opened: u32,
    /// Row of the event that closed it, or [`sentinel`].
    closed: u32,
}

impl Opened {
    pub(super) fn of(life: &Life) -> Option<Self> {
        life.opening.map(|_| Self {
            object: code(Some(life.object)),
            opened: code(life.opened),
            closed: code(life.closed),
        })
    }

    /// Row of the event that closed it.
    pub(crate) fn closed(self) -> Option<usize> {
        (self.closed != sentinel()).then_some(self.closed as usize)
    }
}

/// The handles of the groups that are shown, those of a group one behind the other.
pub(crate) struct TimedGroups {
    handles: Vec<Opened>,
    ranges: HashMap<NodeIdx, Range<usize>>,
    time_ns: Numbers<i64>,
    process: Numbers<ProcessIdx>,
    inherited_by: Numbers<ProcessIdx>,
    closed_at_exit: Flags,
}

impl TimedGroups {
    /// Orders handles, each given with its innermost group.
    pub(super) fn new(
        trace: &Trace,
        tree: &GroupTree,
        opened: Vec<(NodeIdx, Opened)>,
    ) -> Result<Self, QueryError> {
        let shown: Vec<NodeIdx> = tree.shown().collect();
        let place: HashMap<NodeIdx, usize> =
            (0..).zip(&shown).map(|(at, node)| (*node, at)).collect();
        // A group that is not shown itself counts in that around it which is.
        let place =
            |leaf: NodeIdx| tree.with_parents(leaf).find_map(|node| place.get(&node).copied());
        let mut next = vec![0_usize; shown.len() + 1];
        let placed = opened.iter().filter_map(|(leaf, _)| place(*leaf));
        placed.for_each(|at| next[at + 1] += 1);
        for at in 1..next.len() {
            next[at] += next[at - 1];
        }
        let starts = next.clone();
        let none = Opened { object: sentinel(), opened: sentinel(), closed: sentinel() };
        let mut handles = vec![none; starts.last().copied().unwrap_or_default()];
        for (leaf, handle) in opened {
            if let Some(at) = place(leaf) {
                handles[next[at]] = handle;
                next[at] += 1;
            }
        }
        // A group ends where the next one of its level or further out begins.
        let mut ranges = HashMap::new();
        let mut around: Vec<(usize, NodeIdx, usize)> = Vec::new();
        for (at, node) in shown.iter().enumerate() {
            let level = tree.level(*node);
            while let Some((_, inner, start)) = around.pop_if(|(own, ..)| *own >= level) {
                ranges.insert(inner, start..starts[at]);
            }
            around.push((level, *node, starts[at]));
        }
        ranges.extend(around.into_iter().map(|(_, node, start)| (node, start..handles.len())));
        Ok(Self {
            handles,
            ranges,
            time_ns: trace.values(Events::time_ns)?,
            process: trace.values(Events::process)?,
            inherited_by: trace.values(Events::inherited_by)?,
            closed_at_exit: trace.values(Events::closed_at_exit)?,
        })
    }

    /// The handles of a group.
    pub(crate) fn handles(&self, node: NodeIdx) -> &[Opened] {
        let range = self.ranges.get(&node).cloned().unwrap_or_default();
        self.handles.get(range).unwrap_or_default()
    }

    /// Whose the handles of a group are, where they have one owner.
    pub(crate) fn owner(&self, node: NodeIdx) -> Option<ProcessIdx> {
        let opened = self.handles(node).first()?.opened as usize;
        self.inherited_by.get(opened).or_else(|| self.process.get(opened))
    }

    /// When the handles of a group were opened and closed, whatever closed them.
    pub(super) fn open_times(&self, node: NodeIdx) -> Vec<growth::Life> {
        self.times(node, |_| true)
    }

    /// The same, a close by the end of the process being none.
    pub(crate) fn program_times(&self, node: NodeIdx) -> Vec<growth::Life> {
        self.times(node, |handle| !self.is_closed_at_exit(handle))
    }

    /// Whether only the end of its process closed a handle.
    pub(crate) fn is_closed_at_exit(&self, handle: Opened) -> bool {
        self.closed_at_exit.get(handle.opened as usize)
    }

    /// When a handle was opened and closed, whatever closed it.
    pub(crate) fn life(&self, handle: Opened) -> Option<growth::Life> {
        Some(growth::Life {
            opened_ns: self.time_ns.get(handle.opened as usize)?,
            closed_ns: handle.closed().and_then(|event| self.time_ns.get(event)),
        })
    }

    fn times(&self, node: NodeIdx, is_closed: impl Fn(Opened) -> bool) -> Vec<growth::Life> {
        let life = |handle: &Opened| {
            let life = self.life(*handle)?;
            Some(growth::Life { closed_ns: life.closed_ns.filter(|_| is_closed(*handle)), ..life })
        };
        self.handles(node).iter().filter_map(life).collect()
    }

    /// Time of the last event, nanoseconds.
    pub(super) fn last_ns(&self) -> i64 {
        self.time_ns.values().iter().copied().max().unwrap_or_default()
    }
}
