//! Places full listings on one axis of event numbers.
//!
//! A full listing shows the end of the axis at its time, as far back as tracing remembers. So it continues the previous
//! listing by some number of events, and the common part of both must be equal. We choose the smallest number that the
//! rest of the text allows: the event counts of `-diff`, prompts between which the program did not run, and the fact
//! that an open handle value is not opened again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::output::{Fact, Output};
use crate::operations::{Operation, OperationEntry};

/// Number of an event, and an order among events without an exact number.
pub type SequencePosition = (i64, u32);

/// Positions before and after all events. They are finite because spans are added and intersected; a few of them can be
/// added without overflow.
pub const START: i64 = i64::MIN / 8;
pub const END: i64 = i64::MAX / 8;

/// Smallest number of entries tracing can hold; it is a power of two (`HANDLE_TRACE_DB_MIN_STACKS` of the kernel).
const MIN_CAPACITY: u64 = 128;

/// Whether tracing with `count` entries may have forgotten some.
fn may_be_full(count: u64) -> bool {
    count >= MIN_CAPACITY && count.is_power_of_two()
}

/// Maximum number of entry comparisons per text, so that no text takes hours.
const COMPARISONS: u64 = 2_000_000_000;

/// Range of event counts, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountSpan {
    pub first: i64,
    pub last: i64,
}

impl CountSpan {
    pub const ALL: Self = Self { first: START, last: END };

    pub fn at(time: i64) -> Self {
        Self { first: time, last: time }
    }

    /// Returns the span moved by `events`.
    pub fn after(self, events: i64) -> Self {
        let moved = |time: i64| if time == START || time == END { time } else { time + events };
        Self { first: moved(self.first), last: moved(self.last) }
    }

    /// Returns the intersection, unless it is empty.
    pub fn and(self, span: Self) -> Option<Self> {
        let (first, last) = (self.first.max(span.first), self.last.min(span.last));
        (first <= last).then_some(Self { first, last })
    }
}

/// Converts a count stated in a text to a distance on the axis.
pub fn distance(count: u64) -> i64 {
    // More would not fit into memory. This is far from the ends of the axis.
    i64::try_from(count).unwrap_or(i64::MAX).min(1 << 40)
}

/// The known events of a process, and the times of full listings.
pub struct HandleTimeline {
    /// Events with the first step that shows them.
    pub known: BTreeMap<SequencePosition, (usize, OperationEntry)>,
    /// Number of events at the time of each full listing, or listing with the total, by fact.
    pub times: Vec<Option<i64>>,
    /// Whether 0 is the number of the first event since tracing began.
    pub is_since_beginning: bool,
    of_handles: HashMap<u64, BTreeSet<SequencePosition>>,
    /// Ranges of numbers without known events, end excluded.
    unknown: Vec<(i64, i64)>,
    /// Possible numbers of events from differences and from listings of a handle.
    loose: HashMap<SequencePosition, CountSpan>,
    /// Full listings without events in common with the previous one, and where they start.
    gaps: Vec<(usize, i64)>,
    comparisons: u64,
}

/// The possible numbers of events.
pub struct EventSpans {
    firsts: Vec<i64>,
    lasts: Vec<i64>,
}

impl EventSpans {
    /// Whether some event may be before or after a time within `span`.
    pub fn are_open(&self, span: CountSpan) -> bool {
        let begun = self.firsts.partition_point(|first| *first < span.last);
        let ended = self.lasts.partition_point(|last| *last < span.first);
        begun > ended
    }
}

/// A full listing, with its end and its start.
#[derive(Clone, Copy)]
struct PlacedListing {
    time: i64,
    start: i64,
    is_cut: bool,
}

/// What is known about the time while visiting the facts.
struct FactClock {
    now: CountSpan,
    /// The last snapshot.
    snapshot: Option<CountSpan>,
    /// Whether the program has been stopped since then.
    is_at_snapshot: bool,
}

