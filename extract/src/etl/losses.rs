//! Finds time ranges in which events may be missing, from sequence numbers, flags and damage of buffers.
//!
//! A session numbers its buffers from 0. On each processor the numbers rise: in some files in the order processors took
//! the buffers, in others in the order they were written. Either way, a missing buffer of a processor belongs between
//! that processor's buffers with the next lower and next higher number.

use std::collections::BTreeMap;

use handlescope_model::tables::LossKind;

use super::buffer::{BufferHeader, BufferTimes};

/// Time in which events may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLoss {
    pub kind: LossKind,
    /// `None` if it may be any time.
    pub span: Option<LossSpan>,
    /// Maximum number of missing buffers or events; `None` if unknown. If the buffers may be from several processors,
    /// only one of the losses has the count.
    pub count: Option<u64>,
    /// Processor that lost the events; `None` if unknown.
    pub processor: Option<u16>,
    /// Whether the span is too short for a buffer, so that the missing buffer was probably another processor's.
    pub is_doubtful: bool,
}

/// Raw time range of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossSpan {
    /// First moment; `None` for the start of the trace.
    pub from: Option<i64>,
    /// Last moment; `None` for the end of the trace.
    pub to: Option<i64>,
}

impl LossSpan {
    /// Returns first and last moment for comparison with times. The start and end of the trace become the smallest and
    /// largest number.
    pub fn bounds(self) -> (i64, i64) {
        (self.from.unwrap_or(i64::MIN), self.to.unwrap_or(i64::MAX))
    }
}

impl EventLoss {
    /// Creates a loss that is certain.
    pub fn new(
        kind: LossKind,
        span: Option<LossSpan>,
        count: Option<u64>,
        processor: Option<u16>,
    ) -> Self {
        Self { kind, span, count, processor, is_doubtful: false }
    }
}

/// Buffer with events that were read.
#[derive(Debug, Clone, Copy)]
pub struct ReadBuffer {
    pub header: BufferHeader,
    /// Raw time of its first event.
    pub first: i64,
    /// Raw time of the last event that was read.
    pub last: i64,
    /// Time ranges of its events by kind.
    pub times: BufferTimes,
    /// Whether all of its events were read.
    pub is_whole: bool,
}

/// What the session claims about its buffers, and which parts of the file could not be read.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionClaims {
    /// Whether it was stopped; if not, it had not yet written all buffers.
    pub is_stopped: bool,
    /// Buffers it wrote; 0 if it was not stopped.
    pub written: u64,
    /// Whether new buffers overwrite old ones.
    pub is_ring: bool,
    /// Number of processors.
    pub processors: u32,
    pub events_lost: u64,
    pub buffers_lost: u64,
    /// Buffers in the file, whether their events can be read or not.
    pub buffers_found: u64,
    /// Ranges of the file that should be buffers but are not.
    pub unreadable: u64,
    /// Raw time units the clock advances at a time; 1 for an exact clock.
    pub clock_step: i64,
    /// Raw time until which a ring may have overwritten events.
    pub overwritten_to: Option<i64>,
}

/// Finds the event losses in a file.
pub fn losses(buffers: &[ReadBuffer], claims: SessionClaims) -> Vec<EventLoss> {
    let processors = Processors::new(buffers);
    let numbers = missing_numbers(buffers, &claims);
    let mut losses = processors.damaged();
    let marked_buffers = buffers.iter().filter(|buffer| buffer.header.marks_lost_buffer()).count();
    losses.extend(processors.marked());
    let (mut missing, mut placed) = (0, 0);
    for numbers in numbers {
        missing += numbers.count;
        let overwritten = claims.overwritten_to.zip(numbers.first_of_next);
        if overwritten.is_some_and(|(to, next)| next <= to) {
            continue;
        }
        placed += numbers.count;
        losses.extend(processors.holes(&numbers, &claims));
    }
    if processors.lack_end(&claims) {
        losses.extend(processors.ends(&claims));
    }
    let mut add = |kind, count: u64| {
        losses.extend((count > 0).then(|| EventLoss::new(kind, None, Some(count), None)));
    };
    if !claims.is_ring {
        let not_there = claims.written.saturating_sub(claims.buffers_found);
        add(LossKind::MissingBuffers, not_there.saturating_sub(missing));
    }
    if missing == 0 && claims.written <= claims.buffers_found {
        add(LossKind::DamagedBuffer, claims.unreadable);
    }
    add(LossKind::BuffersLost, claims.buffers_lost.saturating_sub(placed + marked_buffers as u64));
    // A mark does not say how many events were lost.
    add(LossKind::EventsLost, claims.events_lost);
    losses
}

