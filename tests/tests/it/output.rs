//! Every kind of `.dump`, and `.sql`, in every format: the rows are the same, whatever they contain.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use handlescope_model::is_harmful;
use handlescope_tests::binary::Shell;
use handlescope_tests::payload::HeapCall;
use handlescope_tests::scenario::TraceBuilder;
use polars::prelude::{AnyValue, ParquetReader, SerReader};
use serde_json::{Deserializer, Value};

/// Returns commands with names for their files: every kind in the help, and a query.
fn questions(shell: &Shell) -> Vec<(String, String)> {
    let help = shell.run(&["-c", ".help .dump"]).ok().stdout;
    let kinds = help.lines().skip_while(|line| *line != "Kinds").skip(1);
    let mut questions: Vec<_> = kinds
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .map(|kind| (kind.clone(), format!(".dump {kind}")))
        .collect();
    assert!(questions.len() >= 7, "{help}");
    let query = ".sql SELECT e.row, p.name, p.command_line, e.leaked, s.frames FROM events e JOIN \
                 processes p ON p.row = e.process LEFT JOIN stacks s ON s.row = e.stack";
    questions.push(("sql".to_owned(), query.to_owned()));
    questions
}

/// Runs commands on a trace; all of them have to succeed.
fn run(shell: &Shell, trace: &str, commands: impl IntoIterator<Item = String>) -> String {
    let script: Vec<String> = commands.into_iter().collect();
    shell.script(&[trace], &script.join("\n")).ok().stdout
}

/// A row as the name and text of each known value.
type ValueRow = BTreeSet<(String, String)>;

fn row(cells: impl Iterator<Item = (String, String)>) -> ValueRow {
    cells.filter(|(_, text)| !text.is_empty()).collect()
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap().to_string(),
        other => other.to_string(),
    }
}

fn json_rows<'v>(rows: impl IntoIterator<Item = &'v Value>) -> Vec<ValueRow> {
    let cells = |value: &Value| {
        let members = value.as_object().unwrap().iter();
        row(members.map(|(name, value)| (name.clone(), text_of(value))))
    };
    rows.into_iter().map(cells).collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let values: Vec<Value> =
        Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect();
    assert_eq!(text.lines().count(), values.len(), "one object a line");
    values
}

fn csv_rows(path: &Path) -> Vec<ValueRow> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let names = reader.headers().unwrap().clone();
    let record = |record: Result<csv::StringRecord, csv::Error>| {
        let record = record.unwrap();
        row(names.iter().zip(&record).map(|(name, text)| (name.to_owned(), text.to_owned())))
    };
    reader.records().map(record).collect()
}

fn parquet_rows(path: &Path) -> Vec<ValueRow> {
    let frame = ParquetReader::new(fs::File::open(path).unwrap()).finish().unwrap();
    let text = |value: AnyValue<'_>| match value {
        AnyValue::Null => String::new(),
        AnyValue::String(text) => text.to_owned(),
        AnyValue::StringOwned(text) => text.to_string(),
        AnyValue::Float64(number) => number.to_string(),
        AnyValue::List(list) => {
            let numbers: Vec<String> = list
                .u32()
                .unwrap()
                .iter()
                .map(Option::unwrap)
                .map(|number| number.to_string())
                .collect();
            format!("[{}]", numbers.join(","))
        }
        other => other.to_string(),
    };
    let cells = |at: usize| {
        let columns = frame.columns().iter();
        row(columns.map(|column| (column.name().to_string(), text(column.get(at).unwrap()))))
    };
    (0..frame.height()).map(cells).collect()
}

/// Returns the number of rows in a document: its elements, or their members.
fn elements(kind: &str, document: &Value) -> usize {
    let members = |name: &str, inner: &[&str]| {
        document[name]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| inner.iter().map(|i| one[i].as_array().unwrap().len()).sum::<usize>())
            .sum()
    };
    match kind {
        "ObjectRef" => members("objects", &["events", "existing_handles"]),
        "Stats" => members("files", &["events"]),
        "Events" => members("providers", &["events"]),
        "Why" => document["suspects"].as_array().unwrap().len(),
        "Diff" => document["groups"].as_array().unwrap().len(),
        "Resource" => document["totals"].as_array().unwrap().len(),
        _ => document
            .as_object()
            .unwrap()
            .values()
            .filter_map(Value::as_array)
            .next_back()
            .unwrap()
            .len(),
    }
}

