//! The filters of `.dump ObjectRef`, in their fixed order.
//!
//! Suspect*, leak*, time*, stack* and handle* remove events, so that later ones see less, and create stack and destroy stack look
//! at what these leave; so do creator, inherit, related and overlapped. The others look at the unfiltered object. They
//! are applied in the order in which they are named where nothing passes, and how many objects each leaves is counted;
//! only what chooses mappings, or none, comes first, and a filter on the stacks of events before those that see what it
//! leaves.
//!
//! They are loops over slices, not expressions of polars: each works on what the filters before it left
//! of one object (its events, creation and end), in an order that matters, and stops at the first event
//! that decides.

mod event;
mod object;
mod process;
mod start_handle;

use super::context::FileContext;
use super::criterion::{Criteria, Criterion, Survivors};
use super::error::QueryError;
use super::info::check_clock;
use super::selection::{Selected, Selection};
use crate::query::{MapMode, ObjectCriteria};

pub(super) use self::object::map_mode;
pub(super) use self::start_handle::open_start_handles;

/// The objects of a trace that pass.
pub(super) struct Filtered {
    pub(super) selection: Selection,
    /// What `-LeakAtExit` would keep in place of `-Leak`, which leaves it out; `None` where that is nothing.
    pub(super) at_exit: Option<Selection>,
    /// The objects with handles that were closed unseen, which `-Leak` and `-LeakAtExit` leave out; `None` where there
    /// are none.
    pub(super) unseen: Option<Selection>,
    /// How many objects each criterion leaves.
    pub(super) left: Survivors,
}

/// Applies all filters of a query to one trace.
pub(super) fn select(
    file: &FileContext<'_>,
    args: &ObjectCriteria,
) -> Result<Filtered, QueryError> {
    let by_time = [(Criterion::MinMaxTime, args.time), (Criterion::MinMaxDuration, args.duration)];
    for (criterion, _) in by_time.into_iter().filter(|(_, range)| range.is_some()) {
        check_clock(file.trace, file.path, criterion)?;
    }
    let mut steps = steps(args).into_iter().peekable();
    let mut first = Vec::new();
    while let Some(&criterion) = steps.peek()
        && let Some(test) = object::test(criterion, file, args)?
    {
        first.push((criterion, test, 0));
        steps.next();
    }
    let mode = map_mode(args).map(|mode| mode == MapMode::Mappings);
    let selection = Selection::new(&file.objects, file.cancel, |object| {
        let is_of_mode = mode.is_none_or(|mode| file.objects.is_mapping(object) == mode);
        is_of_mode
            && first.iter_mut().all(|(_, test, left)| {
                let passes = test(object);
                *left += usize::from(passes);
                passes
            })
    })?;
    let mut left = Survivors::of(file.objects.len());
    first.into_iter().for_each(|(criterion, _, count)| left.note(criterion, count));
    let mut filtered = Filtered { selection, at_exit: None, unseen: None, left };
    for criterion in steps {
        let Filtered { selection, at_exit, unseen, left } = &mut filtered;
        for selection in [&mut *selection].into_iter().chain(&mut *at_exit).chain(&mut *unseen) {
            keep(criterion, args, file, selection)?;
        }
        if criterion.is_of_leaks() {
            (*at_exit, *unseen) = event::keep_leaks(args, file, selection)?;
        }
        left.note(criterion, selection.objects().len());
    }
    Ok(filtered)
}

/// The criteria that were given, in the order in which they are applied.
fn steps(args: &ObjectCriteria) -> Vec<Criterion> {
    let mut steps: Vec<Criterion> = args.given().iter().map(|given| given.criterion).collect();
    if args.stack_filter.is_some() {
        // Symbols may have to come from far away: ask for no more of them than can matter.
        steps.sort_by_key(|criterion| match criterion {
            Criterion::StackFilter => 1,
            Criterion::PtrInMap
            | Criterion::ViewBase
            | Criterion::MinMaxMapSize
            | Criterion::MinMaxDuration => 0,
            criterion if *criterion < Criterion::Process => 0,
            _ => 2,
        });
    }
    steps
}

/// Keeps the objects that pass a criterion.
fn keep(
    criterion: Criterion,
    args: &ObjectCriteria,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    if let Some(mut test) = object::test(criterion, file, args)? {
        return Ok(selection.retain(file.cancel, |own, _| test(own.object()))?);
    }
    match criterion {
        Criterion::Suspect => match &file.suspect_events {
            Some(rows) => event::keep_suspect(rows, file, selection),
            None => Ok(()),
        },
        Criterion::MinMaxTime => event::keep_time(args, file, selection),
        Criterion::Process | Criterion::CmdLine | Criterion::NewProcess => {
            process::keep_creators(criterion, args, file, selection)
        }
        Criterion::Inherit => event::keep_inherited(file, selection),
        Criterion::RelatedProcess => process::keep_related(args, file, selection),
        Criterion::Handle => event::keep_handles(args, file, selection),
        Criterion::Overlapped => event::keep_overlapped(file, selection),
        Criterion::StackFilter => {
            process::keep_creators(criterion, args, file, selection)?;
            event::keep_stacks(args, file, selection)
        }
        Criterion::CreateStack => {
            event::keep_by_stack_of(Selected::create, &args.create_stack, file, selection)
        }
        Criterion::DestroyStack => {
            event::keep_by_stack_of(Selected::end, &args.destroy_stack, file, selection)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod process_tests;
#[cfg(test)]
mod tests;
