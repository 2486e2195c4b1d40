//! Answers of the tools.

use std::fs;
use std::path::Path;
use std::process::Command;

use handlescope_tests::binary::{Shell, handlescope_path, sample_trace};
use handlescope_tests::mcp::McpServer;
use handlescope_tests::{allocations, needs_mcp};
use serde_json::{Value, json};

use super::{TOOLS, of_allocations};

/// Members of rows that differ between answers and documents.
const IN_OTHER_WORDS: [&str; 8] =
    ["next", "stack", "causes", "object_names", "frames", "file", "columns", "rate_per_minute"];

/// Asserts that the rows of an answer agree with those of a document.
fn assert_same_rows(answer: &[Value], document: &[Value], tool: &str) {
    assert!(!answer.is_empty(), "{tool}");
    assert_eq!(answer.len(), document.len(), "{tool}");
    for (row, expected) in answer.iter().zip(document) {
        let row = row.as_object().unwrap();
        assert!(row.len() > 2, "{tool}: {row:?}");
        for (name, value) in row.iter().filter(|(name, _)| !IN_OTHER_WORDS.contains(&name.as_str()))
        {
            assert_eq!(value, &brief(&expected[name]), "{tool}: {name}");
        }
    }
}

/// Returns a document value without nulls, `false` and empty lists.
fn brief(value: &Value) -> Value {
    let is_said =
        |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && *value != json!([]);
    match value {
        Value::Array(items) => items.iter().map(brief).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), brief(value)))
            .filter(|(_, value)| is_said(value))
            .collect(),
        value => value.clone(),
    }
}

#[test]
fn rows_are_those_of_the_console() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let loaded = server.load_sample();
    let path = shell.path("traces/leaky.etl").canonicalize().unwrap();
    assert_eq!(
        loaded["document"]["files"],
        json!([{"path": "leaky.etl", "temporary_extract": true}])
    );
    let symbols = &loaded["document"]["symbols"];
    assert_eq!((&symbols["frames"], &symbols["frames_named"]), (&json!(96), &json!(96)));
    assert!(symbols["found_in"][0].as_str().unwrap().ends_with("symbols"), "{symbols}");
    let said = loaded["warnings"].to_string();
    assert!(said.contains("1 close of a handle opened before the trace"), "{said}");
    for (tool, arguments, rows, line) in [
        ("why", json!({"max_bytes": 65536}), "suspects", ".dump Why -json"),
        (
            "why",
            json!({"type": "Thread", "race_window": "1us", "detail": true}),
            "suspects",
            ".why -Type Thread -RaceWindow 1us -json",
        ),
        (
            "why",
            json!({"min_leaked": 6, "since": "0.1"}),
            "suspects",
            ".why -MinLeaked 6 -Since 0.1 -json",
        ),
        ("objects", json!({"ids": [75, 81]}), "objects", ".dump ObjectRef -Id 75;81 -json"),
        (
            "objects",
            json!({"time": {"from": "1s", "to": "1.2s"}}),
            "objects",
            ".dump ObjectRef -MinMaxTime 1s 1.2s -json",
        ),
        ("stack", json!({"id": 18}), "stacks", ".dump Stack -Id 18 -json"),
        ("stats", json!({"detail": true, "max_bytes": 65536}), "files", ".dump Stats -json"),
        ("symbols", json!({"detail": true}), "symbols", ".dump Symbols -json"),
        (
            "sql",
            json!({"query": "SELECT process, pid, type FROM leaks"}),
            "rows",
            ".sql SELECT process, pid, type FROM leaks -json",
        ),
    ] {
        let answer = server.call(tool, &arguments).unwrap();
        let symbols = shell.path("traces/symbols");
        let arguments = [path.to_str().unwrap(), "--symbol-path", symbols.to_str().unwrap()];
        let run = shell.run(&[&arguments[..], &["-c", line]].concat()).ok();
        let expected: Value = serde_json::from_str(&run.stdout).unwrap();
        let rows_of = |document: &Value| document[rows].as_array().unwrap().clone();
        assert_same_rows(&rows_of(&answer["document"]), &rows_of(&expected), tool);
        assert!(answer.get("next").is_none(), "{tool}: {answer}");
        assert_eq!(answer["document"]["traces"], json!(["leaky.etl"]), "{tool}");
    }
}

