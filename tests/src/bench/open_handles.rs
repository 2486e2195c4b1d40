//! Handles and objects of a large trace.

use super::large_trace::LargeTrace;
use crate::bytes::PointerSize;
use crate::payload::{DuplicateRecord, HandleEvent, HandleRecord, KernelPayload};
use crate::rng::Rng;
use crate::scenario::{KERNEL_HANDLE, TAG_BITS};

/// Ids and names of the object types.
pub const OBJECT_TYPES: [(u16, &str); 4] =
    [(8, "Thread"), (16, "Event"), (37, "File"), (44, "Key")];

/// Maximum number of open handles that are not leaked.
const MAX_OPEN: usize = 4000;
/// Address of the first object with handles that get closed; these addresses are reused.
const OBJECTS: u64 = 0xffff_8103_0000_0000;
/// Address of the first object with a leaked handle.
const LEAKED_OBJECTS: u64 = 0xffff_8a00_0000_0000;
/// Type of registry keys, which are closed with a tag bit in the handle.
const KEY: u16 = 44;
/// Percentage of created handles that go into the handle table of System.
const KERNEL_PERCENT: u32 = 3;
/// Process id of System.
const SYSTEM: u32 = 4;
/// First value of leaked handles; they are above all others of their process.
const LEAKED_HANDLES: u32 = 0x0100_0000;

/// An event to write next.
#[derive(Debug)]
pub struct BenchAction {
    pub payload: KernelPayload,
    /// Process that logs it.
    pub pid: u32,
    /// Whether it creates a handle that is never closed.
    pub leaks: bool,
}

/// A handle that will be closed.
#[derive(Debug, Clone, Copy)]
struct ClosingHandle {
    /// Number of the process that opened it.
    process: usize,
    handle: u32,
    object: usize,
}

impl ClosingHandle {
    /// Returns the id of the process that owns the handle.
    fn owner(&self) -> u32 {
        if self.is_of_kernel() { SYSTEM } else { BenchHandles::pid(self.process) }
    }

    fn is_of_kernel(&self) -> bool {
        self.handle & KERNEL_HANDLE != 0
    }
}

/// An allocator of numbers that reuses returned ones.
#[derive(Debug, Default)]
struct NumberAllocator {
    free: Vec<usize>,
    next: usize,
}

impl NumberAllocator {
    fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

/// The open handles of all processes. Memory use does not grow with the number of events.
#[derive(Debug)]
pub struct BenchHandles {
    left: u64,
    leak_percent: u32,
    open: Vec<ClosingHandle>,
    objects: NumberAllocator,
    /// Open handles per object.
    counts: Vec<u32>,
    /// Handle values of each process, then those of System.
    handles: Vec<NumberAllocator>,
    leaked: Vec<u64>,
    pub creates: u64,
    pub duplicates: u64,
    pub closes: u64,
}

impl BenchHandles {
    pub fn new(trace: &LargeTrace) -> Self {
        let processes = trace.processes as usize;
        Self {
            left: trace.handle_events,
            leak_percent: trace.leak_percent,
            open: Vec::new(),
            objects: NumberAllocator::default(),
            counts: Vec::new(),
            handles: (0..=processes).map(|_| NumberAllocator::default()).collect(),
            leaked: vec![0; processes],
            creates: 0,
            duplicates: 0,
            closes: 0,
        }
    }

    /// Returns the process id of process number `process`.
    pub fn pid(process: usize) -> u32 {
        1000 + 32 * process as u32
    }

    pub fn processes(&self) -> usize {
        self.leaked.len()
    }

    /// Returns the number of leaked handles of a process.
    pub fn leaked(&self, process: usize) -> u64 {
        self.leaked[process]
    }

    /// Returns leaked handle number `n` of a process. It is computed, so that it need not be stored.
    pub fn leaked_handle(process: usize, n: u64) -> HandleRecord {
        HandleRecord {
            object: LEAKED_OBJECTS + ((process as u64) << 32) + 0x60 * n,
            pid: Self::pid(process),
            handle: LEAKED_HANDLES + 4 * n as u32,
            type_id: OBJECT_TYPES[n as usize % OBJECT_TYPES.len()].0,
            name: String::new(),
        }
    }

