//! Filters of `.why`, and the totals beside its suspects.

use handlescope_tests::binary::{Shell, run_over};
use handlescope_tests::mcp::McpServer;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

use super::{EVENT, MS, OBJECT, asked, close, open, suspects, trace};

const KEY: u16 = 17;

/// The server leaks six events and closes two, and leaks a key; the client closes its only event.
fn two_processes() -> TraceBuilder {
    let mut trace = trace();
    trace.object_type(KEY, "Key");
    for number in 0..8_u32 {
        let (ns, object) = (MS * i64::from(10 * number + 10), OBJECT + 0x100 * u64::from(number));
        open(&mut trace, ns, (700, 701), object, 4 * number + 4);
        if number < 2 {
            close(&mut trace, ns + MS, (700, 701), object, 4 * number + 4);
        }
    }
    trace.create_handle(200 * MS, (700, 701), OBJECT + 0x5000, 0x100, KEY);
    open(&mut trace, 210 * MS, (800, 801), OBJECT + 0x6000, 0x10);
    close(&mut trace, 220 * MS, (800, 801), OBJECT + 0x6000, 0x10);
    trace
}

/// Returns the numbers of handles created, closed and leaked.
fn counts(totals: &Value) -> [u64; 3] {
    // The MCP server leaves out zeros.
    let count = |member: &str| totals[member].as_u64().unwrap_or_default();
    ["handles_created", "handles_closed", "leaked_handles"].map(count)
}

#[test]
fn totals_are_of_the_handles_that_the_filters_choose() {
    let trace = two_processes();
    let shell = Shell::new();
    std::fs::create_dir(shell.path("traces")).unwrap();
    trace.write(shell.path("traces/a.etl")).unwrap();
    let mut server = McpServer::start(&shell.path("traces"), &[]);
    server.call("load", &json!({"paths": ["a.etl"]})).unwrap();
    for (options, arguments, expected) in [
        ("", json!({}), [10, 3, 7]),
        ("-pn server", json!({"process": "server"}), [9, 2, 7]),
        ("-pn client", json!({"process": "client"}), [1, 1, 0]),
        ("-pn !client", json!({"process": "!client"}), [9, 2, 7]),
        ("-Type Key", json!({"type": "Key"}), [1, 0, 1]),
        ("-pn server -Type Event", json!({"process": "server", "type": "Event"}), [8, 2, 6]),
        ("-Since 0.05", json!({"since": "0.05"}), [6, 1, 5]),
    ] {
        let document = asked(&trace, options);
        assert_eq!(counts(&document["files"][0]["totals"]), expected, "{options}");
        let leaked: u64 =
            suspects(&document).iter().map(|suspect| suspect["leaked"].as_u64().unwrap()).sum();
        assert_eq!(leaked, expected[2], "{options}");
        let answer = server.call("why", &arguments).unwrap();
        let [created, _, leaked] = counts(&answer["document"]["totals"]);
        assert_eq!([created, leaked], [expected[0], expected[2]], "{arguments}");
    }
    let text = run_over(&trace, ".why -pn client\n").ok().stdout;
    assert!(text.contains("Nothing leaks: 1 handle opened, 0 not closed"), "{text}");
    let text = run_over(&trace, ".why -Type Key\n").ok().stdout;
    assert!(text.contains("\n1 handle leaked by "), "{text}");
}

#[test]
fn a_time_is_written_as_it_was_given_in_the_command_and_call_of_a_suspect() {
    let trace = two_processes();
    let document = asked(&trace, "-Type Event -Since 50ms");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    let command = suspect["command"].as_str().unwrap();
    assert!(command.contains(" -MinMaxTime 0.05s "), "{command}");
    let shown = run_over(&trace, &format!("{command} -json\n")).ok().stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["totals"]["leaked_handles"], suspect["leaked"], "{command}");

    let shell = Shell::new();
    std::fs::create_dir(shell.path("traces")).unwrap();
    trace.write(shell.path("traces/a.etl")).unwrap();
    let mut server = McpServer::start(&shell.path("traces"), &[]);
    server.call("load", &json!({"paths": ["a.etl"]})).unwrap();
    let why = server.call("why", &json!({"type": "Event", "since": "50ms"})).unwrap();
    let next = &why["document"]["suspects"][0]["next"];
    assert_eq!(next["arguments"]["time"], json!({"from": "50ms"}));
    let objects = server.call(next["tool"].as_str().unwrap(), &next["arguments"]).unwrap();
    assert_eq!(objects["total"], suspect["leaked"], "{EVENT}");
}
