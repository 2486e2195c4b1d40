//! `.export`: tables for other programs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use handlescope_model::Table;
use handlescope_tests::binary::{Shell, examples};
use handlescope_tests::{allocations, needs_duckdb};
use serde_json::{Deserializer, Value};

fn files(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn names(extensions: &[&str]) -> BTreeSet<String> {
    const VIEWS: [&str; 5] = ["leaks", "handles", "open_handles", "allocations", "provider_values"];
    Table::queried()
        .map(|table| table.name())
        .chain(VIEWS)
        .flat_map(|name| extensions.iter().map(move |ext| format!("{name}.{ext}")))
        .collect()
}

/// A row for each leaked handle: object id, type, object name, process id, handle.
type LeakRows = BTreeSet<(u64, String, String, u64, String)>;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the leaked handles that the console prints.
fn leaks_of_console(shell: &Shell) -> LeakRows {
    let run = shell.run(&["leaky.etl", "-c", ".dump ObjectRef -Leak -Map 0 -json"]).ok();
    let document: Value = Deserializer::from_str(&run.stdout).into_iter().next().unwrap().unwrap();
    let mut leaks = LeakRows::new();
    for object in document["objects"].as_array().unwrap() {
        let events = object["events"].as_array().unwrap().iter();
        for event in events.filter(|event| event["leaked"] == true) {
            leaks.insert((
                object["id"].as_u64().unwrap(),
                text(&object["type"]),
                text(&object["name"]),
                event["pid"].as_u64().unwrap(),
                text(&event["handle"]),
            ));
        }
    }
    leaks
}

#[test]
fn every_table_is_written_in_the_formats_asked_for() {
    let shell = Shell::new();
    let run = shell.run(&["leaky.etl", "-c", ".export tables"]).ok();
    assert!(run.stdout.starts_with("tables: 26 tables, 5 views, "), "{run:?}");
    assert_eq!(files(&shell.path("tables")), names(&["parquet"]));
    let run = shell.run(&["leaky.etl", "-c", ".export text -CSV -ndjson"]).ok();
    assert_eq!(files(&shell.path("text")), names(&["csv", "ndjson"]), "{run:?}");
    let rows = |name: &str| fs::read_to_string(shell.path("text").join(name)).unwrap();
    let objects: Vec<Value> =
        Deserializer::from_str(&rows("objects.ndjson")).into_iter().map(Result::unwrap).collect();
    // The last one is only in the rundown at the start.
    assert_eq!(objects.len(), 102);
    assert_eq!(rows("objects.csv").lines().count(), 103, "a header and the rows");
    assert_eq!(objects[88]["pointer"], 0xFFFF_9A0C_51E0_8B00_u64, "the object 89");
}

#[test]
fn allocations_are_written_as_the_tables_that_sql_reads() {
    let shell = Shell::new();
    allocations::trace().write(shell.path("memory.etl")).unwrap();
    let _ = shell.run(&["memory.etl", "-c", ".export tables -ndjson"]).ok();
    for (table, rows) in [("allocators", 3), ("acquisitions", 8), ("resource_misses", 1)] {
        let text = fs::read_to_string(shell.path(&format!("tables/{table}.ndjson"))).unwrap();
        let mut written: Vec<Value> =
            Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect();
        for row in &mut written {
            row.as_object_mut()
                .unwrap()
                .retain(|name, _| name != "trace_id" && !name.ends_with("_utc"));
        }
        let query = format!(".sql SELECT * FROM {table} -ndjson");
        let run = shell.run(&["memory.etl", "-c", &query]).ok();
        let read = Deserializer::from_str(&run.stdout).into_iter().map(Result::unwrap);
        // SQL adds columns to every table (file and row numbers, names of codes), and shows addresses as hex text.
        let stored = written[0].as_object().unwrap();
        let read: Vec<Value> = read
            .map(|mut row: Value| {
                let members = row.as_object_mut().unwrap();
                members.retain(|name, _| stored.contains_key(name));
                let numbers = members.iter_mut().filter(|(name, _)| stored[*name].is_number());
                for (_, member) in numbers {
                    let address = member.as_str().and_then(|text| text.strip_prefix("0x"));
                    if let Some(number) = address.and_then(|hex| u64::from_str_radix(hex, 16).ok())
                    {
                        *member = number.into();
                    }
                }
                row
            })
            .collect();
        assert_eq!((&written, written.len()), (&read, rows), "{table}");
    }
}

#[test]
fn tables_and_views_have_calendar_times_behind_those_since_session_start() {
    let shell = Shell::new();
    let _ = shell.run(&["leaky.etl", "-c", ".export tables -ndjson"]).ok();
    let mut names = BTreeSet::new();
    for (relation, time) in [("events", "time"), ("leaks", "opened"), ("processes", "start")] {
        let text = fs::read_to_string(shell.path(&format!("tables/{relation}.ndjson"))).unwrap();
        let rows: Vec<Value> =
            Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect();
        let query = format!(".sql SELECT utc_time({time}_ns) AS utc FROM {relation} -ndjson");
        let run = shell.run(&["leaky.etl", "-c", &query]).ok();
        let queried: Vec<Value> =
            Deserializer::from_str(&run.stdout).into_iter().map(Result::unwrap).collect();
        let utc = format!("{time}_utc");
        let exported: Vec<&Value> = rows.iter().map(|row| &row[&utc]).collect();
        let expected: Vec<&Value> = queried.iter().map(|row| &row["utc"]).collect();
        assert_eq!(exported, expected, "{relation}");
        assert!(expected.iter().any(|time| time.is_string()), "{relation}");
        names.extend(rows[0].as_object().unwrap().keys().cloned());
    }
    assert!(names.contains("ended_utc") && !names.contains("lifetime_utc"), "{names:?}");
    let leaks = fs::read_to_string(shell.path("tables/leaks.ndjson")).unwrap();
    assert_eq!(leaks.lines().count(), 19, "{leaks}");
}

#[test]
fn several_traces_have_a_folder_each() {
    let shell = Shell::new();
    fs::create_dir(shell.path("other")).unwrap();
    fs::copy(shell.path("leaky.etl"), shell.path("other/leaky.etl")).unwrap();
    fs::copy(shell.path("leaky.etl"), shell.path("second.etl")).unwrap();
    let script = ".load leaky.etl second.etl other/leaky.etl\n.export tables\n";
    let run = shell.script(&[], script).ok();
    assert_eq!(run.stdout.lines().count(), 3, "{run:?}");
    let folders = BTreeSet::from(["leaky", "leaky-2", "second"].map(str::to_owned));
    assert_eq!(files(&shell.path("tables")), folders);
    for folder in folders {
        assert_eq!(files(&shell.path("tables").join(folder)), names(&["parquet"]));
    }
    let one = shell.script(&[], ".load leaky.etl second.etl\n.export one -fd *second*\n").ok();
    assert_eq!(files(&shell.path("one")), names(&["parquet"]), "{one:?}");
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_that_names_it() {
    let shell = Shell::new();
    fs::write(shell.path("taken"), "").unwrap();
    let run = shell.run(&["leaky.etl", "-c", ".export taken"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("taken: cannot be written: "), "{run:?}");
    let nothing = shell.run(&["-c", ".export tables"]);
    assert!(nothing.stderr.contains("no trace is loaded"), "{nothing:?}");
}

/// `HANDLESCOPE_PYTHON` names an interpreter with the package `duckdb`; CI provides one.
#[needs_duckdb]
#[test]
fn the_leak_query_has_the_same_answer_in_duckdb() {
    let python = std::env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let shell = Shell::new();
    let _ = shell.run(&["leaky.etl", "-c", ".export tables"]).ok();
    let output = Command::new(python)
        .arg(examples().join("leaks.py"))
        .args([shell.path("tables").as_os_str(), "--handles".as_ref()])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let rows = Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let leaks: LeakRows = rows
        .map(|row| {
            let row = row.unwrap();
            (
                row["id"].as_u64().unwrap(),
                text(&row["type"]),
                text(&row["object_name"]),
                row["pid"].as_u64().unwrap(),
                text(&row["handle"]),
            )
        })
        .collect();
    assert_eq!(leaks.len(), 19);
    assert_eq!(leaks, leaks_of_console(&shell));
}

#[needs_duckdb]
#[test]
fn the_select_of_the_readme_names_the_functions_that_leak_most() {
    let readme = fs::read_to_string(examples().join("../README.md")).unwrap();
    let start = readme.find("`SELECT ").expect("a SELECT") + 1;
    let select = readme[start..].split('`').next().unwrap().replace("\n  ", " ");
    let shell = Shell::new();
    let run = shell.run(&["leaky.etl", "-c", ".export tables"]).ok();
    assert!(run.stderr.contains("loaded leaky.etl"), "{run:?}");
    let python = std::env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let script = "import duckdb, json, sys; print(json.dumps(duckdb.sql(sys.argv[1]).fetchall()))";
    let output = Command::new(python)
        .args(["-c", script, &select])
        .current_dir(shell.path("."))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{select}: {errors}");
    let rows: Vec<(Option<String>, u64)> = serde_json::from_slice(&output.stdout).unwrap();
    let leaks = leaks_of_console(&shell).len() as u64;
    assert_eq!(rows.iter().map(|(_, leaks)| leaks).sum::<u64>(), leaks);
    assert_eq!(rows[0], (Some("leaky.exe+0x106F".to_owned()), 8));
}

#[needs_duckdb]
#[test]
fn duckdb_skips_row_groups_by_the_ranges_of_columns() {
    const QUERY: &str = "import duckdb, sys
print(duckdb.sql(f\"\"\"
    SELECT (SELECT (min(stats_min_value::BIGINT), max(stats_max_value::BIGINT))
            FROM parquet_metadata('{sys.argv[1]}') WHERE path_in_schema = 'time_ns')
         = (SELECT (min(time_ns), max(time_ns)) FROM '{sys.argv[1]}')\"\"\").fetchall()[0][0])";
    let python = std::env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let shell = Shell::new();
    let _ = shell.run(&["leaky.etl", "-c", ".export tables"]).ok();
    let events = shell.path("tables").join("events.parquet");
    let output = Command::new(python).args(["-c", QUERY]).arg(events).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "True", "{output:?}");
}
