//! An agent that has only the server: how much it has to call and read to find the leaks of each published trace.

use std::fmt::Write as _;
use std::fs;

use handlescope_tests::binary::Shell;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::folders::copy_folder;
use handlescope_tests::mcp::McpServer;
use handlescope_tests::needs_data;
use serde_json::{Value, json};

/// Maximum number of calls for a trace, and of bytes in their answers.
pub const MAX_CALLS: usize = 4;
pub const MAX_BYTES: usize = 16 << 10;

/// Maximum size of the `why` answer that an agent asks for, in bytes: all suspects of most traces.
pub const WHY_BYTES: usize = 13 << 10;

/// An agent's session, and its cost.
pub struct Agent {
    server: McpServer,
    pub calls: usize,
    pub bytes: usize,
    /// Everything it has read.
    heard: String,
}

impl Agent {
    pub fn new(server: McpServer) -> Self {
        Self { server, calls: 0, bytes: 0, heard: String::new() }
    }

    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.server.request("tools/call", &params);
        assert_ne!(answer["result"]["isError"], true, "{tool} {arguments}: {answer}");
        self.calls += 1;
        self.bytes += answer.to_string().len();
        self.heard += answer["result"]["content"][0]["text"].as_str().unwrap();
        answer["result"]["structuredContent"].clone()
    }
}

/// Loads a trace, asks why, and looks at the objects of the worst suspect if there are few.
fn ask(name: &str) -> Agent {
    let (trace, shell) = (SharedTrace::open(&format!("synthetic/{name}")), Shell::new());
    fs::create_dir(shell.path("traces")).unwrap();
    fs::copy(trace.etl(), shell.path("traces/trace.etl")).unwrap();
    copy_folder(trace.pdbs().path(), &shell.path("traces/symbols"));
    let mut agent = Agent::new(McpServer::start(&shell.path("traces"), &[]));
    agent.call("load", &json!({"paths": ["trace.etl"], "symbols": ["symbols"]}));
    let why = agent.call("why", &json!({"max_bytes": WHY_BYTES}));
    if let Some(next) = why.get("next") {
        agent.call(next["tool"].as_str().unwrap(), &next["arguments"]);
    }
    if agent.bytes < MAX_BYTES / 2 {
        let mut next = why["document"]["suspects"][0]["next"].clone();
        next["arguments"]["max_bytes"] = 4096.into();
        agent.call(next["tool"].as_str().unwrap(), &next["arguments"]);
    }
    agent
}

#[needs_data]
#[test]
fn an_agent_finds_the_leaks_in_four_calls_and_sixteen_kilobytes() {
    let mut table = String::from("trace       calls  KiB\n");
    for name in [
        "eventleak",
        "threadleak",
        "growth",
        "duplicates",
        "filemap",
        "objectref",
        "heap",
        "valloc",
    ] {
        let agent = ask(name);
        writeln!(table, "{name:<10} {:>6} {:>4}", agent.calls, agent.bytes.div_ceil(1024)).unwrap();
        assert!(agent.calls <= MAX_CALLS && agent.bytes <= MAX_BYTES, "{name}: {}", agent.bytes);
    }
    insta::assert_snapshot!(table);
}

#[needs_data]
#[test]
fn an_agent_hears_of_every_planted_leak() {
    let agent = ask("growth");
    let expected = SharedTrace::open("synthetic/growth").expected();
    let expected: Value = serde_json::from_str(&fs::read_to_string(expected).unwrap()).unwrap();
    let planted = expected["why"].as_array().unwrap().iter().filter(|why| why["must_rank"] == true);
    for leak in planted {
        let (leaked, at_exit) =
            (leak["leaked"].as_u64().unwrap(), leak["closed_at_exit"].as_u64().unwrap());
        let (count, opened) = (leaked + at_exit, &leak["opened"]);
        let (kind, process) = (leak["type"].as_str().unwrap(), leak["process"].as_str().unwrap());
        let amount = format!("{count} of {opened} ");
        let processes: Vec<&str> = leak["process_or"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .chain([process])
            .collect();
        let line = agent.heard.lines().find(|line| {
            let is_of_process = processes.iter().any(|process| line.contains(process));
            let is_of_type = line.contains(kind) || kind == "FileMapping";
            line.contains(&amount) && is_of_process && is_of_type
        });
        assert!(line.is_some(), "{leak}\n{}", agent.heard);
    }
}
