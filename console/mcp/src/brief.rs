//! Briefs documents for readers that pay by the byte: no nulls, a line for each frame, and of a row what is asked first.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::text::TEXT;
use handlescope_render::{Depth, totals_columns};

/// Frames of a suspect's stack in one line are divided by arrows in text.
const ARROW: &str = "  ← ";

/// Maximum number of modules without names that loading lists.
const MAX_MODULES: usize = 5;

/// Leaves of a document what its answer needs beside the rows: not the members that are `left_out`, nor such totals.
pub fn document(document: &mut Map<String, Value>, left_out: &[String]) {
    let totals =
        document.get("files").and_then(Value::as_array).and_then(|files| match &files[..] {
            [file] => file.get("totals").cloned(),
            _ => None,
        });
    document.retain(|name, _| !left_out.contains(name));
    if let Some(totals) = totals {
        document.entry("totals").or_insert(totals);
    }
    if let Some(totals) = document.get_mut("totals").and_then(Value::as_object_mut) {
        for total in totals_columns().members() {
            if total.depth == Depth::Programs {
                totals.remove(&total.name);
            }
        }
    }
    document.values_mut().for_each(|value| prune(value, true));
    document.retain(|_, value| !is_empty(value));
}

/// Names the traces of a comparison, each by its number and name, in the place of their numbers. The compared times are in the
/// order of the traces.
pub fn name_compared(document: &mut Map<String, Value>, traces: &[(usize, String)]) {
    for side in ["a", "b"] {
        let number = document.get(side).and_then(Value::as_u64);
        let trace = traces.iter().find(|(known, _)| number == Some(*known as u64));
        if let Some((_, name)) = trace {
            document.insert(side.to_owned(), name.as_str().into());
        }
    }
    // Of all handles of one trace, whatever the points.
    document.remove("totals");
    let spans = document.get_mut("spans").and_then(Value::as_array_mut);
    for span in spans.into_iter().flatten().filter_map(Value::as_object_mut) {
        span.remove("file");
    }
}

/// Makes the frames of a list lines, where it is one of frames.
pub fn frames_as_lines(list: &mut Value) {
    for frame in list.as_array_mut().into_iter().flatten().filter(|frame| frame.is_object()) {
        *frame = frame_line(frame).into();
    }
}

/// The line of a frame: `leaky.exe!Cache::Get cache.cpp:29`, `leaky.exe+0x1234`, or its address.
fn frame_line(frame: &Value) -> String {
    let text = |member: &str| frame[member].as_str();
    let function = match (text("module"), text("function"), text("rva")) {
        (Some(module), Some(function), _) => format!("{module}!{function}"),
        (None, Some(function), _) => function.to_owned(),
        (Some(module), None, Some(rva)) => format!("{module}+{rva}"),
        (Some(module), None, None) => module.to_owned(),
        (None, None, _) => text("address").unwrap_or("?").to_owned(),
    };
    match (text("file"), frame["line"].as_u64()) {
        (Some(file), Some(line)) => format!("{function} {file}:{line}"),
        _ => function,
    }
}

/// Removes nulls, empty lists and `false`, and `with_zeros` zeros, except times and numbers of stacks.
fn prune(value: &mut Value, with_zeros: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| prune(item, with_zeros)),
        Value::Object(members) => {
            members.values_mut().for_each(|value| prune(value, with_zeros));
            let is_zero = |name: &str, value: &Value| {
                let is_count = !name.ends_with("_ns") && !name.ends_with("stack");
                with_zeros && is_count && *value == json!(0)
            };
            let is_said = |name: &str, value: &Value| {
                !is_empty(value) && *value != json!(false) && !is_zero(name, value)
            };
            members.retain(|name, value| is_said(name, value));
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Removes nulls from the row of a query.
pub fn values(row: &mut Value) {
    if let Some(members) = row.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
}

/// Removes from a row the members that are `left_out` and those that say nothing, and makes frames lines.
pub fn row(row: &mut Value, left_out: &[String]) {
    if let Some(members) = row.as_object_mut() {
        members.retain(|name, _| !left_out.contains(name));
        if let Some(frames) = members.get_mut("frames") {
            frames_as_lines(frames);
        }
    }
    prune(row, row.get("keys").is_some());
}

/// Leaves of a suspect what a reader asks first: as members who leaks what, where and how fast, with the words of the
/// causes; as lines the same with the program's calls and the sentences about growth and causes.
pub fn suspect(row: &mut Value, left_out: &[String]) {
    let lines = suspect_lines(row);
    let Some(members) = row.as_object_mut() else { return };
    let causes: Vec<Value> = members
        .get("diagnoses")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|diagnosis| diagnosis["cause"].clone())
        .collect();
    members.retain(|name, _| !left_out.contains(name));
    members.insert("causes".to_owned(), causes.into());
    if let Some(rate) = members.get_mut("rate_per_minute") {
        round(rate);
    }
    members.insert(TEXT.to_owned(), lines.into());
    prune(row, true);
}