impl FactClock {
    fn advance(&mut self, fact: &Fact) {
        if fact.may_have_run {
            self.now.last = END;
            self.is_at_snapshot = false;
        }
        match &fact.output {
            Output::Enabled | Output::Snapshot => {}
            Output::Difference { new, .. } => {
                let then = self.snapshot.zip(*new);
                let then = then.and_then(|(at, new)| at.after(distance(new)).and(self.now));
                self.now = then.unwrap_or(self.now);
            }
            Output::All { .. } | Output::Some { .. } => return,
        }
        self.snapshot = Some(self.now);
        // Everything listed came after the start of tracing.
        self.is_at_snapshot = !matches!(fact.output, Output::Enabled);
    }

    /// Records the time of a listing.
    fn set(&mut self, time: i64) {
        self.now = CountSpan::at(time);
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.last = snapshot.last.min(time);
            if self.is_at_snapshot {
                *snapshot = self.now;
            }
        }
    }
}

impl HandleTimeline {
    pub fn new(facts: &[Fact]) -> Self {
        let mut timeline = Self {
            known: BTreeMap::new(),
            times: vec![None; facts.len()],
            is_since_beginning: is_since_beginning(facts),
            of_handles: HashMap::new(),
            unknown: Vec::new(),
            loose: HashMap::new(),
            gaps: Vec::new(),
            comparisons: 0,
        };
        let differences = next_differences(facts);
        let mut clock = FactClock { now: CountSpan::ALL, snapshot: None, is_at_snapshot: false };
        let mut last: Option<PlacedListing> = None;
        for (number, fact) in facts.iter().enumerate() {
            clock.advance(fact);
            let (entries, is_cut) = match &fact.output {
                Output::All { entries, is_cut } => (entries, *is_cut),
                Output::Some { traced: Some(traced), .. } => {
                    let time = timeline.time_since_beginning(*traced);
                    let time = time.filter(|time| CountSpan::at(*time).and(clock.now).is_some());
                    time.into_iter().for_each(|time| clock.set(time));
                    timeline.set_time(number, time);
                    continue;
                }
                _ => continue,
            };
            // The count of the next difference also limits the time of this listing.
            let next = differences.get(number).copied().flatten().zip(clock.snapshot);
            let until = next.map_or(CountSpan::ALL, |(next, snapshot)| {
                let at = snapshot.after(distance(next.new));
                if next.may_have_run { CountSpan { first: START, ..at } } else { at }
            });
            let allowed = clock.now.and(until).unwrap_or(clock.now);
            let length = entries.len() as i64;
            let time = match last {
                None => length,
                Some(last) => timeline.time_of(entries, last, allowed),
            };
            let start = time - length;
            // A copy of an older part of the text contains nothing new.
            let is_copy = last.is_some_and(|last| start > last.time && timeline.has(entries, last));
            if !is_copy {
                clock.set(time);
                if last.is_some_and(|last| start >= last.time) {
                    timeline.gaps.push((number, start));
                }
                timeline.insert(fact.step, entries, start);
                last = Some(PlacedListing { time, start, is_cut });
                timeline.set_time(number, Some(time));
            }
        }
        timeline
    }

    fn set_time(&mut self, fact: usize, time: Option<i64>) {
        if let Some(slot) = self.times.get_mut(fact) {
            *slot = time;
        }
    }

    /// Returns when tracing held this number of entries, if it had not forgotten any.
    fn time_since_beginning(&self, traced: u64) -> Option<i64> {
        (self.is_since_beginning && !may_be_full(traced)).then(|| distance(traced))
    }

    /// Returns the time of a listing that follows another one.
    fn time_of(
        &mut self,
        entries: &[Option<OperationEntry>],
        last: PlacedListing,
        allowed: CountSpan,
    ) -> i64 {
        let length = entries.len() as i64;
        // Tracing cannot show events again after dropping them.
        let earliest = if last.is_cut { last.time } else { last.time.max(last.start + length) };
        let behind = last.time + length;
        let times = CountSpan { first: earliest, last: behind };
        for allowed in [allowed, CountSpan::ALL] {
            let Some(CountSpan { first, last: until }) = times.and(allowed) else { continue };
            if let Some(time) = (first..=until).find(|time| self.continues(entries, last, *time)) {
                return time;
            }
            // Nothing in common, so the events between the two are unknown.
            if allowed.last > behind {
                return allowed.first.max(behind + 1);
            }
        }
        behind + 1
    }

