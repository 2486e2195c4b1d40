//! Finds the time range a file covers if a ring overwrote older events.
//!
//! A session with a ring of buffers (a circular file, or buffers in memory) keeps the buffers that were flushed last. A
//! processor's events are complete from its first remaining event on. The trace is complete from the latest of these
//! times on, which xperf's dumper prints as `FirstReliableEventTimeStamp`. Three kinds of processors do not count for
//! that:
//!
//! * one that still has its first buffer of the session because it was never full: its events may be an hour old;
//! * one that begins later, or has no events: it may have been idle until the oldest buffer of another processor was
//!   full, and nothing was overwritten after that;
//! * one that has only events of the end rundown (see [`BufferTimes`]).
//!
//! A processor with its own ring is complete from its first event on. Three things show whether a ring overwrote
//! events:
//!
//! * the log file mode: without the bits of a ring, nothing was overwritten, however late the first event is;
//! * the buffer numbers, which start at 0: a ring that was full lacks the lowest;
//! * the times, used only if a merge (`wpr -stop`, `xperf -merge`) has set another mode and renumbered the buffers, or
//!   if the numbers contradict each other: the first eighth of the session has no events, and some buffer is half full.

use std::collections::HashSet;

use handlescope_model::tables::{is_merged, is_ring};

use crate::etl::{BufferTimes, Clock, TimeBounds};
use crate::payload::TraceHeader;

/// Time range a file covers, in nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedTime {
    pub from_ns: i64,
    pub to_ns: i64,
}

/// Divisor of the session's length: if at least this part of it has no events at the start, they were overwritten.
const OVERWRITTEN_SHARE_DIVISOR: i64 = 8;

/// Normal time without events at the start of a session, because WPR starts several sessions in sequence.
const QUIET_NS: i64 = 1_000_000_000;

/// Divisor of the number of buffers: processors with less than this share of them may still have buffers from the
/// session's start.
const FEW_BUFFERS_DIVISOR: usize = 4;

/// Divisor of the busiest processor's bytes: a processor that begins later and has less than this share is assumed to
/// have been idle.
const IDLE_SHARE_DIVISOR: u64 = 4;

/// What remains of a processor's buffers.
struct Processor {
    /// Time of its first event, in nanoseconds since session start.
    first_ns: i64,
    /// Number of the buffer with this event.
    number: u64,
    /// Start and number of its second buffer: by then, the first one was full.
    second: Option<(i64, u64)>,
    buffers: usize,
    bytes: u64,
}

impl RecordedTime {
    /// Returns the time range of a file with these buffers; `None` if no events show it.
    pub fn new(buffers: &[BufferTimes], header: &TraceHeader, clock: &Clock) -> Option<Self> {
        let has_kernel =
            buffers.iter().any(|buffer| buffer.kernel.is_some_and(|of| of.first.is_some()));
        let times = |buffer: &BufferTimes| if has_kernel { buffer.kernel } else { buffer.all };
        let last = buffers.iter().filter_map(times).map(|times: TimeBounds| times.last).max();
        let last_ns = clock.ns(last?);
        let processors = Processor::new(buffers, times, clock);
        let are_all_there = processors.len() as u64 >= u64::from(header.cpu_count);
        let mode = header.log_file_mode;
        let numbers = is_ring(mode).then(|| BufferNumbers::new(buffers)).flatten();
        // A ring that overwrote something was full.
        let is_full = |buffer: &BufferTimes| {
            buffer.all.is_some() && buffer.bytes.saturating_mul(2) >= header.buffer_size
        };
        let may_lack_any = (is_merged(mode) || (is_ring(mode) && numbers.is_none()))
            && buffers.iter().any(is_full);
        let from_ns = match numbers {
            Some(numbers)
                if processors.iter().any(|processor| numbers.misses_before(processor.number)) =>
            {
                let left = |processor: &&Processor| numbers.misses_before(processor.number);
                let left: Vec<&Processor> = processors.iter().filter(left).collect();
                Some(first_of_all(&left, &processors, are_all_there, Some(&numbers)))
            }
            _ if may_lack_any && is_late(&processors, last_ns) => {
                let left: Vec<&Processor> = processors.iter().collect();
                Some(first_of_all(&left, &processors, are_all_there, None))
            }
            _ => None,
        };
        let ticks = header.end_time.checked_sub(header.start_time).filter(|_| header.end_time > 0);
        let session_ns = ticks.and_then(|ticks| ticks.checked_mul(100));
        Some(match from_ns {
            // Clocks drift apart over hours, and other sessions of a merged file may have ended later.
            Some(from_ns) => Self { from_ns, to_ns: last_ns.max(from_ns) },
            // Quiet times at the start and the end were recorded too.
            None => {
                let last = buffers.iter().filter_map(|buffer| Some(buffer.all?.last)).max();
                let last_ns = last.map_or(last_ns, |last| clock.ns(last));
                Self { from_ns: 0, to_ns: session_ns.unwrap_or(last_ns).max(0) }
            }
        })
    }

