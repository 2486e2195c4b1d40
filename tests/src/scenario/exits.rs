//! Threads that start and end processes, and the sweep after each end: handles are closed first, then views are
//! unmapped.

use std::collections::HashSet;

use super::actors::Caller;
use super::builder::{Fragment, TraceBuilder};
use super::ledger::OpenAtExit;
use super::specs::ProcessSpec;
use super::stacks::KERNEL_DELAY;
use crate::header::HeaderKind;
use crate::payload::{HandleEvent, KernelPayload, ViewEvent};
use crate::rng::Rng;

const US: i64 = 1_000;
/// A tick of the finest clock.
const TICK: i64 = 100;
/// Time from the end event to the first close of the sweep.
const FIRST: i64 = 300 * US;
/// Maximum time from the end event to the end of the sweep.
const LONGEST: i64 = 50_000 * US;

impl TraceBuilder {
    /// Adds the sweeps that close what ended processes left open.
    pub fn add_sweeps(&mut self) {
        if self.processes.iter().all(|process| process.ended.is_none()) {
            return;
        }
        let at_end: HashSet<(u32, u32)> =
            self.handles_at_end.iter().map(|open| (open.pid, open.handle)).collect();
        for (number, mut left) in self.left_open().into_iter().enumerate() {
            let process = &self.processes[number];
            let (Some((end, _)), false) = (process.ended, process.unrecorded) else { continue };
            if process.unswept {
                left = OpenAtExit::default();
            }
            let pid = process.record.pid;
            left.handles.retain(|open| !at_end.contains(&(pid, open.handle)));
            let gone = self.sweep(number, end, &left);
            self.processes[number].gone = Some(gone);
        }
    }

    /// Adds the sweep of one process; returns when it is done.
    fn sweep(&mut self, number: usize, end: i64, left: &OpenAtExit) -> i64 {
        let process = &self.processes[number];
        let (caller, ptr) = (self.ending_thread(process), self.options.pointer);
        let closes = left.handles.iter().map(|open| open.payload(HandleEvent::Close, ptr));
        let unmaps = left.views.iter().map(|view| view.payload(ViewEvent::Unmap, 3, ptr));
        let events: Vec<KernelPayload> = closes.chain(unmaps).collect();
        let times = self.sweep_times(process.record.pid, end, events.len());
        let has_stacks = !self.fragments.is_empty();
        for (ns, event) in times.iter().zip(&events) {
            let time = self.options.raw(*ns);
            // A session that stops earlier misses the rest of the sweep.
            if self.config.end.is_some_and(|stop| *ns >= stop) {
                break;
            }
            self.add_kernel(HeaderKind::Compact, time, caller, event);
            if has_stacks {
                // The thread never returns to user mode.
                let (frames, key) = (self.config.sweep_stack.clone(), None);
                let (time, event_time) = (time + KERNEL_DELAY, time);
                self.fragments.push(Fragment { time, event_time, caller, key, frames });
            }
        }
        let gone = times.last().copied().unwrap_or(end);
        self.config.end.map_or(gone, |stop| gone.min(stop).max(end))
    }

    /// Returns the times of `count` events of a sweep, and of its end: 0.3 to 50 ms after the end event, and before
    /// another process gets the pid.
    fn sweep_times(&self, pid: u32, end: i64, count: usize) -> Vec<i64> {
        let next = self.actors.next_start(pid, end).unwrap_or(i64::MAX);
        let latest = next.min(end + LONGEST) - TICK;
        let mut rng = Rng::new(u64::from(pid) << 32 ^ end as u64);
        let step = (LONGEST - 2 * FIRST) / (count as i64 + 1);
        let half = step.min(100 * US + rng.below(900) as i64 * US) / 2;
        let (mut ns, mut times) = (end + FIRST, Vec::new());
        for left in (0..=count as i64).rev() {
            times.push(ns.min(latest - left * TICK).max(end));
            ns += half + rng.below((half / TICK).max(1) as u64) as i64 * TICK;
        }
        times
    }

    /// Returns the thread that starts a process: the given one, or else the thread of the parent that acted last.
    pub fn creating_thread(&self, process: &ProcessSpec) -> Caller {
        let started = self.options.raw(process.started.unwrap_or_default());
        let (pid, tid) = process.creator;
        let pid = pid.unwrap_or(process.record.parent);
        let tid = tid.unwrap_or_else(|| self.actors.last_thread(pid, started));
        Caller::new(pid, tid).on(process.processors[0])
    }

    /// Returns the last thread of a process, which ends it.
    pub fn ending_thread(&self, process: &ProcessSpec) -> Caller {
        let end = process.ended.map_or(i64::MAX, |(ns, _)| self.options.raw(ns));
        let pid = process.record.pid;
        Caller::new(pid, self.actors.last_thread(pid, end)).on(process.processors[1])
    }
}
