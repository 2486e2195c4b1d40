//! Comparisons: two loaded traces, and two points in time of one.

use std::fs;

use handlescope_tests::binary::{Shell, sample_trace};
use handlescope_tests::mcp::McpServer;
use serde_json::{Value, json};

/// A server with both samples in its folder, and what the console prints for a line about some of them.
fn of_samples(shell: &Shell) -> McpServer {
    let server = McpServer::with_sample(shell, &[]);
    let second = sample_trace().with_file_name("server.etl");
    fs::copy(second, shell.path("traces/server.etl")).unwrap();
    server
}

fn printed(shell: &Shell, traces: &[&str], line: &str) -> Vec<Value> {
    let paths: Vec<String> = traces
        .iter()
        .map(|trace| shell.path("traces").join(trace))
        .map(|path| path.to_str().unwrap().to_owned())
        .collect();
    let symbols = shell.path("traces/symbols");
    let mut arguments: Vec<&str> = paths.iter().map(String::as_str).collect();
    arguments.extend(["--symbol-path", symbols.to_str().unwrap(), "-c", line]);
    let run = shell.run(&arguments);
    let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    document["groups"].as_array().unwrap().clone()
}

/// The named members of rows; those that are left out are null.
fn members(rows: &[Value], names: &[&str]) -> Vec<Vec<Value>> {
    let named = |row: &Value| names.iter().map(|name| row[*name].clone()).collect();
    rows.iter().map(named).collect()
}

#[test]
fn two_traces_are_compared_as_the_console_does() {
    let shell = Shell::new();
    let mut server = of_samples(&shell);
    let both = json!({"paths": ["leaky.etl", "server.etl"], "symbols": ["symbols"]});
    server.call("load", &both).unwrap();
    let diff = server.call("diff", &json!({})).unwrap();
    let document = &diff["document"];
    let names = ["process", "type", "function", "before", "after", "state"];
    let expected = printed(&shell, &["leaky.etl", "server.etl"], ".diff -json");
    let groups = document["groups"].as_array().unwrap();
    assert_eq!(members(groups, &names), members(&expected, &names));
    assert_eq!((&document["a"], &document["b"]), (&json!("leaky.etl"), &json!("server.etl")));
    assert_eq!(document["states"], json!({"new": 2, "gone": 4}));
    assert_eq!((&document["got_worse"], &groups[0]["got_worse"]), (&json!(2), &json!(true)));
    for (group, expected) in groups.iter().zip(&expected) {
        let value = |row: &Value| row["p_value"].as_f64().unwrap();
        assert!((value(group) / value(expected) - 1.0).abs() < 0.001, "{group} {expected}");
    }
    // Frames only with the details.
    assert!(document.get("stacks").is_none() && groups[0].get("create_stack").is_none(), "{diff}");
    let detailed = server.call("diff", &json!({"detail": true, "top": 1})).unwrap();
    let stack = detailed["document"]["groups"][0]["create_stack"].to_string();
    assert!(detailed["document"]["stacks"][stack].is_array(), "{detailed}");
    // Each group leads to the suspects of its process and type, in the trace that has it.
    for group in groups {
        let suspects = server.call("why", &group["next"]["arguments"]).unwrap();
        let files = if group["state"] == "gone" { "leaky.etl" } else { "server.etl" };
        assert_eq!(suspects["document"]["traces"], json!([files]), "{group}");
        let suspects = suspects["document"]["suspects"].as_array().unwrap();
        let is_of_group = |suspect: &Value| suspect["function"] == group["function"];
        assert!(suspects.iter().any(is_of_group), "{group}: {suspects:?}");
    }
}

#[test]
fn the_points_of_a_trace_are_compared_and_lead_to_objects() {
    let shell = Shell::new();
    let mut server = of_samples(&shell);
    server.load_sample();
    let names = ["process", "type", "function", "opened", "still_open", "sample_ids"];
    for (arguments, line) in [
        (json!({}), ".diff -json"),
        (json!({"from": "0.5s", "to": "1.5s"}), ".diff 0.5s 1.5s -json"),
        (json!({"from": "0.5s", "type": "Thread"}), ".diff 0.5s -Type Thread -json"),
        (json!({"to": "1.5s", "process": "leaky"}), ".diff -To 1.5s -pn leaky -json"),
    ] {
        let diff = server.call("diff", &arguments).unwrap();
        let groups = diff["document"]["groups"].as_array().unwrap();
        let expected = printed(&shell, &["leaky.etl"], line);
        assert!(!groups.is_empty(), "{line}");
        assert_eq!(members(groups, &names), members(&expected, &names), "{line}");
        for group in groups {
            let objects = server.call("objects", &group["next"]["arguments"]).unwrap();
            let ids: Vec<Value> = objects["document"]["objects"]
                .as_array()
                .unwrap()
                .iter()
                .map(|object| object["id"].clone())
                .collect();
            assert_eq!(json!(ids), group["sample_ids"], "{line}");
        }
    }
    let (rows, pages) = server.pages("diff", &json!({}), "groups", 1);
    assert_eq!((rows.len(), pages.len()), (3, 3));
}

#[test]
fn a_comparison_without_an_answer_says_what_to_change() {
    let shell = Shell::new();
    let mut server = of_samples(&shell);
    server.load_sample();
    for (arguments, expected) in [
        (json!({"from": "x"}), "'x' is neither a snapshot of "),
        (
            json!({"from": "2s", "to": "1s"}),
            "'2s' is not before '1s'; name the earlier point first",
        ),
        (json!({"builds": ["1", "2"]}), "the argument 'builds' does not apply to traces; "),
    ] {
        let error = server.call("diff", &arguments).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    fs::copy(sample_trace(), shell.path("traces/third.etl")).unwrap();
    let all = json!({"paths": ["leaky.etl", "server.etl", "third.etl"]});
    server.call("load", &all).unwrap();
    let error = server.call("diff", &json!({})).unwrap_err();
    let expected = "3 traces are loaded, but diff compares two; choose them with `files`, or name a point in time";
    assert_eq!(error, expected);
    let two = server.call("diff", &json!({"files": "!*third*"})).unwrap();
    assert_eq!(two["document"]["traces"], json!(["leaky.etl", "server.etl"]));
    let error = server.call("diff", &json!({"files": "!*third*", "type": "Evnt"})).unwrap_err();
    assert!(error.ends_with("passes `type` Evnt, did you mean `type` Event?"), "{error}");
}
