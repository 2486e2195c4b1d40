//! What tools answer.

use std::fs;
use std::path::Path;
use std::process::Command;

use handlescope_tests::allocations;
use handlescope_tests::binary::{Shell, handlescope_path, sample_trace};
use handlescope_tests::mcp::McpServer;
use handlescope_tests::needs_mcp;
use serde_json::{Value, json};

use super::{TOOLS, of_allocations};

#[test]
fn documents_are_those_of_the_console() {
    let shell = Shell::new();
    let mut server = McpServer::of_sample(&shell, &[]);
    let loaded = server.load_sample();
    let path = shell.path("traces/leaky.etl").canonicalize().unwrap();
    assert_eq!(loaded["document"]["files"], json!([{"file": 0, "path": path}]));
    let said = loaded["warnings"].to_string();
    assert!(said.contains("1 close of a handle opened before the trace"), "{said}");
    let mut check = |tool: &str, arguments: Value, line: &str| {
        let mut answer = server.call(tool, &arguments).unwrap();
        let symbols = shell.path("traces/symbols");
        let arguments = [path.to_str().unwrap(), "--symbol-path", symbols.to_str().unwrap()];
        let run = shell.run(&[&arguments[..], &["-c", line]].concat()).ok();
        let mut expected: Value = serde_json::from_str(&run.stdout).unwrap();
        // What was typed differs, and the page says what it leaves out.
        for document in [&mut expected, &mut answer["document"]] {
            document.as_object_mut().unwrap().retain(|name, _| name != "command");
        }
        assert_eq!(answer["document"], expected, "{tool}");
        assert_eq!(
            (&answer["next"], &answer["truncated"]),
            (&Value::Null, &json!(false)),
            "{tool}"
        );
    };
    check("why", json!({}), ".dump Why -json");
    check(
        "why",
        json!({"type": "Thread", "race_window": "1us"}),
        ".why -Type Thread -RaceWindow 1us -json",
    );
    check(
        "groups",
        json!({"by": ["process", "createstack"], "leak": true}),
        ".dump ObjectRef -GroupBy process,createstack -Leak -json",
    );
    check("objects", json!({"ids": [75, 75]}), ".dump ObjectRef -MinMaxId 75 75 -json");
    check("stack", json!({"id": 18}), ".dump Stack -Id 18 -json");
    check("stats", json!({}), ".dump Stats -json");
    check(
        "sql",
        json!({"query": "SELECT process, pid FROM leaks"}),
        ".sql SELECT process, pid FROM leaks -json",
    );
}

#[test]
fn the_leaks_of_the_sample_are_found() {
    let shell = Shell::new();
    let mut server = McpServer::of_sample(&shell, &[]);
    let error = server.call("why", &json!({})).unwrap_err();
    assert_eq!(error, "no trace is loaded; call load first");
    server.load_sample();
    let why = server.call("why", &json!({})).unwrap();
    let first = &why["document"]["suspects"][0];
    assert_eq!(first["leaked"], 8);
    assert_eq!(first["function"], "leaky.exe!leaky::EventCache::GetOrCreate");
    assert_eq!(first["diagnoses"][0]["cause"], "race");
    let handles = json!({"process": "7316", "type": "Event", "stack_filter": first["function"],
        "leak": true, "stacks": true});
    let objects = server.call("objects", &handles).unwrap();
    assert_eq!(objects["total"], 8);
    let stack = objects["document"]["objects"][0]["events"][0]["stack"].clone();
    let by_number = server.call("stack", &json!({"id": stack})).unwrap();
    let frames = &by_number["document"]["stacks"][0]["frames"];
    assert_eq!(frames, &objects["document"]["stacks"][stack.to_string()]);
    let schema = server.call("schema", &json!({"tables": ["leaks"]})).unwrap();
    let columns = schema["document"]["tables"][0]["columns"].as_array().unwrap().clone();
    assert!(columns.iter().any(|column| column["name"] == "pid"), "{columns:?}");
}

