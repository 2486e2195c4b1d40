//! The filters that keep the handles that a suspect lost and no others.

use std::collections::HashSet;

use handlescope_model::ProcessIdx;

use super::lost_stacks::{LineNumbers, LostStacks, Scope};
use super::owners::ProgramFilters;
use super::program_groups::ProgramGroup;
use super::same_pid::LossTimes;
use super::suspect::SuspectFilters;
use crate::query::groups::{Groups, NodeIdx, TimedGroups};
use crate::query::object_ref::FileAnswer;
use crate::query::programs::Programs;

/// What distinguishes groups that lose handles from one another, beyond process ids and types.
#[derive(Default)]
pub(super) struct LostHandles {
    times: LossTimes,
    stacks: LostStacks<NodeIdx>,
}

impl LostHandles {
    /// Reads the stacks of what is lost in a trace; none where it has none.
    pub(super) fn of(
        file: &FileAnswer<'_>,
        (groups, timed): (&Groups, &TimedGroups),
        programs: &Programs<'_>,
        losing: &[ProgramGroup],
    ) -> Self {
        let mut lost = Self::default();
        for group in losing {
            for handle in timed.handles_of(&groups.tree, &group.leaves).iter() {
                let owner = timed.owner(std::slice::from_ref(handle));
                let opened = owner.zip(timed.life(*handle));
                if let Some((owner, life)) = opened {
                    let process = file.file.processes.get(owner);
                    lost.times.add(owner, process.pid, life.opened_ns);
                }
            }
        }
        let Some(frames) = &file.file.frames else { return lost };
        let filters = ProgramFilters::of(programs, losing.iter().map(|group| &group.owners));
        let mut numbers = LineNumbers::new(frames.named(), groups.stacks.as_ref());
        for group in losing {
            let (type_name, stack) = groups.type_and_stack(group.first);
            let scope = |process, filter| Scope { process, filter, what: type_name.to_owned() };
            let mut scopes: HashSet<Scope> = HashSet::new();
            for owner in timed.owners(&timed.handles_of(&groups.tree, &group.leaves)) {
                let process = owner.map(|owner| file.file.processes.get(owner));
                let pid = process.map(|process| process.pid);
                // Without the time of a process a command chooses what all with its id lost.
                scopes.extend(filters.keeping(owner, pid).map(|filter| scope(None, filter)));
                let distinct = owner.filter(|owner| lost.distinct(file, *owner).is_some());
                let pid = pid.map(|pid| pid.to_string());
                scopes.extend(distinct.map(|owner| scope(Some(owner), pid)));
            }
            for scope in scopes {
                lost.stacks.add(scope, group.first, stack, &mut numbers);
            }
        }
        lost
    }

    /// The filters for a group of handles.
    pub(super) fn filters(
        &self,
        file: &FileAnswer<'_>,
        group: &ProgramGroup,
        type_name: &str,
        function: Option<&str>,
    ) -> SuspectFilters {
        let owner = group.owners.sole();
        let time = owner.and_then(|owner| self.distinct(file, owner));
        let filter = &group.owners.filter;
        let scope = Scope {
            process: time.as_ref().and(owner),
            filter: filter.clone(),
            what: type_name.to_owned(),
        };
        let stack = self.stacks.filter(&scope, group.first, function);
        SuspectFilters { process: filter.clone(), allocator: None, time, stack }
    }

    /// The time that distinguishes a process from others with its id.
    fn distinct(&self, file: &FileAnswer<'_>, process: ProcessIdx) -> Option<String> {
        self.times.filter(process, file.file.processes.get(process))
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
