//! What an answer says beside its rows, in words of tools: warnings, and calls that are ready to send.

use serde_json::{Map, Value, json};

use super::tools::{ALL, Brief, FILES, TOOLS, Tool};

/// Texts of the command line, and what an agent does instead.
const PHRASES: [(&str, &str); 11] = [
    ("; extract with -stacks all for those of every event", ""),
    (
        "close of a handle opened before the trace",
        "close of a handle opened before the trace: no leak is affected",
    ),
    (
        "closes of handles opened before the trace",
        "closes of handles opened before the trace: no leak is affected",
    ),
    (".dump Symbols lists why", "the tool symbols lists why"),
    ("; see .help .sympath", ": load with `symbols`"),
    (".help sql lists the tables and has examples", "the tool schema lists the tables"),
    (", or raise the limit with -MaxMemory", ""),
    (
        "its allocations are in .dump Resource and .why",
        "its allocations are in allocations and why",
    ),
    ("load one with .load FILE", "call load first"),
    ("raise the limit with -MaxSize of .load or .extract", "the server's user can extract it"),
    ("choose some with -fd", "choose some with `files`"),
];

/// Number of handles or allocations up to which a small suspect is left out.
const MAX_SMALL: u64 = 3;

/// Beginnings of notes about what was done, which limits no answer.
const NOTES: [&str; 2] = ["loaded ", "note: -fd "];

/// A message of a command as a warning of an answer; `None` for one that limits none.
pub(super) fn as_warning(tool: &Tool, line: &str) -> Option<String> {
    let text = match line.strip_prefix("warning: ") {
        Some(text) => text,
        // What an extraction read: it always counts lost events.
        None if line.contains(" lost event") => return None,
        None if NOTES.iter().any(|note| line.starts_with(note)) => return None,
        None => line.strip_prefix("note: ").unwrap_or(line),
    };
    Some(in_words_of_tools(tool, text))
}

/// A text with arguments in the place of options.
pub(super) fn in_words_of_tools(tool: &Tool, text: &str) -> String {
    let mut text = text.to_owned();
    for (phrase, instead) in PHRASES {
        text = text.replace(phrase, instead);
    }
    let name_of = |option: &str| {
        let tools = std::iter::once(tool).chain(TOOLS);
        tools.flat_map(Tool::options).find(|(known, _)| *known == option).map(|(_, name)| name)
    };
    let named = |word: &str| {
        let option = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        match option.starts_with('-').then(|| name_of(option)).flatten() {
            Some(name) => word.replace(option, &format!("`{name}`")),
            None => word.to_owned(),
        }
    };
    text.split(' ').map(named).collect::<Vec<_>>().join(" ")
}

/// Puts arguments in the place of options in all texts of a value.
pub(super) fn translate(tool: &Tool, value: &mut Value) {
    match value {
        Value::String(text) => *text = in_words_of_tools(tool, text),
        Value::Array(items) => items.iter_mut().for_each(|item| translate(tool, item)),
        Value::Object(members) => members.values_mut().for_each(|value| translate(tool, value)),
        _ => {}
    }
}

/// The call that shows more of a row.
pub(super) fn next_of_row(
    tool: &Tool,
    row: &Value,
    files: Option<&str>,
    since: Option<&str>,
) -> Option<Value> {
    let (next, mut arguments) = match tool.brief {
        Brief::Suspects if row["bytes"].is_null() => ("objects", json!({"suspect": row["id"]})),
        Brief::Suspects => {
            ("allocations", json!({"by": ["allocator", "createstack"], "suspect": row["id"]}))
        }
        Brief::Rows if tool.name == "groups" => ("objects", objects_of(&row["keys"])?),
        _ => return None,
    };
    if let Some(arguments) = arguments.as_object_mut() {
        arguments.extend(files.map(|files| (FILES.to_owned(), files.into())));
        arguments.extend(since.map(|since| ("time".to_owned(), json!({"from": since}))));
    }
    Some(json!({"tool": next, "arguments": arguments}))
}

/// The arguments that choose the objects of a group; `None` where they choose others, too.
fn objects_of(keys: &Value) -> Option<Value> {
    let mut arguments = Map::new();
    for (column, value) in keys.as_object()? {
        if !matches!(column.as_str(), "process" | "type" | "name") {
            return None;
        }
        arguments.insert(column.clone(), value.as_str()?.into());
    }
    Some(arguments.into())
}

/// Says how many groups leak only young handles, and how to see them.
fn count_young(document: &mut Map<String, Value>) {
    if let Some(groups) = document.remove("young_groups").filter(|groups| *groups != 0) {
        let arguments = json!({"by": ["process", "type"], "leak": true});
        let see = json!({"tool": "groups", "arguments": arguments});
        let young = json!({"groups": groups, "see": see});
        document.insert("left_out_as_young".to_owned(), young);
    }
}

/// Leaves the suspects out that say next to nothing beside the others, and says how many those are and how to see them.
pub(super) fn leave_out_small(document: &mut Map<String, Value>, arguments: &Map<String, Value>) {
    count_young(document);
    let Some(Value::Array(suspects)) = document.get_mut("suspects") else { return };
    let count = |suspect: &Value| {
        let count = |member: &str| suspect[member].as_u64().unwrap_or_default();
        count("leaked") + count("closed_at_exit")
    };
    let is_small = |suspect: &Value| suspect["is_small"] == true && count(suspect) <= MAX_SMALL;
    if suspects.iter().all(is_small) {
        return;
    }
    let small = suspects.iter().filter(|suspect| is_small(suspect));
    let (number, least, most) =
        small.map(count).fold((0, u64::MAX, 0), |(number, least, most), count| {
            (number + 1, least.min(count), most.max(count))
        });
    suspects.retain(|suspect| !is_small(suspect));
    if number > 0 {
        let mut arguments = arguments.clone();
        arguments.insert(ALL.to_owned(), true.into());
        let see = json!({"tool": "why", "arguments": arguments});
        let small = json!({"suspects": number, "each_leaked": [least, most], "see": see});
        document.insert("left_out_as_small".to_owned(), small);
    }
}
