//! Texts for agents name tools and arguments: no command of the console and no option.

use std::fs;
use std::path::Path;

use handlescope_tests::binary::{Shell, sample_trace};
use handlescope_tests::data::{self, SharedTrace};
use handlescope_tests::folders::copy_folder;
use handlescope_tests::mcp::McpServer;
use handlescope_tests::{allocations, needs_data};
use serde_json::{Value, json};

/// Commands and options of other programs that messages tell a user to run.
const OF_OTHERS: [&str; 4] = [".dump /m", "procdump -ma", "!htrace -enable", "handle.exe -a"];

/// Calls with and without answers, of every tool.
fn calls() -> Vec<(&'static str, Value)> {
    let sql = |query: &str| ("sql", json!({"query": query}));
    let mut calls = vec![
        ("why", json!({"detail": true, "all": true})),
        ("why", json!({"type": "Evnt"})),
        ("why", json!({"suspect": "ffffffff"})),
        ("why", json!({"files": "*none*"})),
        ("why", json!({"process": "a[b"})),
        ("why", json!({"since": "10:30:00"})),
        ("why", json!({"race_window": "soon"})),
        ("why", json!({"machine": "x"})),
        ("objects", json!({"stacks": true})),
        ("objects", json!({"type": "nonsense"})),
        ("objects", json!({"handle": "x"})),
        ("objects", json!({"pointer": "x"})),
        ("objects", json!({"suspect": "abcdef12"})),
        ("objects", json!({"stack_filter": "*nothing*"})),
        ("objects", json!({"time": {"from": "10:30:00"}})),
        ("objects", json!({"time": {"from": "1s"}, "leak": true})),
        ("objects", json!({"sort_by": "nonsense"})),
        ("groups", json!({"by": ["process", "type"], "show_time": 3})),
        ("groups", json!({"by": ["createstack"], "leak": true, "leak_at_exit": true})),
        ("groups", json!({"by": ["machine"]})),
        ("groups", json!({"by": ["type"], "min_leaked": 3})),
        ("allocations", json!({"by": ["kind", "createstack"], "stacks": true})),
        ("allocations", json!({"by": ["kind"], "kind": "nonsense"})),
        ("allocations", json!({"by": ["kind"], "size": {"from": 9, "to": 1}})),
        ("stack", json!({"stack_filter": "*x*"})),
        ("stack", json!({"id": 999_999})),
        ("symbols", json!({"detail": true})),
        ("schema", json!({"max_bytes": 1 << 17})),
        ("schema", json!({"tables": ["x"]})),
        ("stats", json!({"detail": true})),
    ];
    calls.extend([
        sql("SELECT nothing FROM leaks"),
        sql("SELECT * FROM nowhere"),
        sql("SELECT * FROM leaks"),
        sql("SELEC"),
        sql("DELETE FROM leaks"),
        sql("SELECT sum(x) OVER (ORDER BY y) FROM leaks"),
    ]);
    for arguments in [
        json!({}),
        json!({"from": "0.1s"}),
        json!({"from": "x"}),
        json!({"from": "2s", "to": "1s"}),
        json!({"kind": "heap"}),
        json!({"kind": "nonsense"}),
        json!({"type": "Evnt"}),
        json!({"kind": "heap", "type": "Event"}),
        json!({"suspect": "ffff"}),
        json!({"builds": ["1", "2"]}),
    ] {
        calls.push(("diff", arguments));
    }
    calls
}

/// The words of a text that an agent cannot use.
fn foreign(text: &str) -> Vec<String> {
    // What is between backticks is typed elsewhere, as in `wpr -start Handle`, or the name of an argument. A text that was
    // cut may have lost the second one.
    let mut outside = String::new();
    for (number, part) in text.split('`').enumerate() {
        outside += if number % 2 == 0 { part } else { " " };
    }
    let outside = OF_OTHERS.iter().fold(outside, |text, other| text.replace(other, ""));
    let is_of_console = |word: &&str| {
        let after = |mark: &str| word.strip_prefix(mark).filter(|name| name.len() > 1);
        let is_name =
            |name: &str| name.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '+');
        after(".").is_some_and(|name| is_name(name) && name.to_lowercase() == name)
            || after("-").is_some_and(|name| is_name(&name.replace('-', "")))
            || *word == "docs"
    };
    let marks = |letter: char| letter.is_whitespace() || "()'\"".contains(letter);
    let words = outside.split(marks).map(|word| word.trim_end_matches([',', ';', ':', '.', '?']));
    words.filter(is_of_console).map(str::to_owned).collect()
}

/// All texts of an answer that handlescope wrote: not the rows, which have names of the trace, but what they offer.
fn check(server: &mut McpServer, tool: &str, arguments: &Value, loaded: &Value) {
    let answer = server.request("tools/call", &json!({"name": tool, "arguments": arguments}));
    let result = &answer["result"];
    let content = &result["structuredContent"];
    let mut texts = Vec::new();
    if content.is_null() {
        texts.push(result["content"][0]["text"].as_str().unwrap_or_default().to_owned());
    } else {
        collect(&content["warnings"], &mut texts);
        collect(&content["document"], &mut texts);
    }
    for text in texts {
        let found = foreign(&text);
        assert!(found.is_empty(), "{loaded}: {tool} {arguments}: {found:?} in {text}");
    }
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.values().for_each(|value| collect(value, texts)),
        _ => {}
    }
}

