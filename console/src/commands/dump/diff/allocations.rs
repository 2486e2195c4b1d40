//! `.dump Diff -Kind`: allocations instead of handles.

use super::args::DiffArgs;
use super::output::{Compared, check_choice, compared, draw};
use super::points;
use crate::{
    commands::{CommandError, DumpContext, shared::caveats::write_caveats_of_allocations},
    filter::Filter,
    query::{self, ResourceCriteria},
    render::{self, pictures::FlameGraph},
    settings::Display,
    trace::CaveatKind,
};

/// What the second of two traces leaves allocated against the first, or what was allocated between two points of each
/// trace and is still allocated.
pub(super) fn answer(
    kind: &Filter,
    args: &DiffArgs,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    let (kind, process, stacks) =
        (Some(kind.clone()), args.criteria.process.clone(), args.criteria.stacks);
    let criteria = ResourceCriteria { kind, process, stacks, ..ResourceCriteria::default() };
    let has_points = args.from.is_some() || args.to.is_some();
    match dump.sources.len() {
        2 if !has_points => compare(args, &criteria, dump),
        files if files > 2 && !has_points => Err(CommandError::CompareSeveral { files }),
        _ => between(args, &criteria, dump),
    }
}

/// Between two points of each trace.
fn between(
    args: &DiffArgs,
    criteria: &ResourceCriteria,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    let spans = points::spans(args, dump)?;
    let (all_left, names, cancel) = (args.flame.is_some(), dump.names, dump.cancel);
    let answers =
        query::allocated_between(dump.sources, &spans, criteria, all_left, names, cancel)?;
    for answer in &answers {
        write_caveats_of_allocations(&answer.answer, dump.messages);
    }
    let points = points::names(args);
    if let Some(path) = &args.flame {
        let graph = FlameGraph::of_allocated(&answers, points);
        let reason = "nothing that was allocated in the trace is allocated at the second point";
        return match graph.is_empty() {
            true => Err(CommandError::EmptyPicture { reason }),
            false => draw(path, &graph, dump),
        };
    }
    let display = dump.display();
    dump.write(render::diff_allocated(&answers, points, criteria.stacks, &display)?)
}

/// Of two traces.
fn compare(
    args: &DiffArgs,
    criteria: &ResourceCriteria,
    dump: &mut DumpContext<'_, '_>,
) -> Result<(), CommandError> {
    let answer = query::compare_allocations(dump.sources, criteria, dump.names, dump.cancel)?;
    for file in &answer.files {
        write_caveats_of_allocations(file, dump.messages);
        if file.caveats.iter().any(|caveat| caveat.kind == CaveatKind::NoResourceEvents) {
            return Err(CommandError::NoAllocations { path: file.path.to_path_buf() });
        }
    }
    let table = |display: &Display| render::diff_allocations(&answer, criteria.stacks, display);
    let words = Compared { what: "allocations", nothing: "nothing is left allocated" };
    compared(&answer, words, args.flame.as_deref(), table, dump)?;
    check_choice(answer.no_match())
}
