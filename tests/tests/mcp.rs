//! `handlescope mcp`, as a client of the protocol sees it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use handlescope_tests::allocations;
use handlescope_tests::binary::{Shell, handlescope_path, sample_trace};
use handlescope_tests::mcp::McpServer;
use handlescope_tests::needs_mcp;
use serde_json::{Value, json};

/// The largest answer, bytes of JSON.
const MOST_BYTES: usize = 128 << 10;

/// Every tool, with the rows of its document.
const TOOLS: [(&str, &str); 9] = [
    ("load", "files"),
    ("why", "suspects"),
    ("groups", "groups"),
    ("objects", "objects"),
    ("allocations", "groups"),
    ("stack", "stacks"),
    ("sql", "rows"),
    ("schema", "tables"),
    ("stats", "files"),
];

#[test]
fn every_tool_has_typed_arguments_and_answers() {
    let shell = Shell::new();
    let mut server = McpServer::of_sample(&shell, &[]);
    let list = server.request("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS.map(|(name, _)| name));
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mcp.md");
    let document = fs::read_to_string(document).unwrap();
    for (tool, (name, rows)) in tools.iter().zip(TOOLS) {
        let line = document.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let line = line.unwrap_or_else(|| panic!("docs/mcp.md lacks {name}"));
        assert!(tool["description"].as_str().unwrap().len() > 40, "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        for (argument, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
            let is_common = ["files", "top", "cursor"].contains(&argument.as_str());
            assert!(
                is_common || line.contains(&format!("`{argument}`")),
                "docs: {name}: {argument}"
            );
            assert!(schema["type"].is_string(), "{name}: {argument}");
            assert!(schema["description"].as_str().unwrap().len() > 10, "{name}: {argument}");
        }
        let output = &tool["outputSchema"]["properties"];
        assert_eq!(output["document"]["properties"][rows]["type"], "array", "{name}");
        assert_eq!(output["next"]["type"], json!(["string", "null"]), "{name}");
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{name}");
    }
    assert_eq!(tools[2]["inputSchema"]["required"], json!(["by"]));
    let columns = &tools[2]["inputSchema"]["properties"]["by"]["items"]["enum"];
    assert!(columns.as_array().unwrap().contains(&json!("createstack")), "{columns}");
}

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

/// A server that has a trace with allocations loaded, and the tool for these.
fn of_allocations(shell: &Shell) -> (McpServer, Value) {
    let mut server = McpServer::of_sample(shell, &[]);
    allocations::trace().write(shell.path("traces/memory.etl")).unwrap();
    server.call("load", &json!({"paths": ["memory.etl"]})).unwrap();
    let list = server.request("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "allocations").unwrap().clone();
    (server, tool)
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
fn pages_of_allocations_hold_every_group_once_with_its_stack() {
    let shell = Shell::new();
    let (mut server, _) = of_allocations(&shell);
    let arguments = json!({"by": ["kind", "createstack"], "stacks": true});
    let (all, _) = server.pages("allocations", &arguments, "groups", 1000);
    let (paged, pages) = server.pages("allocations", &arguments, "groups", 2);
    assert_eq!((paged, pages.len()), (all.clone(), all.len().div_ceil(2)));
    for page in &pages {
        let document = &page["document"];
        let rows = document["groups"].as_array().unwrap();
        let stacks = rows.iter().filter_map(|row| row["keys"]["createstack"].as_u64());
        let stacks: BTreeSet<String> = stacks.map(|stack| stack.to_string()).collect();
        let shown = document["stacks"].as_object().unwrap().keys().cloned();
        // A stack that was on a page before is shown again, with the rows that refer to it.
        assert_eq!(stacks, shown.collect(), "{page}");
    }
    let frames = &pages[0]["document"]["stacks"];
    assert!(frames.to_string().contains("tool.exe"), "{frames}");
    // What has none says so, as the console does.
    server.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let none = server.call("allocations", &json!({"by": ["kind"]})).unwrap();
    assert_eq!(none["total"], 0);
    assert!(none["warnings"][0].as_str().unwrap().contains("no allocation events"), "{none}");
}

#[test]
fn pages_hold_every_row_once() {
    let shell = Shell::new();
    let mut server = McpServer::of_sample(&shell, &[]);
    fs::create_dir(shell.path("traces/more")).unwrap();
    fs::copy(sample_trace(), shell.path("traces/more/other.etl")).unwrap();
    for paths in [json!(["leaky.etl"]), json!(["leaky.etl", "more/other.etl"])] {
        server.call("load", &json!({"paths": paths, "symbols": ["symbols"]})).unwrap();
        let queries = [
            ("why", "suspects", json!({}), 1),
            ("groups", "groups", json!({"by": ["process", "type", "name"]}), 7),
            ("objects", "objects", json!({"stacks": true}), 9),
            ("stack", "stacks", json!({"process": "leaky"}), 4),
            (
                "sql",
                "rows",
                json!({"query": "SELECT type, count(*) FROM handles GROUP BY type, name"}),
                5,
            ),
            ("schema", "tables", json!({}), 4),
        ];
        for (tool, rows, arguments, top) in queries {
            let (all, whole) = server.pages(tool, &arguments, rows, 1000);
            let (paged, pages) = server.pages(tool, &arguments, rows, top);
            assert!(pages.len() > 1 && all.len() > top, "{tool}: {} rows", all.len());
            assert_eq!(whole[0]["total"], all.len(), "{tool}");
            assert_eq!(paged.len(), all.len(), "{tool}");
            // Groups without an order are in another one when the query runs again.
            let sorted = |rows: &[Value]| {
                let mut texts: Vec<String> = rows.iter().map(Value::to_string).collect();
                texts.sort_unstable();
                texts
            };
            match tool {
                "sql" => assert_eq!(sorted(&paged), sorted(&all)),
                _ => assert_eq!(paged, all, "{tool}"),
            }
            let is_last = |at: usize| at + 1 == pages.len();
            for (at, page) in pages.iter().enumerate() {
                assert_eq!(page["truncated"], !is_last(at), "{tool}");
                assert_eq!(page["total"], all.len(), "{tool}");
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
fn a_page_has_the_stacks_that_its_rows_refer_to() {
    let shell = Shell::new();
    let mut server = McpServer::of_sample(&shell, &[]);
    server.load_sample();
    let arguments = json!({"stacks": true, "leak": true, "top": 1});
    let page = server.call("objects", &arguments).unwrap();
    let number = page["document"]["objects"][0]["events"][0]["stack"].to_string();
    let stacks = page["document"]["stacks"].as_object().unwrap();
    assert_eq!(stacks.keys().collect::<Vec<_>>(), [&number]);
}

#[test]
fn large_answers_come_in_pages_of_limited_size() {
    let shell = Shell::new();
    let mut server = McpServer::of_sample(&shell, &[]);
    server.load_sample();
    let query = "SELECT e.row, s.text, s.text AS again, s.text AS more FROM events e JOIN stacks s ON s.row = e.stack \
                 ORDER BY e.row";
    let (rows, pages) = server.pages("sql", &json!({"query": query}), "rows", 1000);
    assert!(rows.len() > 150 && pages.len() > 1, "{} rows, {} pages", rows.len(), pages.len());
    let (objects, pages_of_objects) =
        server.pages("objects", &json!({"stacks": true}), "objects", 1000);
    assert_eq!(objects.len(), 101);
    for page in pages.iter().chain(&pages_of_objects) {
        let bytes = page.to_string().len();
        assert!(bytes <= MOST_BYTES, "{bytes}");
    }
    let numbers: Vec<u64> = rows.iter().map(|row| row["row"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|left, right| left < right));
}

#[test]
fn a_cursor_is_of_one_question() {
    let shell = Shell::new();
    let mut server = McpServer::of_sample(&shell, &[]);
    server.load_sample();
    let page = server.call("objects", &json!({"top": 5})).unwrap();
    let cursor = page["next"].clone();
    for arguments in [
        json!({"cursor": cursor, "type": "Event"}),
        json!({"cursor": "nonsense"}),
        json!({"cursor": "0-5"}),
    ] {
        let error = server.call("objects", &arguments).unwrap_err();
        assert!(error.contains("the cursor belongs to another question"), "{error}");
    }
    server.call("objects", &json!({"cursor": cursor, "top": 9})).unwrap();
    server.load_sample();
    let error = server.call("objects", &json!({"cursor": cursor})).unwrap_err();
    assert!(error.contains("start again, as after each load"), "{error}");
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
        "schema": 29, "stats": 1})
    );
    assert_eq!(said["objects_in_pages"], 101);
    assert_eq!(said["function"], "leaky.exe!leaky::EventCache::GetOrCreate");
    assert!(said["outside"].as_str().unwrap().contains("lies outside of the folders"), "{said}");
    assert!(said["help"].as_str().unwrap().starts_with(".dump ObjectRef"), "{said}");
}
