//! `handlescope mcp`, as a client of the protocol sees it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use handlescope_tests::binary::{Shell, handlescope_path, sample_symbols, sample_trace};
use handlescope_tests::mcp::McpServer;
use handlescope_tests::needs_mcp;
use handlescope_tests::symbol_server::{Answer, SymbolServer};
use serde_json::{Value, json};

/// The largest answer, bytes of JSON.
const MOST_BYTES: usize = 128 << 10;

/// Every tool, with the rows of its document.
const TOOLS: [(&str, &str); 8] = [
    ("load", "files"),
    ("why", "suspects"),
    ("groups", "groups"),
    ("objects", "objects"),
    ("stack", "stacks"),
    ("sql", "rows"),
    ("schema", "tables"),
    ("stats", "files"),
];

/// A folder `traces` with the sample and its symbols, and a server that may read it.
fn serve(shell: &Shell, options: &[&str]) -> McpServer {
    let traces = shell.path("traces");
    fs::create_dir_all(traces.join("symbols")).unwrap();
    fs::copy(sample_trace(), traces.join("leaky.etl")).unwrap();
    copy(&sample_symbols(), &traces.join("symbols"));
    McpServer::start(&shell.path(""), &[&["--root", "traces"], options].concat())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copy(&path, &name) } else { assert!(fs::copy(path, name).is_ok()) }
    }
}

/// Every file below a folder with its content, sorted by name.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

fn load(server: &mut McpServer) -> Value {
    let sample = json!({"paths": ["leaky.etl"], "symbols": ["symbols"]});
    server.call("load", &sample).unwrap()
}

