//! Handles of GDI and USER that the end of a process destroyed, not its program.
//!
//! The last thread of a process destroys all that are left, one right after the other, just before the event that ends
//! the process. So they are the last destroyed ones of the process, on one thread, and on stacks on which no program ever
//! destroyed a handle and then went on. What is destroyed after the end event needs no such evidence.

use std::hash::{Hash, Hasher};

use handlescope_model::tables::ResourceEnd;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxHasher;

use super::columns::AllocationColumns;
use crate::collect::Collector;
use crate::etl::Clock;
use crate::lifecycle::attribution::NONE;

/// Most nanoseconds between two handles that a sweep destroys, and between the last of them and the end event.
const SWEEP_GAP_NS: i64 = 2_000_000;

/// The open handles of each process, and those that it destroyed last.
#[derive(Default)]
pub struct ExitSweeps {
    /// By row of the process.
    processes: HashMap<u32, Process>,
    /// Stacks of destroyed handles after which a program created handles.
    of_programs: HashSet<DestroyStack>,
}

#[derive(Default)]
struct Process {
    /// Number of open handles.
    open: usize,
    /// Handles destroyed since the last one was created, in the order of time.
    last: Vec<Destroyed>,
}

#[derive(Clone, Copy)]
struct Destroyed {
    allocation: u32,
    stack: Option<DestroyStack>,
}

/// The part of a stack that distinguishes a sweep from a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct DestroyStack {
    /// Hash of the kernel frames, or of all frames where the kernel's were not recorded.
    hash: u64,
    is_of_kernel: bool,
}

impl ExitSweeps {
    /// A process of this row got a handle that it creates, or that another one had.
    pub fn opened(&mut self, process: Option<u32>, is_created: bool) {
        let Some(process) = process else { return };
        let process = self.processes.entry(process).or_default();
        process.open += 1;
        if is_created {
            self.of_programs.extend(process.last.drain(..).filter_map(|last| last.stack));
        }
    }

    /// A handle of a process got another owner.
    pub fn given(&mut self, process: Option<u32>) {
        let process = process.and_then(|process| self.processes.get_mut(&process));
        if let Some(process) = process {
            process.open = process.open.saturating_sub(1);
        }
    }

    /// An event in this row destroyed a handle of a process.
    pub fn destroyed(
        &mut self,
        process: Option<u32>,
        allocation: u32,
        collected: &Collector,
        row: usize,
    ) {
        self.given(process);
        if let Some(process) = process {
            let stack = DestroyStack::of_row(collected, row);
            let process = self.processes.entry(process).or_default();
            process.last.push(Destroyed { allocation, stack });
        }
    }

    /// Lets the handles that sweeps destroyed end with their processes.
    pub fn finish(self, collected: &Collector, clock: &Clock, columns: &mut AllocationColumns) {
        let timeline = &collected.shared.timeline;
        let gap = clock.ticks_apart(SWEEP_GAP_NS);
        for (row, Process { open, last }) in self.processes {
            let process = collected.processes.rows.get(row as usize);
            let Some(end) = process.and_then(|process| process.end) else { continue };
            let (mut until, mut thread) = (end, None);
            for Destroyed { allocation, stack } in last.into_iter().rev() {
                let destroyed = columns.end_row[allocation as usize] as usize;
                let (time, tid) = (timeline.time[destroyed], timeline.tid[destroyed]);
                if time > end {
                    continue;
                }
                let is_of_program = |stack: DestroyStack| {
                    // The program's own frames are on the stack of every handle that it destroys at its end.
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
    fn of_row(collected: &Collector, row: usize) -> Option<Self> {
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
