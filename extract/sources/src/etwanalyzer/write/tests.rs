//! Odd traces: what is written for them, and that it all survives the way back.

use std::fs;
use std::path::{Path, PathBuf};

use handlescope_extract::filetime::of_unix_ns;
use handlescope_extract::{NoObserver, SourceIdentity};
use handlescope_model::history::{ExistingHandle, Histories, History, StartHandle, start_objects};
use handlescope_model::tables::{
    Acquisitions, Event, Events, Frame, Loss, LossKind, Module, Name, Object, Objects, Process,
    ReferenceChanges, Stack, Stacks, Symbol, Thread, Zombie,
};
use handlescope_model::{
    AcquisitionIdx, Cancel, EventIdx, EventKind, FrameIdx, ModuleIdx, NameIdx, ObjectIdx,
    ProcessIdx, SCHEMA_VERSION, StackIdx, TypeId, sentinel,
};
use serde_json::{Value, json};
use sevenz_rust::{ArchiveReader, Password};
use tempfile::TempDir;

use super::super::read::{ImportLimits, import};
use super::*;

/// Session start of the traces: 2024-05-10 10:46:34 UTC.
const START: i64 = 133_598_115_940_000_000;

/// Tables to make a trace from.
#[derive(Default)]
struct Tables {
    info: TraceInfo,
    processes: Processes,
    modules: Modules,
    frames: Frames,
    stacks: Stacks,
    symbols: Symbols,
    names: Names,
    objects: Vec<(Object, Vec<Event>)>,
    /// Open handles of the first object.
    existing: Vec<ExistingHandle>,
    start: Vec<StartHandle>,
    threads: Threads,
    zombies: Zombies,
    losses: Losses,
}

impl Tables {
    /// A trace with one process, in which nothing happened.
    fn new() -> Self {
        let info = TraceInfo {
            schema_version: SCHEMA_VERSION,
            source_path: "t/a.etl.7z".into(),
            source_name: "a.etl".into(),
            session_start_filetime: START,
            ..TraceInfo::default()
        };
        let mut tables = Self { info, ..Self::default() };
        tables.processes.push(Process { pid: 8, name: "a.exe".into(), ..Process::default() });
        let started = Thread { start_ns: Some(7), creator_tid: Some(5), ..Thread::default() };
        tables.threads.push(Thread { pid: 8, tid: 9, ..started });
        let ended = Zombie { exit_ns: Some(-7), exit_code: 3, listed_ns: 2, ..Zombie::default() };
        tables.zombies.push(Zombie { pid: 10, name: "b.exe".into(), ..ended });
        let (what, to_ns) = (LossKind::Overwritten.code(), Some(5));
        tables.losses.push(Loss { what, from_ns: Some(0), to_ns, count: None });
        tables
    }

    /// Adds an object with events, filled in as far as necessary.
    fn object(&mut self, object: &Object, events: Vec<Event>) {
        self.objects.push((object.clone(), events));
    }

    fn write(self, path: &Path) -> Trace {
        let mut infos = TraceInfos::default();
        infos.push(self.info);
        let mut histories = Histories::default();
        for (number, (object, events)) in self.objects.into_iter().enumerate() {
            let existing = if number == 0 { self.existing.as_slice() } else { &[] };
            let history = History { events: &events, existing, ..History::default() };
            histories.add(object, &history);
        }
        let (first_object, first) = (histories.objects.len(), histories.acquisitions.len());
        let (objects, acquisitions) = start_objects(
            self.start,
            ObjectIdx::from_row(first_object),
            AcquisitionIdx::from_row(first),
        );
        histories.objects.extend(objects.rows());
        histories.acquisitions.extend(acquisitions.rows());
        let tables = [
            (Table::Trace, infos.into_frame()),
            (Table::Processes, self.processes.into_frame()),
            (Table::Modules, self.modules.into_frame()),
            (Table::Frames, self.frames.into_frame()),
            (Table::Stacks, self.stacks.into_frame()),
            (Table::Symbols, self.symbols.into_frame()),
            (Table::Names, self.names.into_frame()),
            (Table::Objects, histories.objects.into_frame()),
            (Table::Acquisitions, histories.acquisitions.into_frame()),
            (Table::ReferenceChanges, histories.changes.into_frame()),
            (Table::Threads, self.threads.into_frame()),
            (Table::Zombies, self.zombies.into_frame()),
            (Table::Losses, self.losses.into_frame()),
        ];
        let mut writer = ArchiveWriter::create(path).unwrap();
        for (table, frame) in tables {
            writer.table(table, frame).unwrap();
        }
        writer.finish().unwrap();
        Trace::open(path).unwrap()
    }
}