    /// Returns the next event.
    pub fn next_action(&mut self, rng: &mut Rng) -> BenchAction {
        let to_close = self.open.len() as u64;
        // Opening another handle takes two of the remaining events: one to open it and one to close it.
        let has_space = self.left >= to_close + 2 && self.open.len() < MAX_OPEN;
        self.left = self.left.saturating_sub(1);
        let leak = self.left >= to_close && rng.percent(self.leak_percent);
        match rng.below(100) {
            0..47 if leak => self.leak(rng),
            0..47 if has_space => self.create(rng),
            47..55 if has_space && to_close > 0 => self.duplicate(rng),
            _ if to_close > 0 => self.close(rng),
            _ if has_space => self.create(rng),
            // One event is left: whatever it opens stays open.
            _ => self.leak(rng),
        }
    }

    fn leak(&mut self, rng: &mut Rng) -> BenchAction {
        let process = rng.index(self.processes());
        let record = Self::leaked_handle(process, self.leaked[process]);
        self.leaked[process] += 1;
        self.creates += 1;
        let payload = record.payload(HandleEvent::Create, PointerSize::Eight);
        BenchAction { payload, pid: record.pid, leaks: true }
    }

    fn create(&mut self, rng: &mut Rng) -> BenchAction {
        let object = self.objects.take();
        self.counts.resize(self.counts.len().max(object + 1), 0);
        let is_of_kernel = rng.percent(KERNEL_PERCENT);
        let open = self.open_handle(rng.index(self.processes()), object, is_of_kernel);
        self.creates += 1;
        let payload = Self::record(open).payload(HandleEvent::Create, PointerSize::Eight);
        BenchAction { payload, pid: Self::pid(open.process), leaks: false }
    }

    fn duplicate(&mut self, rng: &mut Rng) -> BenchAction {
        let source = self.open[rng.index(self.open.len())];
        let target = self.open_handle(rng.index(self.processes()), source.object, false);
        self.duplicates += 1;
        let HandleRecord { object, type_id, .. } = Self::record(source);
        let duplicate = DuplicateRecord {
            object,
            source_handle: source.handle,
            target_handle: target.handle,
            target_pid: Self::pid(target.process),
            type_id,
            source_pid: Some(source.owner()),
        };
        let payload = duplicate.payload(PointerSize::Eight);
        BenchAction { payload, pid: Self::pid(source.process), leaks: false }
    }

    fn close(&mut self, rng: &mut Rng) -> BenchAction {
        let index = rng.index(self.open.len());
        let open = self.open.swap_remove(index);
        self.closes += 1;
        let table = self.table(open.process, open.is_of_kernel());
        self.handles[table].free.push((open.handle & !KERNEL_HANDLE) as usize / 4 - 1);
        self.counts[open.object] -= 1;
        if self.counts[open.object] == 0 {
            self.objects.free.push(open.object);
        }
        let name = match open.object % OBJECT_TYPES.len() {
            2 => format!(r"\Device\HarddiskVolume3\data\file{}.bin", open.object % 1000),
            3 => format!(r"\REGISTRY\MACHINE\SOFTWARE\Large\Key{}", open.object % 500),
            _ => String::new(),
        };
        let record = Self::record(open);
        let tag = if record.type_id == KEY { TAG_BITS & 2 } else { 0 };
        let record = HandleRecord { name, handle: record.handle | tag, ..record };
        let payload = record.payload(HandleEvent::Close, PointerSize::Eight);
        // A thread of any process can close a kernel handle.
        let of = if open.is_of_kernel() { rng.index(self.processes()) } else { open.process };
        BenchAction { payload, pid: Self::pid(of), leaks: false }
    }

    /// Returns the index of a handle table.
    fn table(&self, process: usize, is_of_kernel: bool) -> usize {
        if is_of_kernel { self.processes() } else { process }
    }

    fn open_handle(&mut self, process: usize, object: usize, is_of_kernel: bool) -> ClosingHandle {
        let table = self.table(process, is_of_kernel);
        let value = 4 * (self.handles[table].take() as u32 + 1);
        let handle = if is_of_kernel { value | KERNEL_HANDLE } else { value };
        let open = ClosingHandle { process, handle, object };
        self.counts[object] += 1;
        self.open.push(open);
        open
    }

    fn record(open: ClosingHandle) -> HandleRecord {
        HandleRecord {
            object: OBJECTS + 0x80 * open.object as u64,
            pid: Self::pid(open.process),
            handle: open.handle,
            type_id: OBJECT_TYPES[open.object % OBJECT_TYPES.len()].0,
            name: String::new(),
        }
    }
}
