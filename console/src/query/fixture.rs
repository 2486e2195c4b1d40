//! Small traces made by hand, for tests: a few lines say who did what to which object.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

use handlescope_extract::symbols::{ModuleIdentity, ResolvedFrame};
use handlescope_model::tables::{
    Event, EventCount, EventCounts, Events, ExistingHandle, ExistingHandles, Frame, Frames, Module,
    ModuleLoad, ModuleLoads, Modules, Name, Names, Object, ObjectType, ObjectTypes, Objects,
    Process, Processes, Stack, Stacks, StartHandles, Symbols, TraceInfo, TraceInfos, Warning,
    Warnings,
};
use handlescope_model::{
    ArchiveWriter, EventKind, FILE_MAPPING_TYPE, SCHEMA_VERSION, Table, Trace, sentinel,
};
use tempfile::TempDir;

use super::{FrameMemory, FrameNames, ObjectRefAnswer, Source, object_ref};
use crate::command::{Command, Dump, ObjectRefArgs};

/// Processes of every fixture, by row.
pub(crate) const SYSTEM: u32 = 0;
pub(crate) const APP: u32 = 1;
pub(crate) const CHILD: u32 = 2;
pub(crate) const OTHER: u32 = 3;

/// A trace under construction. Times are microseconds since session start.
pub(crate) struct Fixture {
    pub(crate) info: TraceInfo,
    pub(crate) processes: Processes,
    pub(crate) modules: Modules,
    pub(crate) module_loads: ModuleLoads,
    pub(crate) warnings: Warnings,
    pub(crate) event_counts: EventCounts,
    types: ObjectTypes,
    names: Names,
    pub(crate) objects: Objects,
    events: Events,
    existing: ExistingHandles,
    stacks: Stacks,
    frames: Frames,
    frame_texts: Vec<String>,
    functions: HashMap<(String, u64), String>,
}

/// An object under construction.
pub(crate) struct NewObject<'a> {
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) events: Vec<Event>,
    pub(crate) existing: Vec<(u32, u64)>,
    pub(crate) is_multiprocess: bool,
}

impl Default for NewObject<'_> {
    fn default() -> Self {
        Self {
            kind: "Event",
            name: "",
            events: Vec::new(),
            existing: Vec::new(),
            is_multiprocess: false,
        }
    }
}

/// A trace in a temporary archive.
pub(crate) struct Saved {
    pub(crate) trace: Trace,
    pub(crate) frames: FrameMemory,
    /// Every question for names: the module and the addresses in it.
    pub(crate) asked: RefCell<Vec<(String, Vec<u64>)>>,
    functions: HashMap<(String, u64), String>,
    _folder: TempDir,
}

impl Fixture {
    /// A trace with four processes: System, app.exe, its child.exe that starts and ends in the
    /// trace, and other.exe.
    pub(crate) fn new() -> Self {
        let mut fixture = Self {
            info: TraceInfo {
                schema_version: SCHEMA_VERSION,
                clock: "qpc".into(),
                // 2024-05-10 10:46:34.5 UTC, recorded two hours east of it.
                session_start_filetime: 133_598_115_945_000_000,
                tz_bias_minutes: -60,
                utc_offset_minutes: 120,
                ..TraceInfo::default()
            },
            processes: Processes::default(),
            modules: Modules::default(),
            module_loads: ModuleLoads::default(),
            warnings: Warnings::default(),
            event_counts: EventCounts::default(),
            types: ObjectTypes::default(),
            names: Names::default(),
            objects: Objects::default(),
            events: Events::default(),
            existing: ExistingHandles::default(),
            stacks: Stacks::default(),
            frames: Frames::default(),
            frame_texts: Vec::new(),
            functions: HashMap::new(),
        };
        for (pid, name, start_ns, end_ns) in [
            (4, "System", None, None),
            (100, "app.exe", None, None),
            (200, "child.exe", Some(1_000), Some(9_000_000)),
            (300, "other.exe", None, None),
        ] {
            let name = name.to_owned();
            fixture.processes.push(Process { pid, name, start_ns, end_ns, ..Process::default() });
        }
        fixture
    }