#[test]
fn a_suspect_takes_a_few_lines_and_leads_to_its_objects() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    server.load_sample();
    let params = json!({"name": "why", "arguments": {}});
    let answer = server.request("tools/call", &params);
    assert!(answer.to_string().len() <= 4 << 10, "{}", answer.to_string().len());
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let start = "1. 8 of 56 Event handles leaked, leaky.exe(7316), id 33434dfa4c\n   \
                 leaky::EventCache::GetOrCreate leaky.cpp:29 < Worker::Run :71 < ThreadPool::WorkerMain :97\n   \
                 Balanced: 48 of 56 closed after 790 ms on average, 8 still open at the end of the trace\n";
    assert!(text.contains(start), "{text}");
    let why = &answer["result"]["structuredContent"];
    let next = &why["document"]["suspects"][0]["next"];
    let objects = server.call(next["tool"].as_str().unwrap(), &next["arguments"]).unwrap();
    assert_eq!(objects["total"], 8);
    for word in ["-ShowStack", "-GroupBy", ".dump", ".help", "docs/"] {
        assert!(!answer.to_string().contains(word), "{word}: {answer}");
    }
}

#[test]
fn an_older_client_gets_the_json_as_text() {
    let shell = Shell::new();
    drop(McpServer::with_sample(&shell, &[]));
    let mut server = McpServer::uninitialized(&shell.path("traces"), &[]);
    server.initialize("2024-11-05");
    let load = json!({"name": "load", "arguments": {"paths": ["leaky.etl"]}});
    let result = server.request("tools/call", &load)["result"].clone();
    assert!(result.get("structuredContent").is_none(), "{result}");
    let json: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(json["total"], 1);
}

#[test]
fn prompts_lead_to_the_leak() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let list = server.request("prompts/list", &json!({}));
    let names: Vec<&Value> = list["result"]["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|prompt| &prompt["name"])
        .collect();
    assert_eq!(names, ["find_the_leak", "what_changed"]);
    let arguments = json!({"trace": "leaky.etl"});
    let prompt =
        server.request("prompts/get", &json!({"name": "find_the_leak", "arguments": arguments}));
    let text = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.starts_with("Load leaky.etl with the tool load, then call why."), "{text}");
    let missing = server.request("prompts/get", &json!({"name": "what_changed"}));
    assert_eq!(missing["error"]["message"], "the argument 'before' is missing");
}

