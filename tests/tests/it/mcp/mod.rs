//! `handlescope mcp` as a protocol client sees it.

mod answers;
mod benchmark;
mod datasets;
mod diffs;
mod leads;
mod loads;
mod pages;
mod protocol;
mod queries;
mod schemas;
mod seeds;
mod words;

use std::fs;
use std::path::Path;

use handlescope_tests::allocations;
use handlescope_tests::binary::Shell;
use handlescope_tests::mcp::McpServer;
use serde_json::{Value, json};

/// Every tool, with the list of rows in its document.
const TOOLS: [(&str, &str); 11] = [
    ("load", "files"),
    ("why", "suspects"),
    ("diff", "groups"),
    ("objects", "objects"),
    ("groups", "groups"),
    ("allocations", "groups"),
    ("stack", "stacks"),
    ("symbols", "symbols"),
    ("sql", "rows"),
    ("schema", "tables"),
    ("stats", "files"),
];

#[test]
fn every_tool_has_typed_arguments_and_answers() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    let mut list = server.request("tools/list", &json!({}));
    // Few clients show the answer schemas to their models.
    let take_schema =
        |tool: &mut Value| tool.as_object_mut().unwrap().remove("outputSchema").unwrap();
    let schemas: Vec<Value> =
        list["result"]["tools"].as_array_mut().unwrap().iter_mut().map(take_schema).collect();
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
            let is_common = ["files", "top", "max_bytes", "cursor"].contains(&argument.as_str());
            assert!(
                is_common || line.contains(&format!("`{argument}`")),
                "docs: {name}: {argument}"
            );
            assert!(schema["type"].is_string(), "{name}: {argument}");
            assert!(!schema["description"].as_str().unwrap().is_empty(), "{name}: {argument}");
        }
        assert!(line.contains(&format!("`{rows}`")), "docs: {name}: {rows}");
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{name}");
    }
    assert!(list.to_string().len() < 13 << 10, "{} bytes", list.to_string().len());
    for (schema, (name, rows)) in schemas.iter().zip(TOOLS) {
        let rows = &schema["properties"]["document"]["properties"][rows];
        let members = rows["items"]["properties"].as_object();
        assert_eq!(members.is_none(), name == "sql", "{name}: {schema}");
    }
    assert_eq!(tools[4]["inputSchema"]["required"], json!(["by"]));
    let columns = &tools[4]["inputSchema"]["properties"]["by"]["items"]["enum"];
    assert!(columns.as_array().unwrap().contains(&json!("createstack")), "{columns}");
}

/// Starts a server and loads a trace with allocations.
fn of_allocations(shell: &Shell) -> McpServer {
    let mut server = McpServer::with_sample(shell, &[]);
    allocations::trace().write(shell.path("traces/memory.etl")).unwrap();
    server.call("load", &json!({"paths": ["memory.etl"]})).unwrap();
    server
}