/// A trace, what was written for it, and the result of reading that.
struct RoundTrip {
    before: Trace,
    after: Trace,
    folder: TempDir,
}

impl RoundTrip {
    fn new(tables: Tables) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let before = tables.write(&path("before.json7z"));
        let options = SaveOptions { names: None, etwanalyzer: true };
        save(&before, &path("x.y.json7z"), options, &NoObserver, &Cancel::default()).unwrap();
        let mut archive = ArchiveReader::open(path("x.y.json7z"), Password::empty()).unwrap();
        archive
            .for_each_entries(|entry, content| {
                if entry.name().ends_with(".json") {
                    std::io::copy(content, &mut File::create(path(entry.name())).unwrap()).unwrap();
                }
                Ok(true)
            })
            .unwrap();
        let after = path("after.json7z");
        import(&path("x.y.json"), &after, ImportLimits::default(), &NoObserver, &Cancel::default())
            .unwrap();
        Self { before, after: Trace::open(&after).unwrap(), folder }
    }

    fn path(&self, part: &str) -> PathBuf {
        self.folder.path().join(format!("x.y{part}.json"))
    }

    fn part(&self, part: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(part)).unwrap()).unwrap()
    }

    fn objects(&self) -> Value {
        self.part("_Derived_Handle")["ObjectReferences"].clone()
    }

    fn is_lossless<T: TableRows<Row: PartialEq + std::fmt::Debug>>(&self) {
        let rows = |trace: &Trace| T::read(trace).unwrap().rows().collect::<Vec<_>>();
        assert_eq!(rows(&self.after), rows(&self.before));
    }

    /// Checks all tables whose rows survive the round trip.
    fn check(&self) {
        self.is_lossless::<TraceInfos>();
        self.is_lossless::<Processes>();
        self.is_lossless::<Modules>();
        self.is_lossless::<Frames>();
        self.is_lossless::<Stacks>();
        self.is_lossless::<Symbols>();
        self.is_lossless::<Names>();
        self.is_lossless::<Events>();
        self.is_lossless::<Objects>();
        self.is_lossless::<Acquisitions>();
        self.is_lossless::<ReferenceChanges>();
        self.is_lossless::<Warnings>();
        self.is_lossless::<Volumes>();
        self.is_lossless::<Threads>();
        self.is_lossless::<Zombies>();
        self.is_lossless::<Losses>();
    }
}

fn create(time_ns: i64, handle: u64) -> Event {
    let (handle, leaked) = (Some(handle), true);
    Event { kind: EventKind::HandleCreate.code(), time_ns, handle, leaked, ..Event::default() }
}

fn event(kind: EventKind, time_ns: i64) -> Event {
    Event { kind: kind.code(), time_ns, ..Event::default() }
}

#[test]
fn an_unnamed_object_without_events_is_little_text() {
    let mut tables = Tables::new();
    tables.object(
        &Object { pointer: 0xFFFF_C283_AEE8_CD60, type_id: TypeId(16), ..Object::default() },
        vec![],
    );
    let written = RoundTrip::new(tables);
    assert_eq!(written.objects(), json!([{"ObjectPtr": -67604145713824i64, "ObjectType": 16}]));
    written.check();
}

#[test]
fn unknown_properties_of_the_trace_have_the_defaults_of_the_format() {
    let mut tables = Tables::new();
    tables.info.session_start_filetime = 0;
    tables.object(&Object::default(), vec![create(5, 4)]);
    let written = RoundTrip::new(tables);
    let main = written.part("");
    for (member, value) in [
        ("SourceETLFileName", json!("t/a.etl")),
        ("OSVersion", json!("0.0.0")),
        ("SessionStart", json!("0001-01-01T00:00:00+00:00")),
        ("BootTime", json!("0001-01-01T00:00:00+00:00")),
        ("MemorySizeMB", json!(0)),
        ("CPUProcessorGroups", json!(1)),
        ("ETWMarks", json!([])),
    ] {
        assert_eq!(main[member], value, "{member}");
    }
    for absent in ["ComputerName", "OSName", "OSBuild", "HandleData"] {
        assert!(main.get(absent).is_none(), "{absent} is null, and nulls are left out");
    }
    written.check();
}

