//! Writes minidumps, from Microsoft's description of the format (minidumpapiset.h, avrfsdk.h).

use crate::bytes::{ByteString, Guid, PointerSize};

/// Default time at which dumps were written: 2026-07-20 12:00:00 UTC.
pub const WRITTEN: u32 = 1_784_548_800;

/// Sizes of a MINIDUMP_HEADER and of a directory entry.
const HEADER: usize = 32;
const DIRECTORY_ENTRY: usize = 12;

/// Stream types (MINIDUMP_STREAM_TYPE).
pub const THREAD_LIST: u32 = 3;
pub const MODULE_LIST: u32 = 4;
pub const SYSTEM_INFO: u32 = 7;
pub const MEMORY_64_LIST: u32 = 9;
pub const HANDLE_DATA: u32 = 12;
pub const UNLOADED_MODULE_LIST: u32 = 14;
pub const MISC_INFO: u32 = 15;
pub const HANDLE_OPERATION_LIST: u32 = 18;

/// A module, with the identity of its PDB if it has one.
#[derive(Debug, Clone, Default)]
pub struct DumpModule {
    pub path: String,
    pub base: u64,
    pub size: u32,
    pub timestamp: u32,
    pub pdb: Option<(String, Guid, u32)>,
}

impl DumpModule {
    /// Creates a module with a path, base address and size.
    #[must_use]
    pub fn new(path: &str, base: u64, size: u32) -> Self {
        Self { path: path.to_owned(), base, size, ..Self::default() }
    }

    #[must_use]
    pub fn pdb(mut self, name: &str, guid: Guid, age: u32) -> Self {
        self.pdb = Some((name.to_owned(), guid, age));
        self
    }
}

/// An open handle; empty texts are absent.
#[derive(Debug, Clone)]
pub struct DumpHandle {
    pub handle: u64,
    pub type_name: String,
    pub object_name: String,
    pub target: Option<DumpTarget>,
}

/// A process or thread that a handle refers to.
#[derive(Debug, Clone, Copy)]
pub struct DumpTarget {
    pub pid: u32,
    /// `None` for a process.
    pub tid: Option<u32>,
    /// Exit code; `None` while it runs.
    pub exit_code: Option<i32>,
}

impl DumpTarget {
    /// THREAD_BASIC_INFORMATION or PROCESS_BASIC_INFORMATION as object information, without a next element.
    fn information(self, size: PointerSize) -> ByteString {
        let status = self.exit_code.unwrap_or(0x103).cast_unsigned();
        let wide = size.bytes() as u32;
        let [kind, bytes] = match self.tid {
            Some(_) => [1, if wide == 4 { 28 } else { 48 }],
            None => [4, 6 * wide],
        };
        let number = |bytes: ByteString, number: u32| bytes.ptr(size, number.into());
        let head =
            ByteString::new().u32(0).u32(kind).u32(bytes).u32(status).zeros(size.bytes() - 4);
        match self.tid {
            Some(tid) => {
                let ids = number(number(head.ptr(size, 0x1000), self.pid), tid);
                ids.ptr(size, 1).u32(8).u32(8)
            }
            None => {
                let base = head.ptr(size, 0x1000).ptr(size, 1).ptr(size, 8);
                number(number(base, self.pid), 4)
            }
        }
    }
}

/// Type of an operation (`eHANDLE_TRACE_OPERATIONS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceOperation {
    Open = 1,
    Close = 2,
    BadReference = 3,
}

/// An operation on a handle.
#[derive(Debug, Clone)]
pub struct DumpOperation {
    pub handle: u64,
    pub operation: TraceOperation,
    /// 0 for the process of the dump.
    pub pid: u32,
    pub tid: u32,
    pub addresses: Vec<u64>,
}