    /// Appends an object; its creation and end follow from its events as in the extractor.
    pub(crate) fn object(&mut self, new: NewObject<'_>) {
        let first_event = self.events.len() as u32;
        let first_existing = self.existing.len() as u32;
        let row = self.objects.len() as u32;
        let kinds: Vec<u32> = new.events.iter().map(|event| event.kind).collect();
        let count = |kind: EventKind| kinds.iter().filter(|&&k| k == kind.code()).count();
        let last = |kind: EventKind| kinds.iter().rposition(|&k| k == kind.code());
        let is_balanced = count(EventKind::HandleCreate) + count(EventKind::HandleDuplicate)
            == count(EventKind::HandleClose);
        let end = last(EventKind::ObjectDelete)
            .or(last(EventKind::Unmap))
            .or(last(EventKind::HandleClose).filter(|_| is_balanced));
        let all = super::EventMask::All;
        let create = super::lifecycle::first_create(&kinds, 0..kinds.len(), &all);
        let absolute = |event: Option<usize>| event.map(|event| first_event + event as u32);
        let object = Object {
            pointer: 0xFFFF_8100_0000_0000 + u64::from(row) * 0x10,
            type_id: self.type_id(new.kind),
            name: self.name(new.name),
            first_event,
            event_count: new.events.len() as u32,
            first_existing,
            existing_count: new.existing.len() as u32,
            create_event: absolute(create),
            destroy_event: absolute(end),
            is_multiprocess: new.is_multiprocess,
            is_overlapped: false,
        };
        self.objects.push(object);
        for event in new.events {
            self.events.push(Event { object: row, ..event });
        }
        for (process, handle) in new.existing {
            self.existing.push(ExistingHandle { object: row, process, handle });
        }
    }

    /// Appends an object of type Event with these events.
    pub(crate) fn event_object(&mut self, events: Vec<Event>) {
        self.object(NewObject { events, ..NewObject::default() });
    }

    /// A stack of frames written `module!function`, `module+0x1A2B` (without a name) or an address
    /// in hex (outside of all modules); innermost first.
    pub(crate) fn stack(&mut self, frames: &[&str]) -> Option<u32> {
        let frames = frames.iter().map(|frame| self.frame(frame)).collect();
        self.stacks.push(Stack { frames });
        Some(self.stacks.len() as u32 - 1)
    }

    fn frame(&mut self, text: &str) -> u32 {
        if let Some(known) = self.frame_texts.iter().position(|known| known == text) {
            return known as u32;
        }
        let row = self.frame_texts.len() as u32;
        let in_module = |module, rva| Frame { module: Some(module), rva: Some(rva), address: None };
        let frame = if let Some((module, function)) = text.split_once('!') {
            // Later frames lie lower, so that sorting shows.
            let rva = 0x9000 - u64::from(row) * 0x10;
            self.functions.insert((module.to_owned(), rva), function.to_owned());
            in_module(self.module(module), rva)
        } else if let Some((module, rva)) = text.split_once('+') {
            in_module(self.module(module), hex(rva).expect("an address"))
        } else {
            Frame { address: hex(text), ..Frame::default() }
        };
        self.frames.push(frame);
        self.frame_texts.push(text.to_owned());
        row
    }

    /// Row of a module, mapped into app.exe alone.
    pub(crate) fn module(&mut self, name: &str) -> u32 {
        if let Some(known) = self.modules.name.iter().position(|known| known == name) {
            return known as u32;
        }
        let module = self.modules.len() as u32;
        self.modules.push(Module { name: name.to_owned(), ..Module::default() });
        let base = 0x7FF6_0000_0000 + u64::from(module) * 0x100_0000;
        self.module_loads.push(ModuleLoad {
            module,
            pid: 100,
            process: Some(APP),
            base,
            ..ModuleLoad::default()
        });
        module
    }