#[test]
fn allocations_are_those_of_the_console_and_of_their_schema() {
    let shell = Shell::new();
    let (mut server, tool) = of_allocations(&shell);
    let path = shell.path("traces/memory.etl");
    for (arguments, line) in [
        (json!({"by": ["kind", "process"]}), ".dump Resource -GroupBy kind,process -json"),
        (
            json!({"by": ["createstack"], "kind": "heap;commit", "leak": true, "leak_at_exit": true, "stacks": true}),
            ".dump Resource -GroupBy createstack -Kind heap;commit -Leak -LeakAtExit -ShowStack -json",
        ),
        (
            json!({"by": ["size", "end"], "process": "leaky", "size": [11, 12], "sort_by": "size", "show_time": 3}),
            ".dump Resource -GroupBy size,end -pn leaky -MinMaxSize 11 12 -SortBy size -ShowTime 3 -json",
        ),
        (
            json!({"by": ["kind"], "allocator": "VirtualAlloc", "time": ["0.0035s", "9s"], "create_stack": "*0x30*"}),
            ".dump Resource -GroupBy kind -Allocator VirtualAlloc -MinMaxTime 0.0035s 9s -CreateStack *0x30* -json",
        ),
    ] {
        let mut answer = server.call("allocations", &arguments).unwrap();
        let run = shell.run(&[path.to_str().unwrap(), "-c", line]).ok();
        let mut expected: Value = serde_json::from_str(&run.stdout).unwrap();
        for document in [&mut expected, &mut answer["document"]] {
            document.as_object_mut().unwrap().retain(|name, _| name != "command");
        }
        assert_eq!(answer["document"], expected, "{line}");
        let rows = answer["document"]["groups"].as_array().unwrap();
        assert!(!rows.is_empty() && answer["total"] == rows.len(), "{line}: {answer}");
        let schema =
            &tool["outputSchema"]["properties"]["document"]["properties"]["groups"]["items"];
        for row in rows {
            for name in schema["required"].as_array().unwrap() {
                let (value, of) = (&row[name.as_str().unwrap()], &schema["properties"]);
                let types = of[name.as_str().unwrap()]["type"].to_string();
                let found = match value {
                    Value::Null => "null",
                    Value::Number(_) => "integer",
                    Value::Object(_) => "object",
                    _ => "another",
                };
                assert!(types.contains(found), "{name}: {value}");
            }
        }
    }
}

#[test]
fn every_question_can_choose_among_several_traces() {
    let shell = Shell::new();
    let mut server = McpServer::of_sample(&shell, &[]);
    fs::copy(sample_trace(), shell.path("traces/other.etl")).unwrap();
    server.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let loaded = server.call("load", &json!({"paths": ["other.etl"], "append": true})).unwrap();
    assert_eq!(loaded["total"], 2);
    for (tool, arguments, total) in [
        ("why", json!({}), 4),
        ("groups", json!({"by": ["type"], "leak": true}), 2),
        ("objects", json!({}), 101),
        ("stack", json!({}), 30),
        ("sql", json!({"query": "SELECT pid FROM leaks"}), 20),
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
    let mut server = McpServer::of_sample(&shell, &[]);
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
    let mut server = McpServer::of_sample(&shell, &[]);
    let list = server.request("resources/list", &json!({}));
    let resources = list["result"]["resources"].as_array().unwrap();
    let uris: Vec<&str> = resources.iter().map(|page| page["uri"].as_str().unwrap()).collect();
    for kind in shell.kinds() {
        assert!(uris.contains(&&*format!("handlescope://help/{}", kind.name)), "{}", kind.name);
    }
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

/// `HANDLESCOPE_PYTHON` names an interpreter with the package `mcp`, the protocol's own client; CI makes one.
#[needs_mcp]
#[test]
fn the_official_client_finds_the_leak() {
    let python = std::env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let shell = Shell::new();
    drop(McpServer::of_sample(&shell, &[]));
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
        json!({"why": 4, "groups": 19, "objects": 101, "allocations": 6, "stack": 1, "sql": 20,
        "schema": 31, "stats": 1})
    );
    assert_eq!(said["objects_in_pages"], 101);
    assert_eq!(said["function"], "leaky.exe!leaky::EventCache::GetOrCreate");
    assert!(said["outside"].as_str().unwrap().contains("lies outside of the folders"), "{said}");
    assert!(said["help"].as_str().unwrap().starts_with(".dump ObjectRef"), "{said}");
}