/// A minidump of a process.
#[derive(Debug, Clone)]
pub struct SampleDump {
    pub pointer_size: PointerSize,
    /// Whether it is a Linux dump as Mozilla's minidump-writer writes it: without a version.
    pub is_linux: bool,
    /// UTC = local time + bias, in minutes, for a zone without daylight saving time.
    pub zone: Option<i32>,
    pub written: u32,
    pub pid: u32,
    pub modules: Vec<DumpModule>,
    pub unloaded: Vec<DumpModule>,
    /// `None` for a dump without the stream.
    pub handles: Option<Vec<DumpHandle>>,
    /// Whether descriptors have 40 bytes, with two links of object information each.
    pub has_information: bool,
    /// In the order they are stored; `None` for a dump without the stream.
    pub operations: Option<Vec<DumpOperation>>,
    /// Readers find it through the memory of the process, which the dump then contains.
    pub command_line: Option<String>,
    /// Size of more memory at the end; [`Self::to_bytes`] does not write it.
    pub further_memory: u64,
}

impl Default for SampleDump {
    fn default() -> Self {
        Self {
            pointer_size: PointerSize::Eight,
            is_linux: false,
            zone: None,
            written: WRITTEN,
            pid: 4711,
            modules: Vec::new(),
            unloaded: Vec::new(),
            handles: None,
            has_information: false,
            operations: None,
            command_line: None,
            further_memory: 0,
        }
    }
}

impl SampleDump {
    /// Adds an open handle.
    #[must_use]
    pub fn handle(mut self, handle: u64, type_name: &str, object_name: &str) -> Self {
        self.handles.get_or_insert_default().push(DumpHandle {
            handle,
            type_name: type_name.to_owned(),
            object_name: object_name.to_owned(),
            target: None,
        });
        self
    }

    /// Adds an open handle to a process or thread.
    #[must_use]
    pub fn handle_to(mut self, handle: u64, target: DumpTarget) -> Self {
        self.has_information = true;
        let type_name = if target.tid.is_some() { "Thread" } else { "Process" };
        self = self.handle(handle, type_name, "");
        if let Some(handle) = self.handles.as_mut().and_then(|handles| handles.last_mut()) {
            handle.target = Some(target);
        }
        self
    }

    /// Adds an operation by a thread of the process after those already there.
    #[must_use]
    pub fn operation(mut self, operation: TraceOperation, handle: u64, addresses: &[u64]) -> Self {
        let addresses = addresses.to_vec();
        self.operations.get_or_insert_default().push(DumpOperation {
            handle,
            operation,
            pid: 0,
            tid: 4712,
            addresses,
        });
        self
    }

