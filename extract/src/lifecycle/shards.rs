//! Follows the objects of all events on several threads.
//!
//! What becomes of an object depends only on the events with its address. So each thread follows a shard of the
//! addresses, and notes which events began and completed its objects. No event begins or completes two objects. So
//! these events order the objects of all shards, and the result is the same as with one thread.
//!
//! If events are missing, a reused handle value can show that an object at another address was closed. Then one thread
//! follows all addresses.

use std::iter::repeat_with;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use handlescope_model::{Cancel, Cancelled, Poll};
use hashbrown::HashMap;

use super::Lifetimes;
use super::attribution::NONE;
use super::evidence::RundownEvidence;
use super::objects::{ObjectList, ObjectRow, Tracker, closed_handle, event_address, opened_handle};
use super::unseen::{ReuseEffect, Reuses};
use crate::etl::{Diagnostics, WarningKind};
use crate::side_by_side::{chunk_length, side_by_side};

/// Object of each event.
#[derive(Debug, PartialEq, Eq)]
pub struct TrackedEvents {
    pub objects: ObjectList,
    /// Object of each event, as a row of `objects`, or [`NONE`].
    pub object: Vec<u32>,
    /// Closes of handles that belong to another process than the closing one, with the process that had the handle.
    pub foreign: HashMap<u32, u32>,
}

/// Follows all events in time order on `threads` threads, unless cancelled; `order` gives the time order if it differs
/// from the row order.
///
/// Also returns the rows of handles and views that must have been closed although the trace has no close, each with the
/// time of the evidence.
pub fn track(
    lifetimes: &Lifetimes<'_>,
    order: Option<&[u32]>,
    threads: NonZeroUsize,
    diagnostics: &mut Diagnostics,
) -> Result<(TrackedEvents, HashMap<u32, i64>), Cancelled> {
    let rows = lifetimes.collected.shared.timeline.len();
    let object: Vec<AtomicU32> = repeat_with(|| AtomicU32::new(NONE)).take(rows).collect();
    let threads = if lifetimes.missing.is_none() { threads.get() } else { 1 };
    let shards = AddressShard::all(rows, threads);
    let evidence = &RundownEvidence::new(*lifetimes);
    let events =
        shards.map(|shard| ShardEvents { shard, lifetimes, order, evidence, object: &object });
    let parts = side_by_side(events, ShardEvents::follow)?;
    parts.iter().for_each(|part| diagnostics.merge(&part.course.findings));
    match <[ShardObjects<'_>; 1]>::try_from(parts) {
        Ok([ShardObjects { objects, course }]) => {
            let object = object.into_iter().map(AtomicU32::into_inner).collect();
            let Course { reuses, foreign, .. } = course;
            let closed = reuses.map(Reuses::into_closed).unwrap_or_default();
            Ok((TrackedEvents { objects, object, foreign }, closed))
        }
        Err(parts) => Ok((joined(parts, object, lifetimes.cancel)?, HashMap::new())),
    }
}

/// Addresses followed by one thread.
#[derive(Debug, Clone, Copy)]
struct AddressShard {
    number: u32,
    count: u32,
}

impl AddressShard {
    /// Returns one shard per thread, or fewer if the object numbers of that many shards would not fit.
    fn all(rows: usize, threads: usize) -> impl Iterator<Item = Self> {
        let count = threads.min(NONE as usize / rows.max(1)).max(1) as u32;
        (0..count).map(move |number| Self { number, count })
    }

    fn is_all(self) -> bool {
        self.count == 1
    }

    fn has(self, address: u64) -> bool {
        // Fibonacci hashing.
        let mixed = address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        (mixed * u64::from(self.count)) >> 32 == u64::from(self.number)
    }

    /// Returns a number for an object of this shard that no object of another shard has.
    fn number(self, object: u32) -> u32 {
        object * self.count + self.number
    }

    /// Returns the shard of a number, and the object in it.
    fn of_number(number: u32, count: u32) -> (usize, usize) {
        ((number % count) as usize, (number / count) as usize)
    }
}

/// Objects of a shard.
struct ShardObjects<'a> {
    objects: ObjectList,
    course: Course<'a>,
}

/// What the events of a shard led to, besides objects.
#[derive(Default)]
struct Course<'a> {
    /// Event that began each object, as a position in time order.
    begins: Vec<u32>,
    /// Events that completed objects, likewise.
    completions: Vec<u32>,
    findings: Diagnostics,
    reuses: Option<Reuses<'a>>,
    foreign: HashMap<u32, u32>,
}

/// Events of a shard.
#[derive(Clone, Copy)]
struct ShardEvents<'s, 'a> {
    shard: AddressShard,
    lifetimes: &'s Lifetimes<'a>,
    order: Option<&'s [u32]>,
    evidence: &'s RundownEvidence<'a>,
    /// Number of each event's object.
    object: &'s [AtomicU32],
}