#[test]
fn the_leaks_of_the_sample_are_found() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let error = server.call("why", &json!({})).unwrap_err();
    assert_eq!(error, "no trace is loaded; call load first");
    server.load_sample();
    let why = server.call("why", &json!({})).unwrap();
    let first = &why["document"]["suspects"][0];
    assert_eq!(first["leaked"], 8);
    assert_eq!(first["function"], "leaky.exe!leaky::EventCache::GetOrCreate");
    assert_eq!(first["causes"][0], "race");
    let handles = json!({"process": "7316", "type": "Event", "stack_filter": first["function"],
        "leak": true, "stacks": true});
    let objects = server.call("objects", &handles).unwrap();
    assert_eq!(objects["total"], 8);
    let stack = objects["document"]["objects"][0]["events"][0]["stack"].clone();
    let by_number = server.call("stack", &json!({"id": stack})).unwrap();
    let frames = &by_number["document"]["stacks"][0]["frames"];
    assert_eq!(frames, &objects["document"]["stacks"][stack.to_string()]);
    let schema = server.call("schema", &json!({"tables": ["leaks"]})).unwrap();
    let named =
        json!({"query": "SELECT DISTINCT function FROM leaks WHERE leaked AND type = 'Thread'"});
    let named = server.call("sql", &named).unwrap();
    assert_eq!(
        named["document"]["rows"],
        json!([{"function": "leaky.exe!leaky::ThreadPool::StartWorker"}])
    );
    let texts = json!({"query": "SELECT text, 1 AS summary FROM stacks LIMIT 1"});
    let texts = server.call("sql", &texts).unwrap();
    assert_eq!(texts["document"]["rows"][0].as_object().unwrap().len(), 2);
    let open =
        json!({"query": "SELECT count(*) AS n FROM open_handles WHERE process = 'leaky.exe'"});
    assert_eq!(server.call("sql", &open).unwrap()["document"]["rows"], json!([{"n": 19}]));
    for (name, hint) in [
        ("leak", ", did you mean leaks?"),
        ("leaks;", ", did you mean leaks?"),
        ("read_parquet('x')", "; schema without `tables` lists them"),
        ("\u{202e}", "; schema without `tables` lists them"),
    ] {
        let error = server.call("schema", &json!({"tables": ["events", name]})).unwrap_err();
        assert!(error.starts_with("there is no table or view '"), "{error}");
        assert!(error.ends_with(hint), "{error}");
    }
    let twice = server.call("schema", &json!({"tables": ["Leaks", "leaks, EVENTS"]})).unwrap();
    assert_eq!(twice["total"], 2, "{twice}");
    let columns = schema["document"]["tables"][0]["columns"].as_array().unwrap().clone();
    assert!(
        columns.iter().any(|column| column.as_str().unwrap().starts_with("pid: ")),
        "{columns:?}"
    );
}

#[test]
fn allocations_are_those_of_the_console() {
    let shell = Shell::new();
    let mut server = of_allocations(&shell);
    let path = shell.path("traces/memory.etl");
    for (arguments, line) in [
        (json!({"by": ["kind", "process"]}), ".dump Resource -GroupBy kind,process -json"),
        (
            json!({"by": ["createstack"], "kind": "heap;commit", "leak": true, "leak_at_exit": true, "stacks": true}),
            ".dump Resource -GroupBy createstack -Kind heap;commit -Leak -LeakAtExit -ShowStack -json",
        ),
        (
            json!({"by": ["size", "end"], "process": "leaky", "size": {"from": 11, "to": 12}, "sort_by": "size", "show_time": 3}),
            ".dump Resource -GroupBy size,end -pn leaky -MinMaxSize 11 12 -SortBy size -ShowTime 3 -json",
        ),
        (
            json!({"by": ["kind"], "allocator": "VirtualAlloc", "time": {"from": "0.0035s", "to": "9s"}, "create_stack": "*0x30*"}),
            ".dump Resource -GroupBy kind -Allocator VirtualAlloc -MinMaxTime 0.0035s 9s -CreateStack *0x30* -json",
        ),
    ] {
        let answer = server.call("allocations", &arguments).unwrap();
        let run = shell.run(&[path.to_str().unwrap(), "-c", line]).ok();
        let expected: Value = serde_json::from_str(&run.stdout).unwrap();
        let groups = |document: &Value| document["groups"].as_array().unwrap().clone();
        let (rows, expected) = (groups(&answer["document"]), groups(&expected));
        assert_eq!((rows.len(), &answer["total"]), (expected.len(), &json!(rows.len())), "{line}");
        assert!(!rows.is_empty(), "{line}");
        for (row, expected) in rows.iter().zip(&expected) {
            for member in ["allocs", "alloc_bytes", "leaked_bytes", "first_ns"] {
                // Zero counts are left out.
                let count = |row: &Value| row[member].as_u64().unwrap_or_default();
                assert_eq!(count(row), count(expected), "{line}: {member}");
            }
        }
    }
}

