//! Traces with planted leaks for any seed, like the published ones, and the truth about them.

use crate::bytes::PointerSize;
use crate::payload::{DuplicateRecord, file_name};
use crate::rng::Rng;
use crate::scenario::{KERNEL_HANDLE, MappedView, TraceBuilder};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;

/// Length of each trace.
const END: i64 = 600 * SECOND;

const EVENT: u16 = 16;
const THREAD: u16 = 8;
const FILE: u16 = 37;
const KEY: u16 = 44;

const KERNEL: [u64; 1] = [0xffff_f800_0000_1000];

/// Base address of every program.
const PROGRAM: u64 = 0x7ff6_0000_0000;

const NAMES: [&str; 6] =
    ["archiver.exe", "builder.exe", "courier.exe", "indexer.exe", "mailer.exe", "scanner.exe"];

/// A leak that the script of a trace plants.
#[derive(Debug, Clone, PartialEq)]
pub struct PlantedLeak {
    /// `name.exe(pid)`.
    pub process: String,
    /// Type of the objects.
    pub kind: &'static str,
    /// The function of the program that opens them.
    pub function: String,
    /// The word for the cause.
    pub cause: &'static str,
    /// Number of leaked handles, and of all handles that the function opens.
    pub leaked: u64,
    pub opened: u64,
    /// Rate of a steady leak.
    pub per_minute: Option<f64>,
}

/// A trace and the leaks planted in it.
#[derive(Debug)]
pub struct PlantedTrace {
    pub trace: TraceBuilder,
    pub leaks: Vec<PlantedLeak>,
}

/// The scenarios, named after the published traces they resemble.
pub const SCENARIOS: [&str; 5] = ["eventleak", "threadleak", "growth", "duplicates", "filemap"];

/// Builds the trace of a scenario for a seed.
///
/// # Panics
/// If there is no such scenario.
#[must_use]
pub fn planted(scenario: &str, seed: u64) -> PlantedTrace {
    let mut script = Script::new(seed);
    match scenario {
        "eventleak" => script.races(),
        "threadleak" => script.threads(),
        "growth" => (0..5).for_each(|_| script.groups()),
        "duplicates" => script.duplicates(),
        "filemap" => script.views(),
        _ => panic!("there is no scenario {scenario}"),
    }
    script.healthy_work();
    PlantedTrace { trace: script.trace, leaks: script.leaks }
}

/// A program and its process.
#[derive(Debug, Clone)]
struct PlantedProgram {
    name: String,
    pid: u32,
}

struct Script {
    trace: TraceBuilder,
    rng: Rng,
    leaks: Vec<PlantedLeak>,
    programs: usize,
    /// Number of the next object and handle.
    next: u64,
}

impl Script {
    fn new(seed: u64) -> Self {
        let mut trace = TraceBuilder::new();
        trace.process(4, "System");
        trace
            .module(0, r"\SystemRoot\ntoskrnl.exe", 0xffff_f800_0000_0000, 0x10_0000)
            .rundown_only();
        for (id, name) in [(EVENT, "Event"), (THREAD, "Thread"), (FILE, "File"), (KEY, "Key")] {
            trace.object_type(id, name);
        }
        trace.end(END);
        let mut rng = Rng::new(seed);
        let programs = rng.index(NAMES.len());
        Self { trace, rng, leaks: Vec::new(), programs, next: 0 }
    }

    fn program(&mut self) -> PlantedProgram {
        let name = NAMES[self.programs % NAMES.len()].to_owned();
        let pid = 1000 + 4 * self.rng.below(4000) as u32 + 20_000 * self.programs as u32;
        self.programs += 1;
        self.trace.process(pid, &name);
        self.trace.module(pid, &format!(r"C:\demo\{name}"), PROGRAM, 0x10_0000).rundown_only();
        PlantedProgram { name, pid }
    }

    /// Returns a random offset of a function in a program.
    fn function(&mut self) -> u64 {
        0x1000 + 0x10 * self.rng.below(0xe000)
    }

    /// Returns a new object and handle.
    fn object(&mut self) -> (u64, u32) {
        self.next += 1;
        (0xffff_8100_0000_0000 + 0x100 * self.next, 4 * self.next as u32)
    }

    /// Returns this many times between two seconds, in order and roughly evenly spaced.
    fn times(&mut self, count: u64, from_s: i64, to_s: i64) -> Vec<i64> {
        let step = (to_s - from_s) * SECOND / count as i64;
        (0..count as i64)
            .map(|number| from_s * SECOND + number * step + self.rng.below(step as u64 / 2) as i64)
            .collect()
    }

    fn open(
        &mut self,
        ns: i64,
        program: &PlantedProgram,
        tid: u32,
        kind: u16,
        function: u64,
    ) -> (u64, u32) {
        let (object, handle) = self.object();
        let created = self.trace.create_handle(ns, (program.pid, tid), object, handle, kind);
        created.stack(&KERNEL, &[PROGRAM + function, PROGRAM + 0xf_fff0]);
        (object, handle)
    }

