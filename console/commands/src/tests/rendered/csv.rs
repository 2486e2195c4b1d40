//! Tests of the CSV file, as other programs read it.

use super::*;
use crate::dump::object_ref::ObjectRefArgs;
use handlescope_render::OutputOptions;
use handlescope_session::paths::Overwrite;
use handlescope_session::values::RequestedFormat;

const SEPARATOR_LINE: &str = "sep = ;\n";

/// Returns the output of `-csv` for some traces.
fn csv_text(saved: &[&SavedTrace], options: &str) -> String {
    printed(saved, &format!(".dump ObjectRef -csv {options}"), Screen::PLAIN)
}

/// The rows of a CSV file; each value has its column name.
struct Sheet(Vec<Vec<(String, String)>>);

impl Sheet {
    fn read(text: &str) -> Self {
        let text = text.strip_prefix(SEPARATOR_LINE).unwrap_or(text);
        let mut reader = ::csv::ReaderBuilder::new().delimiter(b';').from_reader(text.as_bytes());
        let headers = reader.headers().expect("headers").clone();
        let rows = reader.records().map(|record| {
            let record = record.expect("as many values as headers");
            headers.iter().zip(&record).map(|(h, v)| (h.to_owned(), v.to_owned())).collect()
        });
        Self(rows.collect())
    }

    fn new(saved: &SavedTrace, options: &str) -> Self {
        Self::read(&csv_text(&[saved], options))
    }

    fn get(&self, row: usize, column: &str) -> &str {
        let value = self.0[row].iter().find(|(header, _)| header == column);
        &value.unwrap_or_else(|| panic!("no column {column}")).1
    }

    fn column(&self, column: &str) -> Vec<&str> {
        (0..self.0.len()).map(|row| self.get(row, column)).collect()
    }

    /// Returns the first row of this event.
    fn first(&self, event: &str) -> usize {
        let names = self.column("EventName");
        names.iter().position(|name| *name == event).unwrap_or_else(|| panic!("no {event}"))
    }

    /// Returns the values of a row that are not empty, except those that all rows of a file share.
    fn values_of(&self, row: usize) -> String {
        const COMMON: [&str; 4] = ["CSVOptions", "FileName", "Date", "TestCase"];
        self.0[row]
            .iter()
            .filter(|(header, value)| !value.is_empty() && !COMMON.contains(&header.as_str()))
            .map(|(header, value)| format!("{header}={value}\n"))
            .collect()
    }
}

#[test]
fn the_columns_are_etwanalyzers_in_its_order() {
    let text = csv_text(&[&mixed()], "");
    let headers = text.strip_prefix(SEPARATOR_LINE).and_then(|text| text.lines().next());
    assert_eq!(
        headers,
        Some(
            "CSVOptions;FileName;Date;TestCase;Test Time in ms;Baseline;Id;Stack;EventName;Time;\
             Thread Id;Handle Value;Type;Object Name;Object Ptr;SourceProces;SourceHandleValue;\
             ViewBase;ViewSize;File Object;File Offset;RefChange;\
             Lifetime in s (9999 is not closed);MultiProcess;MaxRefCount;\
             Overlapped (Opened multiple times);Inherited by Process;Process;ProcessName;\
             Start Time;CommandLine"
        )
    );
    let without = csv_text(&[&mixed()], "-NoCSVSeparator");
    assert!(without.starts_with("CSVOptions;"), "{without}");
}

