//! Events described by their schema: what they acquire and release, GDI and USER handles, and the stacks they carry.

mod gui;
mod manifests;
mod option;
mod stacks;

use std::path::Path;

use crate::allocations::allocations_of;
use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::history::Resource;
use handlescope_model::tables::{
    Allocator, Allocators, Frames, Processes, ResourceEnd, ResourceKind, ResourceMissKind,
    ResourceMisses, Stacks,
};
use handlescope_model::{Cancel, StackIdx, TableRows, Trace};
use handlescope_sources::extract;
use handlescope_tests::bytes::{ByteString, Guid, PointerSize};
use handlescope_tests::header::{ManifestEvent, Stamp};
use handlescope_tests::payload::EventInfo;
use handlescope_tests::scenario::TraceBuilder;

const MS: i64 = 1_000_000;
const WIN32K: Guid = Guid::new(0x8c416c79_d49b_4f01_a467_e56d3aa8234c);
const EVENT_TRACING: Guid = Guid::new(0xb675ec37_bdb6_4648_bc92_f3fdc74d3ca2);
const POOL: Guid = Guid::new(0x11111111_0000_0000_0000_000000000001);

/// A trace of three processes, two of them in sessions 1 and 2.
struct DescribedTrace {
    trace: TraceBuilder,
    options: ExtractOptions,
}

/// The tables of the extract.
struct DescribedTables(Trace);

impl DescribedTrace {
    fn new() -> Self {
        let mut trace = TraceBuilder::new();
        trace.process(4, "System");
        trace.process(700, "app.exe");
        trace.process(800, "other.exe");
        trace.process(900, "csrss.exe");
        Self { trace, options: ExtractOptions::default() }
    }

    fn stamp(&self, ms: i64, pid: u32) -> Stamp {
        Stamp::new(self.trace.options().raw(ms * MS), pid, pid + 1)
    }

    /// Adds a manifest event by the first thread of a process.
    fn event(&mut self, ms: i64, pid: u32, event: ManifestEvent) {
        let event = ManifestEvent { stamp: self.stamp(ms, pid), ..event };
        self.trace.raw_event(ms * MS, 0, event.encode());
    }

    fn describe(&mut self, info: &EventInfo) {
        let event = info.event(PointerSize::Eight, self.stamp(1, 4));
        self.trace.raw_event(MS, 0, event);
    }

    fn tables(&self) -> DescribedTables {
        let folder = tempfile::tempdir().unwrap();
        let (input, output) = (folder.path().join("a.etl"), folder.path().join("a.json7z"));
        self.trace.write(&input).unwrap();
        DescribedTables(extracted(&input, &output, self.options.clone()))
    }
}

fn extracted(input: &Path, output: &Path, options: ExtractOptions) -> Trace {
    extract(input, output, options, &NoObserver, &Cancel::default()).unwrap();
    Trace::open(output).unwrap()
}

impl DescribedTables {
    fn allocators(&self) -> Vec<Allocator> {
        Allocators::read(&self.0).unwrap().rows().collect()
    }

    fn resources(&self) -> Vec<Resource> {
        allocations_of(&self.0)
    }

    /// Lists each allocation: kind, allocator and process, then key and end.
    fn lines(&self) -> Vec<String> {
        let allocators = self.allocators();
        let processes: Vec<_> = Processes::read(&self.0).unwrap().rows().collect();
        let place = |allocator: &Allocator| {
            let kind = ResourceKind::from_code(allocator.kind).unwrap().name();
            let process = allocator.process.map(|row| processes[row.row()].name.clone());
            format!("{kind} {} {}", allocator.name, process.unwrap_or_default())
        };
        let mut lines: Vec<String> = self
            .resources()
            .iter()
            .map(|own| {
                let end = ResourceEnd::from_code(own.end).unwrap().name();
                let caller = own.caller.map(|row| format!(" by {}", processes[row.row()].name));
                let place = place(&allocators[own.allocator.row()]);
                format!("{place} {:#x} {} {end}{}", own.key, own.size, caller.unwrap_or_default())
            })
            .collect();
        lines.extend(ResourceMisses::read(&self.0).unwrap().rows().map(|miss| {
            let what = ResourceMissKind::from_code(miss.what).unwrap().name();
            let place = place(&allocators[miss.allocator.row()]);
            format!("{place} {:#x} {} {what}", miss.key, miss.size)
        }));
        lines
    }