    /// Returns the raw time from which on all events are there, if a ring overwrote older ones.
    pub fn overwritten_to(self, clock: &Clock) -> Option<i64> {
        (self.from_ns > 0).then(|| clock.base.saturating_add(clock.ticks(self.from_ns)))
    }
}

impl Processor {
    /// Returns all processors with such events.
    fn new(
        buffers: &[BufferTimes],
        times: impl Fn(&BufferTimes) -> Option<TimeBounds>,
        clock: &Clock,
    ) -> Vec<Self> {
        let first = |buffer: &BufferTimes| {
            Some((buffer.processor, times(buffer)?.first?, buffer.number, buffer.bytes))
        };
        let mut firsts: Vec<(u16, i64, u64, u32)> = buffers.iter().filter_map(first).collect();
        firsts.sort_unstable();
        let processors = firsts.chunk_by(|(a, ..), (b, ..)| a == b).filter_map(|buffers| {
            let mut starts = buffers.iter().map(|(_, time, number, _)| (clock.ns(*time), *number));
            let (first_ns, number) = starts.next()?;
            let bytes = buffers.iter().map(|(.., bytes)| u64::from(*bytes)).sum();
            Some(Self { first_ns, number, second: starts.next(), buffers: buffers.len(), bytes })
        });
        processors.collect()
    }
}

/// Returns the latest first event among the processors that lost older events.
fn first_of_all(
    left: &[&Processor],
    processors: &[Processor],
    are_all_there: bool,
    numbers: Option<&BufferNumbers>,
) -> i64 {
    let latest = |is_meant: &dyn Fn(&Processor) -> bool| {
        left.iter()
            .filter(|processor| is_meant(processor))
            .map(|processor| processor.first_ns)
            .max()
    };
    let most = left.iter().map(|processor| processor.bytes).max().unwrap_or_default();
    // If the oldest buffers were overwritten, whichever processor they are of, nothing was after this.
    let full = processors.iter().filter_map(|processor| processor.second).min();
    let Some((full_ns, number)) = full else {
        return latest(&|processor| processor.bytes * IDLE_SHARE_DIVISOR >= most)
            .unwrap_or_default();
    };
    let is_early = |processor: &Processor| processor.first_ns <= full_ns;
    // A ring per processor leaves about as many bytes for each.
    let has_ring = |processor: &Processor| is_early(processor) || processor.bytes * 2 >= most;
    let first_ns = match numbers {
        Some(numbers) if numbers.misses_after(number) => latest(&|_| true),
        None if left.iter().any(|processor| !is_early(processor) && has_ring(processor)) => {
            latest(&has_ring)
        }
        // A processor that begins later may have had events until then.
        _ if are_all_there && left.iter().all(|processor| is_early(processor)) => latest(&|_| true),
        _ => Some(full_ns),
    };
    first_ns.unwrap_or_default()
}

/// Whether the first events come so late that older ones must have been overwritten. A processor with few buffers is no
/// evidence, because it may still have its first one.
fn is_late(processors: &[Processor], last_ns: i64) -> bool {
    let mut firsts: Vec<(i64, usize)> =
        processors.iter().map(|processor| (processor.first_ns, processor.buffers)).collect();
    firsts.sort_unstable();
    let total: usize = firsts.iter().map(|(_, buffers)| buffers).sum();
    let sum = |sum: &mut usize, (first_ns, buffers): &(i64, usize)| {
        *sum += buffers;
        Some((*first_ns, *sum))
    };
    let quiet = firsts.iter().scan(0, sum).find(|(_, sum)| sum * FEW_BUFFERS_DIVISOR >= total);
    quiet.is_some_and(|(quiet_ns, _)| {
        quiet_ns > QUIET_NS && quiet_ns > last_ns / OVERWRITTEN_SHARE_DIVISOR
    })
}

