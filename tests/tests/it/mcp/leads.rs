//! Calls suggested by answers: each shows what its row counts.

use std::fs;

use handlescope_tests::binary::Shell;
use handlescope_tests::mcp::McpServer;
use handlescope_tests::planted::{SCENARIOS, planted};
use serde_json::{Value, json};

/// Makes a suggested call and returns its answer.
fn follow(server: &mut McpServer, next: &Value) -> Value {
    let tool = next["tool"].as_str().unwrap_or_else(|| panic!("{next}"));
    server.call(tool, &next["arguments"]).unwrap_or_else(|error| panic!("{next}: {error}"))
}

/// Starts a server for a folder with two traces of a scenario.
fn of_two(shell: &Shell, scenario: &str) -> McpServer {
    let traces = shell.path("traces");
    fs::create_dir(&traces).unwrap();
    for (name, seed) in [("a.etl", 7), ("b.etl", 8)] {
        planted(scenario, seed).trace.write(traces.join(name)).unwrap();
    }
    McpServer::start(&traces, &[])
}

/// Returns the number of handles opened in an answer about objects.
fn opened(objects: &Value) -> u64 {
    let count = |name: &str| objects["document"]["totals"][name].as_u64().unwrap_or_default();
    count("handles_created") + count("handles_duplicated")
}

#[test]
fn the_next_of_a_group_keeps_the_filters_of_its_call() {
    for scenario in SCENARIOS {
        let shell = Shell::new();
        let mut server = of_two(&shell, scenario);
        for paths in [json!(["a.etl"]), json!(["a.etl", "b.etl"])] {
            server.call("load", &json!({"paths": paths})).unwrap();
            let why = server.call("why", &json!({"all": true})).unwrap();
            let worst = &why["document"]["suspects"][0];
            for filters in [
                json!({}),
                json!({"leak": true}),
                json!({"time": {"from": "0.5s", "to": "2s"}}),
                json!({"leak": true, "time": {"from": "0.5s"}}),
                json!({"leak": true, "leak_at_exit": true}),
                json!({"suspect": worst["id"], "leak": true}),
                json!({"type": "Event;File", "leak": true}),
                json!({"files": "*a.etl", "leak": true}),
            ] {
                for by in [json!(["type"]), json!(["process", "type"]), json!(["name"])] {
                    let mut arguments = filters.clone();
                    arguments["by"] = by;
                    let Ok(groups) = server.call("groups", &arguments) else { continue };
                    for row in groups["document"]["groups"].as_array().unwrap().iter().take(8) {
                        let Some(next) = row.get("next") else { continue };
                        for (name, value) in filters.as_object().unwrap() {
                            let kept = &next["arguments"][name];
                            let is_narrowed = row["keys"].get(name).is_some() || name == "files";
                            assert!(is_narrowed || kept == value, "{arguments}: {next}");
                        }
                        let objects = follow(&mut server, next);
                        let count = |name: &str| row[name].as_u64().unwrap_or_default();
                        let counted = count("created") + count("duplicated");
                        // The objects of a process also have handles of other processes.
                        if row["keys"].get("process").is_none() {
                            assert_eq!(counted, opened(&objects), "{arguments}: {row}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_next_of_a_suspect_shows_its_handles_in_its_trace() {
    for scenario in SCENARIOS {
        let shell = Shell::new();
        let mut server = of_two(&shell, scenario);
        server.call("load", &json!({"paths": ["a.etl", "b.etl"]})).unwrap();
        for arguments in [
            json!({"all": true}),
            json!({"all": true, "by_process": true}),
            json!({"all": true, "files": "*b.etl"}),
        ] {
            let why = server.call("why", &arguments).unwrap();
            for row in why["document"]["suspects"].as_array().unwrap() {
                let shown = follow(&mut server, &row["next"]);
                assert!(shown["total"].as_u64() > Some(0), "{row}: {shown}");
                if row["next"]["tool"] == "objects" {
                    let leaked = shown["document"]["totals"]["leaked_handles"].as_u64();
                    assert_eq!(leaked.unwrap_or_default(), row["leaked"], "{row}");
                }
            }
        }
    }
}

#[test]
fn every_call_that_a_document_offers_can_be_sent() {
    for scenario in SCENARIOS {
        let shell = Shell::new();
        let mut server = of_two(&shell, scenario);
        server.call("load", &json!({"paths": ["a.etl"]})).unwrap();
        let mut arguments = json!({"top": 1, "type": "Event;Thread;File"});
        loop {
            let why = server.call("why", &arguments).unwrap();
            for left_out in ["left_out_as_small", "left_out_as_young"] {
                let Some(see) = why["document"].get(left_out).map(|left_out| &left_out["see"])
                else {
                    continue;
                };
                assert_eq!(see["arguments"]["type"], arguments["type"], "{see}");
                follow(&mut server, see);
            }
            let Some(next) = why.get("next") else { break };
            arguments = next["arguments"].clone();
        }
    }
}

#[test]
fn the_file_of_a_row_is_its_place_among_the_traces_of_the_answer() {
    let shell = Shell::new();
    let mut server = of_two(&shell, SCENARIOS[0]);
    fs::copy(shell.path("traces/a.etl"), shell.path("traces/c.etl")).unwrap();
    server.call("load", &json!({"paths": ["a.etl", "b.etl"]})).unwrap();
    server.call("load", &json!({"paths": ["c.etl"], "append": true})).unwrap();
    let all = server.call("stats", &json!({})).unwrap();
    let all: Vec<Value> = all["document"]["traces"].as_array().unwrap().clone();
    for left_out in &all {
        let files = format!("!*{}", left_out.as_str().unwrap());
        for (tool, rows, arguments) in [
            ("why", "suspects", json!({"files": files})),
            ("stats", "files", json!({"files": files})),
            ("groups", "groups", json!({"by": ["type"], "files": files})),
        ] {
            let answer = server.call(tool, &arguments).unwrap();
            let traces = answer["document"]["traces"].as_array().unwrap();
            assert_eq!(traces.len(), all.len() - 1, "{answer}");
            for row in answer["document"][rows].as_array().unwrap() {
                let place = row["file"].as_u64().unwrap_or_else(|| panic!("{tool}: {row}"));
                assert!((place as usize) < traces.len(), "{tool} {files}: {row}");
            }
        }
    }
}
