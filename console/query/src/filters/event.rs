//! Filters that remove events, and filters over the events that are left.

use std::ops::Range;

use handlescope_model::rules::{self, CLOSING, OPENING, WITH_HANDLE, handle_slot, has_overlap};
use handlescope_model::tables::{Events, ExistingHandles};
use handlescope_model::{EventIdx, EventKind};
use rayon::prelude::*;

use crate::context::FileContext;
use crate::error::QueryError;
use crate::filters::object::HexFilter;
use crate::info::trace_info;
use crate::objects::Owners;
use crate::selection::{EventMask, OBJECTS_AT_ONCE, Selected, Selection};
use crate::stacks::judge;
use handlescope_session::cancel::{Cancelled, Poll};
use handlescope_session::filter::{Filter, ProcessFilter};
use handlescope_session::trace::unseen_values;
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
    let trace = file.trace;
    let (leaked, at_exit) = (trace.values(Events::leaked)?, trace.values(Events::closed_at_exit)?);
    let unseen = unseen_values(trace, Events::closed_unseen)?;
    let has_unseen = |event| unseen.get(event).is_some();
    let beside_unseen = unseen.has_any().then(|| selection.with_any(&file.objects, has_unseen));
    let mut beside_at_exit = None;
    if leak && !leak_at_exit && at_exit.any() {
        let beside = selection.with_any(&file.objects, |event| at_exit.get(event));
        keep_opened(|event| at_exit.get(event), file, beside_at_exit.insert(beside))?;
    }
    let is_kept = |event| leak && leaked.get(event) || leak_at_exit && at_exit.get(event);
    keep_opened(is_kept, file, selection)?;
    Ok((beside_at_exit, beside_unseen))
}

/// Keeps some of the events that open handles, and drops closes.
///
/// Creation and end stay even if their events are removed, as the lifetime of the object.
fn keep_opened(
    is_kept: impl Fn(usize) -> bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    // Most objects have no such event and are removed without further tests.
    selection
        .retain(file.cancel, |selected, _| file.objects.events(selected.object()).any(&is_kept))?;
    let kind = file.trace.values_at(Events::kind, &selection.event_rows(&file.objects))?;
    selection.retain(file.cancel, |selected, mask| {
        let events = file.objects.events(selected.object());
        let mut has_kept = false;
        mask.restrict(file.objects.event_count(), events, |event| {
            let kind = kind.get(event).unwrap_or_default();
            if !OPENING.contains_code(kind) {
                return !CLOSING.contains_code(kind);
            }
            let is_kept = is_kept(event);
            has_kept |= is_kept;
            is_kept
        });
        has_kept
    })?;
    Ok(())
}

/// `-Suspect`: removes what other stacks, types and programs opened and closed.
pub fn keep_suspect(file: &FileContext<'_>, selection: &mut Selection) -> Result<(), QueryError> {
    let Some(rows) = &file.suspect_events else { return Ok(()) };
    remove_events(file, selection, |event| rows.has(event))
}

/// `-ProcessName` of `.why`: removes what others opened than the processes that own the handles, and what others did.
pub fn keep_owners(
    filter: &ProcessFilter,
    is_plain: bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let verdicts = file.processes.each(|process| process.matches(filter, is_plain));
    let owners = Owners::load(file.trace)?;
    remove_events(file, selection, |event| *verdicts.get(owners.of(event)))
}

/// `-MinMaxTime`: removes what happened outside of the time.
pub fn keep_time(
    range: Option<TimeRange>,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let Some(range) = range else { return Ok(()) };
    let time = file.trace.values(Events::time_ns)?;
    let (times, range) = (time.values(), range.nanoseconds());
    let passes = |event: usize| times.get(event).is_some_and(|time| range.contains(time));
    remove_events(file, selection, passes)
}

/// `-StackFilter`: removes what happened on other stacks.
pub fn keep_stacks(
    filter: &Option<Filter>,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let (Some(filter), Some(frames)) = (filter, &file.frames) else { return Ok(()) };
    let stack = file.trace.values(Events::stack)?;
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
    let kind = file.trace.values(Events::kind)?;
    let Selection { objects, events: mask, .. } = selection;
    mask.retain(file.objects.event_count(), &passes);
    let parts = objects.par_chunks(OBJECTS_AT_ONCE).map(|part| {
        let mut poll = Poll::new(file.cancel);
        let mut left = Vec::new();
        for mut selected in part.iter().copied() {
            poll.round()?;
            let events = file.objects.events(selected.object());
            let has_event = events.clone().any(|event| mask.contains(event));
            if selected.create().is_some_and(|create| !passes(create.row())) {
                selected.set_create(first_create(kind.values(), events, mask));
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
fn first_create(kinds: &[u32], events: Range<usize>, mask: &EventMask) -> Option<EventIdx> {
    let events = events.filter(|&event| mask.contains(event));
    let kinds = events.filter_map(|event| Some((event, EventKind::from_code(*kinds.get(event)?)?)));
    rules::creation(kinds).map(EventIdx::of)
}

/// `-Handle`: keeps creates, duplicates and closes of some handle values, to which closes may have added tag bits.
/// Mappings have none and are not asked. Of a dump also handles that are open, which have no events.
pub fn keep_handles(
    filter: &Option<Filter>,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let kind = file.trace.values(Events::kind)?;
    let handle = file.trace.values(Events::handle)?;
    let is_dump = trace_info(file.trace)?.is_dump();
    let open = is_dump.then(|| file.trace.values(ExistingHandles::handle)).transpose()?;
    let mut hex = HexFilter::new(filter);
    selection.retain(file.cancel, |selected, mask| {
        let object = selected.object();
        if file.objects.is_mapping(object) {
            return true;
        }
        let listed = open.iter().flat_map(|open| open.range(file.objects.existing(object)));
        let mut has_match = listed.into_iter().any(|handle| hex.matches(handle));
        mask.restrict(file.objects.event_count(), file.objects.events(object), |event| {
            if !kind.get(event).is_some_and(|kind| WITH_HANDLE.contains_code(kind)) {
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
    let inherited_by = file.trace.values(Events::inherited_by)?;
    selection.retain(file.cancel, |selected, mask| {
        let mut events = file.objects.events(selected.object());
        events.any(|event| mask.contains(event) && inherited_by.get(event).is_some())
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
    let stack = file.trace.values(Events::stack)?;
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
    let kind = file.trace.values(Events::kind)?;
    let closing = file.trace.values(Events::closing_event)?;
    selection.retain(file.cancel, |selected, mask| {
        let events = file.objects.events(selected.object());
        let events = events.filter(|&event| mask.contains(event));
        has_overlap(events.filter_map(|event| {
            let closing = closing.get(event).map(EventIdx::row);
            let kind = EventKind::from_code(kind.get(event)?)?;
            Some((event, kind, closing.filter(|closing| mask.contains(*closing))))
        }))
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_that_are_left_can_take_over() {
        let kinds = [EventKind::ObjectCreate, EventKind::HandleCreate, EventKind::HandleDuplicate];
        let kinds = kinds.map(EventKind::code);
        let mask = EventMask::Some(vec![false, false, true]);
        assert_eq!(first_create(&kinds, 0..3, &mask), Some(EventIdx(2)));
        assert_eq!(first_create(&kinds, 0..3, &EventMask::All), Some(EventIdx(0)));
    }
}
