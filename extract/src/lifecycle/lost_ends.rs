//! Finds closes made by a process end whose end event is missing.
//!
//! Without that event, the sweep looks like closes of the program. Three things tell them apart:
//!
//! * kernel frames that sweeps of other processes in the trace have, and no close of a program has;
//! * a thread that already ended: its end comes before the process's end, and so before the sweep;
//! * if closes have no stacks, the pattern: the last closes of a process that is gone, in one burst by one thread that
//!   walks the handle table in the order of the values.

use handlescope_model::rules::OPENING_HANDLES;
use handlescope_model::{Cancelled, EventKind, Poll};
use hashbrown::{HashMap, HashSet};

use super::Lifetimes;
use super::attribution::NONE;
use super::exits::{CloseFrames, KernelPart, kernel_part};
use super::kinds::event_kind;
use crate::collect::Collector;
use crate::raw::{RowKind, UNKNOWN_ID};

/// Longest pause between two closes of a sweep without stacks.
const BURST_PAUSE_NS: i64 = 2_000_000;

/// Minimum number of closes in a burst that counts as a sweep, if it is unknown whether the process is gone: on frames
/// that no program is known to close on, and without stacks.
const LONG_BURST: [usize; 2] = [2, 5];

/// The same if the process is gone.
const SWEEP_OF_GONE: [usize; 2] = [1, 2];

/// Whether a process without an end event exists at the end of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The rundown lists it.
    There,
    /// The rundown does not list it, or its pid was reused.
    Gone,
    Unknown,
}

/// Last closes of a process, latest first.
#[derive(Default)]
struct Burst {
    is_over: bool,
    rows: Vec<u32>,
    tid: u32,
    time: i64,
    value: u32,
    kernel: Option<KernelPart>,
}

/// Returns the rows of these closes; `order` gives the time order if it differs from the row order.
pub fn closes_of_lost_ends(
    lifetimes: &Lifetimes<'_>,
    order: Option<&[u32]>,
    frames: &CloseFrames,
) -> Result<Vec<u32>, Cancelled> {
    let Lifetimes { collected, owners, missing, clock, cancel, .. } = *lifetimes;
    let processes = &collected.processes.rows;
    if missing.is_none() || processes.iter().all(|process| process.end.is_some()) {
        return Ok(Vec::new());
    }
    let timeline = &collected.shared.timeline;
    let threads = EndedThreads::new(collected);
    let presence = presences(lifetimes);
    let pause = clock.ticks_apart(BURST_PAUSE_NS);
    let mut closes = Vec::new();
    let mut bursts: HashMap<u32, Burst> = HashMap::new();
    // Processes and threads that open handles later.
    let mut opening: HashSet<(u32, u32)> = HashSet::new();
    // First and last close of each sweeping thread.
    let mut sweepers: HashMap<(u32, u32), (i64, i64)> = HashMap::new();
    // Closes without a stack, in a trace where sweeps have stacks.
    let mut without_stacks: Vec<u32> = Vec::new();
    let mut poll = Poll::new(cancel);
    for row in lifetimes.rows(order).rev() {
        poll.round()?;
        let process = owners.process[row];
        if process == NONE || processes.get(process as usize).is_none_or(|it| it.end.is_some()) {
            continue;
        }
        let kind = event_kind(timeline.kind[row]);
        let (tid, time) = (timeline.tid[row], timeline.time[row]);
        if kind.is_some_and(|kind| OPENING_HANDLES.contains(kind)) {
            bursts.entry(process).or_default().is_over = true;
            opening.insert((process, tid));
        }
        if kind != Some(EventKind::HandleClose) {
            continue;
        }
        let kernel = kernel_part(collected, row);
        let is_program = kernel.is_some_and(|kernel| frames.of_programs.contains(&kernel));
        let is_sweep = kernel.is_some_and(|kernel| frames.of_sweeps.contains(&kernel));
        // Thread ids are reused.
        let has_ended =
            threads.had_ended(timeline.pid[row], tid, time) && !opening.contains(&(process, tid));
        if (is_sweep || has_ended) && !is_program {
            let (first, last) = sweepers.entry((process, tid)).or_insert((time, time));
            (*first, *last) = (time.min(*first), time.max(*last));
            closes.push(row as u32);
            continue;
        }
        if kernel.is_none() && !frames.of_sweeps.is_empty() {
            without_stacks.push(row as u32);
        }
        let burst = bursts.entry(process).or_default();
        let value = collected.handles.handle[timeline.row[row] as usize];
        let is_next = burst.rows.is_empty()
            || burst.tid == tid
                && burst.kernel == kernel
                && value < burst.value
                && burst.time.saturating_sub(time) <= pause;
        burst.is_over |= !is_next || is_program || tid == UNKNOWN_ID;
        if !burst.is_over {
            burst.rows.push(row as u32);
            (burst.tid, burst.time, burst.value, burst.kernel) = (tid, time, value, kernel);
        }
    }
    for row in without_stacks {
        let (process, tid) = (owners.process[row as usize], timeline.tid[row as usize]);
        let time = timeline.time[row as usize];
        let within = |(first, last): &(i64, i64)| {
            first.saturating_sub(pause) <= time && time <= last.saturating_add(pause)
        };
        if sweepers.get(&(process, tid)).is_some_and(within) {
            closes.push(row);
        }
    }
    for (process, burst) in bursts {
        // If the frames of sweeps are known, this burst's frames are not among them.
        let is_known = burst.kernel.is_some() && !frames.of_sweeps.is_empty();
        let [with_frames, without] = match presence[process as usize] {
            Presence::There => continue,
            Presence::Gone => SWEEP_OF_GONE,
            Presence::Unknown => LONG_BURST,
        };
        let least = if burst.kernel.is_some() { with_frames } else { without };
        let is_sweep = !is_known && burst.rows.len() >= least;
        if is_sweep {
            closes.extend(burst.rows);
        }
    }
    Ok(closes)
}

