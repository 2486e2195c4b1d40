//! Converts the entries of all listings, with their stacks, processes and handle history, to the tables of a trace.

use std::collections::HashMap;

use handlescope_extract::intern::{ByteInterner, Interner};
use handlescope_model::tables::{
    Frame, Frames, HANDLE_LIST, Module, Modules, NO_CLOCK, Process, Processes, Stack, Stacks,
    Symbol, Symbols, TraceInfo,
};
use handlescope_model::{FrameIdx, ModuleIdx};

use super::frame::{CodeLocation, FrameLine};
use super::history::HandleHistory;
use crate::operations::{OpenHandleList, OpenList};

/// Returns the row of the trace table.
pub fn info(source: TraceInfo, entries: &Entries) -> TraceInfo {
    // Without operations, only the handles of one moment are left.
    let is_list = entries.history.len() == 0 && !entries.open.handles.is_empty();
    TraceInfo {
        source_format: is_list.then(|| HANDLE_LIST.to_owned()),
        clock: NO_CLOCK.to_owned(),
        snapshots: Some(entries.history.snapshots().to_vec())
            .filter(|snapshots| !snapshots.is_empty()),
        // 32-bit programs run on 64-bit systems, too.
        pointer_size: if entries.has_wide_address { 8 } else { 0 },
        events_total: entries.history.len() as u64,
        ..source
    }
}

/// Entries read so far.
#[derive(Default)]
pub struct Entries {
    pub history: HandleHistory,
    /// What `!handle` lists, and, if it lists anything, whether that is everything open at the end.
    pub open: OpenHandleList,
    pub has_all_open: Option<bool>,
    /// Kind and number of each process.
    processes: Interner<(ProcessKey, u64)>,
    /// Program of each pid; `None` if several were named.
    programs: HashMap<u32, Option<String>>,
    /// Frames of each stack, and addresses of each stack.
    stacks: Interner<u32>,
    addresses: Interner<u64>,
    /// Address and text of each frame.
    frames: ByteInterner,
    frame_rows: Frames,
    symbols: Symbols,
    modules: ByteInterner,
    /// The stack being read.
    stack: Vec<u32>,
    stack_addresses: Vec<u64>,
    scratch: Vec<u8>,
    /// Whether some address does not fit into 32 bits.
    pub has_wide_address: bool,
}

/// How a text identifies a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum ProcessKey {
    Pid,
    KernelAddress,
    #[default]
    Unknown,
}

impl Entries {
    /// Returns the number of frames of the stack being read.
    pub fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Adds a frame to the stack being read.
    pub fn frame(&mut self, frame: &FrameLine<'_>) {
        let FrameLine { address, location, .. } = *frame;
        self.has_wide_address |= address > u64::from(u32::MAX);
        let key = &mut self.scratch;
        key.clear();
        key.extend_from_slice(&address.to_le_bytes());
        match location {
            CodeLocation::Function { module, function, offset } => {
                key.extend_from_slice(&[1, u8::from(offset.is_some())]);
                key.extend_from_slice(&offset.unwrap_or_default().to_le_bytes());
                key.extend_from_slice(module.as_bytes());
                key.push(b'!');
                key.extend_from_slice(function.as_bytes());
            }
            CodeLocation::Module { module, rva } => {
                key.push(2);
                key.extend_from_slice(&rva.to_le_bytes());
                key.extend_from_slice(module.as_bytes());
            }
            CodeLocation::Unknown => {}
        }
        let row = self.frames.intern(key);
        if row as usize == self.frame_rows.len() {
            self.add_frame(row, frame);
        }
        self.stack.push(row);
        self.stack_addresses.push(address);
    }

    /// Adds the rows of a new frame.
    fn add_frame(&mut self, row: u32, frame: &FrameLine<'_>) {
        let mut module = |name: &str| Some(ModuleIdx(self.modules.intern(name.as_bytes())));
        let address = Some(frame.address);
        self.frame_rows.push(match frame.location {
            CodeLocation::Function { module: name, offset, .. } => {
                // Without an offset, the address would look like the start of the function.
                let address = address.filter(|_| offset.is_some());
                Frame { module: module(name), address, ..Frame::default() }
            }
            CodeLocation::Module { module: name, rva } => {
                Frame { module: module(name), rva: Some(rva), address, ..Frame::default() }
            }
            CodeLocation::Unknown => Frame { address, ..Frame::default() },
        });
        if let CodeLocation::Function { function, offset, .. } = frame.location {
            let (frame, function) = (FrameIdx(row), function.to_owned());
            self.symbols.push(Symbol { frame, function, offset, ..Symbol::default() });
        }
    }