#[test]
fn every_tool_has_typed_arguments_and_answers() {
    let shell = Shell::new();
    let mut server = serve(&shell, &[]);
    let list = server.request("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS.map(|(name, _)| name));
    for (tool, (name, rows)) in tools.iter().zip(TOOLS) {
        assert!(tool["description"].as_str().unwrap().len() > 40, "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        for (argument, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
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
    let mut server = serve(&shell, &[]);
    let loaded = load(&mut server);
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
    let mut server = serve(&shell, &[]);
    let error = server.call("why", &json!({})).unwrap_err();
    assert_eq!(error, "no trace is loaded; call load first");
    load(&mut server);
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
fn pages_hold_every_row_once() {
    let shell = Shell::new();
    let mut server = serve(&shell, &[]);
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
            if tool != "sql" {
                assert_eq!(paged, all, "{tool}");
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
fn a_page_has_the_stacks_that_its_rows_refer_to() {
    let shell = Shell::new();
    let mut server = serve(&shell, &[]);
    load(&mut server);
    let arguments = json!({"stacks": true, "leak": true, "top": 1});
    let page = server.call("objects", &arguments).unwrap();
    let number = page["document"]["objects"][0]["events"][0]["stack"].to_string();
    let stacks = page["document"]["stacks"].as_object().unwrap();
    assert_eq!(stacks.keys().collect::<Vec<_>>(), [&number]);
}

#[test]
fn large_answers_come_in_pages_of_limited_size() {
    let shell = Shell::new();
    let mut server = serve(&shell, &[]);
    load(&mut server);
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
    let mut server = serve(&shell, &[]);
    load(&mut server);
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
    load(&mut server);
    let error = server.call("objects", &json!({"cursor": cursor})).unwrap_err();
    assert!(error.contains("start again, as after each load"), "{error}");
}

#[test]
fn nothing_outside_of_the_roots_is_read() {
    let shell = Shell::new();
    let mut server = serve(&shell, &[]);
    let outside = shell.path("leaky.etl");
    let mut paths =
        vec![outside.to_str().unwrap(), "../leaky.etl", "..", "/", "../none", "/etc/passwd"];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside, shell.path("traces/file.etl")).unwrap();
        std::os::unix::fs::symlink(shell.path(""), shell.path("traces/folder")).unwrap();
        paths.extend(["file.etl", "folder", "folder/leaky.etl"]);
    }
    for path in paths {
        for arguments in
            [json!({"paths": [path]}), json!({"paths": ["leaky.etl"], "symbols": [path]})]
        {
            let error = server.call("load", &arguments).unwrap_err();
            assert!(
                error.contains("lies outside of the folders that may be read: "),
                "{path}: {error}"
            );
        }
    }
    // A pattern is the name of a file, which is not there.
    let error = server.call("load", &json!({"paths": ["*.etl"]})).unwrap_err();
    assert!(error.contains("file not found"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_roots_is_neither_found_in_a_folder_nor_used_as_an_extract() {
    let shell = Shell::new();
    let mut server = serve(&shell, &[]);
    let secret = shell.path("secret.etl");
    fs::copy(sample_trace(), &secret).unwrap();
    std::os::unix::fs::symlink(&secret, shell.path("traces/link.etl")).unwrap();
    let error = server.call("load", &json!({"paths": ["."]})).unwrap_err();
    assert!(error.contains("link.etl: lies outside of the folders"), "{error}");
    assert!(error.contains("loaded now: "), "{error}");
    fs::remove_file(shell.path("traces/link.etl")).unwrap();
    // An extract outside that could stand for the trace.
    let _ = shell.run(&["traces/leaky.etl", "-c", ".list"]).ok();
    fs::rename(shell.path("traces/Extract"), shell.path("outside")).unwrap();
    std::os::unix::fs::symlink(shell.path("outside"), shell.path("traces/Extract")).unwrap();
    let loaded = load(&mut server);
    assert!(loaded["warnings"].to_string().contains("handle events"), "it was extracted: {loaded}");
    fs::remove_file(shell.path("traces/Extract")).unwrap();
    fs::rename(shell.path("outside"), shell.path("traces/Extract")).unwrap();
    let loaded = load(&mut server);
    assert!(
        !loaded["warnings"].to_string().contains("handle events"),
        "the extract is used: {loaded}"
    );
    // It would be written outside.
    let mut writer = McpServer::start(&shell.path(""), &["--root", "traces", "--allow-write"]);
    fs::rename(shell.path("traces/Extract"), shell.path("outside")).unwrap();
    fs::remove_file(shell.path("outside/leaky.json7z")).unwrap();
    std::os::unix::fs::symlink(shell.path("outside"), shell.path("traces/Extract")).unwrap();
    let loaded = load(&mut writer);
    assert!(loaded["warnings"].to_string().contains("lies outside of the folders"), "{loaded}");
    assert_eq!(files(&shell.path("outside")), []);
}

#[test]
fn nothing_is_written_unless_it_is_allowed() {
    let shell = Shell::new();
    let mut server = serve(&shell, &["--symbol-path", "cache*symbols-cache;traces/symbols"]);
    let before = files(&shell.path(""));
    load(&mut server);
    for (tool, arguments) in [
        ("why", json!({})),
        ("groups", json!({"by": ["type"]})),
        ("objects", json!({"stacks": true})),
        ("stats", json!({})),
        ("sql", json!({"query": "SELECT text FROM stacks"})),
    ] {
        server.call(tool, &arguments).unwrap();
    }
    assert_eq!(server.end().status, Some(0));
    // Also the temporary files have gone, with the session.
    assert_eq!(files(&shell.path("")), before);

    let mut server = serve(&shell, &["--allow-write"]);
    let list = server.request("tools/list", &json!({}));
    assert_eq!(list["result"]["tools"][0]["annotations"]["readOnlyHint"], false);
    load(&mut server);
    assert!(shell.path("traces/Extract/leaky.json7z").is_file());
}

#[test]
fn arguments_are_never_options_or_files() {
    let shell = Shell::new();
    let mut server = serve(&shell, &[]);
    load(&mut server);
    let before = files(&shell.path(""));
    for (tool, arguments) in [
        ("sql", json!({"query": "SELECT pid FROM leaks -csv x.csv"})),
        ("sql", json!({"query": "SELECT pid FROM leaks -parquet x.parquet"})),
        ("sql", json!({"query": "SELECT pid FROM leaks > x.csv"})),
        ("sql", json!({"query": "SELECT pid FROM leaks >> ./x"})),
        ("sql", json!({"query": "-csv x.csv SELECT pid FROM leaks"})),
        ("sql", json!({"query": "SELECT * FROM read_csv('leaky.etl')"})),
        ("sql", json!({"query": "DROP TABLE leaks"})),
        ("sql", json!({"query": "-help"})),
        ("objects", json!({"type": "-csv", "name": "x.csv"})),
        ("objects", json!({"type": "> x.csv", "name": ">"})),
        ("objects", json!({"type": "Event", "sort_by": ">x.csv"})),
        ("objects", json!({"csv": "x.csv"})),
        ("objects", json!({"file": "x.csv"})),
        ("groups", json!({"by": ["type -csv x.csv"]})),
        ("why", json!({"process": "-help"})),
        ("why", json!({"race_window": "1ms > x.csv"})),
        ("schema", json!({"tables": ["-markdown"]})),
        ("load", json!({"paths": ["-MaxSize"]})),
    ] {
        match server.call(tool, &arguments) {
            // A filter that nothing passes.
            Ok(answer) => assert_eq!(answer["total"], 0, "{tool} {arguments}"),
            Err(error) => assert!(!error.is_empty()),
        }
    }
    assert_eq!(files(&shell.path("")), before);
}

#[test]
fn failures_are_answers_and_the_session_goes_on() {
    let shell = Shell::new();
    let mut server = serve(&shell, &[]);
    load(&mut server);
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
    let mut server = serve(&shell, &[]);
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

#[test]
fn a_call_that_is_cancelled_makes_room_for_the_next() {
    let silent = SymbolServer::start(|_| Answer::Silence);
    let shell = Shell::new();
    let mut server = serve(&shell, &["--allow-write", "--symserver", &silent.url]);
    server.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let started = Instant::now();
    let id = server.send("tools/call", &json!({"name": "why", "arguments": {}}));
    while silent.asked().is_empty() {
        std::thread::sleep(Duration::from_millis(20));
        assert!(started.elapsed() < Duration::from_secs(15), "the server of symbols is asked");
    }
    server.notify("notifications/cancelled", &json!({"requestId": id}));
    assert_eq!(server.call("stats", &json!({})).unwrap()["total"], 1);
    // It would wait for the silent server this long.
    assert!(started.elapsed() < Duration::from_secs(19), "{:?}", started.elapsed());
}

#[test]
fn servers_of_symbols_are_asked_only_where_writing_is_allowed() {
    let store = SymbolServer::of_folder(&sample_symbols());
    let shell = Shell::new();
    let path = format!("srv*cache*{}", store.url);
    let mut reader = serve(&shell, &["--symbol-path", &path]);
    reader.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    reader.call("why", &json!({})).unwrap();
    let run = reader.end();
    assert!(run.stderr.contains("symbol servers are not asked"), "{run:?}");
    assert_eq!(store.asked(), [""; 0]);
    let mut writer = serve(&shell, &["--allow-write", "--symbol-path", &path]);
    writer.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let why = writer.call("why", &json!({})).unwrap();
    let first = &why["document"]["suspects"][0];
    assert_eq!(first["function"], "leaky.exe!leaky::EventCache::GetOrCreate");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_server_and_its_temporary_files() {
    let shell = Shell::new();
    let mut server = serve(&shell, &[]);
    load(&mut server);
    assert!(!files(&shell.path("tmp")).is_empty());
    let kill = Command::new("kill").args(["-TERM", &server.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let started = Instant::now();
    let run = server.end();
    assert_eq!(run.status, Some(143), "{run:?}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(files(&shell.path("tmp")), []);
}

#[test]
fn a_root_that_is_no_folder_is_an_error() {
    let shell = Shell::new();
    let run = shell.run(&["mcp", "--root", "none"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("none: is no folder that can be read"), "{run:?}");
    assert_eq!(shell.run(&["mcp", "--rot", "."]).status, Some(2));
    // Nothing was sent.
    assert_eq!(shell.run(&["mcp"]).ok().stdout, "");
}

/// `HANDLESCOPE_PYTHON` names an interpreter with the package `mcp`, the protocol's own client; CI makes one.
#[needs_mcp]
#[test]
fn the_official_client_finds_the_leak() {
    let python = std::env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let shell = Shell::new();
    drop(serve(&shell, &[]));
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
        json!({"why": 4, "groups": 19, "objects": 101, "stack": 1, "sql": 20,
        "schema": 21, "stats": 1})
    );
    assert_eq!(said["objects_in_pages"], 101);
    assert_eq!(said["function"], "leaky.exe!leaky::EventCache::GetOrCreate");
    assert!(said["outside"].as_str().unwrap().contains("lies outside of the folders"), "{said}");
    assert!(said["help"].as_str().unwrap().starts_with(".dump ObjectRef"), "{said}");
}
