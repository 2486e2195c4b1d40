//! Filters that remove events, and filters that test the remaining events.

use std::collections::HashMap;

use handlescope_model::rules::{WITH_HANDLE, handle_slot, has_overlap};
use handlescope_model::tables::Acquisitions;
use handlescope_model::{EventIdx, EventPart, EventTimes, Table};

use crate::context::FileContext;
use crate::criteria::ProcessCriteria;
use crate::error::QueryError;
use crate::filters::object::HexFilter;
use crate::selection::{SelectedObject, Selection};
use crate::stacks::judge_noting;
use handlescope_session::filter::Filter;
use handlescope_session::values::TimeRange;

/// `-Leak` and `-LeakAtExit`: keeps handles and views that were never closed or only by process exit, and drops closes.
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
/// Creation and end stay as the lifetime of the object, even if their events are removed.
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
                (EventPart::Opened, row) => {
                    let is_kept = is_kept(row);
                    has_kept |= is_kept;
                    is_kept
                }
                (EventPart::Ended, _) => false,
                _ => true,
            }
        });
        has_kept
    })?;
    Ok(())
}

/// `-Suspect`: removes what other stacks, types and programs opened and closed.
pub fn keep_suspect(file: &FileContext<'_>, selection: &mut Selection) -> Result<(), QueryError> {
    let Some(rows) = &file.suspect else { return Ok(()) };
    let numbering = file.objects.table.numbering;
    remove_events(file, selection, |event| {
        numbering.acquisition(event).is_some_and(|row| rows.has(row.row()))
    })
}

/// Owners of `.why`: removes events on handles that belong to other processes.
pub fn keep_owners(
    owners: &ProcessCriteria,
    is_plain: bool,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let verdicts = file.processes.each(|process| owners.matches(process, is_plain));
    let processes = selection.columns(file.trace, &file.objects)?.processes()?;
    remove_events(file, selection, |event| *verdicts.get(processes.owner(event)))
}

/// `-MinMaxTime`: removes what happened outside the time range.
pub fn keep_time(
    range: Option<TimeRange>,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let Some(range) = range else { return Ok(()) };
    let (times, range) = (file.trace.event_times()?, range.nanoseconds());
    let passes = |event| times.get(event).is_some_and(|time| range.contains(&time));
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
    let times = selection.events.is_partial().then(|| file.trace.event_times()).transpose()?;
    let (table, height) = (&file.objects.table, frames.stacks.len());
    let mut needed =
        selection.event_stacks(table, &selection.events, &stack, height, file.cancel)?;
    // Other filters may have removed the events that create and end objects.
    if let Some(times) = times {
        needed.add_all(&selection.stacks(height, file.cancel, |selected, needed| {
            let ends = [selected.create(table), selected.end(&times)];
            ends.into_iter().flatten().for_each(|event| needed.add(stack.get(event.row())));
        })?);
    }
    let verdicts = judge_noting(filter, &needed, frames, &mut selection.needs_symbols)?;
    remove_events(file, selection, |event| verdicts.passes(stack.get(event)))
}

/// Removes events, creations and ends that do not pass. The first remaining creation takes over; an end is not
/// replaced. Removes an object with nothing left.
fn remove_events(
    file: &FileContext<'_>,
    selection: &mut Selection,
    passes: impl Fn(usize) -> bool + Sync,
) -> Result<(), QueryError> {
    let table = &file.objects.table;
    let was_partial = selection.events.is_partial();
    selection.events.retain(table.height(), file.cancel, &passes)?;
    let mask = &selection.events;
    // Nothing passes for most objects, so nothing more is loaded for them.
    let may_stay = |selected: &SelectedObject| {
        let mut events = table.events(selected.object());
        events.any(|event| if was_partial { passes(event) } else { mask.contains(event) })
    };
    selection.objects = selection.par_filter(file.cancel, |it| Some(*it).filter(may_stay))?;
    let rows = selection.acquisition_rows(&file.objects, file.trace.height(Table::Acquisitions)?);
    let times = EventTimes::from_rows(file.trace, &rows)?;
    let mask = &selection.events;
    selection.objects = selection.par_filter(file.cancel, |selected| {
        let (mut selected, object) = (*selected, selected.object());
        if selected.create(table).is_some_and(|create| !passes(create.row())) {
            selected.set_create(table.create_event_of(object, |event| mask.contains(event)));
        }
        let end = selected.end(&times);
        let is_end_left = end.is_some_and(|end| passes(end.row()));
        if end.is_some() && !is_end_left {
            selected.remove_end();
        }
        let has_event = || table.events(object).any(|event| mask.contains(event));
        (is_end_left || has_event() || selected.create(table).is_some()).then_some(selected)
    })?;
    Ok(())
}

/// `-Handle`: keeps creates, duplicates and closes of matching handle values; closes may have added tag bits to these.
/// Mappings have no handles and are not tested. In a dump, open handles without events count, too.
pub fn keep_handles(
    filter: &Option<Filter>,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let table = &file.objects.table;
    let handle = selection.columns(file.trace, &file.objects)?.handles()?;
    let is_dump = file.trace.info()?.is_of_one_moment();
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

/// `-Inherit`: keeps objects with a remaining duplicate that a child inherited.
pub fn keep_inherited(file: &FileContext<'_>, selection: &mut Selection) -> Result<(), QueryError> {
    let processes = selection.columns(file.trace, &file.objects)?.processes()?;
    selection.retain(file.cancel, |selected, mask| {
        let mut events = file.objects.events(selected.object());
        events.any(|event| mask.contains(event) && processes.inherited_by(event).is_some())
    })?;
    Ok(())
}

/// `-CreateStack` and `-DestroyStack`: keeps objects with a matching stack of their creation or end.
pub fn keep_by_stack_of(
    stack_event: impl Fn(SelectedObject) -> Option<EventIdx> + Sync,
    filter: &Option<Filter>,
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let (Some(filter), Some(frames)) = (filter, &file.frames) else { return Ok(()) };
    let stack = selection.columns(file.trace, &file.objects)?.stacks()?;
    selection.retain(file.cancel, |selected, _| stack_event(*selected).is_some())?;
    let stack_of =
        |selected: &SelectedObject| stack_event(*selected).and_then(|event| stack.get(event.row()));
    let needed = selection.stacks(frames.stacks.len(), file.cancel, |selected, needed| {
        needed.add(stack_of(selected));
    })?;
    let verdicts = judge_noting(filter, &needed, frames, &mut selection.needs_symbols)?;
    selection.retain(file.cancel, |selected, _| verdicts.passes(stack_of(selected)))?;
    Ok(())
}

/// `-Overlapped`: keeps objects that had two handles open at once, judging by the remaining events.
pub fn keep_overlapped(
    file: &FileContext<'_>,
    selection: &mut Selection,
) -> Result<(), QueryError> {
    let (table, times) = (&file.objects.table, file.trace.event_times()?);
    let mut events = Vec::new();
    selection.retain(file.cancel, |selected, mask| {
        events.clear();
        times.in_order(file.trace, selected.object(), &mut events);
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
