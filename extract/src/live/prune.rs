//! Which events of a session are still needed.

use std::collections::HashSet;

use handlescope_model::Cancel;

use super::packed::PackedEvents;
use crate::collect::{Collector, FamilyIndex};
use crate::described::{Described, UndescribedKinds};
use crate::etl::{Clock, Diagnostics};
use crate::lifecycle::{
    AllocationColumns, EventOwners, MissingEvents, NONE, ProcessIndex, TrackedEvents,
    follow_resources, in_time_order, subject, track,
};
use crate::raw::RowKind;
use crate::stacks::{StackUse, carried_names};

/// For each event whether it is needed: all but those of objects and allocations of which nothing is open and nothing
/// happened since the raw time `before`, and their stacks. What is not needed though a description that is still to
/// come may say otherwise is counted in `forgotten`.
pub(super) fn kept_events(
    events: &PackedEvents,
    before: i64,
    clock: &Clock,
    forgotten: &mut UndescribedKinds,
) -> Vec<bool> {
    let mut collected = Collector::default();
    let mut rows = Vec::with_capacity(events.len());
    for event in events.iter() {
        let row = collected.shared.timeline.len();
        collected.event(&event);
        rows.push((collected.shared.timeline.len() > row).then_some(row));
    }
    collected.finish();
    let Some(old) = old_rows(&mut collected, before, clock) else {
        return vec![true; events.len()];
    };
    let times = &collected.shared.timeline.time;
    let is_old = |row: &usize| old.get(*row).copied().unwrap_or(false);
    let of_kept = rows.iter().flatten().filter(|row| !is_old(row)).map(|row| times[*row]);
    let kept_times: HashSet<i64> = of_kept.collect();
    // Keys whose frames are still to come, and stacks whose user part is.
    let (mut keys, mut unfinished) = (HashSet::new(), HashSet::new());
    let families = FamilyIndex::default();
    let keeps = events.iter().zip(&rows).map(|(event, row)| match (row, StackUse::of(&event)) {
        (Some(row), _) => {
            let is_kept = !is_old(row);
            if is_kept && !event.extended.is_empty() {
                let (own_keys, match_id) = carried_names(&event);
                keys.extend(own_keys);
                unfinished.extend(match_id.map(|id| (id, event.tid)));
            }
            is_kept
        }
        (None, Some(StackUse::UserPart { match_id })) => {
            event.time >= before || unfinished.contains(&(match_id, event.tid))
        }
        (None, Some(StackUse::Part { event_time, key })) => {
            let is_kept = event_time >= before || kept_times.contains(&event_time);
            if is_kept {
                keys.extend(key);
            }
            is_kept
        }
        (None, Some(StackUse::Frames { key })) => keys.remove(&key) || event.time >= before,
        // Of an event without a row its family has what it says; one of no family is not followed.
        (None, None) => event.time >= before || families.family(event.id).is_some(),
    });
    let keeps: Vec<bool> = keeps.collect();
    let decoder = &mut collected.metadata.decoder;
    for ((event, _), row) in events.iter().zip(&keeps).zip(&rows).filter(|((_, keeps), _)| !**keeps)
    {
        // Those that there was no room for have no row.
        let may_wait = match row {
            Some(row) => collected.shared.timeline.kind.get(*row) == Some(&RowKind::Undescribed),
            None => families.family(event.id).is_none() && StackUse::of(&event).is_none(),
        };
        if may_wait && Described::awaits_description(&event, decoder) {
            forgotten.count(&event);
        }
    }
    keeps
}

/// For each row of the timeline whether it is of an object or allocation that is done with; `None` when that is not
/// known.
fn old_rows(collected: &mut Collector, before: i64, clock: &Clock) -> Option<Vec<bool>> {
    let cancel = Cancel::default();
    let mut unused = Diagnostics::default();
    let order = collected.shared.timeline.restore_times();
    let index = ProcessIndex::new(&collected.processes.rows);
    let owners = EventOwners::new(collected, &index, clock, &mut unused, &cancel).ok()?;
    let order = in_time_order(collected, &index, &owners, order, &cancel).ok()?;
    let losses = MissingEvents::new(&[]);
    let (tracked, _) =
        track(collected, &owners, &losses, order.as_deref(), &mut unused, &cancel).ok()?;
    let TrackedEvents { objects, object } = tracked;
    let times = &collected.shared.timeline.time;
    let mut last = vec![i64::MIN; objects.rows.len()];
    for (object, time) in object.iter().zip(times) {
        if let Some(last) = last.get_mut(*object as usize) {
            *last = (*last).max(*time);
        }
    }
    let is_old = |(object, time): (&u32, &i64)| match *object {
        NONE => *time < before,
        object => objects.rows[object as usize].is_complete() && last[object as usize] < before,
    };
    let mut old: Vec<bool> = object.iter().zip(times).map(is_old).collect();
    let columns = follow_resources(collected, &index, clock, order.as_deref(), &cancel).ok()?;
    keep_allocations(&mut old, &columns, collected, before);
    Some(old)
}

/// Marks the rows that allocations still need as not old.
fn keep_allocations(
    old: &mut [bool],
    columns: &AllocationColumns,
    collected: &Collector,
    before: i64,
) {
    for (old, kind) in old.iter_mut().zip(&collected.shared.timeline.kind) {
        *old &= !subject(*kind).lasts();
    }
    let times = &collected.shared.timeline.time;
    // From the last, because an event that ends one allocation may begin another one, which is needed then.
    for (begin, end) in columns.row.iter().zip(&columns.end_row).rev() {
        let (begin, end) = (*begin as usize, *end as usize);
        let is_done = times.get(end).is_some_and(|time| *time < before) && old[end];
        if !is_done {
            old[begin] = false;
            if let Some(old) = old.get_mut(end) {
                *old = false;
            }
        }
    }
}
