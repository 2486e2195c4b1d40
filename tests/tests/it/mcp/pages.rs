//! Large answers in pages.

use std::collections::BTreeSet;
use std::fs;

use handlescope_tests::binary::{Shell, sample_trace};
use handlescope_tests::mcp::McpServer;
use serde_json::{Value, json};

use super::of_allocations;

/// Default maximum size of an answer, bytes.
const MAX_BYTES: usize = 16 << 10;

#[test]
fn pages_of_allocations_hold_every_group_once_with_its_stack() {
    let shell = Shell::new();
    let mut server = of_allocations(&shell);
    let arguments = json!({"by": ["kind", "createstack"], "stacks": true});
    let (all, _) = server.pages("allocations", &arguments, "groups", 1000);
    let (paged, pages) = server.pages("allocations", &arguments, "groups", 2);
    assert_eq!((paged, pages.len()), (all.clone(), all.len().div_ceil(2)));
    for page in &pages {
        let document = &page["document"];
        let rows = document["groups"].as_array().unwrap();
        let stacks: BTreeSet<String> = rows
            .iter()
            .filter_map(|row| row["keys"]["createstack"].as_u64())
            .map(|stack| stack.to_string())
            .collect();
        let shown = document["stacks"].as_object().unwrap().keys().cloned();
        // A stack from an earlier page is shown again with the rows that refer to it.
        assert_eq!(stacks, shown.collect(), "{page}");
    }
    let frames = &pages[0]["document"]["stacks"];
    assert!(frames.to_string().contains("tool.exe"), "{frames}");
    // A trace without allocations says so, as in the console.
    server.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let none = server.call("allocations", &json!({"by": ["kind"]})).unwrap();
    assert_eq!(none["total"], 0);
    assert!(none["warnings"][0].as_str().unwrap().contains("no allocation events"), "{none}");
}

#[test]
fn pages_hold_every_row_once() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    fs::create_dir(shell.path("traces/more")).unwrap();
    fs::copy(sample_trace(), shell.path("traces/more/other.etl")).unwrap();
    for paths in [json!(["leaky.etl"]), json!(["leaky.etl", "more/other.etl"])] {
        server.call("load", &json!({"paths": paths, "symbols": ["symbols"]})).unwrap();
        let queries = [
            ("why", "suspects", json!({}), 1),
            ("groups", "groups", json!({"by": ["process", "type", "name"]}), 7),
            ("groups", "groups", json!({"by": ["createstack"]}), 3),
            ("groups", "groups", json!({"by": ["type", "createstack"], "min_count": 2}), 2),
            ("groups", "groups", json!({"by": ["name"], "leak": true, "show_time": 4}), 2),
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
            // Groups without an order may come in another order when the query runs again.
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
                assert_eq!(page.get("next").is_none(), is_last(at), "{tool}");
                assert!(page.get("cut").is_none(), "{tool}");
                assert_eq!(page["total"], all.len(), "{tool}");
            }
        }
    }
}

#[test]
fn a_page_has_the_stacks_that_its_rows_refer_to() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
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
    let mut server = McpServer::with_sample(&shell, &[]);
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
        assert!(bytes <= MAX_BYTES, "{bytes}");
    }
    let small = json!({"query": "SELECT row, time_ns FROM events", "max_bytes": 2048});
    let page = server.call("sql", &small).unwrap();
    assert!(page.to_string().len() <= 2048 && page.get("next").is_some(), "{page}");
    let numbers: Vec<u64> = rows.iter().map(|row| row["row"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|left, right| left < right));
}

#[test]
fn a_cursor_is_of_one_question() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    server.load_sample();
    let page = server.call("objects", &json!({"top": 5})).unwrap();
    let cursor = page["next"]["arguments"]["cursor"].clone();
    for arguments in [
        json!({"cursor": cursor, "type": "Event"}),
        json!({"cursor": "nonsense"}),
        json!({"cursor": "0-5.0"}),
    ] {
        let error = server.call("objects", &arguments).unwrap_err();
        assert!(error.contains("the cursor belongs to another query"), "{error}");
    }
    server.call("objects", &json!({"cursor": cursor, "top": 9})).unwrap();
    server.load_sample();
    let error = server.call("objects", &json!({"cursor": cursor})).unwrap_err();
    assert!(error.contains("start again, as after each load"), "{error}");
}
