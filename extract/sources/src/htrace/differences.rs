//! Places snapshots and `-diff` listings among the events.
//!
//! `0x5 new stack traces since the previous snapshot` is the distance of a difference from the previous snapshot, which
//! a difference may also have taken. So snapshots and differences form chains of known length and unknown start. The
//! listings around a chain limit its start. So do the opens that the differences print: all opens among their events
//! that were not closed again. The start we choose needs the fewest events missing from full listings; of several such
//! starts, it is the last.

use super::output::{Fact, Output};
use super::timeline::{CountSpan, END, HandleTimeline, START, SequencePosition, distance};
use super::window::{SnapshotWindow, UnknownEvents};
use crate::operations::OperationEntry;

/// Maximum number of starts tried for a chain, so that no text takes hours.
const STARTS: i64 = 1 << 20;

/// Maximum number of events examined in the windows of a text, for the same reason.
const LOOKS: u64 = 500_000_000;

/// The positions of all facts.
#[derive(Debug)]
pub struct Differences {
    /// Number of events before each snapshot or difference, by fact.
    times: Vec<i64>,
    /// First event that each difference covers, by fact.
    starts: Vec<i64>,
    /// Range in which each fact may have been printed, by fact.
    spans: Vec<CountSpan>,
    /// Start of each fact's chain if a later start is possible, by fact.
    later: Vec<i64>,
    /// Equally good positions of each snapshot, by fact.
    allowed: Vec<Option<CountSpan>>,
    /// Number of chains with differences that fit nowhere.
    pub contradictions: usize,
    looks: u64,
}

/// Snapshots and differences at known distances.
struct SnapshotChain {
    links: Vec<Link>,
    /// Range of possible starts.
    span: CountSpan,
}

/// A fact in a chain.
#[derive(Clone, Copy)]
struct Link {
    fact: usize,
    /// Number of events after the start of the chain.
    after: i64,
    /// Whether it is a named snapshot.
    is_snapshot: bool,
}

impl SnapshotChain {
    fn new(link: Link, span: CountSpan) -> Self {
        Self { links: vec![link], span: span.after(-link.after) }
    }

    /// Adds a fact `new` events after the last one, unless its time does not allow that.
    fn add(&mut self, fact: usize, new: i64, is_snapshot: bool, span: CountSpan) -> bool {
        let after = self.links.last().map_or(0, |link| link.after.saturating_add(new)).min(END);
        let Some(span) = self.span.and(span.after(-after)) else { return false };
        self.span = span;
        self.links.push(Link { fact, after, is_snapshot });
        true
    }
}

impl Differences {
    pub fn new(facts: &[Fact], timeline: &HandleTimeline) -> Self {
        let mut differences = Self {
            times: vec![0; facts.len()],
            starts: vec![START; facts.len()],
            spans: spans(facts, timeline),
            later: vec![START; facts.len()],
            allowed: vec![None; facts.len()],
            contradictions: 0,
            looks: 0,
        };
        let chains = differences.chains(facts, timeline);
        let starts = differences.bounded_starts(&chains, facts, timeline);
        let mut chains = chains.iter().zip(starts).peekable();
        // The next fact is not before `floor`, and the events of the next difference are not before `previous`.
        let (mut floor, mut previous) = (START, START);
        for (number, fact) in facts.iter().enumerate() {
            if let Some((chain, start)) = chains.next_if(|(chain, _)| chain.first() == Some(number))
            {
                let room = CountSpan { first: floor, last: END }.after(-chain.lead());
                let starts =
                    start.map_or_else(|| chain.starts(room, facts, timeline), CountSpan::at);
                differences.put(chain, starts, previous, facts, timeline);
            }
            match &fact.output {
                Output::All { .. } => {
                    let time = timeline.times.get(number).copied().flatten();
                    floor = floor.max(time.unwrap_or(START));
                }
                Output::Some { entries, .. } => {
                    let Some(span) = differences.spans.get_mut(number) else { continue };
                    span.first = span.first.max(floor).min(span.last);
                    // All entries may be new.
                    floor = span.first.saturating_add(entries.len() as i64).min(span.last);
                }
                Output::Enabled | Output::Snapshot | Output::Difference { .. } => {
                    previous = differences.time(number);
                    floor = floor.max(previous);
                }
            }
        }
        differences.end_listings(facts);
        differences
    }

