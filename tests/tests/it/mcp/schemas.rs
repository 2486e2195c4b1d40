//! Answers and the schemas that tools declare for them.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use handlescope_tests::binary::{Shell, sample_trace};
use handlescope_tests::mcp::McpServer;
use handlescope_tests::{allocations, needs_mcp};
use serde_json::{Value, json};

/// Pages of one answer that are looked at.
const MAX_PAGES: usize = 4;

/// Calls of every tool: brief, with details, in pages, cut, and of nothing.
fn calls() -> Vec<(&'static str, Value)> {
    let columns = ["createstack", "process", "name", "thread", "lifetime"];
    vec![
        ("why", json!({})),
        ("why", json!({"all": true, "detail": true, "max_bytes": 1 << 16})),
        ("why", json!({"top": 1, "max_bytes": 1200})),
        ("why", json!({"type": "Evnt"})),
        ("diff", json!({})),
        ("diff", json!({"detail": true, "top": 1})),
        ("diff", json!({"from": "0.001s", "detail": true})),
        ("diff", json!({"kind": "heap;commit", "detail": true})),
        ("diff", json!({"builds": ["1.3", "1.4"], "detail": true})),
        ("objects", json!({"stacks": true, "max_bytes": 1 << 16})),
        ("objects", json!({"max_bytes": 1100})),
        ("objects", json!({"type": "nothing"})),
        ("groups", json!({"by": ["process", "type"]})),
        ("groups", json!({"by": columns, "show_time": 3, "leak": true})),
        ("groups", json!({"by": ["machine", "build", "createstack"]})),
        ("allocations", json!({"by": ["kind", "createstack"], "stacks": true, "show_time": 3})),
        ("stack", json!({"top": 3})),
        ("stack", json!({"max_bytes": 1024})),
        ("symbols", json!({})),
        ("symbols", json!({"detail": true})),
        ("sql", json!({"query": "SELECT * FROM acquisitions"})),
        ("schema", json!({})),
        ("schema", json!({"tables": ["acquisitions"]})),
        ("stats", json!({})),
        ("stats", json!({"detail": true, "max_bytes": 1500})),
    ]
}

#[needs_mcp]
#[test]
fn answers_have_nothing_that_the_schema_of_their_tool_does_not_declare() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let traces = shell.path("traces");
    allocations::trace().write(traces.join("memory.etl")).unwrap();
    for name in ["server.etl", "htrace.log"] {
        fs::copy(sample_trace().with_file_name(name), traces.join(name)).unwrap();
    }
    for (trace, build) in [("traces/leaky.etl", "1.3"), ("traces/server.etl", "1.4")] {
        let _ = shell.run(&["dataset", "add", "traces/fleet", trace, "--build", build]).ok();
    }
    let list = server.request("tools/list", &json!({}));
    let mut answers = Vec::new();
    let mut unanswered: Vec<&str> = super::TOOLS.iter().map(|(name, _)| *name).collect();
    for paths in [
        json!(["leaky.etl"]),
        json!(["leaky.etl", "server.etl"]),
        json!(["memory.etl"]),
        json!(["htrace.log"]),
        json!(["fleet"]),
    ] {
        let load = ("load", json!({"paths": paths, "symbols": ["symbols"]}));
        for (tool, mut arguments) in [load].into_iter().chain(calls()) {
            for _ in 0..MAX_PAGES {
                let Ok(content) = server.call(tool, &arguments) else { break };
                unanswered.retain(|name| *name != tool);
                let next = content.get("next").map(|next| next["arguments"].clone());
                answers.push(json!({"tool": tool, "content": content}));
                let Some(next) = next else { break };
                arguments = next;
            }
        }
    }
    assert_eq!(unanswered, [""; 0]);
    let is_cut = |answer: &Value| answer["content"]["cut"] == true;
    assert!(answers.iter().any(is_cut), "no answer was cut");
    let asked = json!({"tools": list["result"]["tools"], "answers": answers});
    assert_eq!(problems(&asked), [""; 0]);
    // A schema that allows everything would find nothing.
    let foreign = json!({"document": {"files": [{"path": 7, "size": 1}]}, "total": 1});
    let asked = json!({"tools": list["result"]["tools"], "answers": [{"tool": "load", "content": foreign}]});
    assert_eq!(problems(&asked).len(), 2);
}

/// What the schemas do not declare.
fn problems(asked: &Value) -> Vec<String> {
    let python = std::env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/mcp_schemas.py");
    let mut program = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = program.stdin.take().unwrap();
    input.write_all(asked.to_string().as_bytes()).unwrap();
    drop(input);
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}
