//! What `-Kind` makes of the options that choose handles: those that choose allocations, too.

use super::{PictureArgs, PictureOptions};
use crate::{
    commands::{CommandError, DumpContext, shared::caveats::write_warnings},
    grammar::{Opt, ParseError, Take, Texts},
    query::{
        self, GroupCriteria, ObjectCriteria, ProcessCriteria, ResourceColumn, ResourceCriteria,
        ResourcesAnswer,
    },
};

/// `-Kind`
pub(super) const KIND_OPTION: Opt<PictureOptions> = Opt {
    names: &["-Kind"],
    help: "allocations of these kinds instead of handles: heap, commit, reserve…",
    details: "As those of .dump Resource. -pn, -MinMaxTime, -CreateStack, -DestroyStack (of the free), -Leak, \
              -LeakAtExit, -FoldStack and -StackFrom choose allocations, the other options only handles.",
    example: "-Kind heap",
    take: Take::Filter(Texts::AllocationKinds, |args| &mut args.kind),
};

/// Which allocations are asked for, if they are, divided by such columns.
///
/// # Errors
/// When an option chooses by what allocations do not have.
pub(super) fn criteria(
    args: &PictureArgs,
    by: &[ResourceColumn],
) -> Result<Option<ResourceCriteria>, ParseError> {
    let Some(kind) = &args.own.kind else { return Ok(None) };
    let handles = &args.handles.criteria;
    let known = ObjectCriteria {
        creator: ProcessCriteria { name: handles.creator.name.clone(), ..Default::default() },
        time: handles.time,
        create_stack: handles.create_stack.clone(),
        destroy_stack: handles.destroy_stack.clone(),
        leak: handles.leak,
        leak_at_exit: handles.leak_at_exit,
        groups: GroupCriteria { trims: handles.groups.trims.clone(), ..Default::default() },
        ..ObjectCriteria::default()
    };
    if known != *handles {
        return Err(ParseError::Conflict {
            option: "-Kind",
            other: "an option about objects",
            reason: "allocations have -pn, -MinMaxTime, -CreateStack, -DestroyStack, -Leak and -LeakAtExit",
        });
    }
    Ok(Some(ResourceCriteria {
        kind: Some(kind.clone()),
        process: known.creator.name,
        time: known.time,
        create_stack: known.create_stack,
        free_stack: known.destroy_stack,
        leak: known.leak,
        leak_at_exit: known.leak_at_exit,
        trims: known.groups.trims,
        by: Some(by.to_vec()),
        ..ResourceCriteria::default()
    }))
}

/// Asks for them, and says what makes the answer incomplete.
pub(super) fn ask<'a>(
    criteria: &ResourceCriteria,
    dump: &mut DumpContext<'a, '_>,
) -> Result<Vec<ResourcesAnswer<'a>>, CommandError> {
    let answers = query::resources(dump.sources, criteria, dump.names, dump.cancel)?;
    for answer in &answers {
        write_warnings(answer.path, &answer.caveats, dump.messages);
    }
    Ok(answers)
}