#[test]
fn a_process_has_the_ends_of_time_where_nothing_was_seen_and_system_is_always_there() {
    let mut tables = Tables::new();
    tables.info.utc_offset_minutes = 120;
    tables.processes.push(Process {
        pid: 9,
        parent_pid: u32::MAX,
        start_ns: Some(1_500_000_123),
        end_ns: Some(-250_000_000),
        exit_code: Some(-1),
        session_id: Some(1),
        ..Process::default()
    });
    let written = RoundTrip::new(tables);
    let processes = written.part("")["Processes"].clone();
    let (unseen, seen, system) = (&processes[0], &processes[1], &processes[2]);
    assert_eq!(unseen["StartTime"], "0001-01-01T00:00:00+00:00");
    assert_eq!(unseen["EndTime"], "9999-12-31T23:59:59.9999999+00:00");
    assert_eq!((&unseen["IsNew"], &unseen["HasEnded"]), (&json!(false), &json!(false)));
    assert!(unseen.get("ReturnCode").is_none());
    assert_eq!(seen["StartTime"], "2024-05-10T12:46:35.5000001+02:00");
    assert_eq!(seen["EndTime"], "2024-05-10T12:46:33.75+02:00");
    assert_eq!((&seen["ParentPid"], &seen["ReturnCode"]), (&json!(-1), &json!(-1)));
    assert!(seen.get("ProcessName").is_none() && seen["Identity"] == "");
    assert_eq!((&system["ProcessID"], &system["ProcessName"]), (&json!(4), &json!("System")));
    written.check();
}

#[test]
fn a_trace_without_objects_has_a_shell_instead_of_the_handle_part() {
    let written = RoundTrip::new(Tables::new());
    assert!(!written.path("_Derived_Handle").exists());
    assert!(!written.path("_Derived_HandleStacks").exists());
    let shell = json!({"ObjectTypeMap":{},"ObjectReferences":[],"Stacks":{"StackList":[]}});
    assert_eq!(written.part("")["HandleData"], shell);
    assert_eq!(written.part("_Derived_Modules")["SharedStrings"], json!({"Strings":[]}));
    written.check();
}

#[test]
fn events_keep_their_order_whatever_lists_they_stand_in() {
    let mut tables = Tables::new();
    let close = Event { handle: Some(4), ..event(EventKind::HandleClose, 7) };
    let opened = Event { leaked: false, closing_event: Some(EventIdx(1)), ..create(-3, 4) };
    let reference = |delta| {
        let kind = if delta < 0 { EventKind::Dereference } else { EventKind::Reference };
        Event { ref_delta: Some(delta), ..event(kind, 7) }
    };
    tables.object(
        &Object { is_overlapped: false, ..Object::default() },
        vec![opened, close, reference(-2), create(7, u64::MAX), reference(3)],
    );
    let written = RoundTrip::new(tables);
    let object = &written.objects()[0];
    // At the same time: first closes, then opens, then references. A reader would take creates first and closes last.
    assert_eq!(object["EventOrder"], json!([0, 2, 3, 4, 1]));
    assert_eq!(object["HandleCreateEvents"][1]["HandleValue"], json!(u64::MAX));
    assert_eq!(object["HandleCreateEvents"][0]["TimeNs"], -3);
    assert_eq!(object["RefChanges"][0]["RefCountChange"], -2);
    written.check();
}

#[test]
fn unknown_processes_are_minus_one_and_their_ids_survive() {
    let mut tables = Tables::new();
    let unknown = ProcessIdx(sentinel());
    let duplicate = Event {
        handle: Some(8),
        leaked: true,
        source_handle: Some(4),
        source_pid: Some(77),
        ..event(EventKind::HandleDuplicate, 1)
    };
    let created = Event { process: unknown, ..create(0, 4) };
    tables.object(
        &Object { is_multiprocess: true, is_overlapped: true, ..Object::default() },
        vec![created, duplicate],
    );
    tables.existing.push(ExistingHandle {
        process: unknown,
        handle: 4,
        ..ExistingHandle::default()
    });
    tables.names.push(Name { name: "\\Only at the start".into() });
    tables.start.push(StartHandle { name: Some(NameIdx(0)), ..StartHandle::default() });
    let written = RoundTrip::new(tables);
    let object = &written.objects()[0];
    assert_eq!(object["HandleCreateEvents"][0]["ProcessIdx"], -1);
    assert_eq!(object["Existing"], json!([{"Handle": 4, "Process": -1}]));
    let duplicate = &object["HandleDuplicateEvents"][0];
    assert_eq!(duplicate["SourceProcessIdx"], -1);
    assert_eq!((&duplicate["SourcePid"], &duplicate["ProcessIdx"]), (&json!(77), &json!(0)));
    assert_eq!(
        (&duplicate["CallerProcessIdx"], &duplicate["InheritedByIdx"]),
        (&json!(-1), &json!(-1))
    );
    written.check();
}