    /// Limits a listing of a handle to before the next snapshot or difference.
    fn end_listings(&mut self, facts: &[Fact]) {
        let mut next = END;
        for (number, fact) in facts.iter().enumerate().rev() {
            match &fact.output {
                Output::Some { .. } => {
                    let Some(span) = self.spans.get_mut(number) else { continue };
                    span.last = span.last.min(next.max(span.first));
                }
                Output::All { .. } => next = END,
                Output::Enabled | Output::Snapshot | Output::Difference { .. } => {
                    next = self.time(number);
                }
            }
        }
    }

    /// Returns the number of events before a snapshot or difference.
    pub fn time(&self, fact: usize) -> i64 {
        self.times.get(fact).copied().unwrap_or_default()
    }

    /// Returns the range in which a fact may have been printed.
    pub fn span(&self, fact: usize) -> CountSpan {
        self.spans.get(fact).copied().unwrap_or(CountSpan::ALL)
    }

    /// Returns the positions of a snapshot that fit as well as the chosen one.
    pub fn allowed(&self, fact: usize) -> CountSpan {
        self.allowed.get(fact).copied().flatten().unwrap_or(CountSpan::at(self.time(fact)))
    }

    /// Adds the opens of a difference that are not known yet.
    pub fn add_opens(&self, fact: usize, facts: &[Fact], timeline: &mut HandleTimeline) {
        let Some(Fact { step, output: Output::Difference { opens, .. }, .. }) = facts.get(fact)
        else {
            return;
        };
        let first = self.starts.get(fact).copied().unwrap_or(START);
        let window = SnapshotWindow::new(timeline, first, self.time(fact));
        let UnknownEvents { opens: mut unknown, closes } =
            window.explain(opens).unwrap_or_else(|| window.unknown(opens));
        // If a handle was open before, it must have been closed, in these events or earlier, to be opened again. If no
        // unknown events are left for that close, the difference lists an open that is already known.
        let last_of = |(position, open): &(SequencePosition, OperationEntry)| {
            timeline.last_of(open.handle, *position).filter(|(_, last)| last.is_same(open))
        };
        let earliest = first - (self.time(fact) - self.allowed(fact).first);
        unknown.retain(|open| last_of(open).is_none_or(|(span, _)| span.last < earliest));
        let later = self.later.get(fact).copied().unwrap_or(START);
        let is_open = |open: &(SequencePosition, OperationEntry)| {
            last_of(open).is_some_and(|(span, _)| {
                let before = timeline.unknown(CountSpan { first: span.last, last: first });
                span.last >= later && before.is_none_or(|number| number < span.last)
            })
        };
        let reopened = unknown.iter().filter(|open| is_open(open)).count();
        if (unknown.len() + reopened + closes) as i64 > window.missing() {
            unknown.retain(|open| !is_open(open));
        }
        let span = CountSpan { first, last: self.time(fact) - 1 };
        for (position, open) in unknown {
            timeline.add(position, span, *step, open);
        }
    }

    fn chains(&self, facts: &[Fact], timeline: &HandleTimeline) -> Vec<SnapshotChain> {
        let mut chains: Vec<SnapshotChain> = Vec::new();
        let mut did_not_run = false;
        for (number, fact) in facts.iter().enumerate() {
            did_not_run &= !fact.may_have_run;
            let new = match &fact.output {
                Output::All { .. } | Output::Some { .. } => continue,
                Output::Difference { new, .. } => new.map(distance),
                Output::Enabled | Output::Snapshot => Some(0).filter(|_| did_not_run),
            };
            did_not_run = true;
            let (span, is_snapshot) = (self.span(number), matches!(fact.output, Output::Snapshot));
            let linked = chains.last_mut().zip(new);
            if linked.is_some_and(|(chain, new)| chain.add(number, new, is_snapshot, span)) {
                continue;
            }
            // Without an earlier snapshot, the text starts later than tracing.
            let after = new.filter(|_| chains.is_empty()).unwrap_or_default();
            let mut chain = SnapshotChain::new(Link { fact: number, after, is_snapshot }, span);
            if let Output::Enabled = fact.output {
                let first =
                    timeline.known.first_key_value().map_or(END, |(position, _)| position.0);
                chain.span = if timeline.is_since_beginning {
                    CountSpan::at(0)
                } else {
                    CountSpan { first: START, last: first }
                };
            }
            chains.push(chain);
        }
        chains
    }

