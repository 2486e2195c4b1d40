//! Programs that open, leak and close handles, written as a trace, with what happened to each handle.

use std::collections::{BTreeMap, BTreeSet};

use handlescope_tests::file::{FileOptions, SessionEnd};
use handlescope_tests::payload::{ImageEvent, ImageRecord, ThreadEvent, ThreadRecord};
use handlescope_tests::rng::Rng;
use handlescope_tests::scenario::{Caller, TraceBuilder};

const US: i64 = 1_000;
const MS: i64 = 1_000 * US;
const EVENT: u16 = 16;
const OBJECT: u64 = 0xffff_8100_0000_1000;

/// Length of the part in which the programs run.
const LENGTH: i64 = 400 * MS;

/// Kernel frames of opens, of two kinds of closes, and of the sweep of a handle table.
const OPEN: [u64; 2] = [0xffff_f800_0000_0100, 0xffff_f800_0000_2000];
const CLOSE: [u64; 2] = [0xffff_f800_0000_0200, 0xffff_f800_0000_2000];
const CLOSE_BY_IO: [u64; 2] = [0xffff_f800_0000_0300, 0xffff_f800_0000_2000];
const SWEEP: [u64; 3] = [0xffff_f800_0000_0400, 0xffff_f800_0000_0500, 0xffff_f800_0000_2000];

/// Settings of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceChoices {
    pub seed: u64,
    pub processors: u16,
    /// Whether the sweep of a handle table comes after ProcessEnd, as on Windows.
    pub sweeps_after_end: bool,
    pub has_stacks: bool,
    pub is_stopped: bool,
}

/// What happened to a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandleFate {
    /// Open at the end of the trace.
    Leaked,
    /// Closed by the exit of its process, at this time.
    AtExit(i64),
    /// Closed by its program, at this time.
    Closed(i64),
}

/// A handle: its program and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrueHandle {
    pub program: String,
    pub fate: HandleFate,
}

/// A trace, and the truth about its handles, by the time each was opened.
pub struct TraceWithTruth {
    pub etl: Vec<u8>,
    pub handles: BTreeMap<i64, TrueHandle>,
}

/// An event to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramStep {
    Open(usize),
    Close(usize),
    Sweep(usize),
    ThreadStart,
    ThreadEnd,
    Load(u64),
    Unload(u64),
}

/// A handle of a process during planning.
#[derive(Debug, Clone, Copy)]
struct PlannedHandle {
    process: usize,
    value: u32,
    opened: i64,
    fate: HandleFate,
}

/// One lifetime of a process.
#[derive(Debug, Clone)]
struct ProcessLifetime {
    pid: u32,
    name: String,
    started: Option<i64>,
    ended: Option<i64>,
}

struct Plan {
    rng: Rng,
    choices: TraceChoices,
    processes: Vec<ProcessLifetime>,
    handles: Vec<PlannedHandle>,
    steps: BTreeMap<i64, (usize, Caller, ProgramStep)>,
}

impl TraceWithTruth {
    pub fn new(choices: TraceChoices) -> Self {
        let mut plan = Plan {
            rng: Rng::new(choices.seed),
            choices,
            processes: Vec::new(),
            handles: Vec::new(),
            steps: BTreeMap::new(),
        };
        for at in 0..3 {
            plan.run(1000 + 4 * at, &format!("server{at}.exe"), None, None, 120);
        }
        // Programs that exit; each pid is reused by another program some time later.
        for at in 0..3_u32 {
            let pid = 2000 + 4 * at;
            let mut from = plan.between(2 * MS, 40 * MS);
            for generation in 0..4 {
                let is_last = generation == 3;
                let until = plan.between(from + 30 * MS, from + 90 * MS);
                let ended = (!is_last && until < LENGTH - 20 * MS).then_some(until);
                let name = format!("tool{at}{}.exe", ['a', 'b', 'c', 'd'][generation]);
                let opens = 30 + plan.rng.below(60) as i64;
                let Some(swept) = plan.run(pid, &name, Some(from), ended, opens) else { break };
                let pause = if plan.rng.percent(50) { 3 * MS } else { 40 * MS };
                from = plan.between(swept + MS, swept + pause);
                if from > LENGTH - 60 * MS {
                    break;
                }
            }
        }
        plan.write()
    }
}

