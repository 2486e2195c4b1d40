//! The events between a snapshot and a difference, and what the difference says of them.

use std::collections::{HashMap, HashSet};

use super::grammar::Operation;
use super::output::Entry;
use super::timeline::{Place, Timeline};

/// Events from a snapshot to the difference, of which some are known.
pub(super) struct Window<'a> {
    first: i64,
    last: i64,
    known: Vec<(Place, &'a Entry)>,
}

/// Events of a window that are not known and that a difference needs.
pub(super) struct Unknown {
    /// With their places.
    pub(super) opens: Vec<(Place, Entry)>,
    /// Closes of known opens that are not listed.
    pub(super) closes: usize,
}

impl<'a> Window<'a> {
    pub(super) fn of(timeline: &'a Timeline, first: i64, last: i64) -> Self {
        let known = timeline.known.range((first, 0)..(last.max(first), 0));
        let known = known.map(|(&place, (_, entry))| (place, entry)).collect();
        Self { first, last, known }
    }

    /// Number of events that are known.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Number of events that are not known.
    pub(super) fn missing(&self) -> i64 {
        self.last.saturating_sub(self.first) - self.len() as i64
    }

    /// The events that are not known, when the listing can be that of these events: all that are opened and not closed
    /// again, of which some may be events that are not known.
    pub(super) fn explain(&self, opens: &[Entry]) -> Option<Unknown> {
        let outstanding = self.outstanding();
        let listed: HashMap<u64, usize> =
            opens.iter().enumerate().map(|(at, open)| (open.handle, at)).collect();
        let mut is_known = vec![false; opens.len()];
        let (mut next, mut closes) = (0, 0);
        for &(place, open) in &outstanding {
            let same = listed.get(&open.handle);
            match same.filter(|&&at| opens.get(at).is_some_and(|listed| listed.is_same(open))) {
                Some(&at) if at < next => return None,
                Some(&at) => {
                    next = at + 1;
                    *is_known.get_mut(at)? = true;
                }
                // It was closed by an event that is not known.
                None if self.unknown_between(place.0, self.last) > 0 => closes += 1,
                None => return None,
            }
        }
        let opens = self.places(opens, &is_known, &outstanding)?;
        let missing = (opens.len() + closes) as i64;
        (missing <= self.unknown_between(self.first.saturating_sub(1), self.last))
            .then_some(Unknown { opens, closes })
    }

    /// Those of the opens that are not known, whatever else is listed.
    pub(super) fn unknown(&self, opens: &[Entry]) -> Unknown {
        let known: HashSet<(u64, u32, u32)> = self
            .known
            .iter()
            .filter(|(_, entry)| entry.operation == Operation::Open)
            .map(|(_, entry)| (entry.handle, entry.thread, entry.addresses))
            .collect();
        let is_new = |open: &&Entry| !known.contains(&(open.handle, open.thread, open.addresses));
        // Behind what is known there.
        let place = (self.last.max(self.first) - 1, 1);
        let opens = opens.iter().filter(is_new).map(|open| (place, *open)).collect();
        Unknown { opens, closes: 0 }
    }

    /// The opens that are not followed by another event of their handle value.
    fn outstanding(&self) -> Vec<(Place, &'a Entry)> {
        let mut touched = HashSet::new();
        let mut outstanding: Vec<_> = self
            .known
            .iter()
            .rev()
            .filter(|(_, entry)| entry.operation != Operation::BadReference)
            .filter(|(_, entry)| touched.insert(entry.handle))
            .filter(|(_, entry)| entry.operation == Operation::Open)
            .copied()
            .collect();
        outstanding.reverse();
        outstanding
    }

    /// Places of the opens that are not known: in the order they are listed in, behind known events of
    /// their handle, where events are not known. The last such places, as others may have come before.
    fn places(
        &self,
        opens: &[Entry],
        is_known: &[bool],
        outstanding: &[(Place, &Entry)],
    ) -> Option<Vec<(Place, Entry)>> {
        if is_known.iter().all(|is_known| *is_known) {
            return Some(Vec::new());
        }
        let last_of: HashMap<u64, i64> =
            self.known.iter().map(|(place, entry)| (entry.handle, place.0)).collect();
        let known: HashMap<u64, i64> =
            outstanding.iter().map(|(place, entry)| (entry.handle, place.0)).collect();
        let gaps = self.gaps();
        let mut places = Vec::new();
        // Where the next one ends, and how many stand in each gap.
        let mut end = self.last;
        let mut used: HashMap<i64, i64> = HashMap::new();
        for (open, is_known) in opens.iter().zip(is_known).rev() {
            if *is_known {
                end = end.min(*known.get(&open.handle)?);
                continue;
            }
            // The last gap that begins in front of it and has room.
            let until = gaps.partition_point(|&(start, _)| start < end);
            let has_room = |&&(start, gap_end): &&(i64, i64)| {
                used.get(&start).copied().unwrap_or_default() < gap_end.min(end) - start
            };
            let &(start, gap_end) = gaps.get(..until)?.iter().rev().find(has_room)?;
            *used.entry(start).or_default() += 1;
            end = end.min(gap_end);
            places.push(((end - 1, 1), *open));
        }
        places.reverse();
        // All stand behind the known ones that are listed in front of them, and those of their handle.
        let mut behind = self.first;
        let mut unknown = places.iter();
        for (open, is_known) in opens.iter().zip(is_known) {
            let of_handle =
                if *is_known { known.get(&open.handle) } else { last_of.get(&open.handle) };
            behind = behind.max(of_handle.copied().unwrap_or(behind));
            if !is_known && unknown.next()?.0.0 < behind {
                return None;
            }
        }
        Some(places)
    }

    /// Runs of events that are not known, the end excluded.
    fn gaps(&self) -> Vec<(i64, i64)> {
        let mut gaps = Vec::new();
        let mut next = self.first;
        let exact = self.known.iter().filter(|(place, _)| place.1 == 0).map(|(place, _)| place.0);
        for place in exact.chain([self.last]) {
            if next < place {
                gaps.push((next, place));
            }
            next = place + 1;
        }
        gaps
    }

    /// How many events are not known, of those behind `first` and in front of `last`.
    fn unknown_between(&self, first: i64, last: i64) -> i64 {
        let from = self.known.partition_point(|(place, _)| place.0 <= first);
        let known = self.known.iter().skip(from).take_while(|(place, _)| place.0 < last);
        let known = known.filter(|(place, _)| place.1 == 0).count() as i64;
        last.saturating_sub(first) - 1 - known
    }
}
