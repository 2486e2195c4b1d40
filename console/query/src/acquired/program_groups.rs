//! Groups over all processes of a program.

use handlescope_model::StackIdx;
use hashbrown::HashSet;

use super::callers::{SharedFunction, put_together};
use super::group::{AcquisitionGroup, AcquisitionOwner};
use super::list::AcquisitionGroups;
use super::owners::LeakOwners;
use super::programs::{ProgramNumber, ProgramNumbers, united};
use crate::frame_names::NamedFrames;
use crate::program_frames::program_functions;
use handlescope_session::values::SuspectId;

/// Leaks of the processes of one program, type (or kind and allocator) and stack, or of several stacks of one function
/// that leak alike.
pub struct ProgramGroup<'t> {
    /// The groups of its processes; the first one gives its name.
    pub groups: Vec<&'t AcquisitionGroup<'t>>,
    /// Owners of the group.
    pub owners: LeakOwners,
    /// The function the stacks begin with, if other stacks begin with it, too.
    pub function: Option<SharedFunction>,
}

/// What counts as one suspect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SuspectScope {
    /// `-ByProcess`: a process, rather than all processes of its program.
    pub by_process: bool,
    /// `-ByStack`: a stack, rather than a function with all callers that leak alike.
    pub by_stack: bool,
}

/// What the processes of a program acquired on one stack.
pub struct ProgramStack<'t> {
    pub stack: Option<StackIdx>,
    pub groups: Vec<(&'t AcquisitionGroup<'t>, Vec<AcquisitionOwner>)>,
}

/// Who acquired: the processes of a program, or one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Who {
    Program(ProgramNumber),
    Process(AcquisitionOwner),
}

/// Owner, type and allocator.
type OwnerKey<'t> = (Who, &'t str, Option<&'t str>);