    fn type_id(&mut self, name: &str) -> u32 {
        match name {
            "FileMapping" => return FILE_MAPPING_TYPE,
            "UnknownType" => return 99,
            _ => {}
        }
        if let Some(known) = self.types.name.iter().position(|known| known == name) {
            return self.types.type_id[known];
        }
        let type_id = self.types.len() as u32 + 1;
        self.types.push(ObjectType { type_id, name: name.to_owned() });
        type_id
    }

    fn name(&mut self, name: &str) -> Option<u32> {
        if name.is_empty() {
            return None;
        }
        let known = self.names.name.iter().position(|known| known == name);
        Some(known.unwrap_or_else(|| {
            self.names.push(Name { name: name.to_owned() });
            self.names.len() - 1
        }) as u32)
    }

    /// Counts one kind of event of the source.
    pub(crate) fn event_count(&mut self, kind: &str, name: Option<&str>, count: u64) {
        let name = name.map(str::to_owned);
        self.event_counts.push(EventCount { kind: kind.to_owned(), name, count });
    }

    /// Adds a warning.
    pub(crate) fn warning(&mut self, kind: &str, count: u64, first_offset: Option<u64>) {
        self.warnings.push(Warning { kind: kind.to_owned(), count, first_offset });
    }

    /// Writes the trace into an archive and opens it.
    pub(crate) fn save(self) -> Saved {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("demo.json7z");
        let mut writer = ArchiveWriter::create(&path).expect("a new archive");
        let mut infos = TraceInfos::default();
        infos.push(self.info);
        for (table, frame) in [
            (Table::Trace, infos.into_frame()),
            (Table::Processes, self.processes.into_frame()),
            (Table::Modules, self.modules.into_frame()),
            (Table::ModuleLoads, self.module_loads.into_frame()),
            (Table::ObjectTypes, self.types.into_frame()),
            (Table::Names, self.names.into_frame()),
            (Table::Objects, self.objects.into_frame()),
            (Table::Events, self.events.into_frame()),
            (Table::ExistingHandles, self.existing.into_frame()),
            (Table::StartHandles, StartHandles::default().into_frame()),
            (Table::Stacks, self.stacks.into_frame()),
            (Table::Frames, self.frames.into_frame()),
            (Table::Symbols, Symbols::default().into_frame()),
            (Table::EventCounts, self.event_counts.into_frame()),
            (Table::Warnings, self.warnings.into_frame()),
        ] {
            writer.table(table, frame).expect("a written table");
        }
        writer.finish().expect("a finished archive");
        let trace = Trace::open(&path).expect("a readable archive");
        Saved {
            trace,
            frames: FrameMemory::default(),
            asked: RefCell::default(),
            functions: self.functions,
            _folder: folder,
        }
    }
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

impl Saved {
    pub(crate) fn source(&self) -> Source<'_> {
        Source { path: Path::new("demo.etl"), trace: &self.trace, frames: &self.frames }
    }

    /// Ids of the objects that pass, in the order of the console.
    pub(crate) fn ids(&self, options: &str) -> Vec<u64> {
        self.ask(options, |answer| {
            answer.files[0].selection.objects().iter().map(|selected| selected.id()).collect()
        })
    }

    /// Ids of the objects that pass with the kinds of their events that are left.
    pub(crate) fn kinds(&self, options: &str) -> Vec<(u64, Vec<&'static str>)> {
        self.ask(options, |answer| {
            let file = &answer.files[0];
            let listing = file.listing.as_ref().expect("a listing");
            let kind = |row| listing.event(row).expect("an event").kind.name();
            let objects = file.selection.objects().iter();
            objects.map(|&s| (s.id(), file.events(s).map(kind).collect())).collect()
        })
    }

