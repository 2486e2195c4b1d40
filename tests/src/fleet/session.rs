//! A trace of one machine in a fleet.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::Path;

use super::program::{PROGRAM, ProgramBuild};
use crate::file::FileOptions;
use crate::rng::Rng;
use crate::scenario::{Caller, KERNEL_HANDLE, TAG_BITS, TraceBuilder};
use crate::stacks::{
    CLOSE, CLOSE_KEY, CREATE_EVENT, CREATE_FILE, EventStack, OPEN_KEY, PROCESS_EXIT, Service,
};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;

/// FILETIME of 2026-10-01 00:00 UTC.
const FIRST_DAY: i64 = 134_352_864_000_000_000;

/// FILETIME units per second; also the ticks of the clock.
const FILETIME_SECOND: i64 = 10_000_000;

/// Time from boot to the start of the session, in the same units.
const UPTIME: i64 = 10 * 3_600 * FILETIME_SECOND;

const EVENT: u16 = 16;
const FILE: u16 = 37;
const KEY: u16 = 44;

const CPUS: u16 = 2;
const SYSTEM: u32 = 4;
/// Program without symbols and version, and its base address.
const BACKUP: &str = r"\Device\HarddiskVolume3\Backup\backup.exe";
const BACKUP_BASE: u64 = 0x7ff6_9000_0000;

/// Functions of the kernel that `backup.exe` calls.
const KERNEL_CREATE_FILE: &str = "ObpCreateHandle ObOpenObjectByName IopCreateFile NtCreateFile";
const KERNEL_CLOSE: &str = "ObCloseHandleTableEntry ObpCloseHandle NtClose";

/// Something that a program repeatedly opens and closes.
struct FleetActivity {
    function: &'static str,
    /// The functions that open it, innermost first, then the ones that close it.
    opening: &'static str,
    closing: &'static str,
    kind: u16,
    services: [Service; 2],
    per_minute: u64,
    life_ms: Range<u64>,
}

const ACTIVITIES: [FleetActivity; 5] = [
    FleetActivity {
        function: "fleet::Worker::Poll",
        opening: "fleet::Worker::Poll fleet::Worker::Run Main",
        closing: "fleet::Worker::Poll fleet::Worker::Run Main",
        kind: EVENT,
        services: [CREATE_EVENT, CLOSE],
        per_minute: 40,
        life_ms: 1..500,
    },
    FleetActivity {
        function: "fleet::Cache::Open",
        opening: "fleet::Cache::Open fleet::Worker::Run Main",
        closing: "fleet::Cache::Evict fleet::Worker::Run Main",
        kind: EVENT,
        services: [CREATE_EVENT, CLOSE],
        per_minute: 12,
        life_ms: 1_000..20_000,
    },
    FleetActivity {
        function: "fleet::Index::Load",
        opening: "fleet::Index::Load fleet::Worker::Run Main",
        closing: "fleet::Index::Unload fleet::Worker::Run Main",
        kind: FILE,
        services: [CREATE_FILE, CLOSE],
        per_minute: 10,
        life_ms: 100..5_000,
    },
    FleetActivity {
        function: "fleet::Log::Rotate",
        opening: "fleet::Log::Rotate Main",
        closing: "fleet::Log::Rotate Main",
        kind: FILE,
        services: [CREATE_FILE, CLOSE],
        per_minute: 6,
        life_ms: 5..2_000,
    },
    FleetActivity {
        function: "fleet::Settings::Read",
        opening: "fleet::Settings::Read fleet::Worker::Run Main",
        closing: "fleet::Settings::Read fleet::Worker::Run Main",
        kind: KEY,
        services: [OPEN_KEY, CLOSE_KEY],
        per_minute: 8,
        life_ms: 1..50,
    },
];

/// Percentage of its handles that a function leaks on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaking {
    pub function: &'static str,
    pub percent: u32,
}

/// A function, the handles it leaked, and all handles it opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionHandles {
    pub function: &'static str,
    pub leaked: u64,
    pub opened: u64,
}

/// A recording session on a machine.
pub struct FleetSession<'b> {
    build: &'b ProgramBuild,
    trace: TraceBuilder,
    rng: Rng,
    end: i64,
    /// Number of the last object.
    objects: u64,
    /// Raw times of handle events. Each is unique, so that its stack finds it.
    taken: HashSet<i64>,
}

