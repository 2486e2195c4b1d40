//! Groups of all processes of a program.

use handlescope_model::StackIdx;

use super::group::Group;
use super::list::Acquired;
use super::owners::Owners;
use super::programs::{Program, Programs, united};
use crate::frame_names::Frames;
use handlescope_session::values::SuspectId;

/// Leaks of the processes of one program, of one type, or kind and allocator, and stack.
pub struct ProgramGroup<'t> {
    /// The groups of its processes, the first of which names it.
    pub groups: Vec<&'t Group<'t>>,
    /// Owners of the group.
    pub owners: Owners,
}

/// Program, type, allocator and stack.
type Key<'t> = (Program, &'t str, Option<&'t str>, Option<StackIdx>);

impl<'t> ProgramGroup<'t> {
    /// Finds all that leak in a trace; of one process each, where that is asked for.
    pub fn all(acquired: &'t Acquired<'_>, by_process: bool) -> Vec<Self> {
        let programs = Programs::of(acquired.processes, |it| acquired.matches_process(it));
        let groups = acquired.groups.iter().filter(|group| group.leaks).map(|group| {
            let owners = acquired.owners(group);
            let owner = owners.first().and_then(|(row, _)| *row);
            let program = programs.get(owner).filter(|_| !by_process);
            // Unknown code of other processes of the program is other code.
            let program = program.filter(|_| !is_of_one_process(acquired, group));
            let key = program.map(|program| -> Key<'t> {
                (program, group.type_name, group.descriptive_allocator(), group.create_stack)
            });
            (key, (group, owners))
        });
        let by_program = united(groups).into_iter().map(|groups| {
            let (groups, owners): (Vec<&Group<'t>>, Vec<Vec<_>>) = groups.into_iter().unzip();
            let is_alone = groups.first().is_some_and(|group| is_of_one_process(acquired, group));
            let by_process = by_process || is_alone;
            let owners = Owners::new(owners.into_iter().flatten(), &programs, by_process);
            Self { groups, owners }
        });
        by_program.collect()
    }

    /// The id of its suspect: the same in every run, for each version of the program, and for each trace of the same leak. No
    /// numbers of rows are in it, which differ from one extract to the next, but the functions of the stack that are left
    /// of it, by their names.
    pub fn id(&self, acquired: &Acquired<'_>) -> SuspectId {
        let first = self.groups.first();
        let type_name = first.map_or("", |group| group.type_name);
        let allocator = first.and_then(|group| group.descriptive_allocator()).unwrap_or_default();
        let mut parts = self.owners.identity(acquired.processes);
        parts.extend([acquired.subject.label(), type_name, allocator].map(str::to_owned));
        let stack = first.and_then(|group| group.create_stack);
        let stacks: Option<(&Frames<'_>, _)> = acquired.frames.zip(acquired.stacks.as_ref());
        if let Some(((frames, stacks), stack)) = stacks.zip(stack) {
            parts.push("stack".to_owned());
            let named = frames.named();
            // A frame is one part including its inlined functions, as in the comparison of stacks.
            parts.extend(stacks.frames(frames, stack).map(|frame| {
                let views = named.frames_at(frame).map(|view| match view.identity().address() {
                    Some(address) => format!("0x{address:X}"),
                    None => view.to_string(),
                });
                views.collect::<Vec<_>>().join("\n")
            }));
        }
        SuspectId::of_parts(parts.iter().map(String::as_bytes))
    }
}

/// Whether the stack of a group leads through unknown code of its process.
fn is_of_one_process(acquired: &Acquired<'_>, group: &Group<'_>) -> bool {
    let stack = acquired.stacks.as_ref().zip(group.create_stack);
    let is_unknown = stack.is_some_and(|(stacks, stack)| stacks.is_of_one_process(stack));
    let owner = || acquired.owners(group).first().and_then(|(row, _)| *row);
    is_unknown && acquired.frames.is_some_and(|frames| frames.knows_modules(owner()))
}
