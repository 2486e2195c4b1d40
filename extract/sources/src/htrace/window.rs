//! The events between a snapshot and a difference, according to the difference and to listings of a handle value.
//!
//! A listing of a handle has all its events that tracing remembers, up to now. So the events of the handle that are known
//! are among the listed events, or the last of them are, when tracing has forgotten the first. Further listed events
//! lie between them, in front of them or behind them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::timeline::{Position, START, Span, Timeline};
use crate::operations::{Entry, Operation};

/// Events from a snapshot to the difference, of which some are known.
pub struct Window<'a> {
    first: i64,
    last: i64,
    known: Vec<(Position, &'a Entry)>,
}

/// Events of a window that are not known and that a difference needs.
pub struct Unknown {
    /// Opens with their positions.
    pub opens: Vec<(Position, Entry)>,
    /// Closes of known opens that are not listed.
    pub closes: usize,
}

impl<'a> Window<'a> {
    pub fn of(timeline: &'a Timeline, first: i64, last: i64) -> Self {
        let known = timeline.known.range((first, 0)..(last.max(first), 0));
        let known = known.map(|(&position, (_, entry))| (position, entry)).collect();
        Self { first, last, known }
    }

    /// Number of events that are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Number of events that are not known.
    pub fn missing(&self) -> i64 {
        self.last.saturating_sub(self.first) - self.len() as i64
    }

    /// The unknown events, if the listing can be of these events: all that are opened and not closed
    /// again, of which some may be events that are not known.
    pub fn explain(&self, opens: &[Entry]) -> Option<Unknown> {
        let outstanding = self.outstanding();
        let listed: HashMap<u64, usize> =
            opens.iter().enumerate().map(|(at, open)| (open.handle, at)).collect();
        let mut is_known = vec![false; opens.len()];
        let (mut next, mut closes) = (0, 0);
        for &(position, open) in &outstanding {
            let same = listed.get(&open.handle);
            match same.filter(|&&at| opens.get(at).is_some_and(|listed| listed.is_same(open))) {
                Some(&at) if at < next => return None,
                Some(&at) => {
                    next = at + 1;
                    *is_known.get_mut(at)? = true;
                }
                // It was closed by an event that is not known.
                None if self.unknown_between(position.0, self.last) > 0 => closes += 1,
                None => return None,
            }
        }
        let opens = self.positions(opens, &is_known, &outstanding)?;
        let missing = (opens.len() + closes) as i64;
        (missing <= self.unknown_between(self.first.saturating_sub(1), self.last))
            .then_some(Unknown { opens, closes })
    }

    /// Unknown opens of a listing that may contradict known events.
    pub fn unknown(&self, opens: &[Entry]) -> Unknown {
        let known: HashSet<(u64, u32, u32)> = self
            .known
            .iter()
            .filter(|(_, entry)| entry.operation == Operation::Open)
            .map(|(_, entry)| (entry.handle, entry.thread, entry.addresses))
            .collect();
        let is_new = |open: &&Entry| !known.contains(&(open.handle, open.thread, open.addresses));
        // After the known events there.
        let position = (self.last.max(self.first) - 1, 1);
        let opens = opens.iter().filter(is_new).map(|open| (position, *open)).collect();
        Unknown { opens, closes: 0 }
    }

    /// The opens that are not followed by another event of their handle value.
    fn outstanding(&self) -> Vec<(Position, &'a Entry)> {
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
    fn positions(
        &self,
        opens: &[Entry],
        is_known: &[bool],
        outstanding: &[(Position, &Entry)],
    ) -> Option<Vec<(Position, Entry)>> {
        if is_known.iter().all(|is_known| *is_known) {
            return Some(Vec::new());
        }
        let last_of: HashMap<u64, i64> =
            self.known.iter().map(|(position, entry)| (entry.handle, position.0)).collect();
        let known: HashMap<u64, i64> =
            outstanding.iter().map(|(position, entry)| (entry.handle, position.0)).collect();
        let gaps = self.gaps();
        let mut positions = Vec::new();
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
            let &(start, gap_end) =
                gaps.get(..until)?.iter().rev().find(|&&(start, gap_end)| {
                    used.get(&start).copied().unwrap_or_default() < gap_end.min(end) - start
                })?;
            *used.entry(start).or_default() += 1;
            end = end.min(gap_end);
            positions.push(((end - 1, 1), *open));
        }
        positions.reverse();
        // All stand behind the known ones that are listed in front of them, and those of their handle.
        let mut behind = self.first;
        let mut unknown = positions.iter();
        for (open, is_known) in opens.iter().zip(is_known) {
            let of_handle =
                if *is_known { known.get(&open.handle) } else { last_of.get(&open.handle) };
            behind = behind.max(of_handle.copied().unwrap_or(behind));
            if !is_known && unknown.next()?.0.0 < behind {
                return None;
            }
        }
        Some(positions)
    }