    /// Whether a listing can end at a time after all known events.
    fn continues(
        &mut self,
        entries: &[Option<OperationEntry>],
        last: PlacedListing,
        time: i64,
    ) -> bool {
        let start = time - entries.len() as i64;
        let common = (last.time - start).max(0) as usize;
        let (common, new) = entries.split_at(common.min(entries.len()));
        for (time, entry) in (start..).zip(common) {
            self.comparisons += 1;
            let known = self.known.get(&(time, 0));
            if known.zip(entry.as_ref()).is_some_and(|((_, known), entry)| !known.is_same(entry)) {
                return false;
            }
        }
        // Opens and closes alternate with earlier events, unless some are missing in between.
        self.comparisons < COMPARISONS && self.alternates(common, new, start, last.time)
    }

    /// Whether each handle value opened by the new entries was closed before, and the other way round.
    fn alternates(
        &mut self,
        common: &[Option<OperationEntry>],
        new: &[Option<OperationEntry>],
        start: i64,
        time: i64,
    ) -> bool {
        let mut firsts: HashMap<u64, Operation> = HashMap::new();
        let changes = |entry: &&OperationEntry| entry.operation != Operation::BadReference;
        for entry in new.iter().flatten().filter(changes) {
            firsts.entry(entry.handle).or_insert(entry.operation);
        }
        for entry in common.iter().flatten() {
            firsts.remove(&entry.handle);
        }
        self.comparisons += new.len() as u64;
        let mut expected = start.min(time) - 1;
        for (&(number, _), (_, entry)) in self.known.range(..(start.min(time), 0)).rev() {
            self.comparisons += 1;
            if number != expected || firsts.is_empty() {
                break;
            }
            expected -= 1;
            if changes(&entry) && firsts.remove(&entry.handle) == Some(entry.operation) {
                return false;
            }
        }
        true
    }

    /// Returns the number of full listings without events in common with the previous one.
    pub fn gaps(&self) -> usize {
        self.gaps.len()
    }

    /// Changes how many events are missing before such a listing.
    pub fn widen(&mut self, gap: usize, by: i64) {
        let Some(&(fact, start)) = self.gaps.get(gap) else { return };
        let later = self.known.split_off(&(start, 0));
        self.known.extend(
            later.into_iter().map(|((number, order), entry)| ((number + by, order), entry)),
        );
        self.times.iter_mut().skip(fact).flatten().for_each(|time| *time += by);
        self.gaps.iter_mut().skip(gap).for_each(|(_, start)| *start += by);
    }

    /// Collects the events of each handle value, and the numbers without known events.
    pub fn index(&mut self) {
        let mut next = if self.is_since_beginning { 0 } else { START };
        for (&position, (_, entry)) in &self.known {
            self.of_handles.entry(entry.handle).or_default().insert(position);
            if next < position.0 {
                self.unknown.push((next, position.0));
            }
            next = position.0 + 1;
        }
        self.unknown.push((next, END));
    }

    /// Returns the first number in a span without a known event, or else the last such number before it.
    pub fn unknown(&self, span: CountSpan) -> Option<i64> {
        let at = self.unknown.partition_point(|&(_, end)| end <= span.first);
        let within = self.unknown.get(at).map(|&(start, _)| start.max(span.first));
        within.filter(|number| *number < span.last).or_else(|| {
            let until = self.unknown.partition_point(|&(start, _)| start < span.last);
            let (_, end) = self.unknown.get(until.checked_sub(1)?)?;
            Some(span.last.min(*end) - 1)
        })
    }

    /// Returns the possible numbers of an event.
    pub fn span_of(&self, position: SequencePosition) -> CountSpan {
        self.loose.get(&position).copied().unwrap_or(CountSpan::at(position.0))
    }