impl Plan {
    fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.rng.below((to - from).max(1) as u64) as i64
    }

    fn processor(&mut self) -> u16 {
        self.rng.below(self.choices.processors.into()) as u16
    }

    /// Adds a step at the first free time from `ns` on; returns the time.
    fn step(&mut self, ns: i64, process: usize, caller: Caller, step: ProgramStep) -> i64 {
        let mut ns = ns / US * US;
        while self.steps.contains_key(&ns) {
            ns += US;
        }
        self.steps.insert(ns, (process, caller, step));
        ns
    }

    /// Plans the life of a process; returns when all of it is gone, if it exits.
    fn run(
        &mut self,
        pid: u32,
        name: &str,
        started: Option<i64>,
        ended: Option<i64>,
        opens: i64,
    ) -> Option<i64> {
        let process = self.processes.len();
        self.processes.push(ProcessLifetime { pid, name: name.to_owned(), started, ended });
        let (from, to) = (started.unwrap_or(0) + 200 * US, ended.unwrap_or(LENGTH));
        let first_tid = 5000 + 8 * process as u32;
        let thread = Caller::new(pid, first_tid).on(self.processor());
        if started.is_some() {
            self.step(from - 100 * US, process, thread, ProgramStep::ThreadStart);
            for image in 0..2 {
                self.step(
                    from - 90 * US + image * US,
                    process,
                    thread,
                    ProgramStep::Load(image as u64),
                );
            }
        }
        // Nothing is opened while the process exits.
        let busy = if ended.is_some() { to - 3 * MS } else { to };
        let leaks = [0, 10, 30][self.rng.index(3)];
        let mut times: BTreeSet<i64> =
            (0..opens).map(|_| self.between(from, busy) / US * US).collect();
        let mut free: Vec<u32> = Vec::new();
        let mut next = 4;
        // When the program closes which handle.
        let mut closes: BTreeMap<i64, usize> = BTreeMap::new();
        let mut open: BTreeSet<(u32, usize)> = BTreeSet::new();
        while let Some(ns) = times.pop_first() {
            while let Some(entry) = closes.first_entry().filter(|entry| *entry.key() < ns) {
                let (ns, handle) = entry.remove_entry();
                self.close(ns, process, handle, &mut open, &mut free);
            }
            let value = free.pop().unwrap_or_else(|| {
                next += 4;
                next - 4
            });
            let caller = Caller::new(pid, pid + 1 + self.rng.below(2) as u32).on(self.processor());
            let handle = self.handles.len();
            let opened = self.step(ns, process, caller, ProgramStep::Open(handle));
            let fate = HandleFate::Leaked;
            self.handles.push(PlannedHandle { process, value, opened, fate });
            open.insert((value, handle));
            if !self.rng.percent(leaks) {
                let longest = if self.rng.percent(80) { 10 * MS } else { 150 * MS };
                let mut closed = opened + self.between(20 * US, longest);
                if self.rng.percent(5) {
                    closed = closed.max(busy - 200 * US);
                }
                while closes.contains_key(&closed) {
                    closed += 1;
                }
                closes.insert(closed, handle);
            }
        }
        while let Some((ns, handle)) = closes.pop_first().filter(|(ns, _)| *ns < to - 2500 * US) {
            self.close(ns, process, handle, &mut open, &mut free);
        }
        let ended = ended?;
        self.step(ended - 1200 * US, process, thread, ProgramStep::ThreadEnd);
        let open: Vec<usize> = open.into_iter().map(|(_, handle)| handle).collect();
        let pace = if self.choices.sweeps_after_end {
            [5, 30, 90][self.rng.index(3)] * US
        } else {
            // The whole sweep takes less than 2 ms.
            (1000 * US / (open.len() as i64 + 1)).min(20 * US)
        };
        let mut at = if self.choices.sweeps_after_end {
            ended + self.between(20 * US, 500 * US)
        } else {
            ended - 100 * US - pace * open.len() as i64
        };
        let mut sweeper = Caller::new(pid, first_tid).on(self.processor());
        for handle in open {
            if self.rng.percent(2) {
                sweeper = sweeper.on(self.processor());
            }
            at = self.step(at, process, sweeper, ProgramStep::Sweep(handle));
            self.handles[handle].fate = HandleFate::AtExit(at);
            at += pace;
        }
        let mut last = at.max(ended) + 30 * US;
        for image in 0..2 {
            last = self.step(last, process, sweeper, ProgramStep::Unload(image)) + US;
        }
        Some(last)
    }

    fn close(
        &mut self,
        ns: i64,
        process: usize,
        handle: usize,
        open: &mut BTreeSet<(u32, usize)>,
        free: &mut Vec<u32>,
    ) {
        let value = self.handles[handle].value;
        let pid = self.processes[process].pid;
        let tid = 5000 + 8 * process as u32 + self.rng.below(2) as u32;
        let caller = Caller::new(pid, tid).on(self.processor());
        let closed = self.step(ns, process, caller, ProgramStep::Close(handle));
        self.handles[handle].fate = HandleFate::Closed(closed);
        open.remove(&(value, handle));
        free.push(value);
    }

    /// Writes the steps in time order.
    fn write(self) -> TraceWithTruth {
        let Self { mut rng, choices, processes, handles, steps } = self;
        let mut trace = TraceBuilder::with_options(FileOptions {
            buffer_size: 4096,
            cpus: choices.processors.into(),
            end: if choices.is_stopped { SessionEnd::AtLastEvent } else { SessionEnd::NotClosed },
            mode: 0,
            merged: false,
            ..FileOptions::default()
        });
        trace.process(4, "System");
        trace.object_type(EVENT, "Event");
        for process in &processes {
            let spec = trace.process(process.pid, &process.name).parent(1000);
            let cpus = [(); 2].map(|()| rng.below(choices.processors.into()) as u16);
            spec.start_processor(cpus[0]).end_processor(cpus[1]);
            process.started.map(|ns| spec.started(ns));
            process.ended.map(|ns| spec.ended(ns));
        }
        let (mut free, mut next) = (Vec::new(), 0);
        let mut objects = vec![0; handles.len()];
        for (ns, (_, caller, step)) in steps {
            let mut kernel: &[u64] = &[];
            match step {
                ProgramStep::Open(handle) => {
                    objects[handle] = free.pop().unwrap_or_else(|| {
                        next += 1;
                        OBJECT + 0x100 * next
                    });
                    let value = handles[handle].value;
                    trace.create_handle(ns, caller, objects[handle], value, EVENT);
                    kernel = &OPEN;
                }
                ProgramStep::Close(handle) | ProgramStep::Sweep(handle) => {
                    let value = handles[handle].value;
                    trace.close_handle(ns, caller, objects[handle], value, EVENT, "");
                    free.push(objects[handle]);
                    kernel = match step {
                        ProgramStep::Sweep(_) => &SWEEP,
                        _ if rng.percent(20) => &CLOSE_BY_IO,
                        _ => &CLOSE,
                    };
                }
                ProgramStep::ThreadStart | ProgramStep::ThreadEnd => {
                    let event = if step == ProgramStep::ThreadStart {
                        ThreadEvent::Start
                    } else {
                        ThreadEvent::End
                    };
                    let record = ThreadRecord { pid: caller.pid, tid: caller.tid, name: None };
                    let payload = record.payload(event, trace.options().pointer);
                    trace.kernel_event(ns, caller, &payload);
                }
                ProgramStep::Load(image) | ProgramStep::Unload(image) => {
                    let name = ["program.exe", "ntdll.dll"][image as usize];
                    let event = match step {
                        ProgramStep::Load(_) => ImageEvent::Load,
                        _ => ImageEvent::Unload,
                    };
                    let record = ImageRecord {
                        base: 0x7ff6_0000_0000 + 0x10_0000 * image,
                        size: 0x1_0000,
                        pid: caller.pid,
                        checksum: 1,
                        timestamp: 1,
                        path: format!(r"\Device\HarddiskVolume3\{name}"),
                    };
                    let payload = record.payload(event, 3, trace.options().pointer);
                    trace.kernel_event(ns, caller, &payload);
                }
            }
            if choices.has_stacks && !kernel.is_empty() {
                trace.stack(kernel, &[]);
            }
        }
        for (handle, object) in handles.iter().zip(&objects) {
            if handle.fate == HandleFate::Leaked {
                let pid = processes[handle.process].pid;
                trace.handle_rundown_end(pid, *object, handle.value, EVENT, "");
            }
        }
        let truth = |handle: &PlannedHandle| {
            let program = processes[handle.process].name.clone();
            (handle.opened, TrueHandle { program, fate: handle.fate })
        };
        TraceWithTruth { etl: trace.to_bytes(), handles: handles.iter().map(truth).collect() }
    }
}
