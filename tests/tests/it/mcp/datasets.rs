//! Datasets: what answers over them, and that nothing outside of the roots is read by way of one.

use std::fs;
use std::path::{Path, PathBuf};

use handlescope_tests::binary::{Shell, sample_trace};
use handlescope_tests::mcp::McpServer;
use serde_json::{Value, json};

/// Starts a server beside a dataset `fleet` of both samples. Each sample has a build and a machine.
fn of_dataset(shell: &Shell) -> McpServer {
    let server = McpServer::with_sample(shell, &[]);
    let second = sample_trace().with_file_name("server.etl");
    fs::copy(second, shell.path("traces/server.etl")).unwrap();
    for (trace, build, machine) in [("leaky.etl", "1.3", "WS-1"), ("server.etl", "1.4", "WS-2")] {
        let trace = format!("traces/{trace}");
        let add = ["dataset", "add", "traces/fleet", &trace, "--build", build];
        let options = ["--machine", machine, "--symbol-path", "traces/symbols"];
        let _ = shell.run(&[&add[..], &options].concat()).ok();
    }
    server
}

fn load(server: &mut McpServer, path: &str) -> Result<Value, String> {
    server.call("load", &json!({"paths": [path], "symbols": ["symbols"]}))
}

/// The rows that the console prints for a line about the dataset.
fn printed(shell: &Shell, line: &str, rows: &str) -> Vec<Value> {
    let run = shell.run(&["traces/fleet", "-c", line]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    document[rows].as_array().unwrap().clone()
}

#[test]
fn a_dataset_answers_as_in_the_console() {
    let shell = Shell::new();
    let mut server = of_dataset(&shell);
    let loaded = load(&mut server, "fleet").unwrap();
    assert_eq!(loaded["document"]["files"], json!([{"path": "fleet", "dataset_traces": 2}]));
    for (tool, arguments, rows, line, members) in [
        (
            "why",
            json!({"max_bytes": 65536}),
            "suspects",
            ".why -json",
            &["process", "function", "leaked", "machines", "rank"][..],
        ),
        (
            "why",
            json!({"machine": "WS-2", "type": "Event", "min_leaked": 100}),
            "suspects",
            ".why -machine WS-2 -Type Event -MinLeaked 100 -json",
            &["process", "function", "leaked", "worst"],
        ),
        (
            "groups",
            json!({"by": ["machine", "build", "type"], "process": "leaky;server"}),
            "groups",
            ".dump ObjectRef -GroupBy machine,build,type -pn leaky;server -json",
            &["keys"],
        ),
        (
            "groups",
            json!({"by": ["createstack"], "leak": true, "day": "2026-01-01..", "max_bytes": 65536}),
            "groups",
            ".dump ObjectRef -GroupBy createstack -Leak -day 2026-01-01.. -json",
            &["leaked", "keys"],
        ),
        (
            "diff",
            json!({"builds": ["1.3", "1.4"], "process": "!explorer"}),
            "groups",
            ".diff -build 1.3 1.4 -pn !explorer -json",
            &["process", "function", "state"],
        ),
        (
            "sql",
            json!({"query": "SELECT process, sum(leaked) AS n FROM suspects GROUP BY process ORDER BY process"}),
            "rows",
            ".sql SELECT process, sum(leaked) AS n FROM suspects GROUP BY process ORDER BY process -json",
            &["process", "n"],
        ),
    ] {
        let answer =
            server.call(tool, &arguments).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(answer["document"]["dataset"], "fleet", "{line}: {answer}");
        let answered = answer["document"][rows].as_array().unwrap();
        let expected = printed(&shell, line, rows);
        assert!(!expected.is_empty(), "{line}");
        assert_eq!(answered.len(), expected.len(), "{line}");
        for (row, expected) in answered.iter().zip(&expected) {
            for member in members {
                // Zeros and nulls of groups are left out.
                let is_left_out = expected[*member] == 0 || expected[*member].is_null();
                let is_same = row[*member] == expected[*member];
                assert!(
                    is_same || is_left_out && row[*member].is_null(),
                    "{line}: {row} {expected}"
                );
            }
        }
    }
    let (rows, pages) = server.pages("why", &json!({}), "suspects", 1);
    assert!(rows.len() > 2 && rows.len() == pages.len(), "{rows:?}");
    let tables = server.call("schema", &json!({"tables": ["suspects"]})).unwrap();
    let columns = tables["document"]["tables"][0]["columns"].to_string();
    assert!(columns.contains("date: date: Day of the session start, UTC."), "{columns}");
}

#[test]
fn a_suspect_of_a_dataset_leads_to_its_objects() {
    let shell = Shell::new();
    let mut server = of_dataset(&shell);
    load(&mut server, "fleet").unwrap();
    let why = server.call("why", &json!({"process": "leaky", "type": "Event"})).unwrap();
    let suspect = why["document"]["suspects"][0].clone();
    let next = &suspect["next"];
    assert_eq!(next["tool"], "load", "{suspect}");
    let loaded = server.call("load", &next["arguments"]).unwrap();
    let said = loaded["warnings"].to_string();
    assert!(said.contains("unloaded the dataset fleet; load fleet loads it again"), "{said}");
    let handles = json!({"suspect": suspect["worst"]["suspect"]});
    let objects = server.call("objects", &handles).unwrap();
    assert_eq!(objects["document"]["totals"]["leaked_handles"], suspect["leaked"], "{objects}");
    // The id of a trace means nothing without its dataset.
    let error = server.call("load", &next["arguments"]).unwrap_err();
    assert!(error.contains("file not found"), "{error}");
}

#[test]
fn what_answers_over_traces_only_is_refused_with_what_answers() {
    let shell = Shell::new();
    let mut server = of_dataset(&shell);
    load(&mut server, "fleet").unwrap();
    for (tool, arguments) in [
        ("objects", json!({})),
        ("allocations", json!({"by": ["kind"]})),
        ("stack", json!({"id": 1})),
        ("symbols", json!({})),
        ("stats", json!({})),
    ] {
        let error = server.call(tool, &arguments).unwrap_err();
        let expected = format!(
            "{tool} needs traces, but the dataset fleet is loaded; ask it with why, diff, groups, \
             sql and schema, or load other files, or one of its traces by id in `paths`"
        );
        assert_eq!(error, expected);
    }
    for (tool, arguments, expected) in [
        ("why", json!({"since": "1s"}), "the argument 'since' does not apply to a dataset; "),
        ("why", json!({"files": "*"}), "the argument 'files' does not apply to a dataset; "),
        ("sql", json!({"query": "SELECT 1", "files": "*"}), "the argument 'files' does not apply "),
        ("diff", json!({}), "a dataset is compared by builds: name two in `builds`; "),
        ("diff", json!({"builds": ["1.3"]}), "the argument 'builds' takes a list of two texts"),
        ("diff", json!({"builds": ["7", "8"]}), "no trace has a process of build 7"),
        ("schema", json!({"tables": ["leaks"]}), "there is no table or view 'leaks'"),
        ("sql", json!({"query": "SELECT * FROM read_csv('leaky.etl')"}), "FROM takes tables and "),
        (
            "load",
            json!({"paths": ["abc"]}),
            "the dataset has no trace \"abc\"; the tool sql lists ",
        ),
    ] {
        let error = server.call(tool, &arguments).unwrap_err();
        assert!(error.starts_with(expected), "{tool} {arguments}: {error}");
    }
    load(&mut server, "leaky.etl").unwrap();
    let error = server.call("why", &json!({"machine": "WS-1"})).unwrap_err();
    assert!(error.starts_with("the argument 'machine' does not apply to traces; "), "{error}");
}

#[test]
fn a_load_beside_a_dataset_fails_and_changes_nothing() {
    let shell = Shell::new();
    let mut server = of_dataset(&shell);
    fs::write(shell.path("traces/bad.etl"), "no trace").unwrap();
    for loaded in ["leaky.etl", "fleet"] {
        load(&mut server, loaded).unwrap();
        let page = server.call("why", &json!({"top": 1})).unwrap();
        for arguments in [
            json!({"paths": ["fleet"], "append": true}),
            json!({"paths": ["leaky.etl", "fleet"]}),
            json!({"paths": ["fleet", "leaky.etl"]}),
            json!({"paths": ["bad.etl"]}),
            json!({"paths": ["s3://bucket/fleet"]}),
            json!({"paths": ["az://a@b.core.windows.net/fleet"]}),
        ] {
            let error = server.call("load", &arguments).unwrap_err();
            assert!(!error.is_empty());
            assert_eq!(
                server.call("why", &json!({"top": 1})).unwrap(),
                page,
                "{arguments}: {error}"
            );
        }
    }
}

/// The folders with the rows of a table, one for each trace.
#[cfg(unix)]
fn parts(dataset: &Path, table: &str) -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let days = entries(&dataset.join(table));
    days.iter().flat_map(|day| entries(day)).collect()
}