    /// Returns the bytes of the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut streams: Vec<(u32, StreamWriter)> = vec![
            (SYSTEM_INFO, Self::system_info),
            (MISC_INFO, Self::misc_info),
            (MODULE_LIST, Self::module_list),
        ];
        if !self.unloaded.is_empty() {
            streams.push((UNLOADED_MODULE_LIST, Self::unloaded_list));
        }
        if self.handles.is_some() {
            streams.push((HANDLE_DATA, Self::handle_data));
        }
        if self.operations.is_some() {
            streams.push((HANDLE_OPERATION_LIST, Self::operation_list));
        }
        if self.command_line.is_some() {
            streams.push((THREAD_LIST, Self::thread_list));
        }
        // Memory comes last, as in dumps by Windows.
        if self.command_line.is_some() || self.further_memory > 0 {
            streams.push((MEMORY_64_LIST, Self::memory_list));
        }
        let directory = HEADER + streams.len() * DIRECTORY_ENTRY;
        let mut file = DumpBytes(vec![0; directory]);
        let mut entries = ByteString::new();
        for (kind, write) in &streams {
            let start = file.0.len();
            let size = write(self, &mut file);
            entries = entries.u32(*kind).u32(size).u32(start as u32);
            file.align();
        }
        let header = ByteString::new()
            .raw(b"MDMP")
            .u32(0xA793)
            .u32(streams.len() as u32)
            .u32(HEADER as u32)
            .u32(0)
            .u32(self.written)
            .u64(if self.further_memory > 0 { 0x6 } else { 0x4 });
        let head = [header.into_vec(), entries.into_vec()].concat();
        file.0[..directory].copy_from_slice(&head);
        if let Some(place) = streams.iter().position(|(kind, _)| *kind == MEMORY_64_LIST) {
            // The memory in the file follows the list.
            let entry = HEADER + place * DIRECTORY_ENTRY;
            let start = u32::from_le_bytes(file.0[entry + 8..entry + 12].try_into().unwrap());
            let base = (file.0.len() - self.memory().len()) as u64;
            let at = start as usize + 8;
            file.0[at..at + 8].copy_from_slice(&base.to_le_bytes());
        }
        file.0
    }

    fn system_info(&self, file: &mut DumpBytes) -> u32 {
        let architecture = match self.pointer_size {
            PointerSize::Four => 0,
            PointerSize::Eight => 9,
        };
        let [major, build, platform] = if self.is_linux { [0, 0, 0x8201] } else { [10, 19045, 2] };
        let info = ByteString::new()
            .u16(architecture)
            .zeros(4)
            .u8(8)
            .u8(1)
            .u32(major)
            .u32(0)
            .u32(build)
            .u32(platform)
            .zeros(4 + 4 + 24);
        file.add(info)
    }

    fn misc_info(&self, file: &mut DumpBytes) -> u32 {
        let Some(bias) = self.zone else {
            return file.add(ByteString::new().u32(24).u32(1).u32(self.pid).zeros(12));
        };
        // MINIDUMP_MISC_INFO_3 with MINIDUMP_MISC3_TIMEZONE.
        let info = ByteString::new().u32(232).u32(0x41).u32(self.pid).zeros(12 + 20 + 12);
        file.add(info.u32(0).u32(bias as u32).zeros(64 + 16 + 4 + 64 + 16 + 4))
    }

    fn module_list(&self, file: &mut DumpBytes) -> u32 {
        let size = 4 + 108 * self.modules.len();
        let start = file.reserve(size);
        let mut list = ByteString::new().u32(self.modules.len() as u32);
        for module in &self.modules {
            let name = file.text(&module.path);
            let record = module.pdb.as_ref().map(|(name, guid, age)| {
                let record = ByteString::new().raw(b"RSDS").guid(*guid).u32(*age).ansiz(name);
                let place = file.0.len() as u32;
                (file.add(record), place)
            });
            let (record_size, record) = record.unwrap_or_default();
            list = list
                .u64(module.base)
                .u32(module.size)
                .u32(0)
                .u32(module.timestamp)
                .u32(name)
                .zeros(52)
                .u32(record_size)
                .u32(record)
                .zeros(8 + 16);
        }
        file.put(start, &list.into_vec());
        size as u32
    }

    fn unloaded_list(&self, file: &mut DumpBytes) -> u32 {
        let size = 12 + 24 * self.unloaded.len();
        let start = file.reserve(size);
        let mut list = ByteString::new().u32(12).u32(24).u32(self.unloaded.len() as u32);
        for module in &self.unloaded {
            let name = file.text(&module.path);
            list = list.u64(module.base).u32(module.size).u32(0).u32(module.timestamp).u32(name);
        }
        file.put(start, &list.into_vec());
        size as u32
    }

    fn handle_data(&self, file: &mut DumpBytes) -> u32 {
        let handles = self.handles.as_deref().unwrap_or_default();
        let descriptor = if self.has_information { 40 } else { 32 };
        let size = 16 + descriptor * handles.len();
        let start = file.reserve(size);
        let count = handles.len() as u32;
        let mut list = ByteString::new().u32(16).u32(descriptor as u32).u32(count).u32(0);
        for handle in handles {
            let text = |file: &mut DumpBytes, text: &str| match text {
                "" => 0,
                text => file.text(text),
            };
            let type_name = text(file, &handle.type_name);
            let object_name = text(file, &handle.object_name);
            list = list
                .u64(handle.handle)
                .u32(type_name)
                .u32(object_name)
                .u32(0)
                .u32(0x001F_0003)
                .u32(1)
                .u32(32_768);
            if self.has_information {
                let first = file.0.len() as u32;
                match handle.target {
                    Some(target) => {
                        file.add(target.information(self.pointer_size));
                    }
                    None => {
                        file.add(ByteString::new().u32(first + 16).u32(6).u32(4).u32(0));
                        file.add(ByteString::new().u32(0).u32(7).u32(4).u32(0));
                    }
                }
                list = list.u32(first).u32(0);
            }
        }
        file.put(start, &list.into_vec());
        size as u32
    }

    fn operation_list(&self, file: &mut DumpBytes) -> u32 {
        let operations = self.operations.as_deref().unwrap_or_default();
        let mut list = ByteString::new().u32(16).u32(288).u32(operations.len() as u32).u32(0);
        for operation in operations {
            let pid = if operation.pid == 0 { self.pid } else { operation.pid };
            list = list
                .u64(operation.handle)
                .u32(pid)
                .u32(operation.tid)
                .u32(operation.operation as u32)
                .u32(0)
                .u32(operation.addresses.len() as u32)
                .u32(0);
            for index in 0..32 {
                list = list.u64(operation.addresses.get(index).copied().unwrap_or_default());
            }
        }
        file.add(list)
    }

    /// Returns the environment blocks of thread and process, the process parameters and the command line, from
    /// [`Self::memory_address`] on.
    fn memory(&self) -> Vec<u8> {
        let Some(command_line) = &self.command_line else { return Vec::new() };
        let (size, start) = (self.pointer_size, self.memory_address());
        let [peb, parameters, text] = match size {
            PointerSize::Four => [0x30, 0x10, 0x40],
            PointerSize::Eight => [0x60, 0x20, 0x70],
        };
        let length = command_line.encode_utf16().count() as u16 * 2;
        let blocks = [
            ByteString::new().zeros(peb).ptr(size, start + 0x100),
            ByteString::new().zeros(parameters).ptr(size, start + 0x200),
            ByteString::new()
                .zeros(text)
                .u16(length)
                .u16(length + 2)
                .zeros(size.bytes() - 4)
                .ptr(size, start + 0x300),
            ByteString::new().utf16z(command_line),
        ];
        let mut memory = Vec::new();
        for (index, block) in blocks.into_iter().enumerate() {
            memory.resize(index * 0x100, 0);
            memory.extend(block.into_vec());
        }
        memory.resize(memory.len().next_multiple_of(4), 0);
        memory
    }

    fn memory_address(&self) -> u64 {
        match self.pointer_size {
            PointerSize::Four => 0x7EFD_D000,
            PointerSize::Eight => 0x7FF5_0000_0000,
        }
    }

    fn thread_list(&self, file: &mut DumpBytes) -> u32 {
        let teb = self.memory_address();
        file.add(ByteString::new().u32(1).u32(4712).zeros(12).u64(teb).zeros(24))
    }

    fn memory_list(&self, file: &mut DumpBytes) -> u32 {
        let memory = self.memory();
        let mut ranges = vec![(self.memory_address(), memory.len() as u64)];
        ranges.retain(|(_, size)| *size > 0);
        ranges.extend((self.further_memory > 0).then_some((0x1_0000, self.further_memory)));
        let mut list = ByteString::new().u64(ranges.len() as u64).u64(0);
        for (start, size) in ranges {
            list = list.u64(start).u64(size);
        }
        let size = file.add(list);
        file.0.extend(memory);
        size
    }
}

type StreamWriter = fn(&SampleDump, &mut DumpBytes) -> u32;

/// The bytes written so far.
struct DumpBytes(Vec<u8>);

impl DumpBytes {
    /// Appends bytes; returns how many.
    fn add(&mut self, bytes: ByteString) -> u32 {
        let bytes = bytes.into_vec();
        self.0.extend_from_slice(&bytes);
        bytes.len() as u32
    }

    /// Appends zeros for later; returns their offset.
    fn reserve(&mut self, size: usize) -> usize {
        let start = self.0.len();
        self.0.resize(start + size, 0);
        start
    }

    fn put(&mut self, start: usize, bytes: &[u8]) {
        self.0[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// Appends a MINIDUMP_STRING; returns its offset.
    fn text(&mut self, text: &str) -> u32 {
        self.align();
        let start = self.0.len() as u32;
        let length = text.encode_utf16().count() as u32 * 2;
        self.add(ByteString::new().u32(length).utf16z(text));
        start
    }

    fn align(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}