/// Consecutive numbers without a buffer.
#[derive(Debug, PartialEq, Eq)]
struct MissingNumbers {
    /// First number.
    first: u64,
    count: u64,
    /// Raw time of the first event of the buffer with the next number.
    first_of_next: Option<i64>,
}

/// Returns the numbers without a buffer; none if the numbers contradict each other.
fn missing_numbers(buffers: &[ReadBuffer], claims: &SessionClaims) -> Vec<MissingNumbers> {
    // A number beyond all counts is damaged.
    let limit = claims.written.max(claims.buffers_found.saturating_mul(2));
    let mut numbers: Vec<(u64, i64)> =
        buffers.iter().map(|buffer| (buffer.header.sequence, buffer.first)).collect();
    numbers.sort_unstable();
    numbers.retain(|(number, _)| claims.is_ring || *number < limit);
    if numbers.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Vec::new();
    }
    let mut missing = Vec::new();
    let is_short = claims.written > claims.buffers_found;
    // Numbers may begin anywhere, unless the session claims more buffers than the file has.
    let mut expected = match numbers.first() {
        Some((first, _)) if !is_short => *first,
        _ => 0,
    };
    for (number, first_of_next) in numbers {
        if number > expected {
            let (first, count) = (expected, number - expected);
            missing.push(MissingNumbers { first, count, first_of_next: Some(first_of_next) });
        }
        expected = number.saturating_add(1);
    }
    if is_short && !claims.is_ring && claims.written > expected {
        let (first, count) = (expected, claims.written - expected);
        missing.push(MissingNumbers { first, count, first_of_next: None });
    }
    missing
}

/// Buffers of each processor, in order of their numbers.
struct Processors {
    buffers: BTreeMap<u16, Vec<ReadBuffer>>,
    /// Time of the first event of the session.
    start: i64,
    /// Longest span that is too short for a buffer.
    shortest_hole: i64,
}

/// A span shorter than the time to fill the fastest buffer, divided by this, is too short for another buffer.
const SHORTEST_HOLE_DIVISOR: i64 = 8;

impl Processors {
    fn new(buffers: &[ReadBuffer]) -> Self {
        let mut buffers_of: BTreeMap<u16, Vec<ReadBuffer>> = BTreeMap::new();
        for buffer in buffers {
            buffers_of.entry(buffer.header.processor).or_default().push(*buffer);
        }
        buffers_of.values_mut().for_each(|list| list.sort_by_key(|buffer| buffer.header.sequence));
        let of_session = || buffers.iter().filter(|buffer| buffer.header.has_session_events());
        let start = of_session().map(|buffer| buffer.first).min().unwrap_or(i64::MIN);
        let largest = of_session().map(|buffer| buffer.header.filled).max().unwrap_or_default();
        // A buffer written before it was full says nothing about how long filling one takes.
        let full = of_session().filter(|buffer| buffer.header.filled >= largest / 2);
        let fastest = full.map(|buffer| buffer.last.saturating_sub(buffer.first)).min();
        let shortest_hole = fastest.unwrap_or_default() / SHORTEST_HOLE_DIVISOR;
        Self { buffers: buffers_of, start, shortest_hole }
    }

    /// Whether processors lack their last buffers, although no number shows it.
    fn lack_end(&self, claims: &SessionClaims) -> bool {
        let buffers = || self.buffers.values().flatten();
        let has_last = || buffers().any(|buffer| buffer.header.is_last());
        !claims.is_stopped || claims.is_ring && buffers().next().is_some() && !has_last()
    }