    /// Returns the possible numbers of each event.
    pub fn spans(&self) -> EventSpans {
        let spans = || self.known.keys().map(|position| self.span_of(*position));
        let mut spans = EventSpans {
            firsts: spans().map(|span| span.first).collect(),
            lasts: spans().map(|span| span.last).collect(),
        };
        spans.firsts.sort_unstable();
        spans.lasts.sort_unstable();
        spans
    }

    /// Adds an event after all others with the number of `position`, which is before the next number. Its true number
    /// is within `span`.
    pub fn add(
        &mut self,
        position: SequencePosition,
        span: CountSpan,
        step: usize,
        entry: OperationEntry,
    ) -> SequencePosition {
        let last =
            self.known.range(..=(position.0, u32::MAX)).next_back().map(|(position, _)| *position);
        let behind =
            last.filter(|last| last.0 == position.0).map_or(position.1.max(1), |last| last.1 + 1);
        let position = (position.0, behind);
        self.known.insert(position, (step, entry));
        self.loose.insert(position, span);
        self.of_handles.entry(entry.handle).or_default().insert(position);
        position
    }

    /// Returns the last event of a handle value before a position, with its possible numbers.
    pub fn last_of(
        &self,
        handle: u64,
        before: SequencePosition,
    ) -> Option<(CountSpan, &OperationEntry)> {
        let last = self.of_handles.get(&handle)?.range(..before).next_back()?;
        self.known.get(last).map(|(_, entry)| (self.span_of(*last), entry))
    }

    /// Returns the positions of a handle value's events.
    pub fn positions_of(&self, handle: u64) -> impl Iterator<Item = SequencePosition> {
        self.of_handles.get(&handle).into_iter().flatten().copied()
    }

    fn insert(&mut self, step: usize, entries: &[Option<OperationEntry>], start: i64) {
        for (time, entry) in (start..).zip(entries) {
            let Some(entry) = entry else { continue };
            let known = self.known.entry((time, 0)).or_insert((step, *entry));
            // Later listings know more function names.
            known.1.stack = entry.stack.or(known.1.stack);
        }
    }

    /// Whether the previous listing contains all entries of a listing.
    fn has(&mut self, entries: &[Option<OperationEntry>], last: PlacedListing) -> bool {
        let Some((&(first, _), _)) = self.known.first_key_value() else { return false };
        let length = entries.len() as i64;
        (first..=last.time - length).any(|start| {
            (start..).zip(entries).all(|(time, entry)| {
                self.comparisons += 1;
                let known = self.known.get(&(time, 0)).filter(|_| self.comparisons < COMPARISONS);
                known.zip(entry.as_ref()).is_some_and(|((_, known), entry)| known.is_same(entry))
            })
        })
    }
}

/// Whether the first full listing starts with the first event since tracing started. Without a full listing, whether a
/// listing of a handle tells how many events there were.
fn is_since_beginning(facts: &[Fact]) -> bool {
    let mut listings = facts.iter().filter_map(|fact| match &fact.output {
        Output::All { entries, is_cut } => Some(!is_cut && !may_be_full(entries.len() as u64)),
        _ => None,
    });
    listings.next().unwrap_or_else(|| {
        facts.iter().any(|fact| matches!(fact.output, Output::Some { traced: Some(_), .. }))
    })
}

/// A difference that counts its new events.
#[derive(Clone, Copy)]
struct NextDifference {
    new: u64,
    may_have_run: bool,
}

/// Returns the next difference after each fact, unless a snapshot comes first.
fn next_differences(facts: &[Fact]) -> Vec<Option<NextDifference>> {
    let mut next = None;
    let mut differences = Vec::with_capacity(facts.len());
    for fact in facts.iter().rev() {
        differences.push(next);
        match &fact.output {
            Output::Difference { new, .. } => {
                next = new.map(|new| NextDifference { new, may_have_run: false });
            }
            Output::Enabled | Output::Snapshot => next = None,
            Output::All { .. } | Output::Some { .. } => {}
        }
        if let Some(next) = &mut next {
            next.may_have_run |= fact.may_have_run;
        }
    }
    differences.reverse();
    differences
}
