//! Builds a trace from a truth: what the program did, as a recording would have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use leaky_program::truth::{AllocationKind, CallEffect, TruthLine};

use crate::file::FileOptions;
use crate::linked::{ImageFacts, compile, publics};
use crate::payload::{HeapCall, MEM_COMMIT, MEM_RELEASE, RangeRecord};
use crate::scenario::{Caller, DuplicatedHandle, MappedView, TraceBuilder};

const PROGRAM: &str = "leaky-program.exe";
const PDB: &str = "leaky_program.pdb";

/// Base address of the program.
const BASE: u64 = 0x7ff6_0000_0000;

/// Kernel frames of every call.
const KERNEL: [u64; 1] = [0xffff_f800_0000_1000];

/// Offset of a call site from the start of its function, bytes.
const WITHIN: u64 = 4;

const HEAP: u64 = 0x1f0_0000_0000;

/// The Unix epoch (1970) as a FILETIME: ticks since 1601.
const FILETIME_EPOCH: i64 = 116_444_736_000_000_000;

/// Time from the session start to the first call.
const BEFORE_US: u64 = 100_000;

/// The program as an image with a PDB.
#[derive(Debug)]
pub struct ReplayProgram {
    image: ImageFacts,
    functions: BTreeMap<String, u64>,
}

impl ReplayProgram {
    /// Links an image with functions of these names in the namespace `leaky_program`, and puts its PDB into a folder
    /// laid out like a symbol server.
    ///
    /// # Errors
    /// If a file cannot be written, or the compiler or linker fails.
    pub fn link(functions: &BTreeSet<String>, symbols: &Path) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut source =
            "extern \"C\" { volatile int sink; }\nnamespace leaky_program {\n".to_owned();
        for (number, function) in functions.iter().enumerate() {
            let _ = writeln!(source, "void {function}() {{ sink = {number}; }}");
        }
        source.push_str("}\nextern \"C\" int Main() { return 0; }\n");
        let map = compile(&source, PROGRAM, PDB, folder.path())?;
        let image = ImageFacts::read(&folder.path().join(PROGRAM))?;
        let guid = image.guid.to_string().replace('-', "").to_uppercase();
        let place = symbols.join(PDB).join(format!("{guid}{:X}", image.age));
        fs::create_dir_all(&place)?;
        fs::copy(folder.path().join(PDB), place.join(PDB))?;
        let functions = publics(&map).into_iter().filter_map(|(name, rva)| {
            Some((name.strip_prefix("leaky_program::")?.to_owned(), rva))
        });
        Ok(Self { image, functions: functions.collect() })
    }

    /// Returns the frames of a call in a function.
    fn stack(&self, function: &str) -> Vec<u64> {
        self.functions.get(function).map(|rva| BASE + rva + WITHIN).into_iter().collect()
    }
}

/// Builds the trace of a recording that began before the program and ended while it waited.
#[must_use]
pub fn replay(lines: &[TruthLine], program: &ReplayProgram, options: FileOptions) -> TraceBuilder {
    let first_us = lines.iter().map(|line| line.at_us).min().unwrap_or_default();
    let start_us = first_us.saturating_sub(BEFORE_US);
    let start = FILETIME_EPOCH + i64::try_from(start_us).unwrap_or_default() * 10;
    let trace = TraceBuilder::with_options(FileOptions { start, ..options });
    let end_us =
        lines.iter().filter(|line| line.call == CallEffect::Waits).map(|line| line.at_us).min();
    let recorded: Vec<&TruthLine> =
        lines.iter().filter(|line| end_us.is_none_or(|end_us| line.at_us <= end_us)).collect();
    let mut replay = TruthReplay {
        trace,
        program,
        start_us,
        types: BTreeMap::new(),
        objects: BTreeMap::new(),
        named: BTreeMap::new(),
        starts: BTreeMap::new(),
    };
    replay.processes(&recorded);
    recorded.into_iter().for_each(|line| replay.line(line));
    replay.finish()
}

/// An object with an open handle.
#[derive(Debug, Clone)]
struct ReplayObject {
    address: u64,
    type_id: u16,
    /// The full name.
    name: String,
}

