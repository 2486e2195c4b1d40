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
            for handle in timed.handles(&groups.tree, leaf).iter() {
                let owner = timed.owner(std::slice::from_ref(handle));
                let opened = owner.zip(timed.life(*handle));
                if let Some((owner, life)) = opened {
                    let process = file.file.processes.get(owner);
                    lost.times.add(owner, process.pid, life.opened_ns);
                }
            }
        }
        let Some(frames) = &file.file.frames else { return lost };
        let mut numbers = LineNumbers::new(frames.named(), groups.stacks.as_ref());
        for leaf in losing() {
            let handles = timed.handles(&groups.tree, leaf);
            let (type_name, stack) = groups.type_and_stack(leaf);
            let process = |owner| (owner, file.file.processes.known_or_invalid(owner));
            let pid = timed.owner(&handles).map(|owner| file.file.processes.get(owner).pid);
            let mut owners: Vec<Option<ProcessIdx>> = Vec::new();
            for handle in handles.iter() {
                let owner = timed.owner(std::slice::from_ref(handle));
                if owners.last() != Some(&owner) && !owners.contains(&owner) {
                    owners.push(owner);
                }
            }
            // Without the time of a process a command chooses what all with its id lost.
            let distinct = owners.iter().filter_map(|owner| lost.distinct(process(*owner)));
            let processes = std::iter::once(None).chain(distinct.map(Some));
            let scope = |process| Scope { process, pid, what: type_name.to_owned() };
            let scopes: Vec<Scope> = processes.map(scope).collect();
            for scope in scopes {
                lost.stacks.add(scope, leaf, stack, &mut numbers);
            }
        }
        lost
    }

    /// The filters for a group of handles of processes with one id, of one type.
    pub(super) fn filters(
        &self,
        leaf: NodeIdx,
        (sole_owner, process): (Option<ProcessIdx>, &ProcessInfo),
        (pid, type_name): (Option<u32>, &str),
        function: Option<&str>,
    ) -> SuspectFilters {
        let own = (sole_owner, process);
        let scope = Scope { process: self.distinct(own), pid, what: type_name.to_owned() };
        SuspectFilters {
            allocator: None,
            time: self.time(own),
            stack: self.stacks.filter(&scope, leaf, function),
        }
    }

    fn time(&self, (owner, process): (Option<ProcessIdx>, &ProcessInfo)) -> Option<String> {
        self.times.filter(owner?, process)
    }

    /// A process whose time distinguishes it from others with its id.
    fn distinct(&self, process: (Option<ProcessIdx>, &ProcessInfo)) -> Option<ProcessIdx> {
        self.time(process).and(process.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::cancel::Cancel;
    use crate::query::WhyCriteria;
    use crate::query::fixture::{APP, Fixture, With as _, create};
    use crate::query::why::why;

    #[test]
    fn only_the_suspects_that_are_shown_get_filters() {
        const STACKS: u64 = 4;
        let mut fixture = Fixture::new();
        let start = fixture.info.session_start_filetime;
        fixture.info.session_end_filetime = Some(start + 60 * 10_000_000);
        for number in 0..STACKS {
            let stack = fixture.stack(&[&format!("app.exe!Open{number}")]);
            for second in 1..=10_i64 {
                let handle = 4 * (10 * number + second.unsigned_abs());
                let opened = create(APP, 1_000_000 * second, handle).leaked().on(stack);
                fixture.event_object(vec![opened]);
            }
        }
        let saved = fixture.save();
        let filtered = |shown, filtered| {
            let criteria = WhyCriteria { shown, filtered, ..WhyCriteria::default() };
            let (sources, cancel) = ([saved.source()], Cancel::default());
            let answers = why(&sources, &criteria, &saved, &cancel).expect("an answer");
            let suspects = &answers[0].suspects;
            assert_eq!(suspects.len() as u64, STACKS);
            suspects.iter().map(|suspect| suspect.filters.stack.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(filtered(Some(1), None), [true, false, false, false]);
        assert_eq!(filtered(Some(3), None), [true, true, true, false]);
        assert_eq!(filtered(None, None), [true; 4]);
        assert_eq!(filtered(None, Some(vec![vec![3, 1]])), [false, true, false, true]);
        assert_eq!(filtered(None, Some(Vec::new())), [false; 4]);
    }
}