#[test]
fn views_have_signed_numbers_and_an_unknown_offset_stays_unknown() {
    let mut tables = Tables::new();
    let map = Event {
        leaked: true,
        view_base: Some(4096),
        view_size: Some(8),
        byte_offset: Some(0),
        file_object: Some(u64::MAX),
        ..event(EventKind::Map, 1)
    };
    let unknown = Event { byte_offset: None, ..map.clone() };
    let object = Object { type_id: TypeId(1000), ..Object::default() };
    tables.object(&object, vec![map, unknown]);
    let written = RoundTrip::new(tables);
    let maps = written.objects()[0]["FileMapEvents"].clone();
    let stack = json!({"TimeNs": 1, "StackIdx": 0, "ProcessIdx": 0, "ThreadId": 0});
    let mut known = stack.clone();
    for (member, value) in [
        ("ViewBase", 4096),
        ("ViewSize", 8),
        ("FileObject", -1),
        ("MiscInfo", 0),
        ("ByteOffset", 0),
    ] {
        known[member] = value.into();
    }
    assert_eq!(maps[0], known);
    assert!(maps[1].get("ByteOffset").is_none());
    written.check();
}

#[test]
fn stacks_of_equal_text_share_it_and_stay_separate() {
    let mut tables = Tables::new();
    tables.modules.push(Module {
        name: "a.dll".into(),
        path: "C:\\a.dll".into(),
        ..Module::default()
    });
    for rva in [16, 32] {
        let module = Some(ModuleIdx(0));
        tables.frames.push(Frame { module, rva: Some(rva), ..Frame::default() });
        let (frame, function) = (FrameIdx(tables.frames.len() as u32 - 1), "F".to_owned());
        tables.symbols.push(Symbol { frame, function, offset: Some(rva), ..Symbol::default() });
        let frames = vec![frame];
        tables.stacks.push(Stack { frames });
    }
    tables.stacks.push(Stack::default());
    let with = |stack| Event { stack: Some(StackIdx(stack)), ..create(i64::from(stack), 4) };
    let object = Object { is_overlapped: true, ..Object::default() };
    tables.object(&object, vec![with(0), with(1), with(2), create(3, 4)]);
    let written = RoundTrip::new(tables);
    assert_eq!(written.part("_Derived_HandleStacks")["StackList"], json!(["", "a.dll!F\n"]));
    let creates = written.objects()[0]["HandleCreateEvents"].clone();
    let stacks = |member: &str| -> Vec<Value> {
        creates.as_array().unwrap().iter().map(|event| event[member].clone()).collect()
    };
    assert_eq!(stacks("StackIdx"), [1, 1, 0, 0]);
    assert_eq!(stacks("StackRow"), [Value::Null, json!(1), json!(2), Value::Null]);
    written.check();
}

#[test]
fn the_archive_has_the_time_of_the_session_and_a_cancelled_archive_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let trace = Tables::new().write(&path("a.json7z"));
    let options = || SaveOptions { names: None, etwanalyzer: true };
    let result = save(&trace, &path("b.json7z"), options(), &NoObserver, &Cancel::after(0));
    assert!(matches!(result, Err(SaveError::Cancelled(_))));
    assert!(!path("b.json7z").exists() && !is_for_etwanalyzer(&trace));
    save(&trace, &path("b.json7z"), options(), &NoObserver, &Cancel::default()).unwrap();
    let modified = SourceIdentity::new(&path("b.json7z")).unwrap().modified_ns;
    assert_eq!(modified.and_then(of_unix_ns), Some(START));
    assert!(is_for_etwanalyzer(&Trace::open(&path("b.json7z")).unwrap()));
}