impl<'a> ShardEvents<'_, 'a> {
    fn follow(self) -> Result<ShardObjects<'a>, Cancelled> {
        let mut tracker = Tracker::default();
        let mut course = self.follow_with(&mut tracker)?;
        course.foreign = tracker.take_foreign();
        course.findings.add(WarningKind::DoubtfulClose, tracker.doubtful_closes(), None);
        course.forget(tracker.reopened());
        Ok(ShardObjects { objects: tracker.finish(), course })
    }

    fn follow_with(self, tracker: &mut Tracker) -> Result<Course<'a>, Cancelled> {
        let Self { shard, lifetimes, order, evidence, object } = self;
        let Lifetimes { collected, owners, missing, cancel, .. } = *lifetimes;
        let reuses = (!missing.is_none()).then(|| Reuses::new(*lifetimes));
        let mut course = Course { reuses, ..Course::default() };
        let mut poll = Poll::new(cancel);
        for (position, row) in (0..).zip(lifetimes.rows(order)) {
            poll.round()?;
            let mut process = owners.process[row];
            let is_of_shard = || event_address(collected, row).is_some_and(|at| shard.has(at));
            if process == NONE || !shard.is_all() && !is_of_shard() {
                continue;
            }
            if course.reuses.is_some()
                && let Some(handle) = closed_handle(collected, row, process)
            {
                process = tracker.holder(handle, row as u32, evidence);
            }
            let effect = course
                .reuses
                .as_mut()
                .map_or(ReuseEffect::None, |reuses| reuses.event(row, process));
            let opened = |opened: u32| {
                let handle = opened_handle(collected, owners, opened as usize);
                (object[opened as usize].load(Relaxed), handle)
            };
            let tracked = match effect {
                ReuseEffect::None => tracker.event(collected, owners, row, process, evidence),
                ReuseEffect::ClosedBefore(open) => {
                    let (object, handle) = opened(open);
                    tracker.close_unseen(object, handle);
                    tracker.event(collected, owners, row, process, evidence)
                }
                ReuseEffect::Closes(open) => {
                    let (object, handle) = opened(open);
                    let name = collected.handles.name[collected.shared.timeline.row[row] as usize];
                    Ok(tracker.close_of(object, handle, name, row as u32))
                }
            };
            let number = tracked.map_or_else(
                |kind| {
                    course.findings.count(kind, None);
                    NONE
                },
                |object| shard.number(object),
            );
            object[row].store(number, Relaxed);
            if !shard.is_all() {
                course.note(position, tracker);
            }
        }
        Ok(course)
    }
}

impl Course<'_> {
    /// Forgets completions that were undone; `undone` has their numbers, ascending.
    fn forget(&mut self, undone: &[u32]) {
        if undone.is_empty() || self.completions.is_empty() {
            return;
        }
        let mut number = 0;
        self.completions.retain(|_| {
            number += 1;
            undone.binary_search(&(number - 1)).is_err()
        });
    }

    /// Notes whether the event at a position began or completed an object.
    fn note(&mut self, position: u32, tracker: &Tracker) {
        if tracker.len() > self.begins.len() {
            self.begins.push(position);
        }
        if tracker.completed() > self.completions.len() {
            self.completions.push(position);
        }
    }
}

/// Joins the objects of all shards. `numbers` has the shard's number of each event's object.
fn joined(
    parts: Vec<ShardObjects<'_>>,
    mut numbers: Vec<AtomicU32>,
    cancel: &Cancel,
) -> Result<TrackedEvents, Cancelled> {
    let courses = || parts.iter().map(|part| &part.course);
    let begins = Ranks::new(courses().flat_map(|course| &course.begins), numbers.len());
    let completions = Ranks::new(courses().flat_map(|course| &course.completions), numbers.len());
    let foreign = courses()
        .flat_map(|course| &course.foreign)
        .map(|(row, process)| (*row, *process))
        .collect();
    let mut parts = side_by_side(parts, |part| part.ranked(&begins, &completions, cancel))?;
    let count = parts.iter().map(|part| part.objects.rows.len()).sum();
    let mut rows = vec![ObjectRow::default(); count];
    let length = chunk_length(count, parts.len());
    side_by_side((0..).step_by(length).zip(rows.chunks_mut(length)), |(first, rows)| {
        parts.iter().try_for_each(|part| part.copy_to(rows, first, cancel))
    })?;
    let length = chunk_length(numbers.len(), parts.len());
    side_by_side(numbers.chunks_mut(length), |numbers| {
        let mut poll = Poll::new(cancel);
        for number in numbers.iter_mut().map(AtomicU32::get_mut) {
            poll.round()?;
            if *number != NONE {
                let (shard, object) = AddressShard::of_number(*number, parts.len() as u32);
                *number = parts[shard].ranks[object];
            }
        }
        Ok(())
    })?;
    let mut objects = ObjectList { rows, ..ObjectList::default() };
    for RankedPart { objects: part, ranks } in &mut parts {
        objects.completed += part.completed;
        let more_names = part.more_names.drain();
        objects.more_names.extend(more_names.map(|(row, names)| (ranks[row as usize], names)));
        let files = part.files.drain();
        objects.files.extend(files.map(|(row, name)| (ranks[row as usize], name)));
    }
    let object = numbers.into_iter().map(AtomicU32::into_inner).collect();
    Ok(TrackedEvents { objects, object, foreign })
}

