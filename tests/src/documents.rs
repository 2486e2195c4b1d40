//! Documents that `-json` prints.

use serde_json::Value;

/// The frames of a stack of a document, as in `module!function`, a line each.
#[must_use]
pub fn stack_text(document: &Value, id: &Value) -> String {
    let frame = |frame: &Value| match (&frame["module"], &frame["function"], &frame["rva"]) {
        (Value::String(module), Value::String(function), _) => format!("{module}!{function}"),
        (Value::String(module), _, Value::String(rva)) => format!("{module}+{rva}"),
        _ => "<UnknownMethod>".to_owned(),
    };
    let frames = document["stacks"][id.to_string()].as_array();
    frames.into_iter().flatten().map(frame).collect::<Vec<_>>().join("\n")
}
