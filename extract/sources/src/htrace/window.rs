//! Explains the events between a snapshot and a difference, using the difference and listings of a handle value.
//!
//! A listing of a handle shows all of the handle's events that tracing still remembers. So the known events of the
//! handle are among the listed ones; if tracing has forgotten the first, the last of them are. Other listed events are
//! between, before or after them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::timeline::{CountSpan, HandleTimeline, START, SequencePosition};
use crate::operations::{Operation, OperationEntry};

/// Events from a snapshot to a difference; some are known.
pub struct SnapshotWindow<'a> {
    first: i64,
    last: i64,
    known: Vec<(SequencePosition, &'a OperationEntry)>,
}

/// Unknown events of a window that a difference needs.
pub struct UnknownEvents {
    /// Opens with their positions.
    pub opens: Vec<(SequencePosition, OperationEntry)>,
    /// Number of known opens with an unlisted close.
    pub closes: usize,
}

impl<'a> SnapshotWindow<'a> {
    pub fn new(timeline: &'a HandleTimeline, first: i64, last: i64) -> Self {
        let known = timeline
            .known
            .range((first, 0)..(last.max(first), 0))
            .map(|(&position, (_, entry))| (position, entry))
            .collect();
        Self { first, last, known }
    }

    /// Returns the number of known events.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns the number of unknown events.
    pub fn missing(&self) -> i64 {
        self.last.saturating_sub(self.first) - self.len() as i64
    }

