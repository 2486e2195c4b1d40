//! `.diff`: what was opened between two points of a trace and is still open ([`points`]), and what the
//! second of two traces loses more or less of than the first ([`traces`]): groups of both are [`matched`], of each it is
//! [counted](tally) on how many chances handles are lost, and a [`rule`] compares them.

mod acquired;
mod builds;
mod matched;
mod points;
mod rule;
mod tally;
mod traces;

use handlescope_model::{ProcessIdx, StackIdx};

pub use self::points::{OpenedGroup, PointsDiff, Span, opened_between};
pub use self::traces::{
    ComparedGroup, Side, State, TracesDiff, compare_allocations, compare_traces,
};

use super::criteria::{DiffCriteria, GroupCriteria, ObjectCriteria};
use super::error::QueryError;
use super::frame_names::FrameNames;
use super::groups::{Groups, NodeIdx, TimedGroups};
use super::growth::Window;
use super::no_owner::note_owners;
use super::object_ref::{FileAnswer, object_ref};
use super::source::Source;
use super::tables::ProcessInfo;
use crate::cancel::Cancel;

const NS_PER_MINUTE: f64 = 60e9;

/// Handles of one process, one type and one create stack.
struct Group<'g> {
    node: NodeIdx,
    owner: Option<ProcessIdx>,
    process: &'g ProcessInfo,
    type_name: &'g str,
    create_stack: Option<StackIdx>,
}

/// The traces, each with its handles in groups.
fn grouped<'a>(
    sources: &'a [Source<'a>],
    criteria: &DiffCriteria,
    names: &'a dyn FrameNames,
    cancel: &'a Cancel,
) -> Result<Vec<FileAnswer<'a>>, QueryError> {
    let asked = ObjectCriteria {
        object_type: criteria.object_type.clone(),
        stacks: criteria.stacks,
        with_identities: criteria.with_identities,
        groups: GroupCriteria::of_create_stacks(),
        ..ObjectCriteria::default()
    };
    let mut files = object_ref(sources, &asked, names, cancel)?.files;
    if let Some(filter) = &criteria.process {
        note_owners(&mut files, filter, criteria.with_identities);
    }
    Ok(files)
}

/// The groups of a trace whose handles were opened in it by processes that are asked for.
fn groups<'g>(
    file: &'g FileAnswer<'_>,
    (groups, timed): (&'g Groups, &'g TimedGroups),
    criteria: &'g DiffCriteria,
) -> impl Iterator<Item = Group<'g>> {
    let group = move |node: NodeIdx| {
        let owner = timed.owner(&timed.handles(&groups.tree, node));
        let process = file.file.processes.known_or_invalid(owner);
        let (type_name, create_stack) = groups.type_and_stack(node);
        Group { node, owner, process, type_name, create_stack }
    };
    let is_meant = |group: &Group<'_>| {
        let is = |filter| group.process.is_meant_by(filter, criteria.with_identities);
        criteria.process.as_ref().is_none_or(is)
    };
    let leaves = groups.tree.leaves().filter(|node| !timed.handles(&groups.tree, *node).is_empty());
    leaves.map(group).filter(is_meant)
}

/// The groups of a trace and the times of their handles, which every answer of [`grouped`] has.
fn parts<'g>(file: &'g FileAnswer<'_>) -> Option<(&'g Groups, &'g TimedGroups)> {
    let groups = file.groups.as_ref()?;
    Some((groups, groups.timed.as_ref()?))
}

/// The text of the representative frame of a stack, as stack filters see it.
fn function(file: &FileAnswer<'_>, stack: Option<StackIdx>) -> Option<String> {
    file.groups.as_ref()?.function(&file.file, stack)
}

/// The length of a time in minutes; `None` where the trace has no clock, or the time no length.
fn minutes(file: &FileAnswer<'_>, window: Window) -> Option<f64> {
    let minutes = window.length_ns() as f64 / NS_PER_MINUTE;
    (file.info.has_clock() && minutes > 0.0).then_some(minutes)
}

/// So many handles by minutes, to three digits after the point.
fn per_minute(handles: u64, minutes: Option<f64>) -> Option<f64> {
    minutes.map(|minutes| (handles as f64 / minutes * 1e3).round() / 1e3)
}
