//! Events from a session or a replay, for the same families as the events of a file.
//!
//! The thread that receives events puts them into a bounded [`queue`](live_queue), which counts those it had no room
//! for. A [`LiveWindow`] keeps them, and can make the tables of an extract from them at any time; a [`LiveCounts`]
//! counts open handles as they come.

mod inventory;
mod queue;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

pub use self::inventory::{Inventory, LiveCounts, ProcessHandles};
pub use self::queue::{EventReceiver, EventSender, Replay, WhenFull, live_queue};
use crate::collect::{Collector, FamilyIndex, KernelSelector};
use crate::described::{Described, UndescribedKinds};
use crate::error::ExtractError;
use crate::etl::{Clock, Diagnostics, Event, EventId, Selector};
use crate::extraction;
use crate::lifecycle::{
    AllocationColumns, EventOwners, Lifetimes, MissingEvents, NONE, ProcessIndex, TrackedEvents,
    follow_resources, in_time_order, subject, track,
};
use crate::options::{ExtractOptions, ExtractSummary};
use crate::raw::{RowKind, id_in_file};
use crate::recording::Recording;
use crate::stacks::{RuntimeThread, RuntimeUse, StackUse, carried_names};
use handlescope_model::Cancel;

/// Below this many bytes of events, none are dropped.
const MIN_MEMORY: usize = 4 << 20;

/// State of a running session.
///
/// Events are kept unchanged, and each set of tables is made from all of them by the code that does it for a file. With
/// a limit, events of objects that were closed longer ago are dropped, so memory depends on the open objects and recent
/// activity.
pub struct LiveWindow {
    /// Session; tables get its state at the time they are made.
    pub recording: Recording,
    selector: KernelSelector,
    events: PackedEvents,
    /// How long closed objects are kept; `None` for no limit.
    limit: Option<Duration>,
    /// Raw time of the latest event.
    newest: i64,
    /// Events dropped before anything described them.
    forgotten: UndescribedKinds,
    /// Bytes of events at which old ones are dropped.
    full: usize,
    /// Bytes of all events received.
    bytes: u64,
    /// Inventory of the system, if known beforehand.
    inventory: Option<Inventory>,
}

impl LiveWindow {
    /// Creates an empty window of a session.
    pub fn new(recording: Recording, limit: Option<Duration>) -> Self {
        let newest = recording.clock.base;
        Self {
            recording,
            selector: KernelSelector::default(),
            events: PackedEvents::default(),
            limit,
            newest,
            forgotten: UndescribedKinds::default(),
            full: MIN_MEMORY,
            bytes: 0,
            inventory: None,
        }
    }

    /// Adds the types, processes and modules that are known beforehand.
    #[must_use]
    pub fn knowing(self, inventory: Inventory) -> Self {
        Self { inventory: Some(inventory), ..self }
    }

    /// Adds an event; kernel events may have the ids used in files or those used in sessions.
    pub fn event(&mut self, event: &Event<'_>) {
        let event = Event { id: id_in_file(event.id), ..*event };
        self.newest = self.newest.max(event.time);
        self.bytes += (event.payload.len() + event.extended.len()) as u64;
        if self.selector.select(&event) {
            self.events.push(&event);
            if self.events.memory() > self.full {
                self.forget();
            }
        }
    }

    /// Returns the number of events received, kept or not.
    pub fn events(&self) -> u64 {
        self.selector.counter.total()
    }

    /// Returns the bytes of all their payloads and extended items.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes of the kept events.
    pub fn memory(&self) -> usize {
        self.events.memory()
    }

    /// Returns nanoseconds from the start of the session to its latest event.
    pub fn elapsed_ns(&self) -> i64 {
        self.recording.clock.ns(self.newest)
    }

