//! Calls of `load`: a failed call changes nothing.

use std::fs;

use handlescope_tests::binary::{Shell, sample_trace};
use handlescope_tests::mcp::McpServer;
use serde_json::{Value, json};

/// Returns what the loaded traces answer.
fn state(server: &mut McpServer) -> Value {
    let why = server.call("why", &json!({})).unwrap();
    let stats = server.call("stats", &json!({})).unwrap();
    json!([why, stats])
}

#[test]
fn a_load_that_fails_changes_nothing() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let _ = shell.run(&["dataset", "add", "traces/fleet", "leaky.etl"]).ok();
    let traces = shell.path("traces");
    fs::write(traces.join("bad.etl"), "no trace").unwrap();
    fs::write(traces.join("none.txt"), "no trace").unwrap();
    fs::create_dir(traces.join("empty")).unwrap();
    fs::create_dir(traces.join("pdbs")).unwrap();
    server.load_sample();
    let page = server.call("objects", &json!({"top": 5})).unwrap();
    let before = state(&mut server);
    for arguments in [
        json!({"paths": ["leaky.etl", "fleet"]}),
        json!({"paths": ["fleet", "leaky.etl"]}),
        json!({"paths": ["bad.etl"]}),
        json!({"paths": ["bad.etl"], "symbols": ["pdbs"]}),
        json!({"paths": ["none.txt"]}),
        json!({"paths": ["empty"]}),
        json!({"paths": ["none.etl"]}),
        json!({"paths": ["leaky.etl", "none.etl"]}),
        json!({"paths": ["leaky.etl"], "symbols": ["none"]}),
        json!({"paths": ["../leaky.etl"]}),
        json!({"paths": [""]}),
        json!({"paths": []}),
        json!({}),
    ] {
        for append in [false, true] {
            let mut arguments = arguments.clone();
            arguments["append"] = append.into();
            let error = server.call("load", &arguments).unwrap_err();
            assert!(!error.is_empty());
            assert_eq!(state(&mut server), before, "{arguments}: {error}");
        }
    }
    // Cursors stay valid, too.
    server.call("objects", &page["next"]["arguments"]).unwrap();
}

#[test]
fn files_that_cannot_be_loaded_beside_others_are_named() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    fs::create_dir(shell.path("traces/more")).unwrap();
    fs::copy(sample_trace(), shell.path("traces/more/good.etl")).unwrap();
    fs::write(shell.path("traces/more/bad.etl"), "no trace").unwrap();
    for paths in [json!(["more"]), json!(["more/bad.etl", "more/good.etl"])] {
        let loaded = server.call("load", &json!({"paths": paths})).unwrap();
        assert_eq!(loaded["document"]["files"][0]["path"], "more/good.etl", "{loaded}");
        assert_eq!(loaded["total"], 1, "{loaded}");
        let said = loaded["warnings"].to_string();
        assert!(said.contains("not loaded: more/bad.etl: "), "{said}");
        assert_eq!(server.call("why", &json!({})).unwrap()["total"], 4);
    }
}