    /// Returns the time after each processor's last buffer, and all time for processors without buffers.
    fn ends(&self, claims: &SessionClaims) -> Vec<EventLoss> {
        let ends = self
            .buffers
            .iter()
            .map(|(processor, list)| (list.last().map(|buffer| buffer.last), Some(*processor)));
        let lacks_processors = (self.buffers.len() as u64) < u64::from(claims.processors);
        let ends = ends.chain(lacks_processors.then_some((None, None)));
        ends.map(|(from, processor)| {
            let span = LossSpan { from, to: None };
            EventLoss::new(LossKind::Unwritten, Some(span), None, processor)
        })
        .collect()
    }

    /// Returns the time ranges in which the events of missing buffers may be.
    fn holes(&self, numbers: &MissingNumbers, claims: &SessionClaims) -> Vec<EventLoss> {
        let mut holes = Vec::new();
        for (processor, list) in &self.buffers {
            let next = list.partition_point(|buffer| buffer.header.sequence < numbers.first);
            let (before, after) = (next.checked_sub(1).and_then(|at| list.get(at)), list.get(next));
            let (from, to) = (before.map(|buffer| buffer.last), after.map(|buffer| buffer.first));
            let span = LossSpan { from, to };
            let (from, to) = span.bounds();
            // Events with the same time may be on both sides of a missing buffer.
            if from <= to {
                let length = to.saturating_sub(from.max(self.start));
                // A whole buffer may have been filled between two clock ticks. It may also follow a processor's last
                // buffer, because the last event of the file need not be the last of the session.
                let is_clear =
                    claims.clock_step > 1 || after.is_none() || length > self.shortest_hole;
                holes.push((span, Some(*processor), is_clear));
            }
        }
        let any_clear = holes.iter().any(|(.., is_clear)| *is_clear);
        // The missing buffers may be all buffers of a processor that has none here.
        if (self.buffers.len() as u64) < u64::from(claims.processors) {
            holes.push((LossSpan { from: None, to: None }, None, false));
        }
        let counted = holes.iter().position(|(.., is_clear)| *is_clear).unwrap_or_default();
        let loss = |(at, (span, processor, is_clear)): (usize, (_, _, bool))| {
            let count = (at == counted).then_some(numbers.count);
            let loss = EventLoss::new(LossKind::MissingBuffers, Some(span), count, processor);
            EventLoss { is_doubtful: any_clear && !is_clear, ..loss }
        };
        holes.into_iter().enumerate().map(loss).collect()
    }

    /// Returns the ranges from the last event read of a damaged buffer to the next buffer.
    fn damaged(&self) -> Vec<EventLoss> {
        let damaged = |(processor, list): (&u16, &Vec<ReadBuffer>)| {
            let after = list.iter().skip(1).map(|buffer| Some(buffer.first)).chain([None]);
            let ends = list.iter().zip(after).filter(|(buffer, _)| !buffer.is_whole);
            let kind = LossKind::DamagedBuffer;
            ends.map(|(buffer, to)| {
                let span = LossSpan { from: Some(buffer.last), to };
                EventLoss::new(kind, Some(span), Some(1), Some(*processor))
            })
            .collect::<Vec<_>>()
        };
        self.buffers.iter().flat_map(damaged).collect()
    }

