//! `-Kind` of commands that draw: turns the options that select handles into criteria for allocations.

use super::{PictureArgs, PictureOptions};
use crate::shared::choice::kind_instead_option;
use crate::shared::write_caveats;
use crate::{CommandError, DumpContext};
use handlescope_query::{
    self as query, AcquisitionCriteria, GroupColumn, GroupCriteria, ResourcesAnswer,
};
use handlescope_session::grammar::value::{ALLOCATION_KINDS, SWITCH};
use handlescope_session::grammar::{Opt, OptionGroup, ParseError, to};

/// The options for allocations.
pub const ALLOCATIONS: OptionGroup<PictureOptions> =
    OptionGroup { title: "Allocations instead of handles", options: OPTIONS };

static OPTIONS: &[Opt<PictureOptions>] = &[
    kind_instead_option(
        "Kinds as for .dump Resource. -pn, -MinMaxTime, -CreateStack, -DestroyStack (of the \
         free), -Suspect, -Leak, -LeakAtExit, -FoldStack and -StackFrom choose allocations; other \
         options are for handles only.",
        &(ALLOCATION_KINDS, |args, filter| args.kind = Some(filter)),
    ),
    Opt {
        names: &["-Count"],
        help: "count allocations instead of their bytes",
        details: "With -Kind. GDI and USER handles and others without bytes are always counted.",
        example: "-Kind heap -Count",
        take: to(&(SWITCH, |args, ()| args.by_count = true)),
    },
];

/// Returns the criteria for allocations if they are requested, grouped by these columns.
///
/// # Errors
/// If an option filters by something that allocations do not have.
pub fn criteria(
    args: &PictureArgs,
    by: &[GroupColumn],
) -> Result<Option<AcquisitionCriteria>, ParseError> {
    let Some(kind) = &args.options.kind else { return Ok(None) };
    let handles = &args.handles.criteria;
    if !handles.select_allocations() || handles.object_type.is_some() {
        return Err(ParseError::Conflict {
            option: "-Kind",
            other: "an option about objects",
            reason: "allocations have -pn, -MinMaxTime, -CreateStack, -DestroyStack, -Suspect, -Leak and -LeakAtExit",
        });
    }
    let groups = GroupCriteria::new(by);
    let criteria = AcquisitionCriteria { kind: Some(kind.clone()), ..handles.with_groups(groups) };
    Ok(Some(criteria.narrowed_to_leaks_of_suspect()))
}

/// Queries allocations, and reports what makes the answer incomplete.
pub fn ask<'a>(
    criteria: &AcquisitionCriteria,
    dump: &mut DumpContext<'a, '_>,
) -> Result<Vec<ResourcesAnswer<'a>>, CommandError> {
    let answers = query::resources(dump.sources, criteria, dump.names, dump.cancel)?;
    for answer in &answers {
        write_caveats(answer, dump.session, dump.messages);
    }
    Ok(answers)
}