/// Objects of a shard, with their ranks among those of all shards.
struct RankedPart {
    objects: ObjectList,
    ranks: Vec<u32>,
}

impl ShardObjects<'_> {
    fn ranked(
        self,
        begins: &Ranks,
        completions: &Ranks,
        cancel: &Cancel,
    ) -> Result<RankedPart, Cancelled> {
        let Self { mut objects, course } = self;
        let mut poll = Poll::new(cancel);
        for row in &mut objects.rows {
            poll.round()?;
            let completion = course.completions.get(row.completed as usize);
            row.completed = completion.map_or(NONE, |completion| completions.of(*completion));
        }
        let ranks = course.begins.into_iter().map(|begin| begins.of(begin)).collect();
        Ok(RankedPart { objects, ranks })
    }
}

impl RankedPart {
    /// Copies the objects to their places in `rows`, the part of all shards' rows that begins at row `first`.
    fn copy_to(
        &self,
        rows: &mut [ObjectRow],
        first: usize,
        cancel: &Cancel,
    ) -> Result<(), Cancelled> {
        let start = self.ranks.partition_point(|rank| (*rank as usize) < first);
        let mut poll = Poll::new(cancel);
        for (rank, row) in self.ranks.iter().zip(&self.objects.rows).skip(start) {
            poll.round()?;
            let Some(place) = rows.get_mut(*rank as usize - first) else { break };
            *place = *row;
        }
        Ok(())
    }
}

/// Distinct numbers, each with its rank.
struct Ranks {
    /// One bit per number.
    bits: Vec<u64>,
    /// For each word of `bits`, how many numbers are below it.
    below: Vec<u32>,
}

impl Ranks {
    /// Ranks numbers that are less than `end`.
    fn new<'a>(numbers: impl Iterator<Item = &'a u32>, end: usize) -> Self {
        let mut bits = vec![0_u64; end.div_ceil(64)];
        for number in numbers {
            bits[*number as usize / 64] |= 1 << (number % 64);
        }
        let below = bits.iter().scan(0, |below, word| {
            let before = *below;
            *below += word.count_ones();
            Some(before)
        });
        Self { below: below.collect(), bits }
    }

    fn of(&self, number: u32) -> u32 {
        let (word, bit) = (number as usize / 64, number % 64);
        self.below[word] + (self.bits[word] & ((1 << bit) - 1)).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_as_rank_how_many_are_below() {
        let numbers = [0, 5, 63, 64, 129, 199];
        let ranks = Ranks::new(numbers.iter(), 200);
        assert_eq!(numbers.map(|number| ranks.of(number)), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn each_address_is_of_one_shard_and_shards_are_of_about_one_size() {
        for count in [1, 2, 3, 8] {
            let shards: Vec<AddressShard> = AddressShard::all(1_000, count).collect();
            let mut sizes = vec![0; count];
            for address in (0..8_000).map(|object| 0xFFFF_8100_0000_0000 + object * 0x30) {
                let of: Vec<_> = shards.iter().filter(|shard| shard.has(address)).collect();
                let [shard] = of[..] else { panic!("{address:#x} is of {of:?}") };
                sizes[shard.number as usize] += 1;
            }
            let even = 8_000 / count;
            assert!(
                sizes.iter().all(|size| (even * 9 / 10..=even * 11 / 10).contains(size)),
                "{sizes:?}"
            );
        }
    }

    #[test]
    fn every_object_of_every_shard_has_a_number_however_many_rows_there_are() {
        for (rows, threads) in [(0, 8), (1, 8), (50_000_000, 8), (u32::MAX as usize / 3, 8)] {
            let shards: Vec<AddressShard> = AddressShard::all(rows, threads).collect();
            assert_eq!(shards.len(), threads.min(u32::MAX as usize / rows.max(1)));
            for shard in shards {
                let last = rows.max(1) as u32 - 1;
                let number = shard.number(last);
                assert_ne!(number, NONE);
                let known = AddressShard::of_number(number, shard.count);
                assert_eq!(known, (shard.number as usize, last as usize));
            }
        }
    }
}
