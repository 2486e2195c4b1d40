//! The text of an answer: what its JSON has, in lines.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Separator of members in a line.
const SEPARATOR: &str = ", ";

/// The member of a row with its lines, where these are not made of its other members.
pub const TEXT: &str = "summary";

/// Removes the lines of rows, which the text of the answer has.
pub fn take(answer: &mut Value, rows: &str) {
    let rows = answer["document"].get_mut(rows).and_then(Value::as_array_mut);
    for row in rows.into_iter().flatten().filter_map(Value::as_object_mut) {
        row.remove(TEXT);
    }
}

/// Members that begin a line.
const FIRST: [&str; 6] = ["file", "id", "name", "module", "time_ns", "kind"];

/// The text of a whole answer: rows, stacks, and where to continue.
pub fn of_answer(answer: &Value, rows: &str) -> String {
    let mut text = String::new();
    let empty = Map::new();
    let document = answer["document"].as_object().unwrap_or(&empty);
    let stacks = document.get("stacks").and_then(Value::as_object).unwrap_or(&empty);
    let apart = [rows, "stacks", "columns"];
    for (name, value) in document.iter().filter(|(name, _)| !apart.contains(&name.as_str())) {
        let _ = writeln!(text, "{name}: {}", scalar(value));
    }
    let shown = document.get(rows).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    match document.get("columns").and_then(Value::as_array) {
        Some(columns) => write_table(columns, shown, &mut text),
        None => shown.iter().for_each(|row| text.push_str(&of_row(row))),
    }
    stacks.iter().for_each(|(name, stack)| text.push_str(&of_stack(name, stack)));
    let _ = writeln!(text, "{} of {} {rows}", shown.len(), answer["total"]);
    if let Some(next) = answer.get("next") {
        let _ = writeln!(text, "more: {}", call(next));
    }
    for warning in answer.get("warnings").and_then(Value::as_array).into_iter().flatten() {
        let _ = writeln!(text, "warning: {}", warning.as_str().unwrap_or_default());
    }
    text
}

/// A call of a tool, as in `objects {"suspect":"33434dfa4c"}`.
fn call(next: &Value) -> String {
    format!("{} {}", next["tool"].as_str().unwrap_or_default(), next["arguments"])
}

/// Rows of a query below the names of its columns.
fn write_table(columns: &[Value], rows: &[Value], text: &mut String) {
    let names: Vec<&str> = columns.iter().filter_map(Value::as_str).collect();
    let _ = writeln!(text, "{}", names.join(" | "));
    for row in rows {
        let value = |name: &&str| row.get(*name).map_or_else(String::new, scalar);
        let _ = writeln!(text, "{}", names.iter().map(value).collect::<Vec<_>>().join(" | "));
    }
}

/// The lines of a row: its short members in one line, its lists below.
pub fn of_row(row: &Value) -> String {
    let mut text = String::new();
    write_row(row, "", &mut text);
    text
}

fn write_row(row: &Value, indent: &str, text: &mut String) {
    let Some(members) = row.as_object() else {
        let _ = writeln!(text, "{indent}{}", scalar(row));
        return;
    };
    if let Some(written) = members.get(TEXT).and_then(Value::as_str) {
        text.push_str(written);
        return;
    }
    let is_list = |value: &&Value| value.as_array().is_some_and(|list| list.iter().any(is_long));
    let first = FIRST.iter().filter_map(|name| members.get_key_value(*name));
    let others = members.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    let short = first
        .chain(others)
        .filter(|(name, value)| !is_list(value) && *name != "next")
        .map(|(name, value)| format!("{name} {}", scalar(value)));
    let _ = writeln!(text, "{indent}{}", short.collect::<Vec<_>>().join(SEPARATOR));
    let inner = format!("{indent}  ");
    for (name, value) in members.iter().filter(|(_, value)| is_list(value)) {
        let _ = writeln!(text, "{inner}{name}:");
        for item in value.as_array().into_iter().flatten() {
            write_row(item, &format!("{inner}  "), text);
        }
    }
    if let Some(next) = members.get("next") {
        let _ = writeln!(text, "{inner}next: {}", call(next));
    }
}

/// Whether an element of a list needs a line.
fn is_long(item: &Value) -> bool {
    item.is_object() || item.as_str().is_some_and(|text| text.contains(' ') || text.len() > 24)
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name} {}", scalar(value)));
            format!("({})", members.collect::<Vec<_>>().join(SEPARATOR))
        }
        Value::Array(items) => items.iter().map(scalar).collect::<Vec<_>>().join(" "),
        value => value.to_string(),
    }
}

/// The lines of a stack that rows refer to by its number.
pub fn of_stack(name: &str, stack: &Value) -> String {
    let mut text = format!("stack {name}:\n");
    for frame in stack.as_array().into_iter().flatten() {
        let _ = writeln!(text, "  {}", scalar(frame));
    }
    text
}
