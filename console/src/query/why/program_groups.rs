//! The groups of handles that suspects are made of: those of one program, type and create stack that lose something.

use handlescope_model::StackIdx;

use super::id::Acquired;
use super::owners::Owners;
use crate::query::context::FileContext;
use crate::query::criteria::WhyCriteria;
use crate::query::groups::{Groups, NodeIdx, TimedGroups};
use crate::query::programs::{Program, Programs, united};
use crate::values::SuspectId;

/// What the processes of one program lose of one type and create stack.
pub(super) struct ProgramGroup {
    /// The first of the groups of these processes, which names it.
    pub(super) first: NodeIdx,
    /// All of them.
    pub(super) leaves: Vec<NodeIdx>,
    /// Whose handles they are.
    pub(super) owners: Owners,
}

/// What the groups of a program have in common.
type Key<'t> = (Program, &'t str, Option<StackIdx>);

impl ProgramGroup {
    /// All groups of a trace whose processes are asked for; of one process each, where the criteria say so.
    pub(super) fn all(
        file: &FileContext<'_>,
        (groups, timed): (&Groups, &TimedGroups),
        criteria: &WhyCriteria,
    ) -> Vec<Self> {
        let programs = Programs::of(&file.processes, |process| criteria.is_process(process));
        let by_process = criteria.by_process;
        let losing = groups.tree.leaves().filter(|leaf| groups.tree.figures(*leaf).lost() > 0);
        let owned = losing.map(|leaf| (leaf, timed.owner(&timed.handles(&groups.tree, leaf))));
        let meant =
            owned.filter(|(_, owner)| criteria.is_process(file.processes.known_or_invalid(*owner)));
        let keyed = meant.map(|(leaf, owner)| {
            let (type_name, stack) = groups.type_and_stack(leaf);
            let program = programs.get(owner).filter(|_| !by_process);
            let key: Option<Key<'_>> = program.map(|program| (program, type_name, stack));
            (key, leaf)
        });
        let group = |leaves: Vec<NodeIdx>| {
            // Processes of one name that had one id after another are in one group of handles.
            let handles = timed.handles_of(&groups.tree, &leaves);
            let owners = timed
                .by_owner(&handles)
                .into_iter()
                .map(|(owner, _)| (owner, owner.map(|owner| file.processes.get(owner).pid)));
            let owners = Owners::new(owners, &programs, by_process);
            Some(Self { first: *leaves.first()?, leaves, owners })
        };
        united(keyed).into_iter().filter_map(group).collect()
    }

    /// The id of the suspect that it is.
    pub(super) fn id(&self, file: &FileContext<'_>, groups: &Groups) -> SuspectId {
        let (what, stack) = groups.type_and_stack(self.first);
        let acquired =
            Acquired { owners: &self.owners, what, is_of_handles: true, allocator: None, stack };
        acquired.id(file, groups.stacks.as_ref())
    }
}