    /// Returns the unknown events, if the listing fits these events. It must show all that were opened and not closed
    /// again, some of which may be unknown.
    pub fn explain(&self, opens: &[OperationEntry]) -> Option<UnknownEvents> {
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
                // It was closed by an unknown event.
                None if self.unknown_between(position.0, self.last) > 0 => closes += 1,
                None => return None,
            }
        }
        let opens = self.positions(opens, &is_known, &outstanding)?;
        let missing = (opens.len() + closes) as i64;
        (missing <= self.unknown_between(self.first.saturating_sub(1), self.last))
            .then_some(UnknownEvents { opens, closes })
    }

    /// Returns the unknown opens of a listing that may contradict known events.
    pub fn unknown(&self, opens: &[OperationEntry]) -> UnknownEvents {
        let known: HashSet<(u64, u32, u32)> = self
            .known
            .iter()
            .filter(|(_, entry)| entry.operation == Operation::Open)
            .map(|(_, entry)| (entry.handle, entry.thread, entry.addresses))
            .collect();
        let is_new =
            |open: &&OperationEntry| !known.contains(&(open.handle, open.thread, open.addresses));
        // After the known events there.
        let position = (self.last.max(self.first) - 1, 1);
        let opens = opens.iter().filter(is_new).map(|open| (position, *open)).collect();
        UnknownEvents { opens, closes: 0 }
    }

    /// Returns the opens that no other event of their handle value follows.
    fn outstanding(&self) -> Vec<(SequencePosition, &'a OperationEntry)> {
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

    /// Returns positions for unknown opens: in the order listed, after known events of their handle, and where events
    /// are unknown. These are the last such positions, because other events may have come before.
    fn positions(
        &self,
        opens: &[OperationEntry],
        is_known: &[bool],
        outstanding: &[(SequencePosition, &OperationEntry)],
    ) -> Option<Vec<(SequencePosition, OperationEntry)>> {
        if is_known.iter().all(|is_known| *is_known) {
            return Some(Vec::new());
        }
        let last_of: HashMap<u64, i64> =
            self.known.iter().map(|(position, entry)| (entry.handle, position.0)).collect();
        let known: HashMap<u64, i64> =
            outstanding.iter().map(|(position, entry)| (entry.handle, position.0)).collect();
        let gaps = self.gaps();
        let mut positions = Vec::new();
        // Where the next open must end, and how many are in each gap.
        let mut end = self.last;
        let mut used: HashMap<i64, i64> = HashMap::new();
        for (open, is_known) in opens.iter().zip(is_known).rev() {
            if *is_known {
                end = end.min(*known.get(&open.handle)?);
                continue;
            }
            // The last gap that starts before it and has room.
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
        // All must be after the known ones listed before them, and after known events of their handle.
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

    /// Returns ranges of unknown events, end excluded.
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

    /// Returns the number of unknown events after `first` and before `last`.
    fn unknown_between(&self, first: i64, last: i64) -> i64 {
        let from = self.known.partition_point(|(position, _)| position.0 <= first);
        let known = self
            .known
            .iter()
            .skip(from)
            .take_while(|(position, _)| position.0 < last)
            .filter(|(position, _)| position.1 == 0)
            .count() as i64;
        last.saturating_sub(first) - 1 - known
    }
}

/// Adds the entries of a listing that the timeline lacks. The listing was printed at a time within `span`.
pub fn add_entries(
    step: usize,
    entries: &[OperationEntry],
    span: CountSpan,
    timeline: &mut HandleTimeline,
) {
    let mut of_handles: BTreeMap<u64, Vec<OperationEntry>> = BTreeMap::new();
    for entry in entries {
        of_handles.entry(entry.handle).or_default().push(*entry);
    }
    let first = timeline.known.first_key_value().map_or(0, |(position, _)| position.0);
    for (handle, printed) in of_handles {
        let positions: Vec<SequencePosition> =
            timeline.positions_of(handle).filter(|position| *position < (span.last, 0)).collect();
        let known: Vec<OperationEntry> =
            positions.iter().filter_map(|position| Some(timeline.known.get(position)?.1)).collect();
        let earliest = positions.partition_point(|position| *position < (span.first, 0));
        if (earliest.max(1)..=known.len()).any(|until| ends_with(known.get(..until), &printed)) {
            continue;
        }
        let (before, later) = known.split_at(earliest);
        let mut common = common(before, &printed);
        // Events known from later listings may have happened before this one.
        let tail = common.iter().rposition(Option::is_some).map_or(0, |row| row + 1);
        let mut later = (earliest..).zip(later).peekable();
        for (position, entry) in common.iter_mut().zip(&printed).skip(tail) {
            *position = later.next_if(|(_, known)| known.is_same(entry)).map(|(at, _)| at);
        }
        let common: Vec<Option<SequencePosition>> =
            common.into_iter().map(|known| positions.get(known?).copied()).collect();
        // From each row on, the next known position.
        let mut next = None;
        let mut nexts: Vec<Option<SequencePosition>> = Vec::with_capacity(common.len());
        for position in common.iter().rev() {
            next = position.or(next);
            nexts.push(next);
        }
        let mut before: Option<SequencePosition> = None;
        for ((entry, position), next) in printed.iter().zip(common).zip(nexts.into_iter().rev()) {
            if position.is_some() {
                before = position;
                continue;
            }
            let after = before.map_or(START, |position| position.0);
            // A gap before the handle's next event, or after the earliest time of the listing.
            let room = match (before, next) {
                (_, None) => CountSpan { first: span.first.max(first).max(after), ..span },
                (None, Some(next)) => CountSpan::at(next.0),
                (Some(_), Some(next)) => CountSpan { first: after, last: next.0 },
            };
            // Where all events are known, none can be new.
            let Some(number) = timeline.unknown(room).filter(|number| *number >= after) else {
                continue;
            };
            let last = next.map_or(span.last, |next| timeline.span_of(next).last) - 1;
            let first = before.map_or(START, |position| timeline.span_of(position).first);
            before = Some(timeline.add((number, 0), CountSpan { first, last }, step, *entry));
        }
    }
}

/// Whether a sequence ends with the printed entries.
fn ends_with(known: Option<&[OperationEntry]>, printed: &[OperationEntry]) -> bool {
    let last = known.and_then(|known| known.get(known.len().checked_sub(printed.len())?..));
    last.is_some_and(|last| last.iter().zip(printed).all(|(known, entry)| known.is_same(entry)))
}

/// Returns the index in `known` of each printed event: aligned with all known events, or else with the last of them, if
/// tracing dropped earlier entries.
fn common(known: &[OperationEntry], printed: &[OperationEntry]) -> Vec<Option<usize>> {
    let mut rest = known.iter().enumerate().peekable();
    let next = |entry: &OperationEntry| Some(rest.next_if(|(_, known)| known.is_same(entry))?.0);
    let common: Vec<Option<usize>> = printed.iter().map(next).collect();
    if rest.next().is_none() {
        return common;
    }
    let mut rest = known.iter().enumerate().rev().peekable();
    let last = |entry: &OperationEntry| Some(rest.next_if(|(_, known)| known.is_same(entry))?.0);
    let mut common: Vec<Option<usize>> = printed.iter().rev().map(last).collect();
    common.reverse();
    common
}
