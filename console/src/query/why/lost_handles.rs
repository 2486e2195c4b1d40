//! The filters that keep the handles that a suspect lost and no others.

use super::lost_stacks::{LineNumbers, LostStacks, Scope};
use super::same_pid::LossTimes;
use super::suspect::SuspectFilters;
use crate::query::groups::{Groups, NodeIdx, TimedGroups};
use crate::query::object_ref::FileAnswer;
use crate::query::tables::ProcessInfo;
use handlescope_model::ProcessIdx;

/// What distinguishes groups that lose handles from one another, beyond process ids and types.
#[derive(Default)]
pub(super) struct LostHandles {
    times: LossTimes,
    stacks: LostStacks<NodeIdx>,
}

impl LostHandles {
    /// Reads the stacks of a trace; none where it has none.
    pub(super) fn of(file: &FileAnswer<'_>, groups: &Groups, timed: &TimedGroups) -> Self {
        let mut lost = Self::default();
        let losing = || groups.tree.leaves().filter(|leaf| groups.tree.figures(*leaf).lost() > 0);
        for leaf in losing() {
            let handles = timed.handles(&groups.tree, leaf);
            let Some(owner) = timed.owner(&handles) else { continue };
            let pid = file.file.processes.get(owner).pid;
            let lives = handles.iter().filter_map(|handle| timed.life(*handle));
            lives.for_each(|life| lost.times.add(owner, pid, life.opened_ns));
        }
        let Some(frames) = &file.file.frames else { return lost };
        let mut numbers = LineNumbers::new(frames.named(), groups.stacks.as_ref());
        for leaf in losing() {
            let owner = timed.owner(&timed.handles(&groups.tree, leaf));
            let process = file.file.processes.known_or_invalid(owner);
            let (type_name, stack) = groups.type_and_stack(leaf);
            let scope = lost.scope((owner, process), type_name);
            lost.stacks.add(scope, leaf, stack, &mut numbers);
        }
        lost
    }

    /// The filters for a group of handles of a process and type.
    pub(super) fn filters(
        &self,
        leaf: NodeIdx,
        process: (Option<ProcessIdx>, &ProcessInfo),
        type_name: &str,
        function: Option<&str>,
    ) -> SuspectFilters {
        let scope = self.scope(process, type_name);
        SuspectFilters {
            allocator: None,
            time: self.time(process),
            stack: self.stacks.filter(&scope, leaf, function),
        }
    }

    fn time(&self, (owner, process): (Option<ProcessIdx>, &ProcessInfo)) -> Option<String> {
        self.times.filter(owner?, process)
    }

    fn scope(&self, process: (Option<ProcessIdx>, &ProcessInfo), type_name: &str) -> Scope {
        let (owner, info) = process;
        Scope {
            process: self.time(process).and(owner),
            pid: owner.map(|_| info.pid),
            what: type_name.to_owned(),
        }
    }
}
