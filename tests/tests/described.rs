//! Events that their schema describes: what they acquire and release, handles of GDI and USER, the stacks that they
//! carry.

use std::path::Path;

use handlescope_extract::{ExtractOptions, NoObserver, ResourceMapping, extract};
use handlescope_model::tables::{
    Allocator, Allocators, Frames, Methods, Processes, ProviderEvents, Resource, ResourceEnd,
    ResourceKind, ResourceMissKind, ResourceMisses, Resources, Stacks, Warnings,
};
use handlescope_model::{Cancel, StackIdx, TableRows, Trace};
use handlescope_tests::binary::Shell;
use handlescope_tests::bytes::{Bytes, Guid, PointerSize};
use handlescope_tests::header::{ExtendedItem, KernelEvent, ManifestEvent, Stamp};
use handlescope_tests::payload::{
    EventInfo, MethodEvent, MethodRecord, manifest_chunks, trace_logging,
};
use handlescope_tests::scenario::TraceBuilder;

const MS: i64 = 1_000_000;
const WIN32K: Guid = Guid::new(0x8c416c79_d49b_4f01_a467_e56d3aa8234c);
const EVENT_TRACING: Guid = Guid::new(0xb675ec37_bdb6_4648_bc92_f3fdc74d3ca2);
const POOL: Guid = Guid::new(0x11111111_0000_0000_0000_000000000001);

/// A trace of three processes, two of which are in session 1 and 2.
struct Described {
    trace: TraceBuilder,
    options: ExtractOptions,
}

/// The tables of its extract.
struct Tables(Trace);

impl Described {
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

    /// A manifest event, of the first thread of a process.
    fn event(&mut self, ms: i64, pid: u32, event: ManifestEvent) {
        let event = ManifestEvent { stamp: self.stamp(ms, pid), ..event };
        self.trace.raw_event(ms * MS, 0, event.encode());
    }

    fn describe(&mut self, info: &EventInfo) {
        let event = info.event(PointerSize::Eight, self.stamp(1, 4));
        self.trace.raw_event(MS, 0, event);
    }

    fn tables(&self) -> Tables {
        let folder = tempfile::tempdir().unwrap();
        let (input, output) = (folder.path().join("a.etl"), folder.path().join("a.json7z"));
        self.trace.write(&input).unwrap();
        Tables(extracted(&input, &output, self.options.clone()))
    }
}

fn extracted(input: &Path, output: &Path, options: ExtractOptions) -> Trace {
    extract(input, output, options, &NoObserver, &Cancel::default()).unwrap();
    Trace::open(output).unwrap()
}

impl Tables {
    fn allocators(&self) -> Vec<Allocator> {
        Allocators::read(&self.0).unwrap().rows().collect()
    }

    fn resources(&self) -> Vec<Resource> {
        Resources::read(&self.0).unwrap().rows().collect()
    }