/// Runs every command in every format and compares the rows. Returns the rows of `-ndjson` by command.
fn compare_formats(shell: &Shell, trace: &str) -> Vec<(String, Vec<Value>)> {
    let questions = questions(shell);
    let commands = questions.iter().flat_map(|(name, question)| {
        let file = |options: &str, end: &str| format!("{question} {options} > {name}.{end}");
        let named = format!("{question} -parquet {name}-named.parquet");
        [
            file("", "json"),
            file("-csvraw", "csv"),
            file("-ndjson", "ndjson"),
            file("", "txt"),
            file("", "parquet"),
            named,
        ]
    });
    let stdout = run(shell, trace, commands);
    assert_eq!(stdout.lines().count(), questions.len(), "only -parquet says something: {stdout}");
    let mut answers = Vec::new();
    for (name, _) in questions {
        let path = |end: &str| shell.path(&format!("{name}.{end}"));
        let values = lines(&path("ndjson"));
        let rows = json_rows(&values);
        // The sample has no allocations.
        assert_eq!(rows.is_empty(), name == "Resource" && trace == "leaky.etl", "{name}");
        assert_eq!(parquet_rows(&path("parquet")), rows, "{name}");
        let named = fs::read(shell.path(&format!("{name}-named.parquet"))).unwrap();
        assert!(named == fs::read(path("parquet")).unwrap(), "{name}");
        let document: Value =
            serde_json::from_str(&fs::read_to_string(path("json")).unwrap()).unwrap();
        assert_eq!(elements(&name, &document), rows.len(), "{name}");
        if name == "Process" {
            assert_eq!(document["processes"].as_array().unwrap(), &values);
        }
        if name == "ObjectRef" {
            // The columns are ETWAnalyzer's, but the rows are the same, below two header lines.
            let bytes = fs::read(path("csv")).unwrap();
            let bytes = bytes.strip_prefix(b"sep = ;\n").unwrap();
            let mut reader = csv::ReaderBuilder::new().delimiter(b';').from_reader(bytes);
            assert_eq!(reader.records().map(Result::unwrap).count(), rows.len());
        } else {
            assert_eq!(csv_rows(&path("csv")), rows, "{name}");
        }
        for end in ["txt", "json", "ndjson"] {
            let text = fs::read_to_string(path(end)).unwrap();
            let acts = text.chars().find(|c| is_harmful(*c) && !['\n', '\t'].contains(c));
            assert_eq!(acts, None, "{name}: {text:?}");
        }
        answers.push((name, values));
    }
    answers
}

#[test]
fn a_redirected_table_has_all_its_rows_in_the_format_of_its_file() {
    let shell = Shell::new();
    let query = ".sql SELECT a.row FROM events a CROSS JOIN processes p CROSS JOIN processes q";
    let commands = ["rows.parquet", "rows.ndjson"].map(|file| format!("{query} > {file}"));
    assert_eq!(run(&shell, "leaky.etl", commands), "");
    let rows = parquet_rows(&shell.path("rows.parquet"));
    assert!(rows.len() > 1000, "more than text shows: {}", rows.len());
    assert_eq!(rows, json_rows(&lines(&shell.path("rows.ndjson"))));
    let appended = ".dump Process >> all.ndjson".to_owned();
    run(&shell, "leaky.etl", [appended.clone(), appended]);
    let (once, twice) = (".dump Process > once.ndjson".to_owned(), shell.path("all.ndjson"));
    run(&shell, "leaky.etl", [once]);
    let once = lines(&shell.path("once.ndjson"));
    assert_eq!(lines(&twice), [once.clone(), once].concat());
}

#[test]
fn a_file_that_is_named_as_another_format_is_left_as_it_is() {
    let shell = Shell::new();
    for command in
        [".why -json > kept.csv", ".why -csv kept.json", ".why >> kept.parquet", ".list > kept.csv"]
    {
        let file = shell.path(command.rsplit(' ').next().unwrap());
        fs::write(&file, "mine").unwrap();
        let run = shell.run(&["leaky.etl", "-c", command]);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{run:?}");
        assert!(run.stderr.contains("kept."), "{run:?}");
        assert_eq!(fs::read(&file).unwrap(), b"mine", "{command}");
    }
}