    fn close(
        &mut self,
        ns: i64,
        program: &PlantedProgram,
        tid: u32,
        (object, handle): (u64, u32),
        kind: u16,
    ) {
        let closed = self.trace.close_handle(ns, (program.pid, tid), object, handle, kind, "");
        closed.stack(&KERNEL, &[PROGRAM + 0xf_0000]);
    }

    fn plant(
        &mut self,
        program: &PlantedProgram,
        kind: &'static str,
        function: u64,
        cause: &'static str,
        (leaked, opened): (&[i64], u64),
        is_steady: bool,
    ) {
        let minutes = leaked.first().zip(leaked.last());
        let minutes = minutes.map_or(0.0, |(first, last)| (last - first) as f64 / 60e9);
        let count = leaked.len() as u64;
        self.leaks.push(PlantedLeak {
            process: format!("{}({})", program.name, program.pid),
            kind,
            function: format!("{}+0x{function:X}", program.name),
            cause,
            leaked: count,
            opened,
            per_minute: is_steady.then(|| (count - 1) as f64 / minutes),
        });
    }

    /// Two threads open the same object at nearly the same time, and only one of the handles is closed.
    fn races(&mut self) {
        let (program, function) = (self.program(), self.function());
        let tids = [program.pid + 1, program.pid + 2];
        let count = 30 + self.rng.below(40);
        let times = self.times(count, 20, 580);
        for ns in &times {
            let (object, handle) = self.open(*ns, &program, tids[0], EVENT, function);
            let apart = 10_000 + self.rng.below(200_000) as i64;
            self.next += 1;
            let second = 4 * self.next as u32;
            let caller = (program.pid, tids[1]);
            let created = self.trace.create_handle(ns + apart, caller, object, second, EVENT);
            created.stack(&KERNEL, &[PROGRAM + function, PROGRAM + 0xf_fff0]);
            self.close(ns + 20 * MS, &program, tids[1], (object, second), EVENT);
            let _ = handle;
        }
        self.plant(&program, "Event", function, "race", (&times, 2 * count), true);
    }

    /// Threads exit while their handles stay open.
    fn threads(&mut self) {
        let (program, function) = (self.program(), self.function());
        let (creator, count) = (program.pid + 1, 24 + self.rng.below(60));
        let times = self.times(count, 15, 590);
        for (number, ns) in (0..).zip(&times) {
            let _ = self.open(*ns, &program, creator, THREAD, function);
            let thread = self.trace.thread(program.pid, 300_000 + 4 * number);
            thread.creator(program.pid, creator).started(ns + 5_000).ended(ns + 300 * MS);
        }
        let leaked = (times.as_slice(), count);
        self.plant(&program, "Thread", function, "thread_or_process_handle", leaked, true);
    }

    /// A steady leak, an error path, a burst and a cache, each in its own program.
    fn groups(&mut self) {
        let (program, function) = (self.program(), self.function());
        let count = 40 + self.rng.below(80);
        let times = self.times(count, 10, 590);
        for ns in &times {
            let _ = self.open(*ns, &program, program.pid + 1, EVENT, function);
        }
        self.plant(&program, "Event", function, "never_closed", (&times, count), true);

        let (program, function) = (self.program(), self.function());
        let (count, every) = (300 + self.rng.below(200), 5 + self.rng.below(4));
        let times = self.times(count, 5, 590);
        let mut leaked = Vec::new();
        for (number, ns) in (0..).zip(&times) {
            let opened = self.open(*ns, &program, program.pid + 1, EVENT, function);
            match number % every {
                0 => leaked.push(*ns),
                _ => self.close(ns + 30 * MS, &program, program.pid + 1, opened, EVENT),
            }
        }
        self.plant(&program, "Event", function, "sometimes_closed", (&leaked, count), true);

        let (program, function) = (self.program(), self.function());
        let start = 200 * SECOND + self.rng.below(200) as i64 * SECOND;
        let times: Vec<i64> =
            (0..40 + self.rng.below(30) as i64).map(|n| start + 20 * MS * n).collect();
        for ns in &times {
            let _ = self.open(*ns, &program, program.pid + 1, EVENT, function);
        }
        let count = times.len() as u64;
        self.plant(&program, "Event", function, "never_closed", (&times, count), false);
    }