/// Returns whether each process exists at the end of the trace.
pub fn presences(lifetimes: &Lifetimes<'_>) -> Vec<Presence> {
    let Lifetimes { collected, missing, .. } = *lifetimes;
    let timeline = &collected.shared.timeline;
    let processes = &collected.processes.rows;
    let at_end = timeline.kind.iter().zip(&timeline.time);
    let (first, last) = at_end
        .filter(|(kind, _)| **kind == RowKind::HandleAtEnd)
        .map(|(_, time)| *time)
        .fold((i64::MAX, i64::MIN), |(first, last), time| (first.min(time), last.max(time)));
    let listed = processes
        .iter()
        .filter_map(|process| process.listed)
        .filter(|listed| *listed > last && last > i64::MIN)
        .max();
    let is_whole = listed.is_some_and(|listed| !missing.is_certain_between(first, listed));
    let mut last_of_pid: HashMap<u32, usize> = HashMap::new();
    let named = processes.iter().enumerate().filter(|(_, process)| !process.is_unnamed);
    named.clone().for_each(|(row, process)| {
        last_of_pid.insert(process.process.pid, row);
    });
    let mut presence = vec![Presence::Unknown; processes.len()];
    for (row, process) in named {
        let is_given_again = last_of_pid.get(&process.process.pid).is_some_and(|last| *last > row);
        presence[row] = if process.listed.is_some_and(|listed| listed >= first) {
            Presence::There
        } else if is_given_again || is_whole {
            Presence::Gone
        } else {
            Presence::Unknown
        };
    }
    presence
}

/// Ends of threads, by process and thread id.
struct EndedThreads(HashMap<(u32, u32), Vec<(i64, i64)>>);

impl EndedThreads {
    fn new(collected: &Collector) -> Self {
        let mut ends: HashMap<_, Vec<_>> = HashMap::new();
        for thread in &collected.threads.rows {
            let lives = ends.entry((thread.pid, thread.tid)).or_default();
            lives.push((thread.seen, thread.end.unwrap_or(i64::MAX)));
        }
        ends.values_mut().for_each(|lives| lives.sort_unstable());
        Self(ends)
    }

    /// Whether a thread had ended before a time.
    fn had_ended(&self, pid: u32, tid: u32, time: i64) -> bool {
        let Some(lives) = self.0.get(&(pid, tid)) else { return false };
        let seen = lives.partition_point(|(seen, _)| *seen <= time);
        seen.checked_sub(1).and_then(|at| lives.get(at)).is_some_and(|(_, end)| *end < time)
    }
}
