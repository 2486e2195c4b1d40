//! Tests the rule on the published trace; the script that made it says how each group grows.

use std::collections::HashMap;
use std::fs;

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::rules::OPENING;
use handlescope_model::tables::{
    Event, Events, Frames, Modules, ObjectTypes, Objects, Processes, Stacks, TableRows, TraceInfos,
};
use handlescope_model::{Cancel, Trace};
use handlescope_sources::extract;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use serde_json::Value;

use super::*;

/// Process, type and create stack.
type GroupName = (String, String, String);

fn json(shared: &SharedTrace, ending: &str) -> Value {
    serde_json::from_slice(&fs::read(shared.file(ending)).unwrap()).unwrap()
}

/// Returns the stacks of a trace as `module!function` lines, by row.
fn stack_texts(trace: &Trace, symbols: &Value) -> Vec<String> {
    let modules = Modules::read(trace).unwrap();
    let frames = Frames::read(trace).unwrap();
    let frame_text = |module: Option<&str>, rva: u64| {
        let Some(module) = module else { return "<UnknownMethod>".to_owned() };
        let last = symbols[module]["functions"]
            .as_array()
            .into_iter()
            .flatten()
            .take_while(|function| function[0].as_u64() <= Some(rva))
            .last();
        match last {
            Some(function) => format!("{module}!{}", function[2].as_str().unwrap()),
            None => format!("{module}+0x{rva:X}"),
        }
    };
    let stacks = Stacks::read(trace).unwrap();
    let text = |frame: usize| {
        let module = frames.module[frame].map(|module| modules.name[module.row()].as_str());
        frame_text(module, frames.rva[frame].unwrap_or_default())
    };
    stacks.frames.iter().map(|stack| stack.iter().map(|f| text(f.row()) + "\n").collect()).collect()
}

/// Returns the groups of a trace with their handles and time range.
fn groups(trace: &Trace, symbols: &Value) -> HashMap<GroupName, (Vec<Lifetime>, TimeWindow)> {
    let info = TraceInfos::read(trace).unwrap().row(0).unwrap();
    let ticks = info.session_end_filetime.unwrap() - info.session_start_filetime;
    let (events, objects) = (Events::read(trace).unwrap(), Objects::read(trace).unwrap());
    let processes: Vec<_> = Processes::read(trace).unwrap().rows().collect();
    let types: HashMap<_, _> =
        ObjectTypes::read(trace).unwrap().rows().map(|row| (row.type_id, row.name)).collect();
    let stacks = stack_texts(trace, symbols);
    let closed_ns = |event: &Event| {
        let close = event.closing_event?.row();
        (!events.closed_at_exit[close]).then(|| events.time_ns[close])
    };
    let mut groups = HashMap::new();
    for event in events.rows().filter(|event| OPENING.contains_code(event.kind)) {
        let process = &processes[event.inherited_by.unwrap_or(event.process).row()];
        let window = TimeWindow {
            start_ns: process.start_ns.unwrap_or(0),
            end_ns: process.end_ns.unwrap_or(ticks * 100),
        };
        let stack = event.stack.map_or("", |stack| &stacks[stack.row()]);
        let name = (
            format!("{}({})", process.name, process.pid),
            types[&objects.type_id[event.object.row()]].clone(),
            stack.to_owned(),
        );
        let group = groups.entry(name).or_insert_with(|| (Vec::new(), window));
        group.0.push(Lifetime { opened_ns: event.time_ns, closed_ns: closed_ns(&event) });
    }
    groups
}

#[needs_data]
#[test]
fn the_groups_of_the_published_trace_grow_as_its_script_says() {
    let shared = SharedTrace::open("synthetic/growth");
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("growth.json7z");
    extract(shared.etl(), &archive, ExtractOptions::default(), &NoObserver, &Cancel::default())
        .unwrap();
    let groups = groups(&Trace::open(&archive).unwrap(), &json(&shared, ".symbols.json"));
    let expected = json(&shared, ".expected.json");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut wrong = Vec::new();
    for why in expected["why"].as_array().unwrap() {
        let stack = &expected["stacks"][why["create_stack"].as_u64().unwrap() as usize];
        let stack = stack.as_array().unwrap().iter().map(|frame| text(frame) + "\n").collect();
        let name = (text(&why["process"]), text(&why["type"]), stack);
        let script = text(&why["script"]);
        let Some((lifetimes, window)) = groups.get(&name) else {
            wrong.push(format!("{script}: no such group"));
            continue;
        };
        let growth = Growth::new(lifetimes, *window);
        let (word, evidence) = (growth.verdict.word(), &growth.evidence);
        let unreleased = why["leaked"].as_u64().unwrap() + why["closed_at_exit"].as_u64().unwrap();
        let counts = (evidence.opened as u64, evidence.unreleased as u64);
        let ratio = match (why["rate_per_minute"].as_f64(), evidence.rate) {
            (Some(expected), rate) => rate.map_or(0.0, |rate| rate.per_minute / expected),
            (None, _) => 1.0,
        };
        let excluded = why["not_verdicts"].as_array().is_some_and(|not| not.contains(&word.into()));
        let is_right = why["verdict"].as_str().is_none_or(|verdict| verdict == word)
            && !excluded
            && (ratio - 1.0).abs() < 0.1
            && counts == (why["opened"].as_u64().unwrap(), unreleased);
        if !is_right {
            wrong.push(format!("{script}: {word} {ratio:.3} {growth}, not {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