#[test]
fn every_question_can_choose_among_several_traces() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    fs::copy(sample_trace(), shell.path("traces/other.etl")).unwrap();
    server.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let loaded = server.call("load", &json!({"paths": ["other.etl"], "append": true})).unwrap();
    assert_eq!(loaded["total"], 2);
    for (tool, arguments, total) in [
        ("why", json!({}), 4),
        ("groups", json!({"by": ["type"], "leak": true}), 2),
        ("objects", json!({}), 101),
        ("stack", json!({}), 30),
        ("sql", json!({"query": "SELECT pid FROM leaks"}), 19),
        ("stats", json!({}), 1),
    ] {
        assert_eq!(server.call(tool, &arguments).unwrap()["total"], 2 * total, "{tool}");
        let mut of_one = arguments;
        of_one["files"] = "*other*".into();
        assert_eq!(server.call(tool, &of_one).unwrap()["total"], total, "{tool}");
        of_one["files"] = "*none*".into();
        assert!(server.call(tool, &of_one).is_err(), "{tool}");
    }
}

#[test]
fn failures_are_answers_and_the_session_goes_on() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    server.load_sample();
    fs::write(shell.path("traces/bad.etl"), "no trace").unwrap();
    let error = server.call("load", &json!({"paths": ["bad.etl"]})).unwrap_err();
    assert!(error.contains("bad.etl: ") && error.contains("loaded now: "), "{error}");
    assert!(server.call("sql", &json!({"query": "SELECT nothing FROM leaks"})).is_err());
    let unknown = server.request("tools/call", &json!({"name": "delete", "arguments": {}}));
    assert!(
        unknown["error"]["message"].to_string().contains("there is no tool 'delete'"),
        "{unknown}"
    );
    assert_eq!(server.call("why", &json!({})).unwrap()["total"], 4);
}

#[test]
fn help_pages_are_resources() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let list = server.request("resources/list", &json!({}));
    let resources = list["result"]["resources"].as_array().unwrap();
    let uris: Vec<&str> = resources.iter().map(|page| page["uri"].as_str().unwrap()).collect();
    assert_eq!(uris.len(), 4, "{uris:?}");
    assert!(uris.contains(&"handlescope://help/filters"), "{uris:?}");
    for uri in uris {
        let page = server.request("resources/read", &json!({"uri": uri}));
        let content = &page["result"]["contents"][0];
        assert_eq!((&content["uri"], &content["mimeType"]), (&json!(uri), &json!("text/plain")));
        assert!(content["text"].as_str().unwrap().len() > 40, "{page}");
    }
    let page = server.request("resources/read", &json!({"uri": "handlescope://help/ObjectRef"}));
    let expected = shell.run(&["-c", ".help ObjectRef"]).ok().stdout;
    assert_eq!(page["result"]["contents"][0]["text"], expected);
    let none = server.request("resources/read", &json!({"uri": "handlescope://help/nonsense"}));
    assert!(none["error"]["message"].to_string().contains("nonsense"), "{none}");
}

/// `HANDLESCOPE_PYTHON` names an interpreter with the package `mcp`, the protocol's official client; CI provides one.
#[needs_mcp]
#[test]
fn the_official_client_finds_the_leak() {
    let python = std::env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let shell = Shell::new();
    drop(McpServer::with_sample(&shell, &[]));
    allocations::trace().write(shell.path("traces/memory.etl")).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/mcp_client.py");
    let output = Command::new(python)
        .arg(script)
        .args([handlescope_path(), shell.path("traces")])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["server"], "handlescope");
    assert_eq!(said["tools"], json!(TOOLS.map(|(name, _)| name)));
    assert_eq!(
        said["totals"],
        json!({"why": 4, "groups": 19, "objects": 101, "allocations": 6, "stack": 1, "sql": 19,
        "schema": 31, "stats": 1, "diff": 3})
    );
    assert_eq!(said["objects_in_pages"], 101);
    assert_eq!(said["function"], "leaky.exe!leaky::EventCache::GetOrCreate");
    assert!(said["outside"].as_str().unwrap().contains("is outside the folders"), "{said}");
    assert!(said["help"].as_str().unwrap().starts_with(".dump ObjectRef"), "{said}");
}