#[test]
fn every_kind_has_the_same_rows_in_every_format() {
    let shell = Shell::new();
    compare_formats(&shell, "leaky.etl");
}

/// Text with a meaning to a spreadsheet, a shell, a terminal or a parser.
const HOSTILE: &str =
    "=HYPERLINK(\"x\");a,b|'c'\t<d>\u{1b}[2J\r\n\"\"{\\e}\u{9b}2J\u{202e}\u{2028}";

#[test]
fn hostile_values_pass_unharmed() {
    const OBJECT: u64 = 0xffff_8100_0000_1000;
    let shell = Shell::new();
    let mut trace = TraceBuilder::new();
    trace.process(700, "=cmd,\"x\".exe").command_line(HOSTILE);
    trace.module(700, &format!(r"C:\{HOSTILE}"), 0x40_0000, 0x2_0000).rundown_only();
    trace.object_type(16, "Event");
    trace.create_handle(1_000_000, (700, 8), OBJECT, 4, 16);
    trace.stack(&[], &[0x40_1000]);
    trace.close_handle(2_000_000, (700, 8), OBJECT, 4, 16, HOSTILE);
    trace.create_handle(3_000_000, (700, 8), OBJECT + 0x1000, 8, 16);
    trace.stack(&[], &[0x40_1000]);
    trace.heap(4_000_000, (700, 8), 0x1_0000, HeapCall::Alloc { address: 0x5000, size: 8 });
    trace.stack(&[], &[0x40_1000]);
    trace.write(shell.path("hostile.etl")).unwrap();
    for (name, rows) in compare_formats(&shell, "hostile.etl") {
        let has = |column: &str| rows.iter().any(|row| row[column] == HOSTILE);
        match name.as_str() {
            "ObjectRef" => assert!(has("name"), "{rows:?}"),
            "Process" | "sql" => assert!(has("command_line"), "{rows:?}"),
            "Module" | "Version" => {
                let is_whole = |row: &Value| row["path"].as_str().unwrap().ends_with(HOSTILE);
                assert!(rows.iter().any(is_whole), "{rows:?}");
            }
            _ => {}
        }
    }
}