    /// Returns the ranges from the buffer before a marked one to the end of the marked one. No documentation says
    /// whether events are lost before its first event or after it.
    fn marked(&self) -> Vec<EventLoss> {
        let marked = |(processor, list): (&u16, &Vec<ReadBuffer>)| {
            let before = [None].into_iter().chain(list.iter().map(|buffer| Some(buffer.last)));
            let marks = list.iter().zip(before).filter(|(buffer, _)| buffer.header.marks_loss());
            marks
                .map(|(buffer, before)| {
                    let from = before.map(|before: i64| before.min(buffer.last));
                    let span = LossSpan { from, to: Some(buffer.last) };
                    EventLoss::new(LossKind::LossFlag, Some(span), None, Some(*processor))
                })
                .collect::<Vec<_>>()
        };
        self.buffers.iter().flat_map(marked).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etl::IndexedBuffer;

    /// A buffer with its number, processor, first and last event.
    fn buffer(sequence: u64, processor: u16, first: i64, last: i64) -> ReadBuffer {
        let header = BufferHeader::new(sequence, processor, 0);
        let buffer = IndexedBuffer { offset: 0, stored: 0, header, first_time: first };
        ReadBuffer { header, first, last, times: BufferTimes::begin(&buffer), is_whole: true }
    }

    fn marked(flags: u16, buffer: ReadBuffer) -> ReadBuffer {
        let BufferHeader { sequence, processor, .. } = buffer.header;
        ReadBuffer { header: BufferHeader::new(sequence, processor, flags), ..buffer }
    }

    /// A closed file of two processors that lacks `missing` buffers.
    fn claims(buffers: &[ReadBuffer], missing: u64) -> SessionClaims {
        let buffers_found = buffers.len() as u64;
        let written = buffers_found + missing;
        SessionClaims {
            is_stopped: true,
            written,
            processors: 2,
            buffers_found,
            clock_step: 1,
            ..SessionClaims::default()
        }
    }

    /// Kind, span and processor of a loss.
    type Certain = (LossKind, Option<(i64, i64)>, Option<u16>);

    fn certain(losses: &[EventLoss]) -> Vec<Certain> {
        losses
            .iter()
            .filter(|loss| !loss.is_doubtful)
            .map(|loss| (loss.kind, loss.span.map(LossSpan::bounds), loss.processor))
            .collect()
    }

    /// Numbers in the order the buffers were taken; each processor has two.
    fn whole() -> [ReadBuffer; 4] {
        [buffer(0, 0, 0, 99), buffer(1, 1, 5, 90), buffer(2, 1, 91, 200), buffer(3, 0, 101, 201)]
    }

    #[test]
    fn nothing_is_missing_of_a_whole_file_in_any_order() {
        let [a, b, c, d] = whole();
        for buffers in [[a, b, c, d], [d, c, b, a]] {
            assert_eq!(losses(&buffers, claims(&buffers, 0)), []);
        }
    }

    #[test]
    fn a_missing_number_lies_between_the_buffers_of_the_processor_with_the_hole() {
        let [a, b, _, d] = whole();
        let e = buffer(4, 1, 201, 300);
        let buffers = [a, b, d, e];
        let missing = losses(&buffers, claims(&buffers, 1));
        let hole = (LossKind::MissingBuffers, Some((90, 201)), Some(1));
        assert_eq!(certain(&missing), [hole]);
        assert_eq!(missing.len(), 2, "the other processor had no time for a buffer");
        // The same goes for a missing number if the header counts as many buffers as there are.
        assert_eq!(certain(&losses(&buffers, claims(&buffers, 0))), [hole]);
    }

    #[test]
    fn numbers_that_are_missing_at_the_end_lie_between_the_last_buffers_and_the_end() {
        let [a, b, ..] = whole();
        let buffers = [a, b];
        let losses = losses(&buffers, claims(&buffers, 2));
        let missing =
            |from, processor| (LossKind::MissingBuffers, Some((from, i64::MAX)), Some(processor));
        assert_eq!(certain(&losses), [missing(99, 0), missing(90, 1)]);
        assert_eq!(losses.iter().filter_map(|loss| loss.count).sum::<u64>(), 2, "each counts once");
    }

    #[test]
    fn the_end_of_a_cut_file_is_missing_also_on_the_processor_with_the_last_event() {
        let [a, b, c, _] = whole();
        let missing = losses(&[a, b, c], claims(&[a, b, c], 1));
        let end =
            |from, processor| (LossKind::MissingBuffers, Some((from, i64::MAX)), Some(processor));
        assert_eq!(certain(&missing), [end(99, 0), end(200, 1)]);
    }

    #[test]
    fn a_session_that_was_not_stopped_lacks_the_end_of_each_processor() {
        let [a, b, c, d] = whole();
        let buffers = [a, b, c, d];
        let end = |from, processor| (LossKind::Unwritten, Some((from, i64::MAX)), processor);
        let running = SessionClaims { is_stopped: false, written: 0, ..claims(&buffers, 0) };
        assert_eq!(certain(&losses(&buffers, running)), [end(201, Some(0)), end(200, Some(1))]);
        let more = SessionClaims { processors: 3, ..running };
        assert_eq!(certain(&losses(&buffers, more))[2], end(i64::MIN, None));
    }

    #[test]
    fn a_ring_without_its_last_buffer_lacks_the_end_of_each_processor() {
        let [a, b, c, d] = whole();
        let kinds = |last| {
            let buffers = [a, b, c, last];
            let ring = SessionClaims { is_ring: true, ..claims(&buffers, 0) };
            losses(&buffers, ring).iter().map(|loss| loss.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(d), [LossKind::Unwritten; 2]);
        assert_eq!(kinds(marked(1, d)), []);
    }

    #[test]
    fn all_that_a_processor_had_may_be_missing() {
        let buffers = [buffer(0, 0, 0, 100), buffer(2, 0, 101, 200)];
        let losses = losses(&buffers, claims(&buffers, 1));
        let anytime = (LossKind::MissingBuffers, Some((i64::MIN, i64::MAX)), None);
        assert!(certain(&losses).contains(&anytime), "{losses:?}");
    }

    #[test]
    fn contradictory_numbers_give_no_time_of_a_loss() {
        let buffers = [buffer(0, 0, 0, 10), buffer(7, 0, 11, 20), buffer(7, 1, 11, 20)];
        let placed = losses(&buffers, claims(&buffers, 5));
        assert_eq!(certain(&placed), [(LossKind::MissingBuffers, None, None)]);
        let far = [buffer(0, 0, 0, 10), buffer(1, 0, 11, 20), buffer(1 << 60, 0, 21, 30)];
        assert_eq!(losses(&far, claims(&far, 0)), []);
    }

    #[test]
    fn only_buffers_after_the_overwritten_time_of_a_ring_are_missing() {
        let ring = |buffers: &[ReadBuffer]| {
            let claims =
                SessionClaims { is_ring: true, overwritten_to: Some(500), ..claims(buffers, 0) };
            certain(&losses(buffers, claims))
        };
        // The processor with few events kept an old buffer.
        let (old, a) = (buffer(5, 1, 10, 900), buffer(91, 0, 500, 600));
        assert_eq!(ring(&[old, a, marked(1, buffer(92, 0, 601, 700))]), []);
        let lost = [old, a, marked(1, buffer(94, 0, 801, 900))];
        assert_eq!(ring(&lost)[0], (LossKind::MissingBuffers, Some((600, 801)), Some(0)));
    }

    #[test]
    fn a_marked_loss_is_between_the_previous_buffer_and_the_end_of_the_marked_buffer() {
        let [a, b, c, d] = whole();
        for flags in [2, 4] {
            let buffers = [a, b, marked(flags, c), d];
            let mark = (LossKind::LossFlag, Some((90, 200)), Some(1));
            assert_eq!(certain(&losses(&buffers, claims(&buffers, 0))), [mark]);
        }
    }

    #[test]
    fn the_rest_of_a_damaged_buffer_is_before_the_next_of_its_processor() {
        let [a, b, c, d] = whole();
        let damaged = |buffer| ReadBuffer { is_whole: false, ..buffer };
        let spans = |buffers: [ReadBuffer; 4]| certain(&losses(&buffers, claims(&buffers, 0)));
        let kind = LossKind::DamagedBuffer;
        assert_eq!(spans([damaged(a), b, c, d]), [(kind, Some((99, 101)), Some(0))]);
        assert_eq!(spans([a, b, damaged(c), d]), [(kind, Some((200, i64::MAX)), Some(1))]);
    }

    #[test]
    fn losses_that_only_the_header_counts_may_be_at_any_time() {
        let [a, b, c, d] = whole();
        let count = |buffers: &[ReadBuffer], events_lost, buffers_lost, missing| {
            let claims = SessionClaims { events_lost, buffers_lost, ..claims(buffers, missing) };
            let losses = losses(buffers, claims);
            let anywhere = losses.iter().filter(|loss| loss.span.is_none());
            anywhere.map(|loss| (loss.kind, loss.count)).collect::<Vec<_>>()
        };
        let (events, buffers) = (LossKind::EventsLost, LossKind::BuffersLost);
        assert_eq!(count(&[a, b, c, d], 7, 2, 0), [(buffers, Some(2)), (events, Some(7))]);
        assert_eq!(count(&[a, b, marked(4, c), d], 0, 2, 0), [(buffers, Some(1))]);
        assert_eq!(count(&[a, b, d], 0, 1, 1), []);
    }
}
