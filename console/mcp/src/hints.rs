//! What an answer offers beside its rows: calls that are ready to send, and counts of rows.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::tools::{ALL, CURSOR, FILES, Tool};
use handlescope_session::filter::word;

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

/// The call that shows more of a row, of one trace where several are loaded.
pub fn next_of_row(
    tool: &Tool,
    row: &Value,
    asked: &Map<String, Value>,
    file: Option<String>,
) -> Option<Value> {
    let (next, of_row) = match tool.name {
        "why" if row["bytes"].is_null() => ("objects", json!({"suspect": row["id"]})),
        "why" => ("allocations", json!({"by": ["allocator", "createstack"], "suspect": row["id"]})),
        "groups" => ("objects", objects_of(&row["keys"])?),
        "diff" => of_compared(row)?,
        _ => return None,
    };
    let mut arguments = match tool.name {
        "groups" => pick_arguments(asked, &OF_OBJECTS),
        // Ids of suspects and objects stand for process and type.
        _ => pick_arguments(asked, &[FILES]),
    };
    let since = asked.get("since").filter(|since| !since.is_null());
    arguments.extend(since.map(|since| ("time".to_owned(), json!({"from": since}))));
    arguments.extend(file.map(|file| (FILES.to_owned(), file.into())));
    arguments.extend(of_row.as_object().cloned().into_iter().flatten());
    Some(json!({"tool": next, "arguments": arguments}))
}

/// The call that shows more of a group that differs: its objects, or else the suspects of its process and type.
fn of_compared(row: &Value) -> Option<(&'static str, Value)> {
    let ids = row["sample_ids"].as_array().filter(|ids| !ids.is_empty());
    if let Some(ids) = ids {
        return Some(("objects", json!({"ids": ids})));
    }
    row["state"].as_str()?;
    let process = word(row["process"].as_str()?);
    let kind = [&row["type"], &row["kind"]].into_iter().find_map(Value::as_str)?;
    Some(("why", json!({"process": process, "type": word(kind), ALL: true})))
}

/// The trace that `next` of a group of two traces asks: the second one, or the first if the group is gone.
pub fn compared(row: &Value, traces: &[(usize, String)]) -> Option<usize> {
    let state = row["state"].as_str()?;
    let [(before, _), (after, _)] = traces else { return None };
    Some(if state == "gone" { *before } else { *after })
}

/// The call that shows more of a row about a dataset.
pub fn next_in_dataset(tool: &Tool, row: &Value) -> Option<Value> {
    let (next, arguments) = match tool.name {
        // Its objects are in the trace where it is worst.
        "why" => ("load", json!({"paths": [row["worst"]["trace"].as_str()?]})),
        "diff" => {
            let (next, mut arguments) = of_compared(row)?;
            arguments.as_object_mut()?.remove(ALL);
            (next, arguments)
        }
        _ => return None,
    };
    Some(json!({"tool": next, "arguments": arguments}))
}

/// How many groups of a comparison are in each state, and how many got worse.
#[derive(Default)]
pub struct States {
    states: BTreeMap<String, u64>,
    got_worse: u64,
}

impl States {
    /// Counts a group, which is shown in any case.
    pub fn count(&mut self, row: &Value) -> bool {
        if let Some(state) = row["state"].as_str() {
            *self.states.entry(state.to_owned()).or_default() += 1;
            self.got_worse += u64::from(row["got_worse"] == true);
        }
        true
    }

    /// Says how many there are. Groups between points in time have no states.
    pub fn describe(self, document: &mut Map<String, Value>) {
        if !self.states.is_empty() {
            document.insert("got_worse".to_owned(), self.got_worse.into());
            document.insert("states".to_owned(), json!(self.states));
        }
    }
}

/// The arguments of these names.
fn pick_arguments(asked: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let is_kept = |name: &str, value: &Value| names.contains(&name) && !value.is_null();
    asked
        .iter()
        .filter(|(name, value)| is_kept(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
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
        let mut arguments = pick_arguments(asked, &["process", "type", FILES]);
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