    /// Returns the row of the stack just read, if it has frames, and the number of its addresses.
    pub fn take_stack(&mut self) -> (Option<u32>, u32) {
        let addresses = self.addresses.intern(&self.stack_addresses);
        let stack = (!self.stack.is_empty()).then(|| self.stacks.intern(&self.stack));
        self.stack.clear();
        self.stack_addresses.clear();
        (stack, addresses)
    }

    /// Returns the row of a process by its pid, or else by its kernel address, or else of the unknown process.
    pub fn process(&mut self, pid: Option<u32>, kernel_address: Option<u64>) -> u32 {
        self.processes.intern(&[match (pid, kernel_address) {
            (Some(pid), _) => (ProcessKey::Pid, u64::from(pid)),
            (None, Some(address)) => (ProcessKey::KernelAddress, address),
            (None, None) => (ProcessKey::Unknown, 0),
        }])
    }

    /// Whether a row has a pid.
    pub fn is_pid(&self, process: u32) -> bool {
        matches!(self.processes.get(process), [(ProcessKey::Pid, _)])
    }

    /// Returns the row of the only process the text names, or else of the unknown process.
    pub fn only_process(&mut self) -> u32 {
        let mut pids = self.programs.keys().copied();
        let pid = pids.next().filter(|_| pids.next().is_none());
        self.process(pid, None)
    }

    /// Returns the handles that the text lists as open.
    pub fn open_list(&self) -> Option<OpenList<'_>> {
        let is_complete = self.has_all_open? && self.processes.count() < 2;
        Some(OpenList { handles: &self.open.handles, is_complete })
    }

    /// Records the program of a pid.
    pub fn program(&mut self, pid: u32, path: &str) {
        let path = path.to_owned();
        let known = self.programs.entry(pid).or_insert_with(|| Some(path.clone()));
        // A reused pid belongs to both programs.
        *known = known.take().filter(|known| *known == path);
    }

    pub fn process_table(&self) -> Processes {
        self.processes
            .iter()
            .map(|key| match *key {
                [(ProcessKey::Pid, pid)] => {
                    let pid = pid as u32;
                    let path = self.programs.get(&pid).cloned().flatten();
                    let name = path
                        .as_deref()
                        .and_then(|path| path.rsplit(['\\', '/']).next())
                        .unwrap_or_default()
                        .to_owned();
                    Process { pid, name, image_path: path, ..Process::default() }
                }
                [(ProcessKey::KernelAddress, key)] => Process { key, ..Process::default() },
                _ => Process::default(),
            })
            .collect()
    }

    pub fn module_table(&self) -> Modules {
        let rows = 0..self.modules.count();
        let row = |row| {
            let name = self.modules.text(row);
            Module { path: name.clone(), name, ..Module::default() }
        };
        rows.map(row).collect()
    }

    pub fn stack_table(&self) -> Stacks {
        let frames = |stack: &[u32]| stack.iter().map(|frame| FrameIdx(*frame)).collect();
        self.stacks.iter().map(|stack| Stack { frames: frames(stack) }).collect()
    }

    /// Takes the frames, and the names of those that have one.
    pub fn take_frames(&mut self) -> (Frames, Symbols) {
        (std::mem::take(&mut self.frame_rows), std::mem::take(&mut self.symbols))
    }

    /// Whether any function on a stack satisfies `is_it`.
    pub fn has_function(&self, stack: u32, is_it: impl Fn(&str) -> bool) -> bool {
        // Symbols are in the order of their frames.
        let function = |frame: &u32| {
            let row = self.symbols.frame.binary_search(&FrameIdx(*frame)).ok()?;
            self.symbols.function.get(row)
        };
        self.stacks.get(stack).iter().filter_map(function).any(|name| is_it(name))
    }
}