#[test]
fn a_redirected_answer_is_that_of_a_pipe() {
    let shell = Shell::new();
    let forms: Vec<String> = questions(&shell)
        .into_iter()
        .flat_map(|(_, question)| {
            ["", "-json", "-csv", "-ndjson"].map(|f| format!("{question} {f}"))
        })
        .collect();
    let piped = run(&shell, "leaky.etl", forms.clone());
    let redirected = forms.iter().enumerate().map(|(at, form)| match at % 2 {
        0 => format!("{form} > \"out {at}.txt\""),
        _ => format!("{form} >./{at}.txt"),
    });
    assert_eq!(run(&shell, "leaky.etl", redirected), "");
    let file = |at: usize| match at % 2 {
        0 => fs::read_to_string(shell.path(&format!("out {at}.txt"))).unwrap(),
        _ => fs::read_to_string(shell.path(&format!("{at}.txt"))).unwrap(),
    };
    assert_eq!((0..forms.len()).map(file).collect::<String>(), piped);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_and_leaves_nothing() {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl", "-o", "."]).ok();
    let files = || -> BTreeSet<String> {
        let entries = fs::read_dir(shell.path("")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    fs::write(shell.path("old.txt"), "old").unwrap();
    let before = files();
    for (_, question) in questions(&shell) {
        for end in ["> none/x.txt", "-csv none/x.csv", "-parquet none/x.parquet", "-ndjson >none/x"]
        {
            let run = shell.run(&["leaky.json7z", "-c", &format!("{question} {end}")]);
            assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{question} {end}");
            assert!(run.stderr.contains("cannot be written: "), "{run:?}");
        }
    }
    let wrong = shell.run(&["leaky.json7z", "-c", ".dump Process -SortBy x > old.txt -Force"]);
    assert!(wrong.stderr.contains("column 'x'; the columns are pid, "), "{wrong:?}");
    assert_eq!(fs::read_to_string(shell.path("old.txt")).unwrap(), "old");
    assert_eq!(files(), before);
}

/// Returns the columns that a command can sort by, taken from the error about an unknown one.
fn sortable(shell: &Shell, question: &str) -> Vec<String> {
    let run = shell.run(&["leaky.etl", "-c", &format!("{question} -SortBy no_such")]);
    let (_, columns) = run.stderr.split_once("the columns are ").unwrap();
    let columns = columns.split(';').next().unwrap();
    columns.trim().split(", ").map(str::to_owned).collect()
}

/// Orders numbers from the largest, text from a to z ignoring case, and unknown values last.
fn compare(one: &Value, other: &Value) -> Ordering {
    let hex = |value: &Value| u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok();
    if let (Some(one), Some(other)) = (hex(one), hex(other)) {
        return other.cmp(&one);
    }
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            other.as_f64().unwrap().total_cmp(&one.as_f64().unwrap())
        }
        (Value::Bool(one), Value::Bool(other)) => other.cmp(one),
        (Value::String(one), Value::String(other)) => one.to_lowercase().cmp(&other.to_lowercase()),
        _ => one.is_null().cmp(&other.is_null()),
    }
}

/// Writes a trace with allocations, because the sample has none.
fn write_allocations(shell: &Shell) {
    let mut trace = TraceBuilder::new();
    for pid in [700, 900, 800] {
        trace.process(pid, &format!("app{pid}.exe"));
        let call = HeapCall::Alloc { address: 0x5000, size: u64::from(pid) };
        trace.heap(i64::from(pid), (pid, 8), 0x1_0000, call);
    }
    trace.heap(1000, (900, 8), 0x1_0000, HeapCall::Free { address: 0x5000 });
    trace.write(shell.path("allocations.etl")).unwrap();
}

#[test]
fn rows_are_sorted_by_every_column_and_cut() {
    let shell = Shell::new();
    write_allocations(&shell);
    for (name, question) in questions(&shell) {
        let columns = sortable(&shell, &question);
        let sorted = |column: &String| {
            format!("{question} -SortBy {} -ndjson > {name}-{column}.txt", column.to_uppercase())
        };
        let cut = format!("{question} -SortBy {} -TopN 1 1 -ndjson > {name}-top.txt", columns[0]);
        let trace = if name == "Resource" { "allocations.etl" } else { "leaky.etl" };
        run(&shell, trace, columns.iter().map(sorted).chain([cut]));
        let file = |column: &str| shell.path(&format!("{name}-{column}.txt"));
        if name == "ObjectRef" {
            let ids: Vec<u64> =
                lines(&file("id")).iter().map(|row| row["id"].as_u64().unwrap()).collect();
            assert!(ids.is_sorted_by(|one, other| one >= other), "{ids:?}");
            continue;
        }
        for column in &columns {
            let rows = lines(&file(column));
            let values: Vec<&Value> = rows.iter().map(|row| &row[column]).collect();
            let is_sorted = values.is_sorted_by(|one, other| compare(one, other).is_le());
            assert!(is_sorted, "{question} -SortBy {column}: {values:?}");
        }
        assert_eq!(lines(&file("top")), lines(&file(&columns[0]))[1..2], "{name}");
    }
}

#[test]
fn text_and_documents_count_the_rows_that_are_left_out() {
    let shell = Shell::new();
    let top = |kind: &str| run(&shell, "leaky.etl", [format!(".dump {kind} -TopN 2")]);
    assert!(top("Process").contains("\n+ 4 more\n6 processes, "), "{}", top("Process"));
    assert!(top("Version").contains("\n+ 4 more\nSelected 6/6 "), "{}", top("Version"));
    assert!(top("Stack").contains("\n2 of 30 stacks, recorded "), "{}", top("Stack"));
    for options in ["", "-SortBy count"] {
        let json = run(&shell, "leaky.etl", [format!(".dump Stack {options} -TopN 2 -json")]);
        let document: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(document["left_out"]["stacks"], 28, "{options}");
    }
    fs::copy(shell.path("leaky.etl"), shell.path("second.etl")).unwrap();
    let script = ".load leaky.etl second.etl\n.dump Process -SortBy NAME -TopN 2 -csv\n";
    let csv = shell.script(&[], script).ok().stdout;
    let rows: Vec<&str> = csv.lines().skip(1).map(|line| line.get(..6).unwrap()).collect();
    assert_eq!(rows, ["0,612,", "0,4312", "1,612,", "1,4312"]);
}
