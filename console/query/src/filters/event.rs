//! Filters that remove events, and filters over the events that are left.

use std::collections::HashMap;

use handlescope_model::rules::{WITH_HANDLE, creation, handle_slot, has_overlap};
use handlescope_model::tables::Acquisitions;
use handlescope_model::{EventIdx, ObjectIdx, Part};
use rayon::prelude::*;

use crate::context::FileContext;
use crate::error::QueryError;
use crate::filters::object::HexFilter;
use crate::info::trace_info;
use crate::selection::{EventMask, OBJECTS_AT_ONCE, Selected, Selection};
use crate::stacks::judge;
use handlescope_session::cancel::{Cancelled, Poll};
use handlescope_session::filter::{Filter, ProcessFilter};
use handlescope_session::values::TimeRange;

/// `-Leak` and `-LeakAtExit`: keeps what was opened and never closed, or closed by nothing but the end
/// of its process, and drops closes.
///
/// Returns two further selections: what `-LeakAtExit` would keep, and the objects with handles that were closed unseen.
pub fn keep_leaks(
    leak: bool,
    leak_at_exit: bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(Option<Selection>, Option<Selection>), QueryError> {
    let table = &file.objects.table;
    let is_unseen = |row| table.state(row).is_closed_unseen();
    let is_at_exit = |row| table.state(row).is_closed_at_exit();
    let is_leaked = |row| table.state(row).is_leaked();
    let beside = selection.with_any(&file.objects, is_unseen);
    let beside_unseen = Some(beside).filter(|beside| !beside.objects().is_empty());
    let mut beside_at_exit = None;
    if leak && !leak_at_exit {
        let mut beside = selection.with_any(&file.objects, is_at_exit);
        if !beside.objects().is_empty() {
            keep_opened(is_at_exit, file, &mut beside)?;
            beside_at_exit = Some(beside);
        }
    }
    let is_kept = |row| leak && is_leaked(row) || leak_at_exit && is_at_exit(row);
    keep_opened(is_kept, file, selection)?;
    Ok((beside_at_exit, beside_unseen))
}

/// Keeps the events that open some handles and views, and drops closes.
///
/// Creation and end stay even if their events are removed, as the lifetime of the object.
fn keep_opened(
    is_kept: impl Fn(usize) -> bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let table = &file.objects.table;
    // Most objects have none of them and are removed without further tests.
    selection
        .retain(file.cancel, |selected, _| table.acquisitions(selected.object()).any(&is_kept))?;
    selection.retain(file.cancel, |selected, mask| {
        let mut has_kept = false;
        mask.restrict(table.height(), table.events(selected.object()), |event| {
            match table.numbering.part(event) {
                (Part::Opened, row) => {
                    let is_kept = is_kept(row);
                    has_kept |= is_kept;
                    is_kept
                }
                (Part::Ended, _) => false,
                _ => true,
            }
        });
        has_kept
    })?;
    Ok(())
}

/// `-Suspect`: removes what other stacks, types and programs opened and closed.
pub fn keep_suspect(file: &FileContext<'_>, selection: &mut Selection) -> Result<(), QueryError> {
    let Some(rows) = &file.suspect_events else { return Ok(()) };
    let numbering = file.objects.table.numbering;
    remove_events(file, selection, |event| {
        numbering.acquisition(event).is_some_and(|row| rows.has(row.row()))
    })
}

/// `-ProcessName` of `.why`: removes what others opened than the processes that own the handles, and what others did.
pub fn keep_owners(
    filter: &ProcessFilter,
    is_plain: bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let verdicts = file.processes.each(|process| process.matches(filter, is_plain));
    let processes = selection.columns(file.trace, &file.objects)?.processes()?;
    remove_events(file, selection, |event| *verdicts.get(processes.owner(event)))
}

/// `-MinMaxTime`: removes what happened outside of the time.
pub fn keep_time(
    range: Option<TimeRange>,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let Some(range) = range else { return Ok(()) };
    let (table, range) = (&file.objects.table, range.nanoseconds());
    let passes = |event| table.time_ns(event).is_some_and(|time| range.contains(&time));
    remove_events(file, selection, passes)
}

/// `-StackFilter`: removes what happened on other stacks.
pub fn keep_stacks(
    filter: &Option<Filter>,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let (Some(filter), Some(frames)) = (filter, &file.frames) else { return Ok(()) };
    let stack = selection.columns(file.trace, &file.objects)?.stacks()?;
    let needed = selection.stacks(frames.stacks.len(), file.cancel, |selected, needed| {
        let events = file.objects.events(selected.object());
        for event in events.filter(|&event| selection.events.contains(event)) {
            needed.add(stack.get(event));
        }
        for event in selected.create().into_iter().chain(selected.end()) {
            needed.add(stack.get(event.row()));
        }
    })?;
    let verdicts = judge(filter, &needed, frames)?;
    selection.note_symbols(&verdicts.needs_symbols);
    remove_events(file, selection, |event| verdicts.passes(stack.get(event)))
}

/// Removes events, and a creation and an end, that do not pass. The first creation that is left
/// takes over; an end is not replaced. An object of which nothing is left goes.
fn remove_events(
    file: &FileContext<'_>,
    selection: &mut Selection,
    passes: impl Fn(usize) -> bool + Sync,
) -> Result<(), QueryError> {
    let Selection { objects, events: mask, .. } = selection;
    mask.retain(file.objects.table.height(), &passes);
    let parts = objects.par_chunks(OBJECTS_AT_ONCE).map(|part| {
        let mut poll = Poll::new(file.cancel);
        let mut left = Vec::new();
        for mut selected in part.iter().copied() {
            poll.round()?;
            let mut events = file.objects.events(selected.object());
            let has_event = events.any(|event| mask.contains(event));
            if selected.create().is_some_and(|create| !passes(create.row())) {
                selected.set_create(first_create(file, selected.object(), mask));
            }
            if selected.end().is_some_and(|end| !passes(end.row())) {
                selected.remove_end();
            }
            if has_event || selected.create().is_some() || selected.end().is_some() {
                left.push(selected);
            }
        }
        Ok(left)
    });
    *objects = parts.collect::<Result<Vec<_>, Cancelled>>()?.concat();
    Ok(())
}

/// The creation among the events that are left.
fn first_create(file: &FileContext<'_>, object: ObjectIdx, mask: &EventMask) -> Option<EventIdx> {
    let events = file.objects.events_in_order(file.trace, object).into_iter();
    let events = events.filter(|event| mask.contains(*event));
    let kinds = events.filter_map(|event| Some((event, file.objects.table.kind(event)?)));
    creation(kinds).map(EventIdx::of)
}

/// `-Handle`: keeps creates, duplicates and closes of some handle values, to which closes may have added tag bits.
/// Mappings have none and are not asked. Of a dump also handles that are open, which have no events.
pub fn keep_handles(
    filter: &Option<Filter>,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let table = &file.objects.table;
    let handle = selection.columns(file.trace, &file.objects)?.handles()?;
    let is_dump = trace_info(file.trace)?.is_dump();
    let open = is_dump.then(|| file.trace.values(Acquisitions::key)).transpose()?;
    let mut hex = HexFilter::new(filter);
    selection.retain(file.cancel, |selected, mask| {
        let object = selected.object();
        if file.objects.is_mapping(object) {
            return true;
        }
        let listed =
            open.iter().flat_map(|open| table.listed(object).filter_map(|row| open.get(row)));
        let mut has_match = listed.into_iter().any(|handle| hex.matches(handle));
        mask.restrict(table.height(), table.events(object), |event| {
            if !table.kind(event).is_some_and(|kind| WITH_HANDLE.contains(kind)) {
                return true;
            }
            let matches = handle
                .get(event)
                .is_some_and(|handle| hex.matches(handle) || hex.matches(handle_slot(handle)));
            has_match |= matches;
            matches
        });
        has_match
    })?;
    Ok(())
}

/// `-Inherit`: objects with a duplicate left that a child inherited.
pub fn keep_inherited(file: &FileContext<'_>, selection: &mut Selection) -> Result<(), QueryError> {
    let processes = selection.columns(file.trace, &file.objects)?.processes()?;
    selection.retain(file.cancel, |selected, mask| {
        let mut events = file.objects.events(selected.object());
        events.any(|event| mask.contains(event) && processes.inherited_by(event).is_some())
    })?;
    Ok(())
}

/// `-CreateStack` and `-DestroyStack`: objects whose creation, or end, has a matching stack.
pub fn keep_by_stack_of(
    stack_event: fn(Selected) -> Option<EventIdx>,
    filter: &Option<Filter>,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let (Some(filter), Some(frames)) = (filter, &file.frames) else { return Ok(()) };
    let stack = selection.columns(file.trace, &file.objects)?.stacks()?;
    selection.retain(file.cancel, |selected, _| stack_event(*selected).is_some())?;
    let stack_of =
        |selected: &Selected| stack_event(*selected).and_then(|event| stack.get(event.row()));
    let needed = selection.stacks(frames.stacks.len(), file.cancel, |selected, needed| {
        needed.add(stack_of(selected));
    })?;
    let verdicts = judge(filter, &needed, frames)?;
    selection.note_symbols(&verdicts.needs_symbols);
    selection.retain(file.cancel, |selected, _| verdicts.passes(stack_of(selected)))?;
    Ok(())
}

/// `-Overlapped`: objects that had two handles open at once, going by the events that are left.
pub fn keep_overlapped(
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let table = &file.objects.table;
    selection.retain(file.cancel, |selected, mask| {
        let events = file.objects.events_in_order(file.trace, selected.object());
        let places: HashMap<usize, usize> = events.iter().copied().zip(0..).collect();
        let left = events.iter().copied().zip(0..).filter(|(event, _)| mask.contains(*event));
        has_overlap(left.filter_map(|(event, place)| {
            let closing = table.closing(event).filter(|closing| mask.contains(*closing));
            let closing = closing.and_then(|closing| places.get(&closing).copied());
            Some((place, table.kind(event)?, closing))
        }))
    })?;
    Ok(())
}