    /// One process duplicates handles into another, which never closes them.
    fn duplicates(&mut self) {
        let (source, target, function) = (self.program(), self.program(), self.function());
        let count = 25 + self.rng.below(40);
        let times = self.times(count, 10, 585);
        for ns in &times {
            let opened = self.open(*ns, &source, source.pid + 1, EVENT, 0xe_0000);
            let (object, source_handle) = opened;
            let record = DuplicateRecord {
                object,
                source_handle,
                target_handle: source_handle,
                target_pid: target.pid,
                source_pid: Some(source.pid),
                type_id: EVENT,
            };
            let duplicated =
                self.trace.duplicate_handle(ns + MS, (source.pid, source.pid + 1), record);
            duplicated.stack(&KERNEL, &[PROGRAM + function, PROGRAM + 0xf_fff0]);
            self.close(ns + 50 * MS, &source, source.pid + 1, opened, EVENT);
        }
        let leaked = (times.as_slice(), count);
        self.plant(&target, "Event", function, "duplicate_not_closed", leaked, true);
        if let Some(planted) = self.leaks.last_mut() {
            // The stack is the source's.
            planted.function = format!("{}+0x{function:X}", source.name);
        }
    }

    /// Views of a file; some of them are never unmapped.
    fn views(&mut self) {
        let (program, function) = (self.program(), self.function());
        let (count, every) = (100 + self.rng.below(60), 3 + self.rng.below(3));
        let times = self.times(count, 10, 590);
        let file_key = 0xffff_a000_0000_0000 + 0x1000 * self.rng.below(1000);
        let name = r"\Device\HarddiskVolume3\data\cache.bin";
        let named = file_name(file_key, name, PointerSize::Eight);
        self.trace.kernel_event(END - SECOND, (4, 8), &named);
        let mut leaked = Vec::new();
        for (number, ns) in (1..).zip(&times) {
            let base = 0x1_0000_0000 + 0x100_0000 * number;
            let view = MappedView {
                base,
                size: 0x10_0000,
                file_key,
                pid: program.pid,
                ..MappedView::default()
            };
            let caller = (program.pid, program.pid + 1);
            let mapped = self.trace.map(*ns, caller, view);
            mapped.stack(&KERNEL, &[PROGRAM + function, PROGRAM + 0xf_fff0]);
            match number % every {
                0 => leaked.push(*ns),
                _ => {
                    self.trace.unmap(ns + 200 * MS, caller, view);
                }
            }
        }
        self.plant(&program, "FileMapping", function, "view_not_unmapped", (&leaked, count), true);
    }

    /// A program without leaks opens handles and soon closes them.
    fn healthy_work(&mut self) {
        let (program, function) = (self.program(), self.function());
        for ns in self.times(400, 2, 598) {
            let opened = self.open(ns, &program, program.pid + 1, EVENT, function);
            let life = MS + self.rng.below(50) as i64 * MS;
            self.close(ns + life, &program, program.pid + 1, opened, EVENT);
        }
        self.drivers(&program);
        self.classes(&program);
        self.children(&program);
    }

    /// A driver opens kernel handles of files in the context of one program, and closes them there or in System.
    fn drivers(&mut self, program: &PlantedProgram) {
        let thread = (program.pid, program.pid + 1);
        for ns in self.times(120, 3, 595) {
            let (object, handle) = self.object();
            let closer = if self.rng.percent(50) { (4, 8) } else { thread };
            self.trace
                .create_kernel_handle(ns, thread, object, handle, FILE)
                .stack(&KERNEL, &[PROGRAM + 0xe_1000])
                .close_handle(ns + 3 * MS, closer, object, handle | KERNEL_HANDLE, FILE, "")
                .stack(&KERNEL, &[]);
        }
    }

    /// The program closes keys of HKEY_CLASSES_ROOT with a tag bit.
    fn classes(&mut self, program: &PlantedProgram) {
        let thread = (program.pid, program.pid + 1);
        for ns in self.times(60, 4, 594) {
            let (object, handle) = self.open(ns, program, thread.1, KEY, 0xe_2000);
            self.trace
                .close_tagged(ns + 2 * MS, thread, object, handle, KEY, "")
                .stack(&KERNEL, &[PROGRAM + 0xf_1000]);
        }
    }

    /// Children inherit a handle, get a standard handle, and exit with both open.
    fn children(&mut self, program: &PlantedProgram) {
        let thread = (program.pid, program.pid + 1);
        for (number, ns) in (0..).zip(self.times(6, 20, 560)) {
            let pid = 900_000 + 4 * number;
            let opened = self.open(ns, program, thread.1, EVENT, 0xe_3000);
            let (object, source_handle) = opened;
            for (after, target_handle) in [(MS, source_handle), (MS + 2_000, 0x1_0000)] {
                let duplicate = DuplicateRecord {
                    object,
                    source_handle,
                    target_handle,
                    target_pid: 0,
                    type_id: EVENT,
                    source_pid: Some(program.pid),
                };
                let inherited = self.trace.inherit_handle(ns + after, thread, duplicate);
                inherited.stack(&KERNEL, &[PROGRAM + 0xe_3000]);
            }
            let child = self.trace.process(pid, "worker.exe");
            child.parent(program.pid).creator_thread(thread.1);
            child.started(ns + 2 * MS).ended(ns + 20 * SECOND);
            self.close(ns + 3 * MS, program, thread.1, opened, EVENT);
        }
    }
}