/// Numbers of a file's buffers.
struct BufferNumbers(Vec<u64>);

impl BufferNumbers {
    /// Returns the numbers, ascending; `None` if they are not distinct.
    fn new(buffers: &[BufferTimes]) -> Option<Self> {
        let distinct: HashSet<u64> = buffers.iter().map(|buffer| buffer.number).collect();
        let mut numbers: Vec<u64> = distinct.into_iter().collect();
        numbers.sort_unstable();
        (numbers.len() == buffers.len()).then_some(Self(numbers))
    }

    /// Whether the file lacks a number before this one.
    fn misses_before(&self, number: u64) -> bool {
        self.0.partition_point(|known| *known < number) as u64 != number
    }

    /// Whether the file lacks a number between this one and the last.
    fn misses_after(&self, number: u64) -> bool {
        let Some(last) = self.0.last() else { return false };
        let after = self.0.len() - self.0.partition_point(|known| *known <= number);
        after as u64 != last.saturating_sub(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etl::ClockKind;

    const SECOND: i64 = 1_000_000_000;
    const MERGED: u32 = 0x1_0001;
    const CIRCULAR: u32 = 0x2;
    const IN_MEMORY: u32 = 0x400;

    /// Buffers of processors: processor, number, first and last second.
    type Buffers<'a> = &'a [(u16, u64, i64, i64)];

    fn recorded(mode: u32, end_s: i64, buffers: Buffers<'_>) -> (i64, i64) {
        recorded_with(0, mode, end_s, buffers)
    }

    fn recorded_with(buffer_size: u32, mode: u32, end_s: i64, buffers: Buffers<'_>) -> (i64, i64) {
        let kind = ClockKind::PerformanceCounter;
        let clock = Clock { kind, base: 0, frequency: SECOND, step: 1 };
        let times = buffers.iter().map(|(processor, number, first, last)| {
            let [first_ns, last_ns] = [first, last].map(|seconds| seconds.saturating_mul(SECOND));
            let times = TimeBounds { first: Some(first_ns), last: last_ns };
            let (kernel, all) = (Some(times), Some(times));
            // Events from less than five seconds do not fill a buffer.
            let bytes = if last.saturating_sub(*first) < 5 { 100 } else { 1_000 };
            BufferTimes { processor: *processor, number: *number, bytes, kernel, all }
        });
        // Buffer of the trace header.
        let header = BufferTimes { processor: 0, number: 0, bytes: 500, kernel: None, all: None };
        let times: Vec<BufferTimes> = [header].into_iter().chain(times).collect();
        let header = TraceHeader {
            buffer_size,
            log_file_mode: mode,
            start_time: 1,
            end_time: if end_s == 0 { 0 } else { 1 + end_s * 10_000_000 },
            ..TraceHeader::default()
        };
        let time = RecordedTime::new(&times, &header, &clock).unwrap();
        (time.from_ns / SECOND, time.to_ns / SECOND)
    }

    #[test]
    fn a_file_with_all_buffers_has_all_of_its_session_also_where_processors_idle() {
        let file = [(0, 1, 0, 30), (1, 2, 50, 58), (0, 3, 30, 59)];
        for mode in [1, MERGED, CIRCULAR, IN_MEMORY] {
            assert_eq!(recorded(mode, 60, &file), (0, 60), "{mode:#x}");
        }
        assert_eq!(recorded(1, 0, &file), (0, 59), "of a session that was not closed");
    }

    #[test]
    fn a_lost_buffer_is_no_ring() {
        let first = [(0, 2, 3, 30), (1, 3, 1, 58), (0, 4, 30, 59)];
        assert_eq!(recorded(MERGED, 60, &first), (0, 60));
        let middle = [(0, 1, 0, 10), (1, 2, 1, 58), (0, 4, 30, 59)];
        assert_eq!(recorded(CIRCULAR, 60, &middle), (0, 60));
    }

    #[test]
    fn a_ring_is_complete_from_the_latest_first_event_on() {
        let ring =
            [(0, 90, 3540, 3570), (1, 91, 3543, 3560), (0, 92, 3570, 3599), (1, 93, 3560, 3598)];
        for mode in [CIRCULAR, IN_MEMORY, MERGED] {
            assert_eq!(recorded(mode, 3601, &ring), (3543, 3599), "{mode:#x}");
        }
    }

    #[test]
    fn a_processor_that_still_has_its_first_buffer_does_not_make_the_ring_an_hour_long() {
        let ring = [
            (7, 1, 10, 3590),
            (0, 90, 3540, 3570),
            (1, 91, 3543, 3560),
            (0, 92, 3570, 3599),
            (1, 93, 3560, 3598),
        ];
        for mode in [CIRCULAR, IN_MEMORY, MERGED] {
            assert_eq!(recorded(mode, 3600, &ring), (3543, 3599), "{mode:#x}");
        }
    }

    #[test]
    fn a_processor_that_idles_until_the_end_does_not_make_the_ring_short() {
        let ring = [
            (0, 90, 3540, 3570),
            (1, 91, 3543, 3560),
            (0, 93, 3570, 3599),
            (1, 92, 3560, 3598),
            (7, 94, 3595, 3597),
        ];
        for mode in [CIRCULAR, IN_MEMORY, MERGED] {
            assert_eq!(recorded(mode, 3600, &ring), (3560, 3599), "{mode:#x}");
        }
    }

    #[test]
    fn processors_with_separate_rings_are_complete_when_the_busiest_is() {
        let ring =
            [(0, 10, 3000, 3300), (0, 40, 3300, 3599), (1, 90, 3580, 3590), (1, 91, 3590, 3599)];
        for mode in [CIRCULAR, IN_MEMORY, MERGED] {
            assert_eq!(recorded(mode, 3600, &ring), (3580, 3599), "{mode:#x}");
        }
    }

    #[test]
    fn of_a_buffer_for_each_processor_those_with_little_say_nothing() {
        let ring = [(0, 90, 3540, 3599), (1, 91, 3550, 3598), (2, 92, 3594, 3597)];
        for mode in [CIRCULAR, IN_MEMORY, MERGED] {
            assert_eq!(recorded(mode, 3600, &ring), (3550, 3599), "{mode:#x}");
        }
    }

    #[test]
    fn a_ring_that_was_not_full_has_all() {
        let ring = [(0, 1, 0, 30), (1, 2, 20, 58), (0, 3, 30, 59)];
        assert_eq!(recorded(IN_MEMORY, 60, &ring), (0, 60));
        let late = [(0, 1, 45, 50), (1, 2, 46, 58), (0, 3, 50, 59)];
        for mode in [CIRCULAR, IN_MEMORY] {
            assert_eq!(recorded(mode, 60, &late), (0, 60), "{mode:#x}");
        }
    }

    #[test]
    fn a_file_without_a_ring_has_its_session_however_late_its_first_event_is() {
        let late = [(0, 1, 45, 50), (1, 2, 46, 58), (0, 3, 50, 59)];
        // Sequential; default; for a system logger; preallocated, secure and compressed.
        for mode in [0x1, 0x0, 0x200_0080, 0x400_00a1] {
            assert_eq!(recorded(mode, 60, &late), (0, 60), "{mode:#x}");
        }
        assert_eq!(recorded(MERGED, 60, &late), (46, 59), "a merge hides the mode");
    }

    #[test]
    fn a_merged_file_whose_buffers_are_nearly_empty_was_no_ring() {
        let late = [(0, 1, 57, 58), (1, 2, 57, 59)];
        let recorded = |buffer_size| recorded_with(buffer_size, MERGED, 60, &late);
        assert_eq!(recorded(0x1_0000), (0, 60));
        assert_eq!(recorded(150), (57, 59));
    }

    #[test]
    fn the_times_decide_for_a_ring_whose_numbers_contradict_each_other() {
        let ring = [(0, 9, 3540, 3570), (1, 9, 3543, 3560), (0, 9, 3570, 3599)];
        assert_eq!(recorded(CIRCULAR, 3600, &ring), (3543, 3599));
    }

    #[test]
    fn hostile_numbers_and_times_do_no_harm() {
        let extreme = [(0, u64::MAX, i64::MAX, i64::MIN), (1, 0, 0, 0), (1, 5, -7, 3)];
        for mode in [CIRCULAR, MERGED] {
            let (from, to) = recorded(mode, 60, &extreme);
            assert!(from <= to, "{from} to {to}");
        }
    }
}
