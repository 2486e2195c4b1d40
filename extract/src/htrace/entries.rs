//! The entries of all listings with their stacks and processes, each entry once.

use std::collections::HashMap;

use handlescope_model::tables::{
    Frame, Frames, Module, Modules, Process, Processes, Stack, Stacks, Symbol, Symbols,
};
use handlescope_model::{FrameIdx, ModuleIdx};

use super::frame::{FrameLine, Place};
use super::history::History;
use crate::intern::{ByteInterner, Interner};

/// What was read so far.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) history: History,
    /// Kind and number of each process.
    processes: Interner<(ProcessKey, u64)>,
    /// The program of each pid; `None` when several were named.
    programs: HashMap<u32, Option<String>>,
    /// The frames of each stack, and the addresses of each.
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
    /// Whether an address does not fit into 32 bits.
    pub(super) has_wide_address: bool,
}

/// How a text names a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum ProcessKey {
    Pid,
    KernelAddress,
    #[default]
    Unknown,
}

impl Entries {
    /// Frames of the stack being read.
    pub(super) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Adds a frame to the stack being read.
    pub(super) fn frame(&mut self, frame: &FrameLine<'_>) {
        let FrameLine { address, place, .. } = *frame;
        self.has_wide_address |= address > u64::from(u32::MAX);
        let key = &mut self.scratch;
        key.clear();
        key.extend_from_slice(&address.to_le_bytes());
        match place {
            Place::Function { module, function, offset } => {
                key.extend_from_slice(&[1, u8::from(offset.is_some())]);
                key.extend_from_slice(&offset.unwrap_or_default().to_le_bytes());
                key.extend_from_slice(module.as_bytes());
                key.push(b'!');
                key.extend_from_slice(function.as_bytes());
            }
            Place::Module { module, rva } => {
                key.push(2);
                key.extend_from_slice(&rva.to_le_bytes());
                key.extend_from_slice(module.as_bytes());
            }
            Place::Unknown => {}
        }
        let row = self.frames.intern(key);
        if row as usize == self.frame_rows.len() {
            self.add_frame(row, frame);
        }
        self.stack.push(row);
        self.stack_addresses.push(address);
    }

    /// Adds the rows of a frame that was not seen before.
    fn add_frame(&mut self, row: u32, frame: &FrameLine<'_>) {
        let mut module = |name: &str| Some(ModuleIdx(self.modules.intern(name.as_bytes())));
        let address = Some(frame.address);
        self.frame_rows.push(match frame.place {
            Place::Function { module: name, offset, .. } => {
                // An address without an offset would look like the start of the function.
                let address = address.filter(|_| offset.is_some());
                Frame { module: module(name), address, ..Frame::default() }
            }
            Place::Module { module: name, rva } => {
                Frame { module: module(name), rva: Some(rva), address, ..Frame::default() }
            }
            Place::Unknown => Frame { address, ..Frame::default() },
        });
        if let Place::Function { function, offset, .. } = frame.place {
            let (frame, function) = (FrameIdx(row), function.to_owned());
            self.symbols.push(Symbol { frame, function, offset, ..Symbol::default() });
        }
    }

    /// The row of the stack that was read, if it has frames, and the number of its addresses.
    pub(super) fn take_stack(&mut self) -> (Option<u32>, u32) {
        let addresses = self.addresses.intern(&self.stack_addresses);
        let stack = (!self.stack.is_empty()).then(|| self.stacks.intern(&self.stack));
        self.stack.clear();
        self.stack_addresses.clear();
        (stack, addresses)
    }

    /// The row of a process with a pid, else at a kernel address, else of the one that is not known.
    pub(super) fn process(&mut self, pid: Option<u32>, kernel_address: Option<u64>) -> u32 {
        self.processes.intern(&[match (pid, kernel_address) {
            (Some(pid), _) => (ProcessKey::Pid, u64::from(pid)),
            (None, Some(address)) => (ProcessKey::KernelAddress, address),
            (None, None) => (ProcessKey::Unknown, 0),
        }])
    }

    /// Notes the program of a pid.
    pub(super) fn program(&mut self, pid: u32, path: &str) {
        let path = path.to_owned();
        let known = self.programs.entry(pid).or_insert_with(|| Some(path.clone()));
        // A pid that was used again belongs to both of them.
        *known = known.take().filter(|known| *known == path);
    }

    pub(super) fn process_table(&self) -> Processes {
        let row = |key: &[(ProcessKey, u64)]| match *key {
            [(ProcessKey::Pid, pid)] => {
                let pid = pid as u32;
                let path = self.programs.get(&pid).cloned().flatten();
                let name = path.as_deref().and_then(|path| path.rsplit(['\\', '/']).next());
                let name = name.unwrap_or_default().to_owned();
                Process { pid, name, image_path: path, ..Process::default() }
            }
            [(ProcessKey::KernelAddress, key)] => Process { key, ..Process::default() },
            _ => Process::default(),
        };
        self.processes.iter().map(row).collect()
    }

    pub(super) fn module_table(&self) -> Modules {
        let rows = 0..self.modules.len();
        let row = |row| {
            let name = self.modules.text(row);
            Module { path: name.clone(), name, ..Module::default() }
        };
        rows.map(row).collect()
    }

    pub(super) fn stack_table(&self) -> Stacks {
        let frames = |stack: &[u32]| stack.iter().map(|frame| FrameIdx(*frame)).collect();
        self.stacks.iter().map(|stack| Stack { frames: frames(stack) }).collect()
    }

    /// The frames, and the names of those that have one.
    pub(super) fn take_frames(&mut self) -> (Frames, Symbols) {
        (std::mem::take(&mut self.frame_rows), std::mem::take(&mut self.symbols))
    }

    /// Whether a function on a stack is one of some.
    pub(super) fn has_function(&self, stack: u32, is_it: impl Fn(&str) -> bool) -> bool {
        // Symbols stand in the order of their frames.
        let function = |frame: &u32| {
            let row = self.symbols.frame.binary_search(&FrameIdx(*frame)).ok()?;
            self.symbols.function.get(row)
        };
        self.stacks.get(stack).iter().filter_map(function).any(|name| is_it(name))
    }
}