    /// Drops events of objects that were closed before the limit. This visits all events, so it runs only when their
    /// memory has doubled.
    fn forget(&mut self) {
        if let Some(limit) = self.limit {
            let ns = i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX);
            let before = self.newest.saturating_sub(self.recording.clock.ticks(ns));
            let fill = |collected: &mut Collector| self.fill(collected);
            let (clock, mut forgotten) = (&self.recording.clock, self.forgotten.clone());
            let keeps = kept_events(&self.events, before, clock, fill, &mut forgotten);
            self.forgotten = forgotten;
            self.events.retain(&keeps);
        }
        self.full = (2 * self.events.memory()).max(MIN_MEMORY);
    }

    /// Adds the inventory of the system.
    fn fill(&self, collected: &mut Collector) {
        if let Some(inventory) = &self.inventory {
            inventory.fill(collected, self.newest);
        }
    }

    /// Makes the tables of all events so far, as [`extract_recording`](crate::extract_recording) does for a file that
    /// ends here.
    ///
    /// # Errors
    /// Fails if the archive cannot be written, or `cancel` requests a stop.
    pub fn save(&self, output: &Path, cancel: &Cancel) -> Result<ExtractSummary, ExtractError> {
        let mut collector = Collector::default();
        collector.described.forgotten = self.forgotten.clone();
        for event in self.events.iter() {
            collector.event(&event);
        }
        cancel.check()?;
        self.fill(&mut collector);
        let threads = ExtractOptions::default().threads;
        let counter = &self.selector.counter;
        extraction::write(&self.recording, collector, counter, output, threads, cancel)
    }
}

/// Copies of events, in two allocations.
#[derive(Debug, Default)]
pub struct PackedEvents {
    heads: Vec<Head>,
    /// Extended items and payload of each event.
    bytes: Vec<u8>,
}

/// Event without its bytes.
#[derive(Debug, Clone, Copy)]
struct Head {
    id: EventId,
    version: u8,
    pointer_size: u8,
    processor: u16,
    time: i64,
    pid: Option<u32>,
    tid: Option<u32>,
    offset: u64,
    extended: u32,
    payload: u32,
}

impl PackedEvents {
    /// Adds a copy of an event.
    pub fn push(&mut self, event: &Event<'_>) {
        self.heads.push(Head {
            id: event.id,
            version: event.version,
            pointer_size: event.pointer_size as u8,
            processor: event.processor,
            time: event.time,
            pid: event.pid,
            tid: event.tid,
            offset: event.offset,
            extended: event.extended.len() as u32,
            payload: event.payload.len() as u32,
        });
        self.bytes.extend_from_slice(event.extended);
        self.bytes.extend_from_slice(event.payload);
    }

    /// Returns the events in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = Event<'_>> {
        let mut rest = self.bytes.as_slice();
        self.heads.iter().map(move |head| {
            let (extended, behind) = rest.split_at(head.extended as usize);
            let (payload, behind) = behind.split_at(head.payload as usize);
            rest = behind;
            Event {
                id: head.id,
                version: head.version,
                time: head.time,
                pid: head.pid,
                tid: head.tid,
                processor: head.processor,
                pointer_size: head.pointer_size.into(),
                payload,
                extended,
                offset: head.offset,
                ..Event::default()
            }
        })
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Returns the bytes that the events take.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.heads.len() * size_of::<Head>()
    }

    /// Drops all events but keeps the memory for new ones.
    pub fn clear(&mut self) {
        self.heads.clear();
        self.bytes.clear();
    }

    /// Keeps the events marked true in `keeps`, which has one entry per event, and gives memory back.
    pub fn retain(&mut self, keeps: &[bool]) {
        let (mut from, mut to) = (0, 0);
        let mut each = keeps.iter();
        let Self { heads, bytes } = self;
        heads.retain(|head| {
            let size = head.extended as usize + head.payload as usize;
            let is_kept = each.next().copied().unwrap_or(true);
            if is_kept {
                bytes.copy_within(from..from + size, to);
                to += size;
            }
            from += size;
            is_kept
        });
        bytes.truncate(to);
        bytes.shrink_to_fit();
        heads.shrink_to_fit();
    }
}