/// Leaves as many digits of a number as a reader compares.
fn round(number: &mut Value) {
    let rounded = number.as_f64().and_then(|number| format!("{number:.3e}").parse::<f64>().ok());
    *number = rounded.map_or(Value::Null, Value::from);
}

/// Rounds the rates, shares and probabilities of a row of sums.
pub fn round_all(row: &mut Value) {
    row.as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
        .filter(|value| value.is_f64())
        .for_each(round);
}

/// The lines of a suspect: amount, process and id; the calls; growth; names; the causes that the text of `.why` has.
fn suspect_lines(row: &Value) -> String {
    let text = |member: &str| row[member].as_str();
    let calls = text("calls")
        .map(|calls| calls.replace(ARROW, " < ").split_whitespace().collect::<Vec<_>>().join(" "));
    let name = row["object_names"][0]["name"].as_str().map(|name| format!("objects {name}"));
    let mut lines = format!(
        "{}. {}, {}, id {}\n",
        row["rank"],
        text("amount").unwrap_or_default(),
        text("process").unwrap_or_default(),
        text("id").unwrap_or_default()
    );
    let calls = calls.or_else(|| text("function").map(str::to_owned));
    // The shortest forms: every suspect has them.
    let growth = text("growth").map(|growth| {
        let growth = growth.replace("95 % confidence: ", "95 %: ");
        growth.replace("before the end of the trace", "before the end")
    });
    let facts = [calls, growth, name].into_iter().flatten();
    let causes = row["diagnoses"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|diagnosis| diagnosis["is_shown"] == true)
        .map(|diagnosis| {
            let text = |member: &str| diagnosis[member].as_str().unwrap_or_default();
            match (text("cause"), text("text")) {
                (cause, text) if text.starts_with(cause) => text.to_owned(),
                (cause, text) => format!("{cause}: {text}"),
            }
        });
    for fact in facts.chain(causes) {
        lines.push_str(&format!("   {fact}\n"));
    }
    lines
}

/// Removes from a table the members that are `left_out`, and makes its columns lines.
pub fn table(row: &mut Value, left_out: &[String]) {
    let Some(members) = row.as_object_mut() else { return };
    members.retain(|name, _| !left_out.contains(name));
    for column in members.get_mut("columns").and_then(Value::as_array_mut).into_iter().flatten() {
        let text = |member: &str| column[member].as_str().unwrap_or_default().to_owned();
        let unit = column["unit"].as_str().filter(|unit| !unit.is_empty());
        let unit = unit.map_or_else(String::new, |unit| format!(", {unit}"));
        *column = format!("{}: {}{unit}: {}", text("name"), text("type"), text("meaning")).into();
    }
}

/// Names of the frames of all modules: how many there are, the folders they are from, and the modules that lack most.
#[derive(Default)]
pub struct SymbolsBrief {
    frames: u64,
    frames_named: u64,
    places: BTreeSet<String>,
    modules_without_names: u64,
    /// The first modules that lack names.
    most_without_names: Vec<Value>,
    has_pdb: bool,
}

impl SymbolsBrief {
    /// Counts a module.
    pub fn count(&mut self, module: &Value) {
        let number = |member: &str| module[member].as_u64().unwrap_or_default();
        let (frames, named) = (number("frames"), number("frames_named"));
        self.frames += frames;
        self.frames_named += named;
        self.places.extend(module["found_in"]["place"].as_str().map(str::to_owned));
        self.has_pdb |= module["status"] == "pdb";
        if frames <= named {
            return;
        }
        self.modules_without_names += 1;
        if self.most_without_names.len() < MAX_MODULES {
            let reason = module["status"].as_str().unwrap_or_default();
            let frames = frames - named;
            let lacking = json!({"module": module["module"], "frames": frames, "reason": reason});
            self.most_without_names.push(lacking);
        }
    }

    /// Describes the modules that were counted.
    pub fn described(self) -> Value {
        let mut symbols = json!({
            "frames": self.frames,
            "frames_named": self.frames_named,
            "found_in": self.places,
            "modules_without_names": self.modules_without_names,
            "most_without_names": self.most_without_names,
        });
        if !self.has_pdb {
            symbols["source_lines"] = "none: no PDB was found, and only PDBs have lines".into();
        }
        prune(&mut symbols, true);
        symbols
    }
}