/// Links take the places of folders and files of a dataset, one kind after the other.
#[cfg(unix)]
#[test]
fn no_link_in_a_dataset_leads_out_of_the_roots() {
    use std::os::unix::fs::symlink;

    let shell = Shell::new();
    let mut server = of_dataset(&shell);
    let (fleet, outside) = (shell.path("traces/fleet"), shell.path("outside"));
    // The trace that is asked for is in the place of another one.
    load(&mut server, "fleet").unwrap();
    let why = server.call("why", &json!({"process": "leaky"})).unwrap();
    let trace = why["document"]["suspects"][0]["worst"]["trace"].as_str().unwrap().to_owned();
    let whole_tables = ["groups", "traces", "suspects", "stacks", "_manifests"];
    let mut places: Vec<PathBuf> = whole_tables.map(|table| fleet.join(table)).to_vec();
    for table in ["groups", "traces", "suspects", "processes"] {
        let folder =
            parts(&fleet, table).into_iter().find(|part| part.ends_with(format!("trace={trace}")));
        let folder = folder.unwrap();
        places.extend([folder.join("part-0.parquet"), folder.parent().unwrap().to_owned(), folder]);
    }
    places.push(fleet.join(format!("_manifests/{trace}.json")));
    for place in places {
        let name = place.strip_prefix(&fleet).unwrap().display().to_string();
        fs::rename(&place, &outside).unwrap();
        symlink(&outside, &place).unwrap();
        let mut answers = Vec::new();
        for (tool, arguments) in [
            ("load", json!({"paths": ["fleet"]})),
            ("why", json!({})),
            ("groups", json!({"by": ["process"]})),
            ("diff", json!({"builds": ["1.3", "1.4"]})),
            ("sql", json!({"query": "SELECT * FROM traces"})),
            ("sql", json!({"query": "SELECT date, process, function FROM suspects"})),
            ("sql", json!({"query": "SELECT count(*) FROM groups"})),
            ("sql", json!({"query": "SELECT count(*) FROM processes"})),
        ] {
            answers.push((tool, server.call(tool, &arguments)));
        }
        let refused = answers.iter().filter_map(|(_, answer)| answer.as_ref().err());
        let is_said = |error: &String| error.contains("it is outside the folders that may be read");
        assert!(refused.clone().any(is_said), "{name}: {answers:?}");
        fs::remove_file(&place).unwrap();
        fs::rename(&outside, &place).unwrap();
    }
    // What nothing leads out of answers on.
    load(&mut server, "fleet").unwrap();
    let again = server.call("why", &json!({"process": "leaky"})).unwrap();
    assert_eq!(again["document"], why["document"]);
    // The extract of a trace.
    let extract = fleet.join(format!("_extracts/{trace}.json7z"));
    fs::rename(&extract, &outside).unwrap();
    symlink(&outside, &extract).unwrap();
    let error = server.call("load", &json!({"paths": [trace]})).unwrap_err();
    assert!(error.contains("is outside the folders that may be read"), "{error}");
    // The dataset itself, or its marker.
    symlink(shell.path("traces/fleet"), shell.path("traces/link")).unwrap();
    load(&mut server, "link").unwrap();
    fs::rename(&fleet, shell.path("moved")).unwrap();
    symlink(shell.path("moved"), &fleet).unwrap();
    let error = load(&mut server, "fleet").unwrap_err();
    assert!(error.contains("is outside the folders that may be read"), "{error}");
    assert!(server.call("why", &json!({})).is_err());
}

#[test]
fn a_manifest_names_no_file_elsewhere() {
    let shell = Shell::new();
    let mut server = of_dataset(&shell);
    let manifests = shell.path("traces/fleet/_manifests");
    let manifest = fs::read_dir(manifests).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&manifest).unwrap();
    for table in ["../../outside/groups", "/etc", "a/b", "..", "a\\\\b"] {
        fs::write(&manifest, text.replacen("\"groups\"", &format!("\"{table}\""), 1)).unwrap();
        load(&mut server, "fleet").unwrap();
        let error = server.call("why", &json!({})).unwrap_err();
        assert!(
            error.contains("damaged: ") && error.contains("is not the name of a table"),
            "{error}"
        );
    }
}