/// A handle that a process has open.
#[derive(Debug, Clone, Copy)]
struct FleetHandle {
    object: u64,
    value: u32,
    kind: u16,
}

impl<'b> FleetSession<'b> {
    /// Starts a session this many seconds after the start of the first day.
    pub fn new(build: &'b ProgramBuild, computer: &str, start_s: i64, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let end = (300 + rng.below(300) as i64) * SECOND;
        let start = FIRST_DAY + start_s * FILETIME_SECOND;
        let options = FileOptions {
            buffer_size: 0x4000,
            cpus: CPUS.into(),
            base: UPTIME,
            start,
            boot: start - UPTIME,
            compressed: true,
            ..FileOptions::default()
        };
        let mut trace = TraceBuilder::with_options(options);
        trace.computer(computer).end(end);
        for (id, name) in [(EVENT, "Event"), (FILE, "File"), (KEY, "Key")] {
            trace.object_type(id, name);
        }
        trace.process(SYSTEM, "System");
        trace.sweep_stack(&build.stacks.kernel(PROCESS_EXIT));
        let mut session = Self { build, trace, rng, end, objects: 0, taken: HashSet::new() };
        session.module(0, "ntoskrnl.exe");
        session
    }

    /// Adds everything that happens; returns what possibly leaking functions opened.
    pub fn run(&mut self, leaks: &[Leaking]) -> Vec<FunctionHandles> {
        let pid = 4_000 + 4 * self.rng.below(4_000) as u32;
        self.trace.process(pid, PROGRAM).parent(SYSTEM).started(SECOND);
        self.modules(pid);
        self.fill_pool(pid);
        let mut opened = Vec::new();
        for activity in ACTIVITIES {
            let leak = leaks.iter().find(|leak| leak.function == activity.function);
            let of_activity = self.repeat(pid, &activity, leak.map_or(0, |leak| leak.percent));
            opened.extend(leak.map(|_| of_activity));
        }
        self.end_of_child(pid);
        self.back_up(pid + 0x8000);
        opened
    }

    pub fn seconds(&self) -> i64 {
        self.end / SECOND
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        self.trace.write(path).map(|_| ())
    }

    /// Adds a module of the sample or of the build.
    fn module(&mut self, pid: u32, file: &str) {
        let (module, base, path) = self.build.stacks.module(file);
        let spec = self.trace.module(pid, &path, base, module.size);
        spec.timestamp(module.timestamp).pdb(&module.pdb, module.guid, module.age);
        if file == PROGRAM {
            spec.file_version(self.build.version);
        }
    }

    fn modules(&mut self, pid: u32) {
        for file in [PROGRAM, "ntdll.dll", "kernel32.dll", "KernelBase.dll"] {
            self.module(pid, file);
        }
    }

    /// Repeats an activity until the end: opens handles and closes all but the leaking part.
    fn repeat(&mut self, pid: u32, activity: &FleetActivity, percent: u32) -> FunctionHandles {
        let [opening, closing] = activity.services;
        let opening = self.build.stacks.called(opening, PROGRAM, activity.opening);
        let closing = self.build.stacks.called(closing, PROGRAM, activity.closing);
        let caller = Caller::new(pid, pid + 8);
        let (mut leaked, mut opened) = (0, 0);
        for ns in self.times(activity.per_minute) {
            let handle = self.open(ns, caller, activity.kind, &opening);
            opened += 1;
            if self.rng.percent(percent) {
                leaked += 1;
                self.list(pid, handle);
                continue;
            }
            let Range { start, end } = activity.life_ms;
            let life_ms = start + self.rng.below(end - start);
            self.close(ns + life_ms as i64 * MS, caller, handle, &closing);
        }
        FunctionHandles { function: activity.function, leaked, opened }
    }

    /// Opens the handles that the program keeps for its whole life.
    fn fill_pool(&mut self, pid: u32) {
        let program = "fleet::Pool::Fill Main";
        let stack = self.build.stacks.called(CREATE_EVENT, PROGRAM, program);
        for number in 0..12 + self.rng.below(8) as i64 {
            let ns = SECOND + (10 + 20 * number) * MS;
            let handle = self.open(ns, Caller::new(pid, pid + 4), EVENT, &stack);
            self.list(pid, handle);
        }
    }