    /// Runs of events that are not known, the end excluded.
    fn gaps(&self) -> Vec<(i64, i64)> {
        let mut gaps = Vec::new();
        let mut next = self.first;
        let exact = self.known.iter().map(|(position, _)| position).filter(|(_, at)| *at == 0);
        for number in exact.map(|(number, _)| *number).chain([self.last]) {
            if next < number {
                gaps.push((next, number));
            }
            next = number + 1;
        }
        gaps
    }

    /// Number of unknown events after `first` and before `last`.
    fn unknown_between(&self, first: i64, last: i64) -> i64 {
        let from = self.known.partition_point(|(position, _)| position.0 <= first);
        let known = self.known.iter().skip(from).take_while(|(position, _)| position.0 < last);
        let known = known.filter(|(position, _)| position.1 == 0).count() as i64;
        last.saturating_sub(first) - 1 - known
    }
}

/// Adds the entries of a listing that the timeline lacks. The listing was printed at a time within `span`.
pub fn add_entries(step: usize, entries: &[Entry], span: Span, timeline: &mut Timeline) {
    let mut of_handles: BTreeMap<u64, Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        of_handles.entry(entry.handle).or_default().push(*entry);
    }
    let first = timeline.known.first_key_value().map_or(0, |(position, _)| position.0);
    for (handle, printed) in of_handles {
        let positions: Vec<Position> =
            timeline.positions_of(handle).filter(|position| *position < (span.last, 0)).collect();
        let known: Vec<Entry> =
            positions.iter().filter_map(|position| Some(timeline.known.get(position)?.1)).collect();
        let earliest = positions.partition_point(|position| *position < (span.first, 0));
        if (earliest.max(1)..=known.len()).any(|until| ends_with(known.get(..until), &printed)) {
            continue;
        }
        let (before, later) = known.split_at(earliest);
        let mut common = common(before, &printed);
        // What is known from later listings may have happened before this one.
        let tail = common.iter().rposition(Option::is_some).map_or(0, |row| row + 1);
        let mut later = (earliest..).zip(later).peekable();
        for (position, entry) in common.iter_mut().zip(&printed).skip(tail) {
            *position = later.next_if(|(_, known)| known.is_same(entry)).map(|(at, _)| at);
        }
        let common = common.into_iter().map(|known| positions.get(known?).copied());
        let common: Vec<Option<Position>> = common.collect();
        // The next place that is known, from each row on.
        let mut next = None;
        let mut nexts: Vec<Option<Position>> = Vec::with_capacity(common.len());
        for position in common.iter().rev() {
            next = position.or(next);
            nexts.push(next);
        }
        let mut before: Option<Position> = None;
        for ((entry, position), next) in printed.iter().zip(common).zip(nexts.into_iter().rev()) {
            if position.is_some() {
                before = position;
                continue;
            }
            let after = before.map_or(START, |position| position.0);
            // A gap in front of the next event of the handle, or behind the earliest time of the listing.
            let room = match (before, next) {
                (_, None) => Span { first: span.first.max(first).max(after), ..span },
                (None, Some(next)) => Span::at(next.0),
                (Some(_), Some(next)) => Span { first: after, last: next.0 },
            };
            // Where all events are known, none can be new.
            let Some(number) = timeline.unknown(room).filter(|number| *number >= after) else {
                continue;
            };
            let last = next.map_or(span.last, |next| timeline.span_of(next).last) - 1;
            let first = before.map_or(START, |position| timeline.span_of(position).first);
            before = Some(timeline.add((number, 0), Span { first, last }, step, *entry));
        }
    }
}

/// Whether a sequence ends with the printed entries.
fn ends_with(known: Option<&[Entry]>, printed: &[Entry]) -> bool {
    let last = known.and_then(|known| known.get(known.len().checked_sub(printed.len())?..));
    last.is_some_and(|last| last.iter().zip(printed).all(|(known, entry)| known.is_same(entry)))
}

/// The position in `known` of each printed event: among all known events, or else among the last of them, before which
/// tracing dropped entries.
fn common(known: &[Entry], printed: &[Entry]) -> Vec<Option<usize>> {
    let mut rest = known.iter().enumerate().peekable();
    let next = |entry: &Entry| Some(rest.next_if(|(_, known)| known.is_same(entry))?.0);
    let common: Vec<Option<usize>> = printed.iter().map(next).collect();
    if rest.next().is_none() {
        return common;
    }
    let mut rest = known.iter().enumerate().rev().peekable();
    let last = |entry: &Entry| Some(rest.next_if(|(_, known)| known.is_same(entry))?.0);
    let mut common: Vec<Option<usize>> = printed.iter().rev().map(last).collect();
    common.reverse();
    common
}