    /// Returns the starts of chains with differences before a full listing: for each, the last start that leaves room
    /// for the next chain.
    fn bounded_starts(
        &mut self,
        chains: &[SnapshotChain],
        facts: &[Fact],
        timeline: &HandleTimeline,
    ) -> Vec<Option<i64>> {
        let mut next = END;
        let mut starts: Vec<Option<i64>> = Vec::with_capacity(chains.len());
        for chain in chains.iter().rev() {
            let is_bounded = chain.span.last != END && chain.opens(facts).next().is_some();
            starts.push(is_bounded.then(|| {
                let room = CountSpan { first: START, last: next - chain.length() };
                let starts = chain.starts(room, facts, timeline);
                next = self.start(chain, starts, START, facts, timeline);
                next
            }));
        }
        starts.reverse();
        starts
    }

    /// Places a chain at the best of some starts. The events of its first difference start after `previous`, unless it
    /// counts its events.
    fn put(
        &mut self,
        chain: &SnapshotChain,
        starts: CountSpan,
        previous: i64,
        facts: &[Fact],
        timeline: &HandleTimeline,
    ) {
        let start = if starts.first == starts.last {
            starts.first
        } else {
            self.start(chain, starts, previous, facts, timeline)
        };
        for (link, window) in chain.windows(start, previous) {
            let starts = self.times.get_mut(link.fact).zip(self.starts.get_mut(link.fact));
            if let Some((time, first)) = starts {
                (*time, *first) = (window.last, window.first);
            }
            if let Some(later) = self.later.get_mut(link.fact).filter(|_| start < chain.span.last) {
                *later = start;
            }
        }
    }

    /// Returns the best start of a chain.
    fn start(
        &mut self,
        chain: &SnapshotChain,
        starts: CountSpan,
        previous: i64,
        facts: &[Fact],
        timeline: &HandleTimeline,
    ) -> i64 {
        // Without a difference, assume that events printed only later also happened later.
        if chain.opens(facts).next().is_none() {
            self.allow(chain, starts);
            return starts.first;
        }
        // The fewest unknown events, and the starts with that number.
        let (mut fewest, mut best) = (None, CountSpan::at(starts.last));
        for start in (starts.first.max(starts.last - STARTS)..=starts.last).rev() {
            let Some(unknown) = self.unknown(chain, start, previous, facts, timeline) else {
                continue;
            };
            if fewest.is_none_or(|fewest| unknown < fewest) {
                (fewest, best) = (Some(unknown), CountSpan::at(start));
            } else if fewest == Some(unknown) {
                best.first = start;
            }
            // No start can be better. Equally good ones matter only for named snapshots.
            let is_known = fewest == Some(0)
                && (!chain.has_snapshot()
                    || chain.is_open_between(best.first, best.last, timeline));
            if is_known || self.looks > LOOKS {
                break;
            }
        }
        if self.looks > LOOKS {
            best.first = starts.first;
        }
        self.contradictions += usize::from(fewest.is_none());
        self.allow(chain, best);
        best.last
    }

    /// Records the starts of a chain that fit as well as the chosen one.
    fn allow(&mut self, chain: &SnapshotChain, starts: CountSpan) {
        for link in &chain.links {
            if let Some(allowed) = self.allowed.get_mut(link.fact) {
                *allowed = Some(starts.after(link.after));
            }
        }
    }

    /// Returns the number of a chain's opens that are in no full listing; `None` if the chain cannot start there.
    fn unknown(
        &mut self,
        chain: &SnapshotChain,
        start: i64,
        previous: i64,
        facts: &[Fact],
        timeline: &HandleTimeline,
    ) -> Option<usize> {
        let mut unknown = 0;
        for (link, window) in chain.windows(start, previous) {
            self.looks += 1;
            let Some(opens) = opens(facts, link.fact) else { continue };
            let window = SnapshotWindow::new(timeline, window.first, window.last);
            self.looks += window.len() as u64;
            unknown += window.explain(opens)?.opens.len();
        }
        Some(unknown)
    }
}

