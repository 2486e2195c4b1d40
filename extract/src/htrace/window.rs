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
        self.unknown_between(self.first.saturating_sub(1), self.last)
    }

    /// Those of the opens that are not known, with their places, when the listing can be that of these events: all
    /// that are opened and not closed again, of which some may be events that are not known.
    pub(super) fn explain(&self, opens: &[Entry]) -> Option<Vec<(Place, Entry)>> {
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
        let unknown = self.places(opens, &is_known, &outstanding)?;
        let missing = unknown.len() as i64 + closes;
        (missing <= self.unknown_between(self.first.saturating_sub(1), self.last))
            .then_some(unknown)
    }

    /// Those of the opens that are not known, whatever else is listed.
    pub(super) fn unknown(&self, opens: &[Entry]) -> Vec<(Place, Entry)> {
        let known: HashSet<(u64, u32, u32)> = self
            .known
            .iter()
            .filter(|(_, entry)| entry.operation == Operation::Open)
            .map(|(_, entry)| (entry.handle, entry.thread, entry.addresses))
            .collect();
        let is_new = |open: &&Entry| !known.contains(&(open.handle, open.thread, open.addresses));
        let place = (self.last.max(self.first) - 1, 0);
        opens.iter().filter(is_new).map(|open| (place, *open)).collect()
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
    /// their handle, where events are not known.
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
        let mut behind = self.first.saturating_sub(1);
        // Where the next one goes, and how many stand in that gap.
        let mut used: HashMap<i64, i64> = HashMap::new();
        for (open, is_known) in opens.iter().zip(is_known) {
            if *is_known {
                behind = behind.max(*known.get(&open.handle)?);
                continue;
            }
            behind = behind.max(last_of.get(&open.handle).copied().unwrap_or(behind));
            // The first gap that ends behind it and has room.
            let from = gaps.partition_point(|&(_, end)| end <= behind + 1);
            let &(start, _) = gaps
                .iter()
                .skip(from)
                .find(|(start, end)| used.get(start).copied().unwrap_or_default() < end - start)?;
            *used.entry(start).or_default() += 1;
            places.push(((start, 1), *open));
            behind = behind.max(start - 1);
        }
        // All stand in front of the known ones that are listed behind them.
        let mut next = i64::MAX;
        let mut unknown = places.iter().rev();
        for (open, is_known) in opens.iter().zip(is_known).rev() {
            match is_known {
                true => next = *known.get(&open.handle)?,
                false if unknown.next()?.0.0 >= next => return None,
                false => {}
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
