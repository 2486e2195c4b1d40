//! Large traces with known counts, written in bounded memory.

mod heap;
mod large_trace;
mod open_handles;
mod stacks;

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;

use self::heap::BenchHeaps;
pub use self::large_trace::{LargeTrace, LargeTraceCounts};
use self::open_handles::{BenchAction, BenchHandles, OBJECT_TYPES};
use self::stacks::StackPool;
use crate::file::{EtlFile, FileOptions, FileWriter};
use crate::header::{HeaderKind, Stamp};
use crate::payload::{HandleEvent, KernelPayload, context_switch, disk_read, stack_walk};
use crate::rng::Rng;
use crate::scenario::TraceBuilder;

/// Time between two handle events, in nanoseconds.
const STEP: i64 = 10_000;
/// The user part of a stack is logged at most this many 100 ns ticks later.
const LATEST_USER_PART: u64 = 2_000;

/// Writes the trace to a file.
///
/// # Errors
/// If the file cannot be written.
///
/// # Panics
/// If there are no processes, processors or stacks, or the stacks are too deep or too shallow.
pub fn write_large_trace(path: &Path, trace: &LargeTrace) -> io::Result<LargeTraceCounts> {
    write_large_trace_to(File::create(path)?, trace)
}

/// Writes the trace to any output.
///
/// # Errors
/// If the output cannot be written.
///
/// # Panics
/// See [`write_large_trace`].
pub fn write_large_trace_to<W: Write + Seek>(
    out: W,
    trace: &LargeTrace,
) -> io::Result<LargeTraceCounts> {
    assert!(trace.processes > 0 && trace.cpus > 0, "a trace has processes and processors");
    let options = FileOptions {
        cpus: trace.cpus.into(),
        compressed: trace.compressed,
        ..FileOptions::default()
    };
    let frame = frame(trace, options.clone());
    let base = options.base_raw();
    let mut stream = HandleStream {
        events: FileWriter::new(out, options)?,
        late: Vec::new(),
        rng: Rng::new(trace.seed),
        stacks: StackPool::new(trace),
        handles: BenchHandles::new(trace),
        heaps: BenchHeaps::new(trace),
    };
    for (time, cpu, event) in frame.events().filter(|(time, ..)| *time <= base) {
        stream.events.push(cpu, time, event)?;
    }
    for n in 0..trace.handle_events {
        stream.handle_event(n)?;
    }
    for n in 0..trace.heap_events {
        stream.heap_event(trace.handle_events + n)?;
    }
    for n in 0..trace.other_events {
        stream.other_event(trace.handle_events + trace.heap_events + n)?;
    }
    stream.write_late(i64::MAX)?;
    stream.handle_rundown(end_of(trace))?;
    for (time, cpu, event) in frame.events().filter(|(time, ..)| *time > base) {
        stream.events.push(cpu, time, event)?;
    }
    stream.finish()
}

/// Returns the end of the handle events in nanoseconds; the handle rundown starts here.
fn end_of(trace: &LargeTrace) -> i64 {
    let events = trace.handle_events + trace.heap_events + trace.other_events;
    (events as i64 + 1) * STEP + LATEST_USER_PART as i64 * 100
}

/// Builds the processes, modules and types, and the rundowns before and after the handle events.
fn frame(trace: &LargeTrace, options: FileOptions) -> EtlFile {
    let mut frame = TraceBuilder::with_options(options);
    for (id, name) in OBJECT_TYPES {
        frame.object_type(id, name);
    }
    frame.process(4, "System").session(u32::MAX).command_line("");
    stacks::add_modules(&mut frame, trace);
    // The handles of the rundown, 100 ns apart, come before the frame's own rundown.
    frame.end(end_of(trace) + trace.handle_events as i64 * 100 + 1_000_000);
    frame.build()
}

/// A stack event that is logged later than events after it.
#[derive(Debug)]
struct Late {
    time: i64,
    cpu: u16,
    event: Vec<u8>,
}

/// The writer of the handle events.
struct HandleStream<W: Write + Seek> {
    events: FileWriter<W>,
    /// Stack parts still to be written, about 20 at a time.
    late: Vec<Late>,
    rng: Rng,
    stacks: StackPool,
    handles: BenchHandles,
    heaps: BenchHeaps,
}

impl<W: Write + Seek> HandleStream<W> {
    /// Writes handle event number `n` with its stack.
    fn handle_event(&mut self, n: u64) -> io::Result<()> {
        let time = self.events.options().raw((n as i64 + 1) * STEP);
        self.write_late(time)?;
        let action = self.handles.next_action(&mut self.rng);
        self.event(time, &action, true)
    }