/// Returns whether each event is needed. All are, except those of objects and allocations closed and without events
/// since the raw time `before`, and their stacks. `forgotten` counts dropped events that a later description might have
/// made necessary; `fill` adds the inventory of the system.
fn kept_events(
    events: &PackedEvents,
    before: i64,
    clock: &Clock,
    fill: impl Fn(&mut Collector),
    forgotten: &mut UndescribedKinds,
) -> Vec<bool> {
    let mut collected = Collector::default();
    let mut rows = Vec::with_capacity(events.len());
    for event in events.iter() {
        let row = collected.shared.timeline.len();
        collected.event(&event);
        rows.push((collected.shared.timeline.len() > row).then_some(row));
    }
    fill(&mut collected);
    collected.finish();
    let Some(old) = old_rows(&mut collected, before, clock) else {
        return vec![true; events.len()];
    };
    let times = &collected.shared.timeline.time;
    let is_old = |row: &usize| old.get(*row).copied().unwrap_or(false);
    let of_kept = rows.iter().flatten().filter(|row| !is_old(row)).map(|row| times[*row]);
    let kept_times: HashSet<i64> = of_kept.collect();
    // Keys without frames so far, and stacks without user part so far.
    let (mut keys, mut unfinished) = (HashSet::new(), HashSet::new());
    let families = FamilyIndex::default();
    // Threads with a kept last event of the .NET runtime; the next event may be its stack.
    let mut runtime: HashSet<RuntimeThread> = HashSet::new();
    let keeps = events.iter().zip(&rows).map(|(event, row)| {
        let runtime_use = RuntimeUse::new(&event);
        if let Some((RuntimeUse::IsStack, thread)) = runtime_use {
            return runtime.remove(&thread) || event.time >= before;
        }
        let is_kept = match (row, StackUse::new(&event)) {
            (Some(row), _) => {
                let is_kept = !is_old(row);
                if is_kept && !event.extended.is_empty() {
                    let (carried_keys, match_id) = carried_names(&event);
                    keys.extend(carried_keys);
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
            // For an event without a row, the family has the data; events of no family are not tracked.
            (None, None) => event.time >= before || families.family(event.id).is_some(),
        };
        if let Some((RuntimeUse::HasStack, thread)) = runtime_use {
            if is_kept && row.is_some() {
                runtime.insert(thread);
            } else {
                runtime.remove(&thread);
            }
        }
        is_kept
    });
    let keeps: Vec<bool> = keeps.collect();
    let decoder = &mut collected.metadata.decoder;
    for ((event, _), row) in events.iter().zip(&keeps).zip(&rows).filter(|((_, keeps), _)| !**keeps)
    {
        // Events beyond the limit have no row.
        let may_wait = match row {
            Some(row) => collected.shared.timeline.kind.get(*row) == Some(&RowKind::Undescribed),
            None => families.family(event.id).is_none() && StackUse::new(&event).is_none(),
        };
        if may_wait && Described::awaits_description(&event, decoder) {
            forgotten.count(&event);
        }
    }
    keeps
}

/// Returns for each timeline row whether its object or allocation has ended; `None` if unknown.
fn old_rows(collected: &mut Collector, before: i64, clock: &Clock) -> Option<Vec<bool>> {
    let cancel = Cancel::default();
    let mut unused = Diagnostics::default();
    let order = collected.shared.timeline.restore_times();
    let index = ProcessIndex::new(&collected.processes.rows);
    let missing = &MissingEvents::new(&[]);
    let owners = EventOwners::new(
        collected,
        &index,
        order.as_deref(),
        missing,
        NonZeroUsize::MIN,
        &mut unused,
        &cancel,
    )
    .ok()?;
    let order = in_time_order(collected, &index, &owners, order, &cancel).ok()?;
    let (owners, index, cancel) = (&owners, &index, &cancel);
    let lifetimes = Lifetimes { collected, index, owners, missing, clock, cancel };
    let (tracked, _) = track(&lifetimes, order.as_deref(), NonZeroUsize::MIN, &mut unused).ok()?;
    let TrackedEvents { objects, object, .. } = tracked;
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
    let columns = follow_resources(collected, index, clock, order.as_deref(), cancel).ok()?;
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
    // Goes backwards, because an event that ends one allocation may begin another one, which is then needed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_as_they_were_put_in() {
        let mut packed = PackedEvents::default();
        let payloads: [&[u8]; 4] = [b"one", b"", b"three", b"4"];
        for (time, payload) in (0..).zip(payloads) {
            let extended = &payload[..payload.len() / 2];
            packed.push(&Event { time, payload, extended, pid: Some(9), ..Event::default() });
        }
        let events: Vec<_> =
            packed.iter().map(|e| (e.time, e.payload, e.extended, e.pid)).collect();
        assert_eq!(events[2], (2, &b"three"[..], &b"th"[..], Some(9)));
        assert_eq!((events.len(), events[1].1, events[3].1), (4, &b""[..], &b"4"[..]));
        packed.retain(&[false, true, true, false]);
        let events: Vec<_> = packed.iter().map(|event| (event.time, event.payload)).collect();
        assert_eq!(events, [(1, &b""[..]), (2, &b"three"[..])]);
    }
}