impl<'t> ProgramGroup<'t> {
    /// Finds everything that leaks in a trace.
    pub fn all(acquired: &'t AcquisitionGroups<'_>, scope: SuspectScope) -> Vec<Self> {
        let programs = ProgramNumbers::new(acquired.processes, |it| acquired.matches_process(it));
        let groups = acquired.groups.iter().map(|group| {
            let owners = acquired.owners(group);
            let owner = owners.first().and_then(|(row, _)| *row);
            // Unknown code in other processes of the program is different code.
            let is_alone = is_of_one_process(acquired, group);
            let program = programs.get(owner).filter(|_| !scope.by_process && !is_alone);
            let who = program.map_or(Who::Process(group.owner), Who::Program);
            let key: OwnerKey<'t> = (who, group.type_name, group.descriptive_allocator());
            let of_stack = program.map(|_| (key, group.create_stack));
            (of_stack, (key, group, owners))
        });
        let by_stack = united(groups).into_iter().map(|groups| {
            let key = groups.first().map(|(key, ..)| *key);
            let groups: Vec<_> =
                groups.into_iter().map(|(_, group, owners)| (group, owners)).collect();
            let stack = groups.first().and_then(|(group, _)| group.create_stack);
            let functions = acquired.functions.as_deref().filter(|_| !scope.by_stack);
            let function = functions.zip(stack).and_then(|(them, stack)| them.of_stack(stack));
            (key.zip(function), ProgramStack { stack, groups })
        });
        let by_function = united(by_stack).into_iter().flat_map(|parts| {
            let leaks = |part: &ProgramStack<'_>| part.groups.iter().any(|(group, _)| group.leaks);
            if parts.len() == 1 || !parts.iter().any(leaks) {
                return parts.into_iter().map(|part| (vec![part], None)).collect();
            }
            put_together(acquired, parts)
        });
        by_function
            .filter_map(|(parts, function)| {
                let groups = parts.into_iter().flat_map(|part| part.groups);
                // A process that leaks nothing on a stack does not count there.
                let is_one = function.as_ref().is_none_or(|function| function.callers.is_empty());
                let (groups, owners): (Vec<&AcquisitionGroup<'t>>, Vec<Vec<_>>) =
                    groups.filter(|(group, _)| group.leaks || !is_one).unzip();
                let first = groups.first()?;
                let by_process = scope.by_process || is_of_one_process(acquired, first);
                let owners = LeakOwners::new(owners.into_iter().flatten(), &programs, by_process);
                Some(Self { groups, owners, function })
            })
            .collect()
    }

    /// Returns the id of its suspect: the same in every run, for every version of the program, and for every trace of
    /// the same leak. It contains no row numbers, because these differ between extracts, but the names of the functions
    /// left of the stack. If the id without symbol names is different, it is included as well.
    pub fn id(&self, acquired: &AcquisitionGroups<'_>) -> SuspectId {
        let stack = self.groups.first().and_then(|group| group.create_stack);
        let telling = self.shared_function().map(|function| function.telling);
        let Some(frames) = acquired.frames else { return self.id_of(acquired, None, telling) };
        let [named, unnamed] = [frames.named(), frames.unnamed()];
        let id = |named| self.id_of(acquired, stack.map(|stack| (named, stack)), telling);
        id(&named).with_other(id(&unnamed))
    }

    /// Returns the function, if its suspect has several stacks.
    pub fn shared_function(&self) -> Option<&SharedFunction> {
        self.function.as_ref().filter(|function| !function.callers.is_empty())
    }

    /// Whether an id is one that its suspect has without symbols: of one of its stacks, or of the functions one begins
    /// with.
    pub fn has_id_without_symbols(&self, acquired: &AcquisitionGroups<'_>, id: &SuspectId) -> bool {
        let Some((frames, trims)) = acquired.frames.zip(acquired.stacks.as_ref()) else {
            return false;
        };
        let unnamed = frames.unnamed();
        let stacks: HashSet<StackIdx> = acquired
            .of_groups(&self.groups)
            .into_iter()
            .filter_map(|row| acquired.table.opened_stack.get(row.row()))
            .collect();
        stacks.into_iter().any(|stack| {
            let depth = program_functions(trims, &unnamed, stack).count();
            std::iter::once(None)
                .chain((1..=depth).map(Some))
                .map(|it| self.id_of(acquired, Some((&unnamed, stack)), it))
                .any(|own| id.begins(&own))
        })
    }

    /// Returns the id for a stack, or for the first `telling` functions of it.
    fn id_of(
        &self,
        acquired: &AcquisitionGroups<'_>,
        stack: Option<(&NamedFrames<'_>, StackIdx)>,
        telling: Option<usize>,
    ) -> SuspectId {
        let first = self.groups.first();
        let type_name = first.map_or("", |group| group.type_name);
        let allocator = first.and_then(|group| group.descriptive_allocator()).unwrap_or_default();
        let mut parts = self.owners.identity(acquired.processes);
        parts.extend([acquired.subject.label(), type_name, allocator].map(str::to_owned));
        let trims = acquired.stacks.as_ref();
        match (stack.zip(trims), telling) {
            (Some(((named, stack), trims)), Some(telling)) => {
                parts.push("function".to_owned());
                let mut functions: Vec<String> =
                    program_functions(trims, named, stack).map(|view| view.to_string()).collect();
                functions.dedup();
                parts.extend(functions.into_iter().take(telling));
            }
            (Some(((named, stack), trims)), None) => {
                parts.push("stack".to_owned());
                // A frame is one part including its inlined functions, as in the comparison of stacks.
                parts.extend(trims.frames(named.frames(), stack).map(|frame| {
                    named
                        .frames_at(frame)
                        .map(|view| match view.identity().address() {
                            Some(address) => format!("0x{address:X}"),
                            None => view.to_string(),
                        })
                        .collect::<Vec<_>>()
                        .join("\n")
                }));
            }
            (None, _) => {}
        }
        SuspectId::from_parts(parts.iter().map(String::as_bytes))
    }
}

/// Whether the stack of a group contains unknown code of its process.
fn is_of_one_process(acquired: &AcquisitionGroups<'_>, group: &AcquisitionGroup<'_>) -> bool {
    let stack = acquired.stacks.as_ref().zip(group.create_stack);
    let is_unknown = stack.is_some_and(|(stacks, stack)| stacks.is_of_one_process(stack));
    let owner = || acquired.owners(group).first().and_then(|(row, _)| *row);
    is_unknown && acquired.frames.is_some_and(|frames| frames.owner_of_code(owner()).is_some())
}
