//! What an answer says beside its rows, in words of tools: warnings, and calls that are ready to send.

use serde_json::{Map, Value, json};

use super::tools::{ALL, Brief, CURSOR, FILES, TOOLS, Tool};
use handlescope_session::filter::word;

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

/// Filters of groups that objects have, too.
const OF_OBJECTS: [&str; 10] = [
    "process",
    "type",
    "name",
    "stack_filter",
    "create_stack",
    "suspect",
    "leak",
    "leak_at_exit",
    "time",
    FILES,
];

/// Beginnings of notes about what was done, which limits no answer.
const NOTES: [&str; 2] = ["loaded ", "note: -fd "];

/// A message of a command as a warning of an answer; `None` for one that limits none.
pub fn as_warning(tool: &Tool, line: &str) -> Option<String> {
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
pub fn in_words_of_tools(tool: &Tool, text: &str) -> String {
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
pub fn translate(tool: &Tool, value: &mut Value) {
    match value {
        Value::String(text) => *text = in_words_of_tools(tool, text),
        Value::Array(items) => items.iter_mut().for_each(|item| translate(tool, item)),
        Value::Object(members) => members.values_mut().for_each(|value| translate(tool, value)),
        _ => {}
    }
}

/// The call that shows more of a row, of one trace where several are loaded.
pub fn next_of_row(
    tool: &Tool,
    row: &Value,
    asked: &Map<String, Value>,
    file: Option<String>,
) -> Option<Value> {
    let (next, of_row) = match tool.brief {
        Brief::Suspects if row["bytes"].is_null() => ("objects", json!({"suspect": row["id"]})),
        Brief::Suspects => {
            ("allocations", json!({"by": ["allocator", "createstack"], "suspect": row["id"]}))
        }
        Brief::Rows if tool.name == "groups" => ("objects", objects_of(&row["keys"])?),
        _ => return None,
    };
    let mut arguments = match tool.brief {
        // The id of a suspect stands for its process and its type.
        Brief::Suspects => kept(asked, &[FILES]),
        _ => kept(asked, &OF_OBJECTS),
    };
    let since = asked.get("since").filter(|since| !since.is_null());
    arguments.extend(since.map(|since| ("time".to_owned(), json!({"from": since}))));
    arguments.extend(file.map(|file| (FILES.to_owned(), file.into())));
    arguments.extend(of_row.as_object().cloned().into_iter().flatten());
    Some(json!({"tool": next, "arguments": arguments}))
}

/// The arguments of these names.
fn kept(asked: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let is_kept = |name: &str, value: &Value| names.contains(&name) && !value.is_null();
    let arguments = asked.iter().filter(|(name, value)| is_kept(name, value));
    arguments.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The arguments that choose the objects of a group; `None` where they choose others, too.
fn objects_of(keys: &Value) -> Option<Value> {
    let mut arguments = Map::new();
    for (column, value) in keys.as_object()? {
        if !matches!(column.as_str(), "process" | "type" | "name") {
            return None;
        }
        let value = value.as_str().filter(|value| !value.is_empty())?;
        arguments.insert(column.clone(), word(value).into());
    }
    Some(arguments.into())
}

/// Says how many groups leak only young handles, and how to see them.
fn count_young(document: &mut Map<String, Value>, asked: &Map<String, Value>) {
    if let Some(groups) = document.remove("young_groups").filter(|groups| *groups != 0) {
        let mut arguments = kept(asked, &["process", "type", FILES]);
        arguments.insert("by".to_owned(), json!(["process", "type"]));
        arguments.insert("leak".to_owned(), true.into());
        let see = json!({"tool": "groups", "arguments": arguments});
        let young = json!({"groups": groups, "see": see});
        document.insert("left_out_as_young".to_owned(), young);
    }
}

/// The suspects that say next to nothing beside the others, and are left out.
#[derive(Default)]
pub struct SmallSuspects {
    number: u64,
    least: u64,
    most: u64,
    /// Whether there are others.
    has_others: bool,
}

impl SmallSuspects {
    /// Counts a suspect.
    pub fn count(&mut self, suspect: &Value) {
        let Some(count) = small(suspect) else {
            self.has_others = true;
            return;
        };
        self.least = if self.number == 0 { count } else { self.least.min(count) };
        self.most = self.most.max(count);
        self.number += 1;
    }

    /// Whether a suspect is left out, when all were counted.
    pub fn has(&self, suspect: &Value) -> bool {
        self.has_others && small(suspect).is_some()
    }

    /// Says how many suspects are left out, and how to see them.
    pub fn describe(&self, document: &mut Map<String, Value>, asked: &Map<String, Value>) {
        count_young(document, asked);
        if self.number == 0 || !self.has_others {
            return;
        }
        let mut arguments = asked.clone();
        arguments.retain(|name, value| name != CURSOR && !value.is_null());
        arguments.insert(ALL.to_owned(), true.into());
        let see = json!({"tool": "why", "arguments": arguments});
        let each = [self.least, self.most];
        let small = json!({"suspects": self.number, "each_leaked": each, "see": see});
        document.insert("left_out_as_small".to_owned(), small);
    }
}

/// The handles of a suspect that is small.
fn small(suspect: &Value) -> Option<u64> {
    let count = |member: &str| suspect[member].as_u64().unwrap_or_default();
    let count = count("leaked") + count("closed_at_exit");
    (suspect["is_small"] == true && count <= MAX_SMALL).then_some(count)
}