/// Loads each, and makes all calls.
fn check_all(server: &mut McpServer, all: &[Value]) {
    for paths in all {
        for symbols in [json!(null), json!(["symbols"])] {
            check(server, "load", &json!({"paths": paths, "symbols": symbols}), paths);
        }
        for (tool, arguments) in calls() {
            check(server, tool, &arguments, paths);
        }
    }
}

#[test]
fn no_text_about_the_examples_names_a_command_of_the_console() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let traces = shell.path("traces");
    for name in ["server.etl", "htrace.log"] {
        fs::copy(sample_trace().with_file_name(name), traces.join(name)).unwrap();
    }
    allocations::trace().write(traces.join("memory.etl")).unwrap();
    let list = "Nthandle v5.0 - Handle viewer\n\na.exe pid: 77 \\<unable to open process>\n   40: File  (RW-)   C:\\a\n";
    fs::write(traces.join("list.txt"), list).unwrap();
    fs::write(traces.join("bad.etl"), "no trace").unwrap();
    fs::write(traces.join("text.txt"), "no handles").unwrap();
    fs::create_dir(traces.join("empty")).unwrap();
    let _ = shell.run(&["dataset", "add", "traces/fleet", "traces/leaky.etl"]).ok();
    let paths = [
        json!(["leaky.etl"]),
        json!(["leaky.etl", "server.etl"]),
        json!(["leaky.etl", "server.etl", "memory.etl"]),
        json!(["htrace.log"]),
        json!(["list.txt"]),
        json!(["memory.etl"]),
        json!(["bad.etl"]),
        json!(["text.txt"]),
        json!(["empty"]),
        json!(["none"]),
        json!(["../x"]),
        json!(["fleet"]),
        json!(["abc"]),
        json!(["fleet", "leaky.etl"]),
        json!(["leaky.etl"]),
    ];
    check_all(&mut server, &paths);
}

#[needs_data]
#[test]
fn no_text_about_published_and_hostile_traces_names_a_command_of_the_console() {
    let shell = Shell::new();
    let traces = shell.path("traces");
    copy_folder(&data::hostile(), &traces);
    let mut names: Vec<String> = fs::read_dir(data::hostile())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    for log in ["htrace-other-process.log", "htrace-with-handle.log", "dup2.log", "snap.log"] {
        fs::copy(data::faults().join(log), traces.join(log)).unwrap();
        names.push(log.to_owned());
    }
    for name in [
        "synthetic/growth",
        "synthetic/heap",
        "synthetic/valloc",
        "real/HTTP_Server",
        "real/WsRm01",
    ] {
        let file = format!("{}.etl", name.replace('/', "-"));
        fs::copy(SharedTrace::open(name).etl(), traces.join(&file)).unwrap();
        names.push(file);
    }
    let mut server = McpServer::start(Path::new(&traces), &[]);
    let paths: Vec<Value> = names.iter().map(|name| json!([name])).collect();
    check_all(&mut server, &paths);
}

#[test]
fn no_list_and_no_error_of_the_protocol_names_a_command_of_the_console() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let mut texts = Vec::new();
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "handlescope://help/nonsense"})),
        ("resources/read", json!({"uri": "handlescope://help/ObjectReff"})),
        ("resources/read", json!({"uri": "file:///etc/passwd"})),
        ("prompts/get", json!({"name": "none"})),
        (
            "prompts/get",
            json!({"name": "what_changed", "arguments": {"before": "a", "after": "b"}}),
        ),
        ("tools/call", json!({"name": "none", "arguments": {}})),
        ("tools/call", json!({"name": "why", "arguments": {"typ": "x"}})),
        ("tools/call", json!({"name": "why", "arguments": {"type": "-Leak"}})),
    ] {
        let mut answer = server.request(method, &params);
        // The schemas of answers have no texts.
        answer["result"]["tools"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .for_each(|tool| tool["outputSchema"] = Value::Null);
        collect(&answer["result"], &mut texts);
        collect(&answer["error"], &mut texts);
    }
    let hello = server.initialize("2025-06-18");
    collect(&hello["result"]["instructions"], &mut texts);
    assert!(texts.len() > 100, "{}", texts.len());
    for text in texts {
        // Extensions of files that can be loaded.
        let text = text.replace("(.etl", "").replace("(.json7z", "");
        assert!(foreign(&text).is_empty(), "{:?} in {text}", foreign(&text));
    }
}

#[test]
fn a_foreign_word_is_noticed() {
    for (text, expected) in [
        ("load one with .load FILE", vec![".load"]),
        (
            "(.dump ObjectRef -ShowTotal), or --symserver ms.",
            vec![".dump", "-ShowTotal", "--symserver"],
        ),
        ("none passes `type` Evnt; record with `wpr -start Handle`", vec![]),
        ("a.etl: 1.5 s, -1 - x-Leak, module+0xOFFSET, .NET methods", vec![]),
    ] {
        assert_eq!(foreign(text), expected, "{text}");
    }
}