    /// Adds a second process of the program; the kernel closes its two open handles when it exits.
    fn end_of_child(&mut self, parent: u32) {
        let pid = parent + 0x4000;
        let started = 20 * SECOND + self.rng.below(60_000) as i64 * MS;
        let ended = started + 30 * SECOND;
        self.trace.process(pid, PROGRAM).parent(parent).started(started).ended(ended);
        self.modules(pid);
        let program = "fleet::Session::Begin Main";
        let stack = self.build.stacks.called(CREATE_EVENT, PROGRAM, program);
        let caller = Caller::new(pid, pid + 4);
        for number in 1..3 {
            self.open(started + number * SECOND, caller, EVENT, &stack);
        }
    }

    /// Adds a program that is known by its addresses only.
    fn back_up(&mut self, pid: u32) {
        self.trace.process(pid, "backup.exe").parent(SYSTEM);
        self.trace.module(pid, BACKUP, BACKUP_BASE, 0x2_0000);
        let user = |rva: u64| vec![BACKUP_BASE + rva, BACKUP_BASE + 0x2_040];
        let kernel = |functions: &str| self.build.stacks.kernel(functions);
        let opening = EventStack { kernel: kernel(KERNEL_CREATE_FILE), user: user(0x1_010) };
        let closing = EventStack { kernel: kernel(KERNEL_CLOSE), user: user(0x1_230) };
        let caller = Caller::new(pid, pid + 4);
        for ns in self.times(10) {
            let handle = self.open(ns, caller, FILE, &opening);
            let life_ms = 1 + self.rng.below(3_000);
            self.close(ns + life_ms as i64 * MS, caller, handle, &closing);
            // A driver looks at the file, and a thread of System closes the driver's kernel handle.
            let [opened, closed] = [20_000, MS].map(|after| self.free(ns + after));
            let (object, value) = (handle.object + 0x80, handle.value);
            let system = Caller::new(SYSTEM, SYSTEM + 4);
            self.trace
                .create_kernel_handle(opened, caller, object, value, FILE)
                .stack(&opening.kernel, &opening.user)
                .close_handle(closed, system, object, value | KERNEL_HANDLE, FILE, "")
                .stack(&closing.kernel, &[]);
        }
    }

    /// Returns random times after the start of the program, this many per minute.
    fn times(&mut self, per_minute: u64) -> Vec<i64> {
        let span = self.end - 3 * SECOND;
        let count = per_minute as i64 * span / (60 * SECOND);
        (0..count).map(|_| 2 * SECOND + self.rng.below(span as u64) as i64).collect()
    }

    fn open(&mut self, ns: i64, caller: Caller, kind: u16, stack: &EventStack) -> FleetHandle {
        self.objects += 1;
        let object = 0xffff_8100_0000_0000 + 0x100 * self.objects;
        let handle = FleetHandle { object, value: 4 * self.objects as u32, kind };
        let ns = self.free(ns);
        let caller = caller.on(self.rng.below(CPUS.into()) as u16);
        let FleetHandle { value, .. } = handle;
        self.trace.create_handle(ns, caller, object, value, kind).stack(&stack.kernel, &stack.user);
        handle
    }

    /// Closes a handle, unless the session ends first.
    fn close(&mut self, ns: i64, caller: Caller, handle: FleetHandle, stack: &EventStack) {
        let FleetHandle { object, value, kind } = handle;
        if ns >= self.end - MS {
            self.list(caller.pid, handle);
            return;
        }
        let ns = self.free(ns);
        let caller = caller.on(self.rng.below(CPUS.into()) as u16);
        // The keys are in HKEY_CLASSES_ROOT, so they are closed with a tag bit.
        let value = if kind == KEY { value | TAG_BITS & 2 } else { value };
        let closed = self.trace.close_handle(ns, caller, object, value, kind, "");
        closed.stack(&stack.kernel, &stack.user);
    }

    /// Lists an open handle in the rundown at the end.
    fn list(&mut self, pid: u32, FleetHandle { object, value, kind }: FleetHandle) {
        self.trace.handle_rundown_end(pid, object, value, kind, "");
    }

    /// Returns the first time from `ns` on that no other handle event has.
    fn free(&mut self, ns: i64) -> i64 {
        let mut ns = ns;
        while !self.taken.insert(self.trace.options().raw(ns)) {
            ns += 1_000;
        }
        ns
    }
}
