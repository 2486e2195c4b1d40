//! Tests of `-csv` with the binary.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use csv::{ReaderBuilder, StringRecord};
use handlescope_tests::binary::{ProgramRun, Shell, sample_symbols};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use serde_json::Value;

/// The rows of a file, and its columns.
struct Sheet {
    columns: StringRecord,
    rows: Vec<StringRecord>,
}

impl Sheet {
    fn open(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a file of UTF-8");
        let text = text.strip_prefix("sep = ;\n").expect("a line for Excel");
        let mut reader = ReaderBuilder::new().delimiter(b';').from_reader(text.as_bytes());
        let columns = reader.headers().expect("headers").clone();
        let rows = reader.records().collect::<Result<_, _>>().expect("rows of equal length");
        Self { columns, rows }
    }

    fn column(&self, name: &str) -> Vec<&str> {
        let index = self.columns.iter().position(|column| column == name).expect(name);
        self.rows.iter().map(|row| &row[index]).collect()
    }

    /// Counts rows by event name.
    fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for name in self.column("EventName") {
            *counts.entry(name).or_default() += 1;
        }
        counts
    }
}

fn document(run: &ProgramRun) -> Value {
    let start = run.stdout.find('{').expect("a document");
    serde_json::from_str(&run.stdout[start..]).expect("JSON")
}

/// Returns the expected counts of a CSV file, from the JSON answer to the same question.
fn expected_counts(document: &Value) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for object in document["objects"].as_array().expect("objects") {
        for event in object["events"].as_array().expect("events") {
            let name = match event["kind"].as_str().expect("a kind") {
                "handle_create" => "HandleCreateEvent",
                "handle_duplicate" => "HandleDuplicateEvent",
                "handle_close" => "HandleCloseEvent",
                "object_create" => "ObjectCreateEvent",
                "object_delete" => "ObjectDeleteEvent",
                "reference" | "dereference" => "RefCountChangeEvent",
                "map" => "FileMapEvent",
                "unmap" => "FileUnmapEvent",
                other => panic!("{other}"),
            };
            *counts.entry(name).or_default() += 1;
        }
        let existing = object["existing_handles"].as_array().expect("handles").len();
        if existing > 0 {
            *counts.entry("Existing Handle").or_default() += existing;
        }
    }
    counts
}

#[test]
fn a_leak_hunt_ends_in_a_spreadsheet() {
    let shell = Shell::new();
    let symbols = sample_symbols().display().to_string();
    let script = ".dump ObjectRef -Leak -ShowStack -csv leaks.csv\n.dump ObjectRef -Leak -json\n";
    let run = shell.script(&["--symbol-path", &symbols, "leaky.etl"], script).ok();
    let said = run.stdout.lines().next().expect("a line");
    let path = said.strip_prefix("CSV export was successful. File is: ").expect(said);
    assert!(Path::new(path).is_absolute(), "{path}");
    let sheet = Sheet::open(Path::new(path));
    let document = document(&run);
    let mut expected = expected_counts(&document);
    assert_eq!(expected.remove("Existing Handle"), Some(19), "what is listed as open is no leak");
    assert_eq!(sheet.counts(), expected);
    assert!(sheet.rows.len() > 10, "{}", sheet.rows.len());
    assert!(sheet.column("Stack").iter().any(|stack| stack.contains('\n')));
    assert_eq!(sheet.column("CSVOptions")[0], ".dump ObjectRef -Leak -ShowStack -csv leaks.csv");
}

#[needs_data]
#[test]
fn every_event_of_a_trace_has_a_row() {
    for name in ["objectref", "filemap", "duplicates"] {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let shell = Shell::new();
        fs::copy(trace.etl(), shell.path("trace.etl")).expect("a copy");
        let script = ".dump ObjectRef -csv all.csv\n.dump ObjectRef -json\n";
        let run = shell.script(&["trace.etl"], script).ok();
        let sheet = Sheet::open(&shell.path("all.csv"));
        assert_eq!(sheet.counts(), expected_counts(&document(&run)), "{name}");
    }
}

#[test]
fn an_existing_file_is_replaced_with_force_and_nothing_else_is_left_behind() {
    let shell = Shell::new();
    fs::write(shell.path("all.csv"), "old").expect("written");
    let refused = shell.script(&["leaky.etl"], ".dump ObjectRef -csv all.csv\n");
    assert!(
        refused.stderr.contains("all.csv: already exists") && refused.status == Some(1),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(shell.path("all.csv")).expect("read"), "old");
    let _ = shell.script(&["leaky.etl"], ".dump ObjectRef -csv all.csv -Force\n").ok();
    assert!(!Sheet::open(&shell.path("all.csv")).rows.is_empty());
    let names = fs::read_dir(shell.path(".")).expect("a folder").map(|entry| entry.expect("one"));
    let left = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let left: Vec<_> = left.filter(|name| name.ends_with(".tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[cfg(unix)]
#[test]
fn others_may_read_the_file_as_any_other() {
    use std::os::unix::fs::PermissionsExt;
    let shell = Shell::new();
    fs::write(shell.path("other"), "").expect("written");
    let _ = shell.script(&["leaky.etl"], ".dump ObjectRef -csv all.csv\n").ok();
    let mode = |name| fs::metadata(shell.path(name)).expect("a file").permissions().mode();
    assert_eq!(mode("all.csv"), mode("other"));
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_the_remedy() {
    let shell = Shell::new();
    let run = shell.script(&["leaky.etl"], ".dump ObjectRef -csv none/such.csv\n");
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stdout.is_empty(), "{run:?}");
    assert!(run.stderr.contains("such.csv: cannot be written: "), "{run:?}");
    assert!(run.stderr.contains("name another file with -csv"), "{run:?}");
}

#[test]
fn a_csv_file_is_neither_json_nor_a_table_of_totals() {
    for (options, expected) in [
        ("-json", "-csv and -json cannot be combined"),
        ("-ShowTotal Process", "-csv and -ShowTotal cannot be combined"),
    ] {
        let shell = Shell::new();
        let line = format!(".dump ObjectRef -csv x.csv {options}\n");
        let run = shell.script(&["leaky.etl"], &line);
        assert_eq!(run.status, Some(1), "{run:?}");
        assert!(run.stderr.contains(expected), "{run:?}");
        assert!(!shell.path("x.csv").exists());
    }
}