struct TruthReplay<'p> {
    trace: TraceBuilder,
    program: &'p ReplayProgram,
    start_us: u64,
    types: BTreeMap<String, u16>,
    /// Objects of open handles, by process and handle.
    objects: BTreeMap<(u32, u64), ReplayObject>,
    /// Named objects.
    named: BTreeMap<String, ReplayObject>,
    /// Start times of processes.
    starts: BTreeMap<u32, i64>,
}

impl TruthReplay<'_> {
    fn ns(&self, at_us: u64) -> i64 {
        i64::try_from(at_us.saturating_sub(self.start_us) * 1_000).unwrap_or(i64::MAX)
    }

    fn processes(&mut self, lines: &[&TruthLine]) {
        self.trace.process(4, "System");
        for line in lines.iter().filter(|line| matches!(line.call, CallEffect::Started { .. })) {
            // A process exists before its own code runs.
            let first = lines.iter().find(|first| match first.call {
                CallEffect::Duplicated { into: pid, .. }
                | CallEffect::Inherited { by: pid, .. } => pid == line.pid,
                _ => first.pid == line.pid,
            });
            let start_ns = self.ns(first.map_or(line.at_us, |first| first.at_us)) - 10_000;
            self.starts.insert(line.pid, start_ns);
            let exits =
                lines.iter().find(|exit| exit.pid == line.pid && exit.call == CallEffect::Exits);
            let end_ns = exits.map(|exit| self.ns(exit.at_us));
            let parent = first.map_or(4, |first| if first.pid == line.pid { 4 } else { first.pid });
            let process = self.trace.process(line.pid, PROGRAM).parent(parent).started(start_ns);
            if let Some(creator) = first.filter(|first| first.pid != line.pid) {
                process.creator_thread(creator.tid);
            }
            if let Some(end_ns) = end_ns {
                process.ended(end_ns);
            }
            let ImageFacts { guid, age, size, timestamp } = self.program.image;
            let path = format!(r"\Device\HarddiskVolume3\tests\{PROGRAM}");
            self.trace
                .module(line.pid, &path, BASE, size.into())
                .timestamp(timestamp)
                .pdb(PDB, guid, age);
        }
    }

    fn line(&mut self, line: &TruthLine) {
        let (ns, caller) = (self.ns(line.at_us), Caller::new(line.pid, line.tid));
        let stack = self.program.stack(&line.function);
        match &line.call {
            CallEffect::Opened { handle, object_type, name } => {
                let object = self.object(object_type, name.as_deref());
                let (address, type_id) = (object.address, object.type_id);
                self.objects.insert((line.pid, *handle), object);
                self.trace
                    .create_handle(ns, caller, address, *handle as u32, type_id)
                    .stack(&KERNEL, &stack);
            }
            CallEffect::Closed { handle } => {
                if let Some(object) = self.objects.remove(&(line.pid, *handle)) {
                    self.close(ns, caller, *handle, &object, &KERNEL, &stack);
                }
            }
            CallEffect::Duplicated { into, handle, object_type, name } => {
                let object = self.object(object_type, name.as_deref());
                self.duplicate(ns, caller, (*into, *handle), *into, object, &stack);
            }
            CallEffect::Inherited { by, handle, object_type, name } => {
                let object = self.object(object_type, name.as_deref());
                // The event comes before the child starts, when it has no pid yet.
                let ns = self.starts.get(by).copied().unwrap_or(ns) - 1_000;
                self.duplicate(ns, caller, (*by, *handle), 0, object, &stack);
            }
            CallEffect::Mapped { address, size } => {
                let view = view(line.pid, *address, *size);
                self.trace.map(ns, caller, view).stack(&KERNEL, &stack);
            }
            CallEffect::Unmapped { address } => {
                let view = view(line.pid, *address, 0x1_0000);
                self.trace.unmap(ns, caller, view).stack(&KERNEL, &stack);
            }
            CallEffect::Allocated { kind: AllocationKind::Heap, key, size } => {
                let call = HeapCall::Alloc { address: *key, size: *size };
                self.trace.heap(ns, caller, HEAP, call).stack(&[], &stack);
            }
            CallEffect::Freed { kind: AllocationKind::Heap, key } => {
                self.trace.heap(ns, caller, HEAP, HeapCall::Free { address: *key });
            }
            CallEffect::Allocated { kind: AllocationKind::Commit, key, size } => {
                let range =
                    RangeRecord { base: *key, size: *size, pid: line.pid, flags: MEM_COMMIT };
                self.trace.virtual_alloc(ns, caller, range).stack(&KERNEL, &stack);
            }
            CallEffect::Freed { kind: AllocationKind::Commit, key } => {
                let range =
                    RangeRecord { base: *key, size: 0x4000, pid: line.pid, flags: MEM_RELEASE };
                self.trace.virtual_free(ns, caller, range);
            }
            // The kernel closes what is still open.
            CallEffect::Exits => self.objects.retain(|(pid, _), _| *pid != line.pid),
            // GDI and USER objects are recorded by other providers.
            CallEffect::Started { .. }
            | CallEffect::Waits
            | CallEffect::Allocated { .. }
            | CallEffect::Freed { .. } => {}
        }
    }

    /// Returns a new object, or the existing one with this name.
    fn object(&mut self, object_type: &str, name: Option<&str>) -> ReplayObject {
        let next = 16 + 2 * self.types.len() as u16;
        let type_id = *self.types.entry(object_type.to_owned()).or_insert(next);
        let folder = match object_type {
            "File" => r"\Device\HarddiskVolume3\Temp",
            "Key" => r"\REGISTRY\USER\S-1-5-21-1",
            _ => r"\Sessions\1\BaseNamedObjects",
        };
        let address = 0xffff_8100_0000_0000 + 0x100 * (self.objects_made() + 1);
        let name = name.map(|name| format!(r"{folder}\{name}"));
        let object = ReplayObject { address, type_id, name: name.clone().unwrap_or_default() };
        match name.filter(|_| !matches!(object_type, "File" | "Key")) {
            Some(name) => self.named.entry(name).or_insert(object).clone(),
            None => {
                self.named.insert(format!("#{address}"), object.clone());
                object
            }
        }
    }

    fn objects_made(&self) -> u64 {
        self.named.len() as u64
    }

    fn duplicate(
        &mut self,
        ns: i64,
        caller: Caller,
        (owner, handle): (u32, u64),
        target_pid: u32,
        object: ReplayObject,
        stack: &[u64],
    ) {
        let source = self
            .objects
            .iter()
            .find(|((pid, _), known)| *pid == caller.pid && known.address == object.address);
        let source_handle = source.map_or(handle, |((_, handle), _)| *handle) as u32;
        let duplicate = DuplicatedHandle {
            object: object.address,
            source_handle,
            target_handle: handle as u32,
            target_pid,
            type_id: object.type_id,
            source_pid: Some(caller.pid),
        };
        self.trace.duplicate_handle(ns, caller, duplicate).stack(&KERNEL, stack);
        self.objects.insert((owner, handle), object);
    }

    fn close(
        &mut self,
        ns: i64,
        caller: Caller,
        handle: u64,
        object: &ReplayObject,
        kernel: &[u64],
        user: &[u64],
    ) {
        let ReplayObject { address, type_id, name } = object;
        self.trace
            .close_handle(ns, caller, *address, handle as u32, *type_id, name)
            .stack(kernel, user);
    }

    /// Ends the recording with the rundown of types and open handles.
    fn finish(mut self) -> TraceBuilder {
        for (name, id) in &self.types {
            self.trace.object_type(*id, name);
        }
        for ((pid, handle), object) in &self.objects {
            let ReplayObject { address, type_id, name } = object;
            self.trace.handle_rundown_end(*pid, *address, *handle as u32, *type_id, name);
        }
        self.trace
    }
}

fn view(pid: u32, base: u64, size: u64) -> MappedView {
    MappedView { base, size, file_key: 0xffff_8200_0000_0000 + base, misc: 0, offset: 0, pid }
}