#[test]
fn every_event_and_every_open_handle_has_a_row() {
    let saved = mixed();
    let document = json_of(&[&saved], ".dump ObjectRef -json");
    let count = |member: &str| -> usize {
        document["objects"]
            .as_array()
            .expect("objects")
            .iter()
            .map(|object| object[member].as_array().map_or(0, Vec::len))
            .sum()
    };
    let sheet = Sheet::new(&saved, "");
    let existing = sheet.column("EventName").iter().filter(|n| **n == "Existing Handle").count();
    assert_eq!(existing, count("existing_handles"));
    assert_eq!(sheet.0.len(), existing + count("events"));
    let of_file: Vec<_> = (0..sheet.0.len())
        .filter(|&row| sheet.get(row, "Id") == "2")
        .map(|row| sheet.get(row, "EventName"))
        .collect();
    assert_eq!(
        of_file,
        [
            "ObjectCreateEvent",
            "RefCountChangeEvent",
            "HandleCreateEvent",
            "RefCountChangeEvent",
            "HandleCloseEvent",
            "ObjectDeleteEvent"
        ]
    );
}

#[test]
fn a_duplicate_has_its_source_and_the_children_that_inherited() {
    let sheet = Sheet::new(&mixed(), "-MinMaxId 1 1");
    insta::assert_snapshot!(sheet.values_of(sheet.first("HandleDuplicateEvent")), @r"
    Id=1
    EventName=HandleDuplicateEvent
    Time=2000000
    Thread Id=7
    Handle Value=0x80001DDC
    Type=Event
    Object Name=\BaseNamedObjects\Signal
    Object Ptr=0xFFFF810000000000
    SourceProces=app.exe(100)
    SourceHandleValue=0xC0
    Lifetime in s (9999 is not closed)=9999
    MultiProcess=True
    MaxRefCount=0
    Overlapped (Opened multiple times)=False
    Inherited by Process=child.exe(200) +-
    Process=other.exe(300)
    ProcessName=other.exe
    ");
    let close = sheet.first("HandleCloseEvent");
    assert_eq!(sheet.get(close, "Inherited by Process"), "child.exe(200) +-");
    assert_eq!(sheet.get(sheet.first("HandleCreateEvent"), "Inherited by Process"), "");
}

#[test]
fn a_mapping_has_its_values_in_the_right_columns() {
    let sheet = Sheet::new(&mixed(), "-Map 1");
    insta::assert_snapshot!(sheet.values_of(sheet.first("FileMapEvent")), @r"
    Id=3
    EventName=FileMapEvent
    Time=20000000
    Thread Id=7
    Type=FileMapping
    Object Ptr=0xFFFF810000000020
    ViewBase=0x10000
    ViewSize=1048576
    File Object=0xFFFF820800005AF0
    File Offset=65536
    Lifetime in s (9999 is not closed)=0.001
    MultiProcess=False
    MaxRefCount=0
    Overlapped (Opened multiple times)=False
    Process=app.exe(100)
    ProcessName=app.exe
    ");
    assert_eq!(sheet.get(sheet.first("FileUnmapEvent"), "ViewBase"), "0x10000");
}

#[test]
fn reference_changes_are_there_without_being_asked_for() {
    let sheet = Sheet::new(&mixed(), "-MinMaxId 2 2");
    assert_eq!(sheet.column("RefChange"), ["", "2", "", "-2", "", ""]);
    assert_eq!(sheet.column("MaxRefCount"), ["2"; 6]);
    assert_eq!(sheet.column("Lifetime in s (9999 is not closed)"), ["0.005"; 6]);
    assert_eq!(sheet.get(0, "Time"), "10000000");
}

#[test]
fn an_open_handle_knows_its_owner_only() {
    let sheet = Sheet::new(&mixed(), "-MinMaxId 4 4");
    insta::assert_snapshot!(sheet.values_of(0), @r"
    Id=4
    EventName=Existing Handle
    Handle Value=0x44
    Type=Key
    Object Name=\REGISTRY\X
    Object Ptr=0xFFFF810000000030
    Process=app.exe(100)
    ProcessName=app.exe
    ");
}

#[test]
fn the_first_row_says_what_was_asked_and_every_row_of_what() {
    let sheet = Sheet::new(&mixed(), "-MinMaxId 2 2");
    let options = sheet.column("CSVOptions");
    assert_eq!(options[0], ".dump ObjectRef -csv -MinMaxId 2 2");
    assert!(options[1..].iter().all(|options| options.is_empty()));
    assert_eq!(sheet.get(5, "FileName"), "demo");
    assert_eq!(sheet.get(5, "TestCase"), "demo");
    assert_eq!(sheet.get(5, "Date"), "2024-05-10 12:46:34");
}

#[test]
fn the_text_of_a_stack_stands_at_its_first_use() {
    let mut fixture = Fixture::new();
    let stack = fixture.stack(&["nt.exe!NtCreateEvent", "app.exe+0x1a2b"]);
    fixture.event_object(vec![create(APP, 1, 4).on(stack), create(APP, 2, 8).on(stack)]);
    let saved = fixture.save();
    assert_eq!(Sheet::new(&saved, "").column("Stack"), ["0", "0"]);
    let sheet = Sheet::new(&saved, "-ShowStack");
    assert_eq!(sheet.column("Stack"), ["StackId: 0 nt.exe!NtCreateEvent\napp.exe+0x1A2B", "0"]);
    let both = Sheet::read(&csv_text(&[&saved, &saved], "-ShowStack"));
    assert_eq!(both.get(2, "Stack"), "StackId: 1 nt.exe!NtCreateEvent\napp.exe+0x1A2B");
    assert_eq!(both.get(3, "Stack"), "1");
    assert_eq!(both.column("CSVOptions").iter().filter(|text| !text.is_empty()).count(), 1);
}

#[test]
fn values_are_quoted_and_never_altered() {
    let name = "a;b\"c\"\r\n\u{1b}[31m ü";
    let command_line = "\"C:\\app.exe\" --text \"x;y\"\n";
    let mut fixture = Fixture::new();
    fixture.processes.command_line[APP as usize] = command_line.into();
    let events = vec![create(APP, 1, 4), close(APP, 2, 4)];
    fixture.object(NewObject { name, events, ..NewObject::default() });
    let saved = fixture.save();
    let sheet = Sheet::new(&saved, "");
    assert_eq!(sheet.column("Object Name"), [name; 2]);
    assert_eq!(sheet.column("CommandLine"), [" --text \"x;y\"\n"; 2]);
    assert_eq!(Sheet::new(&saved, "-NoCmdLine").column("CommandLine"), [""; 2]);
}

#[test]
fn processes_and_times_are_written_as_elsewhere() {
    let sheet = Sheet::new(&mixed(), "-MinMaxId 1 1 -TimeFmt s -ProcessFmt s -TimeDigits 3");
    let row = sheet.column("ProcessName").iter().position(|n| *n == "child.exe").expect("a row");
    assert_eq!(sheet.get(row, "Process"), "child.exe(200) +0.000 - 0.009 0.00:00:00.008");
    assert_eq!(sheet.get(row, "Start Time"), "0.000");
    // Time itself is for programs.
    assert_eq!(sheet.get(row, "Time"), "5000000");
}

#[test]
fn writing_can_be_cancelled_and_then_there_is_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (saved, path) = (mixed(), folder.path().join("x.csv"));
    let (sources, args) = ([saved.source()], ObjectRefArgs::default());
    let cancel = Cancel::default();
    let answer = handlescope_query::object_ref(&sources, &args.criteria, &saved, &cancel)
        .expect("an answer");
    cancel.cancel();
    let display = DisplayArgs::default().display(&args.display, Screen::PLAIN);
    let (style, mut out) = (args.style(&args.criteria, ""), Vec::new());
    let output = OutputOptions {
        formats: vec![RequestedFormat::new("-csv", Some(path)).expect("a format")],
        ..OutputOptions::default()
    };
    handlescope_render::object_ref(
        answer,
        &style,
        &output,
        &display,
        &Overwrite::default(),
        &cancel,
        &mut out,
    )
    .expect_err("cancelled");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn nothing_found_leaves_the_headers() {
    let text = csv_text(&[&mixed()], "-pn absent");
    assert_eq!(text.lines().count(), 2, "{text}");
}
