//! The filters of `.dump ObjectRef`, in their fixed order.
//!
//! Id, map mode, multi process, name, type, object, suspect*, leak*, time*, stack*, creator (name, command
//! line and lifetime of one process), map ranges, inherit, related, handle*, create stack, destroy stack, duration, overlapped. Those with a star
//! remove events, so that later ones see less. The others only look, so that they may change places
//! among those with a star where that is cheaper: filters over the unfiltered object (id, map mode,
//! multi process, name, type, object, map ranges, duration) run first, and those that need symbols
//! for no other reason run last.
//!
//! They are loops over slices, not expressions of polars: each works on what the filters before it left
//! of one object (its events, creation and end), in an order that matters, and stops at the first event
//! that decides.

mod event;
mod object;
mod process;
mod start_handle;

use handlescope_model::EventIdx;

use super::context::FileContext;
use super::error::QueryError;
use super::info::check_clock;
use super::selection::{Selected, Selection};
use crate::filter::Filter;
use crate::query::criteria::ObjectCriteria;
use crate::query::criterion::Criterion;

use self::process::CreatorFilter;

pub(super) use self::start_handle::open_start_handles;

/// Applies all filters of a query to one trace.
pub(super) fn select(
    file: &FileContext<'_>,
    args: &ObjectCriteria,
) -> Result<Selection, QueryError> {
    let by_time = [(Criterion::Time, args.time), (Criterion::Duration, args.duration)];
    for (criterion, _) in by_time.into_iter().filter(|(_, range)| range.is_some()) {
        check_clock(file.trace, file.path, criterion)?;
    }
    let mut tests = object::tests(file, args)?;
    let mut selection = Selection::new(&file.objects, file.cancel, |object| {
        tests.iter_mut().all(|test| test(object))
    })?;
    // Before leaks: an object of which it lost nothing goes, whatever others lost of it.
    if let (Some(_), Some(rows)) = (&args.suspect, &file.suspect_events) {
        event::keep_suspect(rows, file, &mut selection)?;
    }
    if args.leak || args.leak_at_exit {
        event::keep_leaks(args, file, &mut selection)?;
    }
    if let Some(range) = args.time {
        event::keep_time(range, file, &mut selection)?;
    }
    let creator = CreatorFilter::of(args, file)?;
    if let (Some(filter), Some(frames)) = (&args.stack_filter, &file.frames) {
        // Symbols may have to come from far away: ask for no more of them than can matter.
        if let Some(creator) = &creator {
            creator.prefilter(&mut selection)?;
        }
        event::keep_stacks(filter, file, frames, &mut selection)?;
    }
    if let Some(creator) = &creator {
        creator.apply(&mut selection)?;
    }
    if args.inherit {
        event::keep_inherited(file, &mut selection)?;
    }
    if let Some(filter) = &args.related_process {
        process::keep_related(filter, args.plain_process_names, file, &mut selection)?;
    }
    if let Some(filter) = &args.handle {
        event::keep_handles(filter, file, &mut selection)?;
    }
    if args.overlapped {
        event::keep_overlapped(file, &mut selection)?;
    }
    by_stack_of(Selected::create, args.create_stack.as_ref(), file, &mut selection)?;
    by_stack_of(Selected::end, args.destroy_stack.as_ref(), file, &mut selection)?;
    Ok(selection)
}

fn by_stack_of(
    which: fn(Selected) -> Option<EventIdx>,
    filter: Option<&Filter>,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let (Some(filter), Some(frames)) = (filter, &file.frames) else { return Ok(()) };
    event::keep_by_stack_of(which, filter, file, frames, selection)
}

#[cfg(test)]
mod process_tests;
#[cfg(test)]
mod tests;
