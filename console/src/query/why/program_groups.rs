//! The groups of handles that suspects are made of: those of one program, type and create stack that lose something.

use handlescope_model::StackIdx;

use super::owners::Owners;
use crate::query::criteria::WhyCriteria;
use crate::query::groups::{Groups, NodeIdx, TimedGroups};
use crate::query::object_ref::FileAnswer;
use crate::query::programs::{Program, Programs, united};

/// What the processes of one program lose of one type and create stack.
pub(super) struct ProgramGroup {
    /// The first of the groups of these processes, which names it.
    pub(super) first: NodeIdx,
    /// All of them.
    pub(super) leaves: Vec<NodeIdx>,
    /// Whose handles they are.
    pub(super) owners: Owners,
    /// Whether their processes are asked for.
    pub(super) is_meant: bool,
}

/// What the groups of a program have in common.
type Key<'t> = (Program, &'t str, Option<StackIdx>, bool);

impl ProgramGroup {
    /// All groups of a trace; of one process each, where the criteria say so.
    pub(super) fn all(
        programs: &Programs<'_>,
        file: &FileAnswer<'_>,
        (groups, timed): (&Groups, &TimedGroups),
        criteria: &WhyCriteria,
    ) -> Vec<Self> {
        let processes = &file.file.processes;
        let is_plain = criteria.is_plain();
        let losing = groups.tree.leaves().filter(|leaf| groups.tree.figures(*leaf).lost() > 0);
        let keyed = losing.map(|leaf| {
            let owner = timed.owner(&timed.handles(&groups.tree, leaf));
            let process = processes.known_or_invalid(owner);
            let is_meant = criteria.process.as_ref();
            let is_meant = is_meant.is_none_or(|filter| process.is_meant_by(filter, is_plain));
            let (type_name, stack) = groups.type_and_stack(leaf);
            let program = programs.get(owner).filter(|_| !criteria.by_process);
            let key: Option<Key<'_>> = program.map(|program| (program, type_name, stack, is_meant));
            (key, (leaf, is_meant))
        });
        let group = |leaves: Vec<(NodeIdx, bool)>| {
            let (_, is_meant) = *leaves.first()?;
            let leaves: Vec<NodeIdx> = leaves.into_iter().map(|(leaf, _)| leaf).collect();
            // Processes of one name that had one id after another are in one group of handles.
            let handles = timed.handles_of(&groups.tree, &leaves);
            let owners = timed
                .by_owner(&handles)
                .into_iter()
                .map(|(owner, _)| (owner, owner.map(|owner| processes.get(owner).pid)));
            // A name would keep those, too, that are not asked for.
            let owners = Owners::new(owners, programs, criteria.process.is_none());
            Some(Self { first: *leaves.first()?, leaves, owners, is_meant })
        };
        united(keyed).into_iter().filter_map(group).collect()
    }
}