    fn addresses(&self, stack: Option<StackIdx>) -> Vec<u64> {
        let Some(stack) = stack else { return Vec::new() };
        let stack = Stacks::read(&self.0).unwrap().rows().nth(stack.row()).unwrap();
        let frames: Vec<_> = Frames::read(&self.0).unwrap().rows().collect();
        stack.frames.iter().map(|frame| frames[frame.row()].address.unwrap()).collect()
    }
}

/// Returns an event of Microsoft-Windows-Win32k with handle values, type, session and owner.
fn win32k(id: u16, handles: &[u64], type_id: u32, session: u32, owner: u32) -> ManifestEvent {
    let payload = ByteString::new().ptrs(PointerSize::Eight, handles);
    let payload = payload.u32(type_id).u32(session).u32(owner).into_vec();
    ManifestEvent { provider: WIN32K, id, payload, ..ManifestEvent::default() }
}

/// Returns the description of an event of Microsoft-Windows-Win32k.
fn win32k_info(id: u16, task: &str, opcode: &str, handles: &[&str]) -> EventInfo {
    let handles = handles.iter().map(|name| ((*name).to_owned(), 16));
    let numbers = ["HandleType", "SessionId", "OwnerProcessId"].map(|name| (name.to_owned(), 8));
    EventInfo {
        version: 0,
        provider: WIN32K,
        provider_name: "Microsoft-Windows-Win32k".into(),
        id,
        task: task.into(),
        opcode: opcode.into(),
        fields: handles.chain(numbers).collect(),
    }
}

/// Adds the events of some handles; `id` maps the usual event ids to the ones to use.
fn gui_events(described: &mut DescribedTrace, id: impl Fn(u16) -> u16) {
    for (ms, pid, event) in [
        (10, 700, win32k(id(452), &[0x20010], 1, 1, 700)),
        // The same value in another session, and in the other class.
        (11, 800, win32k(id(452), &[0x20010], 1, 2, 800)),
        (12, 700, win32k(id(455), &[0x20010], 5, 1, 700)),
        (13, 800, win32k(id(453), &[0x20010], 1, 2, 800)),
        // csrss.exe creates it for app.exe, and other.exe gets it.
        (14, 900, win32k(id(455), &[0x30010], 99, 1, 700)),
        (15, 900, win32k(id(457), &[0x30010], 99, 1, 800)),
        // It gets another value, and is destroyed under that one.
        (16, 700, win32k(id(455), &[0x40010], 16, 1, 700)),
        (17, 700, win32k(id(458), &[0x40010, 0x50010], 16, 1, 700)),
        (18, 700, win32k(id(456), &[0x50010], 16, 1, 700)),
        (19, 700, win32k(id(456), &[0x40010], 16, 1, 700)),
        // Its free event was lost.
        (20, 700, win32k(id(455), &[0x20010], 4, 1, 700)),
        (21, 700, win32k(id(455), &[0], 4, 1, 700)),
        (22, 700, win32k(id(454), &[0x77], 1, 1, 800)),
    ] {
        described.event(ms, pid, event);
    }
}

fn assert_same_lines(found: &[String], expected: &[&str]) {
    let mut found: Vec<&str> = found.iter().map(String::as_str).collect();
    let mut expected = expected.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

const MANIFEST: &str = r#"<m><provider name="Hooks"><events>
    <event value="1" version="0" task="AcquireResource" template="Args"/>
    <event value="2" version="0" task="ReleaseResource" template="Args"/></events>
    <templates><template tid="Args"><data name="Handle" inType="win:UInt64"/>
    <data name="AllocSize" inType="win:Int64"/><data name="Allocator" inType="win:UnicodeString"/>
    </template></templates></provider></m>"#;

fn hook(id: u16, handle: u64, size: i64, allocator: &str) -> ManifestEvent {
    let payload = ByteString::new().u64(handle).i64(size).utf16z(allocator).into_vec();
    ManifestEvent { provider: POOL, id, payload, ..ManifestEvent::default() }
}