    /// Each allocation: kind, allocator and process, then key and end.
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

/// An event of Microsoft-Windows-Win32k: values, type, session and owner.
fn win32k(id: u16, handles: &[u64], type_id: u32, session: u32, owner: u32) -> ManifestEvent {
    let payload = Bytes::new().ptrs(PointerSize::Eight, handles);
    let payload = payload.u32(type_id).u32(session).u32(owner).into_vec();
    ManifestEvent { provider: WIN32K, id, payload, ..ManifestEvent::default() }
}

/// What describes an event of Microsoft-Windows-Win32k.
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

/// What happens to some handles; `id` gives the ids that the events have.
fn gui_events(described: &mut Described, id: impl Fn(u16) -> u16) {
    for (ms, pid, event) in [
        (10, 700, win32k(id(452), &[0x20010], 1, 1, 700)),
        // The same value in another session, and in the other class.
        (11, 800, win32k(id(452), &[0x20010], 1, 2, 800)),
        (12, 700, win32k(id(455), &[0x20010], 5, 1, 700)),
        (13, 800, win32k(id(453), &[0x20010], 1, 2, 800)),
        // Made by csrss.exe for app.exe, and given to other.exe.
        (14, 900, win32k(id(455), &[0x30010], 99, 1, 700)),
        (15, 900, win32k(id(457), &[0x30010], 99, 1, 800)),
        // Another value, under which it is destroyed.
        (16, 700, win32k(id(455), &[0x40010], 16, 1, 700)),
        (17, 700, win32k(id(458), &[0x40010, 0x50010], 16, 1, 700)),
        (18, 700, win32k(id(456), &[0x50010], 16, 1, 700)),
        (19, 700, win32k(id(456), &[0x40010], 16, 1, 700)),
        // Its free was lost.
        (20, 700, win32k(id(455), &[0x20010], 4, 1, 700)),
        (21, 700, win32k(id(455), &[0], 4, 1, 700)),
        (22, 700, win32k(id(454), &[0x77], 1, 1, 800)),
    ] {
        described.event(ms, pid, event);
    }
}

const GUI_LINES: [&str; 9] = [
    "user window app.exe 0x20010 0 open",
    "user window other.exe 0x20010 0 freed",
    "gdi bitmap app.exe 0x20010 0 replaced",
    "gdi 99 other.exe 0x30010 0 open by csrss.exe",
    "gdi brush app.exe 0x50010 0 freed",
    "gdi region app.exe 0x20010 0 open",
    "gdi brush app.exe 0x40010 0 orphan_free",
    "gdi region app.exe 0x0 0 ignored",
    "user window other.exe 0x77 0 ignored",
];

fn assert_same_lines(found: &[String], expected: &[&str]) {
    let mut found: Vec<&str> = found.iter().map(String::as_str).collect();
    let mut expected = expected.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn handles_of_gdi_and_user_are_followed_by_session_class_and_value() {
    let mut described = Described::new();
    gui_events(&mut described, |id| id);
    let tables = described.tables();
    assert_same_lines(&tables.lines(), &GUI_LINES);
    let provider = tables.allocators()[0].provider.clone();
    assert_eq!(provider.as_deref(), Some("Microsoft-Windows-Win32k"));
}

#[test]
fn metadata_says_what_an_event_of_win32k_is_whatever_its_id() {
    let mut described = Described::new();
    for (id, task, opcode) in [
        (452, "UserHandleOperation", "CreateHandle"),
        (453, "UserHandleOperation", "DestroyHandle"),
        (454, "UserHandleOperation", "UpdateHandleOwner"),
        (455, "GdiHandleOperation", "CreateHandle"),
        (456, "GdiHandleOperation", "DestroyHandle"),
        (457, "GdiHandleOperation", "UpdateHandleOwner"),
    ] {
        described.describe(&win32k_info(id + 1000, task, opcode, &["HandleValue"]));
    }
    let values = ["PreviousHandleValue", "NewHandleValue"];
    described.describe(&win32k_info(1458, "GdiHandleOperation", "TransformHandle", &values));
    gui_events(&mut described, |id| id + 1000);
    // One that is something else now.
    described.describe(&win32k_info(452, "WindowUpdate", "Info", &["HandleValue"]));
    described.event(30, 700, win32k(452, &[0x60010], 1, 1, 700));
    assert_same_lines(&described.tables().lines(), &GUI_LINES);
}

#[test]
fn cut_payloads_of_win32k_are_counted() {
    let mut described = Described::new();
    let mut event = win32k(455, &[0x20010], 5, 1, 700);
    event.payload.truncate(19);
    described.event(10, 700, event);
    let tables = described.tables();
    assert!(tables.lines().is_empty());
    let warnings: Vec<_> = Warnings::read(&tables.0).unwrap().rows().collect();
    assert!(warnings.iter().any(|row| row.kind == "undecodable event" && row.count == 1));
}

const MANIFEST: &str = r#"<m><provider name="Hooks"><events>
    <event value="1" version="0" task="AcquireResource" template="Args"/>
    <event value="2" version="0" task="ReleaseResource" template="Args"/></events>
    <templates><template tid="Args"><data name="Handle" inType="win:UInt64"/>
    <data name="AllocSize" inType="win:Int64"/><data name="Allocator" inType="win:UnicodeString"/>
    </template></templates></provider></m>"#;

fn hook(id: u16, handle: u64, size: i64, allocator: &str) -> ManifestEvent {
    let payload = Bytes::new().u64(handle).i64(size).utf16z(allocator).into_vec();
    ManifestEvent { provider: POOL, id, payload, ..ManifestEvent::default() }
}

#[test]
fn a_manifest_that_comes_last_describes_what_came_before() {
    for late in [false, true] {
        let mut described = Described::new();
        described.event(10, 700, hook(1, 0x10, 100, "Pen"));
        described.event(11, 700, hook(1, u64::MAX, -5, "Pen"));
        described.event(12, 800, hook(2, 0x10, 7, "Pen"));
        described.event(13, 700, hook(2, 0x10, 7, "Pen"));
        described.event(14, 700, hook(3, 0x10, 7, "Pen"));
        let ms = if late { 50 } else { 2 };
        for chunk in manifest_chunks(POOL, MANIFEST, 200, described.stamp(ms, 700)) {
            described.trace.raw_event(ms * MS, 0, chunk);
        }
        let tables = described.tables();
        let expected = [
            "resource Pen app.exe 0x10 100 freed",
            "resource Pen app.exe 0xffffffffffffffff -5 open",
            "resource Pen other.exe 0x10 7 orphan_free",
        ];
        assert_same_lines(&tables.lines(), &expected);
        assert_eq!(tables.allocators()[0].provider.as_deref(), Some("Hooks"));
        let resources = tables.resources();
        let times: Vec<i64> = resources.iter().map(|own| own.time_ns / MS).collect();
        assert_eq!(times, [10, 11]);
    }
}

#[test]
fn too_many_events_before_their_manifest_are_counted_by_provider() {
    let mut described = Described::new();
    let allocator = "x".repeat(30_000);
    for number in 0..1200 {
        described.event(10 + number, 700, hook(1, number as u64, 1, &allocator));
    }
    // Events that nothing describes are no loss.
    for _ in 0..10 {
        let own = hook(9, 0, 1, &allocator);
        described.event(1300, 700, ManifestEvent { provider: Guid::new(5), ..own });
    }
    for chunk in manifest_chunks(POOL, MANIFEST, 2000, described.stamp(1400, 700)) {
        described.trace.raw_event(1400 * MS, 0, chunk);
    }
    let tables = described.tables();
    let kept = tables.resources().len() as u64;
    let warnings: Vec<_> = Warnings::read(&tables.0).unwrap().rows().collect();
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.kind.ends_with("too many: Hooks"), "{warning:?}");
    assert_eq!(warning.count + kept, 1200);
    assert!((1000..1150).contains(&kept), "{kept}");
}

#[test]
fn allocators_without_end_are_counted_together() {
    const NAMES: i64 = 70_000;
    let mut described = Described::new();
    for chunk in manifest_chunks(POOL, MANIFEST, 2000, described.stamp(2, 700)) {
        described.trace.raw_event(2 * MS, 0, chunk);
    }
    for number in 0..NAMES {
        described.event(10 + number, 700, hook(1, 0x10, 1, &number.to_string()));
    }
    let tables = described.tables();
    let allocators = tables.allocators();
    assert_eq!(allocators.len(), (1 << 16) + 1);
    assert_eq!(allocators[1 << 16].name, "(other allocators)");
    let left_out = NAMES as u64 - (1 << 16);
    let warnings: Vec<_> = Warnings::read(&tables.0).unwrap().rows().collect();
    assert!(warnings.iter().any(|row| row.kind.contains("allocator") && row.count == left_out));
    assert_eq!(tables.resources().len() as i64, NAMES);
}

#[test]
fn a_mapping_chooses_events_and_fields() {
    let mut described = Described::new();
    let words = "Contoso.*/x acquire; Contoso.Pool/Take acquire handle=block size=bytes \
                 allocator=tag; */Give release handle=block allocator=tag";
    described.options.resources = ResourceMapping::of_words(words).unwrap();
    let items =
        |name: &str| trace_logging(name, b"block\0\x0abytes\0\x08tag\0\x08", "Contoso.Pool");
    for (ms, name, block) in [(10, "Take", 1), (11, "Take", 2), (12, "Give", 1), (13, "Look", 1)] {
        let payload = Bytes::new().u64(block).u32(64).u32(7).into_vec();
        let event =
            ManifestEvent { provider: POOL, items: items(name), payload, ..Default::default() };
        described.event(ms, 700, event);
    }
    // What is usual goes on.
    let fields = b"Handle\0\x0a";
    let items = trace_logging("acquireRESOURCE", fields, "Contoso.Pool");
    let payload = Bytes::new().u64(3).into_vec();
    described.event(
        14,
        700,
        ManifestEvent { provider: POOL, items, payload, ..Default::default() },
    );
    let expected = [
        "resource 7 app.exe 0x1 64 freed",
        "resource 7 app.exe 0x2 64 open",
        "resource  app.exe 0x3 0 open",
    ];
    assert_same_lines(&described.tables().lines(), &expected);
    described.options.resources.clear();
    assert_same_lines(&described.tables().lines(), &expected[2..]);
}

/// The provider of methods of the .NET runtime, whose events have a family of their own.
const RUNTIME: Guid = Guid::new(0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4);

#[test]
fn a_mapping_takes_events_of_a_family_too_and_the_family_still_has_them() {
    let words = "Microsoft-Windows-DotNETRuntime/Load acquire handle=Start; \
                 e13c0d23-ccbc-4e12-931b-d9cc2eee27e4/144 release handle=Start";
    let info = |id: u16, task: &str| EventInfo {
        provider: RUNTIME,
        provider_name: "Microsoft-Windows-DotNETRuntime".into(),
        id,
        version: 1,
        task: task.into(),
        fields: vec![("MethodID".into(), 16), ("ModuleID".into(), 16), ("Start".into(), 16)],
        ..EventInfo::default()
    };
    // Described before the events, and after them.
    for describes_at in [1, 50] {
        let mut described = Described::new();
        for (id, task) in [(143, "Load"), (144, "Unload")] {
            let event = info(id, task).event(PointerSize::Eight, described.stamp(describes_at, 4));
            described.trace.raw_event(describes_at * MS, 0, event);
        }
        let code = |address| MethodRecord {
            module_id: 9,
            address,
            size: 0x40,
            type_name: "App.Program".into(),
            name: "Main".into(),
            signature: "void ()".into(),
        };
        let trace = &mut described.trace;
        let (first, second) = (code(0x7000_0000), code(0x7100_0000));
        trace.method(10 * MS, (700, 701), MethodEvent::Load, &first);
        trace.method(11 * MS, (700, 701), MethodEvent::Load, &second);
        for (ms, address) in [(20_i64, 0x7000_0010), (21, 0x7100_0010)] {
            let object = 0xFFFF_8000_0000_0000 + ms.unsigned_abs();
            trace.create_handle(ms * MS, (700, 701), object, 4, 16).stack(&[], &[address]);
        }
        trace.method(30 * MS, (700, 701), MethodEvent::Unload, &first);
        let methods = |described: &Described| {
            let tables = described.tables();
            let methods = Methods::read(&tables.0).unwrap();
            methods.rows().map(|row| (row.address, row.name)).collect::<Vec<_>>()
        };
        let alone = methods(&described);
        assert_eq!(alone.len(), 2, "{alone:?}");
        assert_same_lines(&described.tables().lines(), &[] as &[&str]);
        described.options.resources = ResourceMapping::of_words(words).unwrap();
        let expected =
            ["resource  app.exe 0x70000000 0 freed", "resource  app.exe 0x71000000 0 open"];
        assert_same_lines(&described.tables().lines(), &expected);
        assert_eq!(methods(&described), alone);
    }
}

const KERNEL: u64 = 0xFFFF_8000_0000_1000;

/// A handle that is created with these items.
fn created(value: u64, items: Vec<ExtendedItem>) -> ManifestEvent {
    ManifestEvent { items, ..win32k(455, &[value], 5, 1, 700) }
}

/// The event that brings the user part of a stack.
fn user_part(match_id: u64, frames: &[u64]) -> ManifestEvent {
    let items = vec![ExtendedItem::part64(match_id, frames)];
    ManifestEvent { provider: EVENT_TRACING, id: 18, opcode: 24, items, ..Default::default() }
}

fn with_stacks() -> Described {
    let mut described = Described::new();
    described.event(10, 700, created(1, vec![ExtendedItem::stack64(&[KERNEL, 0x7000])]));
    let part = |match_id| vec![ExtendedItem::part64(match_id, &[KERNEL])];
    described.event(11, 700, created(2, part(5)));
    described.event(12, 800, created(3, part(5)));
    described.event(13, 800, user_part(5, &[0x8000]));
    described.event(14, 700, user_part(5, &[0x7100]));
    described.event(15, 700, user_part(5, &[0x7200]));
    described.event(16, 700, created(4, vec![ExtendedItem::key64(0, 0x99)]));
    described.event(17, 700, created(5, part(6)));
    let stamp = described.stamp(20, 4);
    let payload = Bytes::new().u64(0x99).u64(KERNEL + 8).u64(0x7300).into_vec();
    let event = KernelEvent { hook: 0x1824, stamp, payload, ..Default::default() };
    described.trace.raw_event(20 * MS, 0, event.encode());
    described
}

/// The stacks of [`with_stacks`], by handle.
const STACKS: [(u64, &[u64]); 5] = [
    (1, &[KERNEL, 0x7000]),
    (2, &[KERNEL, 0x7100]),
    (3, &[KERNEL, 0x8000]),
    (4, &[KERNEL + 8, 0x7300]),
    (5, &[KERNEL]),
];

#[test]
fn stacks_that_events_carry_are_theirs_with_the_part_that_comes_later() {
    let tables = with_stacks().tables();
    let mut resources = tables.resources();
    resources.sort_by_key(|own| own.key);
    let found: Vec<(u64, Vec<u64>)> =
        resources.iter().map(|own| (own.key, tables.addresses(own.stack))).collect();
    assert_eq!(found, STACKS.map(|(key, frames)| (key, frames.to_vec())));
}

#[test]
fn kept_events_of_providers_have_the_same_stacks() {
    let mut described = with_stacks();
    described.describe(&win32k_info(455, "GdiHandleOperation", "CreateHandle", &["HandleValue"]));
    described.options.events = handlescope_extract::EventChoice::of("microsoft-windows-win32k");
    let tables = described.tables();
    let events: Vec<_> = ProviderEvents::read(&tables.0).unwrap().rows().collect();
    let found: Vec<Vec<u64>> = events.iter().map(|own| tables.addresses(own.stack)).collect();
    assert_eq!(found, STACKS.map(|(_, frames)| frames.to_vec()));
}

#[test]
fn items_that_lie_are_no_stacks_and_no_failure() {
    let mut described = Described::new();
    for (number, data) in
        [vec![], vec![1; 7], vec![1; 12], vec![0xFF; 4000]].into_iter().enumerate()
    {
        for kind in [5, 6, 17, 18] {
            let items = vec![ExtendedItem { kind, data: data.clone() }];
            described.event(10 + i64::from(kind), 700, created(number as u64 + 1, items.clone()));
            described.event(40, 700, ManifestEvent { items, ..user_part(0, &[]) });
        }
    }
    let tables = described.tables();
    assert_eq!(tables.resources().len(), 16);
}

/// A trace of a pool whose events are called otherwise.
fn pool() -> Described {
    let mut described = Described::new();
    let items =
        |name: &str| trace_logging(name, b"block\0\x0abytes\0\x08tag\0\x01", "Contoso.Pool");
    for (ms, name, block) in [(10, "Take", 1), (11, "Take", 2), (12, "Give", 1)] {
        let payload = Bytes::new().u64(block).u32(64).utf16z("Secret,\"Tag\"").into_vec();
        let items = items(name);
        let event = ManifestEvent { provider: POOL, items, payload, ..Default::default() };
        described.event(ms, 700, event);
    }
    described
}

const TAKE: &str = "contoso.pool/take acquire handle=block size=bytes allocator=tag";
const GIVE: &str = "*/Give release handle=BLOCK allocator=tag";

/// The open resources of an extract in its folder, from a trace or an extract.
fn open_in(shell: &Shell, file: &str) -> String {
    let sql = ".sql SELECT a.name, a.provider, r.key, r.size FROM resources r JOIN allocators a \
               ON r.allocator = a.row WHERE r.\"end\" = 0 -csv";
    shell.run(&[file, "-c", sql]).ok().stdout
}

#[test]
fn the_option_takes_words_and_files() {
    let shell = Shell::new();
    pool().trace.write(shell.path("a.etl")).unwrap();
    let expected = "\"Secret,\"\"Tag\"\"\",Contoso.Pool,2,64";
    let words = format!("{TAKE};{GIVE}");
    let _ = shell.run(&["extract", "a.etl", "-resource", &words, "-outdir", "words"]).ok();
    let found = open_in(&shell, "words/a.json7z");
    assert_eq!(found.lines().skip(1).collect::<Vec<_>>(), [expected], "{found}");
    let entry = |event: &str, action: &str, more: &str| {
        format!(
            "[[resource]]\nevent = '{event}'\naction = '{action}'\nhandle = 'block'\nallocator = 'tag'\n{more}"
        )
    };
    let list = [
        entry("Contoso.Pool/Take", "acquire", "size = 'bytes'\n"),
        entry("Contoso.Pool/Give", "release", ""),
    ];
    std::fs::write(shell.path("pool.toml"), list.concat()).unwrap();
    let _ = shell.run(&["extract", "a.etl", "-resource", "pool.toml", "-outdir", "file"]).ok();
    assert_eq!(open_in(&shell, "file/a.json7z"), found);
    let _ = shell.run(&["extract", "a.etl", "-outdir", "none"]).ok();
    assert_eq!(open_in(&shell, "none/a.json7z").lines().count(), 1);
}

#[test]
fn a_mapping_that_makes_no_sense_is_refused_before_a_trace_is_read() {
    let shell = Shell::new();
    pool().trace.write(shell.path("a.etl")).unwrap();
    std::fs::write(shell.path("bad.toml"), "[[resource]]\nevent = 'P/E'\n").unwrap();
    let kernel = "[[resource]]\nevent = 'Windows Kernel/Process'\naction = 'acquire'\n";
    std::fs::write(shell.path("kernel.toml"), kernel).unwrap();
    for (given, said) in [
        ("Take acquire", "-resource: Take acquire: \"Take\" is not a PROVIDER/EVENT"),
        ("bad.toml", "bad.toml: not a list of mappings: line 1: missing field `action`"),
        (
            "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c/1 acquire",
            "-resource: 3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c/1: events of this provider are those of the kernel",
        ),
        ("kernel.toml", "kernel.toml: Windows Kernel/Process: events of this provider"),
        ("missing.toml", "-resource takes a file with a list in TOML, or mappings in words"),
    ] {
        let run = shell.run(&["extract", "a.etl", "-resource", given, "-outdir", "out"]);
        assert!(run.stderr.contains(said), "{}", run.stderr);
        assert!(run.status == Some(1) && !shell.path("out/a.json7z").exists());
    }
}

#[test]
fn a_redacted_copy_has_neither_the_fields_nor_the_names_of_resources() {
    let shell = Shell::new();
    let mut described = pool();
    for chunk in manifest_chunks(POOL, MANIFEST, 200, described.stamp(2, 700)) {
        described.trace.raw_event(2 * MS, 0, chunk);
    }
    described.event(20, 700, hook(1, 0x4242_4242, 100, "Secret Pen"));
    gui_events(&mut described, |id| id);
    described.trace.write(shell.path("a.etl")).unwrap();
    let _ = shell.run(&["redact", "a.etl"]).ok();
    let bytes = std::fs::read(shell.path("a.redacted.etl")).unwrap();
    let utf16 = |text: &str| Bytes::new().utf16z(text).into_vec();
    for secret in [
        utf16("Secret"),
        utf16("Pen"),
        b"Contoso.Pool".to_vec(),
        b"AcquireResource".to_vec(),
        0x4242_4242_u32.to_le_bytes().to_vec(),
        0x20010_u64.to_le_bytes().to_vec(),
    ] {
        let secret = secret.strip_suffix(&[0, 0]).filter(|_| secret.len() > 8).unwrap_or(&secret);
        assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{secret:?}");
    }
    assert_eq!(open_in(&shell, "a.redacted.etl").lines().count(), 1);
}