    /// Writes a heap block event at the time of event `n`, with its stack if it has one.
    fn heap_event(&mut self, n: u64) -> io::Result<()> {
        let time = self.events.options().raw((n as i64 + 1) * STEP);
        self.write_late(time)?;
        let (action, has_stack) = self.heaps.next_action(&mut self.rng);
        self.event(time, &action, has_stack)
    }

    /// Writes a context switch or, one time in five, a disk read at the time of event `n`.
    fn other_event(&mut self, n: u64) -> io::Result<()> {
        let FileOptions { pointer, cpus, .. } = *self.events.options();
        let time = self.events.options().raw((n as i64 + 1) * STEP);
        self.write_late(time)?;
        let cpu = self.rng.below(cpus.into()) as u16;
        let [tid, old_tid] = [(); 2].map(|()| 4 * self.rng.below(4_000) as u32);
        let stamp = Stamp::new(time, 0, tid);
        if self.rng.percent(20) {
            let read = disk_read(pointer, 0x1000, self.rng.below(1 << 30) * 0x1000, tid);
            self.push(HeaderKind::Compact, cpu, stamp, &read)
        } else {
            self.push(HeaderKind::PerfInfo, cpu, stamp, &context_switch(tid, old_tid))
        }
    }

    fn event(&mut self, time: i64, action: &BenchAction, has_stack: bool) -> io::Result<()> {
        let BenchAction { payload, pid, leaks } = action;
        let (pid, leaks) = (*pid, *leaks);
        let (ptr, cpus) = (self.events.options().pointer, self.events.options().cpus.into());
        let (cpu, tid) = (self.rng.below(cpus) as u16, pid + 4 + 4 * self.rng.below(4) as u32);
        self.push(HeaderKind::Compact, cpu, Stamp::new(time, pid, tid), payload)?;
        if !has_stack {
            return Ok(());
        }
        let (kernel, user) = self.stacks.choose(leaks, &mut self.rng);
        let parts = [kernel, user].map(|frames| stack_walk(ptr, time, pid, tid, frames));
        let user_delay = 100 + self.rng.below(LATEST_USER_PART - 100) as i64;
        // Some threads return to user mode on another processor.
        let user_cpu = if self.rng.percent(10) { self.rng.below(cpus) as u16 } else { cpu };
        let places = [(time + 3, cpu), (time + user_delay, user_cpu)];
        for (part, (time, cpu)) in parts.iter().zip(places) {
            let event = part.event(HeaderKind::PerfInfo, ptr, Stamp::new(time, pid, tid));
            self.late.push(Late { time, cpu, event });
        }
        Ok(())
    }

    /// Writes the late events that belong before `time`.
    fn write_late(&mut self, time: i64) -> io::Result<()> {
        // The list is short, so sorting it is cheap.
        self.late.sort_by_key(|late| late.time);
        let due = self.late.partition_point(|late| late.time < time);
        for late in self.late.drain(..due) {
            self.events.push(late.cpu, late.time, &late.event)?;
        }
        Ok(())
    }

    /// Lists all leaked handles in a rundown from `ns` on.
    fn handle_rundown(&mut self, ns: i64) -> io::Result<()> {
        let ptr = self.events.options().pointer;
        let mut time = self.events.options().raw(ns);
        for process in 0..self.handles.processes() {
            for n in 0..self.handles.leaked(process) {
                let payload =
                    BenchHandles::leaked_handle(process, n).payload(HandleEvent::RundownEnd, ptr);
                time += 1;
                self.push(HeaderKind::PerfInfo, 0, Stamp::new(time, 0, 0), &payload)?;
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        kind: HeaderKind,
        cpu: u16,
        stamp: Stamp,
        payload: &KernelPayload,
    ) -> io::Result<()> {
        let event = payload.event(kind, self.events.options().pointer, stamp);
        self.events.push(cpu, stamp.time, &event)
    }

    fn finish(self) -> io::Result<LargeTraceCounts> {
        let handles = self.handles;
        let leaked_by_process: Vec<(u32, u64)> =
            (0..handles.processes()).map(|n| (BenchHandles::pid(n), handles.leaked(n))).collect();
        let handle_events = handles.creates + handles.duplicates + handles.closes;
        Ok(LargeTraceCounts {
            creates: handles.creates,
            duplicates: handles.duplicates,
            closes: handles.closes,
            leaked: leaked_by_process.iter().map(|(_, leaked)| leaked).sum(),
            leaked_by_process,
            block_allocs: self.heaps.allocs,
            block_frees: self.heaps.frees,
            stack_fragments: 2 * (handle_events + self.heaps.allocs),
            distinct_stacks: self.stacks.used(),
            file: self.events.finish()?,
        })
    }
}

#[cfg(test)]
mod tests;
