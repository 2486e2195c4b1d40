//! The schemas of answers, made of the members that documents and their rows declare.
//!
//! A client refuses an answer that its schema does not allow. So a schema requires only what every page has, and allows
//! members that it does not declare.

use serde_json::{Map, Value, json};

use super::tools::{Brief, RowSpec, Tool};
use super::window::STACKS;
use handlescope_render::{Depth, MemberMeaning};

/// Lists whose elements are lines in answers, whatever they are in documents.
const OF_LINES: [&str; 2] = ["frames", "columns"];

/// The schema of the answer of a tool: a page of rows and what stands beside them.
pub fn schema(tool: &Tool) -> Map<String, Value> {
    let specs: Vec<RowSpec> = [false, true].iter().filter_map(|over| tool.rows(*over)).collect();
    let members = |of: fn(&RowSpec) -> Vec<MemberMeaning>| specs.iter().flat_map(of).collect();
    let members_of_rows: Vec<MemberMeaning> = members(|spec| (spec.members)());
    let mut row = properties(&members_of_rows);
    row.extend(added_to_rows(tool));
    let members_of_document: Vec<MemberMeaning> = members(|spec| (spec.document)());
    let mut document = properties(&members_of_document);
    document.extend(added_to_document(tool));
    // A query names the columns of its rows.
    let row = if members_of_rows.is_empty() { object() } else { object_with(&row) };
    let rows = tool.names.rows;
    document.insert(rows.to_owned(), json!({"type": "array", "items": row}));
    let mut document = object_with(&document);
    document["required"] = json!([rows]);
    let page = json!({
        "document": document,
        "total": {"type": "integer"},
        "next": call(),
        "cut": {"type": "boolean"},
        "warnings": {"type": "array", "items": {"type": "string"}},
    });
    let schema = [
        ("type", json!("object")),
        ("properties", page),
        ("required", json!(["document", "total"])),
    ];
    schema.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

/// Members of rows that the server adds.
fn added_to_rows(tool: &Tool) -> Map<String, Value> {
    let mut added = Map::new();
    let mut add = |name: &str, schema| added.insert(name.to_owned(), schema);
    if tool.is_about_traces() {
        add("file", json!({"type": "integer"}));
        add("next", object());
    }
    if let Some(list) = tool.names.list {
        add(&format!("{list}_before"), json!({"type": "integer"}));
    }
    if tool.rows(false).is_some_and(|rows| rows.brief == Brief::Suspects) {
        add("causes", json!({"type": "array"}));
    }
    added
}

/// Members of documents that the server adds.
fn added_to_document(tool: &Tool) -> Map<String, Value> {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let mut added = Map::new();
    let mut add = |name: &str, schema| added.insert(name.to_owned(), schema);
    if tool.is_about_traces() {
        // Over a dataset it is a number, or one for each build.
        add("traces", json!({"type": ["array", "integer"]}));
        add(STACKS, json!({"type": "object", "additionalProperties": texts}));
    }
    if tool.rows(true).is_some() {
        add("dataset", json!({"type": "string"}));
    }
    match tool.rows(false).map(|rows| rows.brief) {
        Some(Brief::Suspects) => {
            add("totals", object());
            add("left_out_as_small", object());
            add("left_out_as_young", object());
        }
        Some(Brief::Compared) => {
            add("got_worse", json!({"type": "integer"}));
            add("states", json!({"type": "object", "additionalProperties": {"type": "integer"}}));
        }
        _ => {}
    }
    if !tool.is_paged() {
        add("symbols", object());
    }
    added
}

/// Any object.
fn object() -> Value {
    json!({"type": "object"})
}

/// An object with these members.
fn object_with(properties: &Map<String, Value>) -> Value {
    json!({"type": "object", "properties": properties})
}

/// A call of a tool that is ready to send.
fn call() -> Value {
    json!({
        "type": "object",
        "properties": {"tool": {"type": "string"}, "arguments": object()},
        "required": ["tool", "arguments"],
    })
}

/// The schemas of members that answers have, by their names.
fn properties(members: &[MemberMeaning]) -> Map<String, Value> {
    let mut properties: Map<String, Value> = Map::new();
    let own = members.iter().filter(|member| !member.name.contains('.'));
    for member in own.filter(|member| member.depth < Depth::Programs) {
        let mut schema = schema_of(member, members);
        let known = properties.get(&member.name).map(|known| known["type"].clone());
        if let Some(known) = known.filter(|known| *known != schema["type"]) {
            // Some documents have a number where others have a text.
            let types = [known, schema["type"].clone()];
            let is_known = types.iter().all(Value::is_string);
            schema = if is_known { json!({"type": types}) } else { json!({}) };
        }
        properties.insert(member.name.clone(), schema);
    }
    properties
}

/// The schema of a member, with the members of its value.
fn schema_of(member: &MemberMeaning, members: &[MemberMeaning]) -> Value {
    let prefix = format!("{}.", member.name);
    let inner = members.iter().filter_map(|inner| {
        let name = inner.name.strip_prefix(&prefix)?.to_owned();
        Some(MemberMeaning { name, ..inner.clone() })
    });
    let inner = properties(&inner.collect::<Vec<_>>());
    match member.kind.trim_end_matches('?') {
        "array" if OF_LINES.contains(&member.name.as_str()) => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        "array" if !inner.is_empty() => json!({"type": "array", "items": object_with(&inner)}),
        "" if inner.is_empty() => json!({}),
        // A list or one value.
        "" => json!({"properties": inner}),
        "object" if !inner.is_empty() => object_with(&inner),
        kind => json!({"type": kind}),
    }
}