impl SnapshotChain {
    /// Returns the first fact.
    fn first(&self) -> Option<usize> {
        self.links.first().map(|link| link.fact)
    }

    fn has_snapshot(&self) -> bool {
        self.links.iter().any(|link| link.is_snapshot)
    }

    /// Returns the number of events until the last fact.
    fn length(&self) -> i64 {
        self.links.last().map_or(0, |link| link.after)
    }

    /// Returns the number of events counted by its first difference.
    fn lead(&self) -> i64 {
        self.links.first().map_or(0, |link| link.after)
    }

    /// Returns the range of possible starts within `room`. Both ends are finite, unless the chain has no differences.
    fn starts(&self, room: CountSpan, facts: &[Fact], timeline: &HandleTimeline) -> CountSpan {
        let span = self.span.and(room).unwrap_or(self.span);
        let Some(opens) = self.opens(facts).next() else {
            let last = if span.last == END { span.first } else { span.last };
            return CountSpan { last, ..span };
        };
        let first_known = timeline.known.first_key_value().map_or(0, |(position, _)| position.0);
        let known_until = timeline.known.last_key_value().map_or(0, |(position, _)| position.0 + 1);
        // Opens that a difference lists after all known events may be new.
        let new = if self.links.len() == 1 && self.lead() == 0 { opens.len() as i64 } else { 0 };
        let last = if span.last == END { span.first.max(known_until) + new } else { span.last };
        // Before all known events, all starts are equally good.
        let first = span.first.max(last.min(first_known).saturating_sub(self.length() + 1));
        CountSpan { first, last }
    }

    fn opens<'a>(&self, facts: &'a [Fact]) -> impl Iterator<Item = &'a [OperationEntry]> {
        self.links.iter().filter_map(|link| opens(facts, link.fact))
    }

    /// Returns each link with the events since the previous snapshot. Those of the first link start at `previous`,
    /// unless it counts them.
    fn windows(&self, start: i64, previous: i64) -> impl Iterator<Item = (&Link, CountSpan)> {
        let mut before = if self.lead() > 0 { start } else { previous.min(start) };
        self.links.iter().map(move |link| {
            let last = start.saturating_add(link.after);
            (link, CountSpan { first: std::mem::replace(&mut before, last), last })
        })
    }

    /// Whether there are known events between the two positions a snapshot has for two starts.
    fn is_open_between(&self, left: i64, right: i64, timeline: &HandleTimeline) -> bool {
        self.links.iter().filter(|link| link.is_snapshot).any(|link| {
            let [left, right] = [left, right].map(|start| (start.saturating_add(link.after), 0));
            timeline.known.range(left..right.max(left)).next().is_some()
        })
    }
}

fn opens(facts: &[Fact], fact: usize) -> Option<&[OperationEntry]> {
    match &facts.get(fact)?.output {
        Output::Difference { opens, .. } => Some(opens),
        _ => None,
    }
}

/// Returns the range in which each fact may have been printed, from the full listings around it.
fn spans(facts: &[Fact], timeline: &HandleTimeline) -> Vec<CountSpan> {
    let time = |number: usize| timeline.times.get(number).copied().flatten();
    let mut spans = vec![CountSpan::ALL; facts.len()];
    // The last full listing, and whether the program has been stopped since.
    let (mut last, mut is_same) = (None, false);
    for (number, (fact, span)) in facts.iter().zip(&mut spans).enumerate() {
        is_same &= !fact.may_have_run;
        if let Some(time) = time(number) {
            (last, is_same) = (Some(time), true);
        }
        if let Some(last) = last {
            *span = CountSpan { first: last, last: if is_same { last } else { END } };
        }
    }
    let (mut next, mut is_same) = (None, false);
    for (number, (fact, span)) in facts.iter().zip(&mut spans).enumerate().rev() {
        if let Some(time) = time(number) {
            (next, is_same) = (Some(time), true);
        }
        if let Some(next) = next {
            let until = CountSpan { first: if is_same { next } else { START }, last: next };
            *span = span.and(until).unwrap_or(*span);
        }
        is_same &= !fact.may_have_run;
    }
    spans
}