    /// Looks at the whole answer.
    pub(crate) fn ask<T>(&self, options: &str, look: impl FnOnce(&ObjectRefAnswer<'_>) -> T) -> T {
        let sources = [self.source()];
        look(&object_ref(&sources, &arguments(options), self).expect("an answer"))
    }
}

/// Options of `.dump ObjectRef` as typed.
pub(crate) fn arguments(options: &str) -> ObjectRefArgs {
    let line = format!(".dump ObjectRef {options}");
    match Command::parse(&line) {
        Ok(Some(Command::Dump(Dump::ObjectRef(args)))) => *args,
        other => panic!("{line}: {other:?}"),
    }
}

/// The names that the frames were given, wherever it is asked for them.
impl FrameNames for Saved {
    fn resolve(&self, module: &ModuleIdentity, rvas: &[u64]) -> Vec<Option<ResolvedFrame>> {
        self.asked.borrow_mut().push((module.name.clone(), rvas.to_vec()));
        let resolved = |rva: &u64| {
            let function = self.functions.get(&(module.name.clone(), *rva))?;
            Some(ResolvedFrame {
                function: function.as_str().into(),
                offset: 0x1F,
                file: None,
                line: None,
            })
        };
        rvas.iter().map(resolved).collect()
    }
}

/// An event at a time in microseconds.
fn event(kind: EventKind, process: u32, time_us: i64) -> Event {
    Event {
        object: sentinel(),
        kind: kind.code(),
        time_ns: time_us * 1_000,
        process,
        tid: 7,
        ..Event::default()
    }
}

pub(crate) fn create(process: u32, time_us: i64, handle: u64) -> Event {
    Event { handle: Some(handle), ..event(EventKind::HandleCreate, process, time_us) }
}

pub(crate) fn close(process: u32, time_us: i64, handle: u64) -> Event {
    Event { handle: Some(handle), ..event(EventKind::HandleClose, process, time_us) }
}

/// A duplicate that its target process pulled out of another one.
pub(crate) fn duplicate(process: u32, time_us: i64, handle: u64, from: (u32, u64)) -> Event {
    Event {
        handle: Some(handle),
        source_process: Some(from.0),
        source_pid: Some(from.0 * 100),
        source_handle: Some(from.1),
        caller_process: Some(process),
        ..event(EventKind::HandleDuplicate, process, time_us)
    }
}

pub(crate) fn object_create(process: u32, time_us: i64) -> Event {
    event(EventKind::ObjectCreate, process, time_us)
}

pub(crate) fn object_delete(process: u32, time_us: i64) -> Event {
    event(EventKind::ObjectDelete, process, time_us)
}

pub(crate) fn reference(process: u32, time_us: i64, delta: i32) -> Event {
    let kind = if delta > 0 { EventKind::Reference } else { EventKind::Dereference };
    Event { ref_delta: Some(delta), ..event(kind, process, time_us) }
}

pub(crate) fn map(process: u32, time_us: i64, base: u64, size: u64) -> Event {
    Event {
        view_base: Some(base),
        view_size: Some(size),
        byte_offset: Some(0x1_0000),
        file_object: Some(0xFFFF_8208_0000_5AF0),
        ..event(EventKind::Map, process, time_us)
    }
}

pub(crate) fn unmap(process: u32, time_us: i64, base: u64, size: u64) -> Event {
    Event { kind: EventKind::Unmap.code(), ..map(process, time_us, base, size) }
}

/// Details of an event.
pub(crate) trait With {
    /// Nothing closes it.
    fn leaked(self) -> Self;
    /// It happened on this stack.
    fn on(self, stack: Option<u32>) -> Self;
    /// A child inherited the handle.
    fn inherited_by(self, child: u32) -> Self;
}

impl With for Event {
    fn leaked(self) -> Self {
        Self { leaked: true, ..self }
    }

    fn on(self, stack: Option<u32>) -> Self {
        Self { stack, ..self }
    }

    fn inherited_by(self, child: u32) -> Self {
        Self { inherited_by: Some(child), ..self }
    }
}
