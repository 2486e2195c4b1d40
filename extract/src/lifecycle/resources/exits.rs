//! Finds GDI and USER handles destroyed by the end of a process rather than by its program.
//!
//! The last thread of a process destroys all remaining handles in quick succession, just before the process's end
//! event. So they are the last ones destroyed in the process. They are destroyed on one thread, and on stacks on which
//! no program destroyed a handle and then went on. What is destroyed after the end event needs no such evidence.

use std::hash::{Hash, Hasher};

use handlescope_model::tables::ResourceEnd;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxHasher;

use super::columns::AllocationColumns;
use crate::collect::Collector;
use crate::etl::Clock;
use crate::lifecycle::attribution::NONE;

/// Longest time between two handles destroyed by a sweep, and between the last one and the end event.
const SWEEP_GAP_NS: i64 = 2_000_000;

/// Number of open handles of each process, and the handles it destroyed last.
#[derive(Default)]
pub struct ExitSweeps {
    /// By row of the process.
    processes: HashMap<u32, ProcessHeapHandles>,
    /// Stacks of destroyed handles after which the program created handles.
    of_programs: HashSet<DestroyStack>,
}

#[derive(Default)]
struct ProcessHeapHandles {
    /// Number of open handles.
    open: usize,
    /// Handles destroyed since the last one was created, in time order.
    last: Vec<HandleDestruction>,
}

#[derive(Clone, Copy)]
struct HandleDestruction {
    allocation: u32,
    stack: Option<DestroyStack>,
}

/// Part of a stack that tells a sweep from a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct DestroyStack {
    /// Hash of the kernel frames, or of all frames if no kernel frames were recorded.
    hash: u64,
    is_of_kernel: bool,
}

impl ExitSweeps {
    /// Records that a process got a handle, which it created or another process had.
    pub fn opened(&mut self, process: Option<u32>, is_created: bool) {
        let Some(process) = process else { return };
        let process = self.processes.entry(process).or_default();
        process.open += 1;
        if is_created {
            self.of_programs.extend(process.last.drain(..).filter_map(|last| last.stack));
        }
    }

    /// Records that a process's handle got another owner.
    pub fn given(&mut self, process: Option<u32>) {
        let process = process.and_then(|process| self.processes.get_mut(&process));
        if let Some(process) = process {
            process.open = process.open.saturating_sub(1);
        }
    }

    /// Records that the event in this row destroyed a process's handle.
    pub fn destroyed(
        &mut self,
        process: Option<u32>,
        allocation: u32,
        collected: &Collector,
        row: usize,
    ) {
        self.given(process);
        if let Some(process) = process {
            let stack = DestroyStack::from_row(collected, row);
            let process = self.processes.entry(process).or_default();
            process.last.push(HandleDestruction { allocation, stack });
        }
    }

    /// Marks the handles that sweeps destroyed as ended with their processes.
    pub fn finish(self, collected: &Collector, clock: &Clock, columns: &mut AllocationColumns) {
        let timeline = &collected.shared.timeline;
        let gap = clock.ticks_apart(SWEEP_GAP_NS);
        for (row, ProcessHeapHandles { open, last }) in self.processes {
            let process = collected.processes.rows.get(row as usize);
            let Some(end) = process.and_then(|process| process.end) else { continue };
            let (mut until, mut thread) = (end, None);
            for HandleDestruction { allocation, stack } in last.into_iter().rev() {
                let destroyed = columns.end_row[allocation as usize] as usize;
                let (time, tid) = (timeline.time[destroyed], timeline.tid[destroyed]);
                if time > end {
                    continue;
                }
                let is_of_program = |stack: DestroyStack| {
                    // All handles a program destroys just before its end have its own frames on the stack.
                    self.of_programs.contains(&stack) || !stack.is_of_kernel && open > 0
                };
                if until.saturating_sub(time) > gap
                    || *thread.get_or_insert(tid) != tid
                    || stack.is_none_or(is_of_program)
                {
                    break;
                }
                until = time;
                columns.end(allocation, ResourceEnd::AtExit, NONE as usize);
            }
        }
    }
}

impl DestroyStack {
    fn from_row(collected: &Collector, row: usize) -> Option<Self> {
        let stacks = &collected.stacks.events;
        let frames = stacks.fragments().addresses(stacks.parts(row)[0]);
        let kernel = frames.clone().take_while(|address| address >> 63 == 1);
        let is_of_kernel = kernel.clone().next().is_some();
        let hash = if is_of_kernel { hash(kernel) } else { hash(frames.clone()) };
        frames.clone().next().map(|_| Self { hash, is_of_kernel })
    }
}

fn hash(frames: impl Iterator<Item = u64>) -> u64 {
    let mut hasher = FxHasher::default();
    frames.for_each(|frame| frame.hash(&mut hasher));
    hasher.finish()
}
