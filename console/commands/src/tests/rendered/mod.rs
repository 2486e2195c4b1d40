//! Tests of output for users and scripts, on small handmade traces.

mod csv;
mod json;
mod member_tables;
mod stacks;
mod symbols;
mod tables;
mod text;

use std::io;

use handlescope_model::tables::{Module, ModuleLoad};
use serde_json::{Value, json};

use crate::registry::REGISTRY;
use crate::{DumpContext, Flow};
use handlescope_query::Source;
use handlescope_query::fixture::{
    APP, CHILD, Fixture, NewObject, OTHER, SavedTrace, With, close, create, duplicate, map,
    object_create, object_delete, reference, unmap,
};
use handlescope_session::cancel::Cancel;
use handlescope_session::settings::DisplayArgs;
use handlescope_session::terminal::{Messages, Screen};
use handlescope_session::trace::Session;

/// Returns the output of a `.dump` for some traces.
fn printed(saved: &[&SavedTrace], line: &str, screen: Screen) -> String {
    let sources = saved.iter().enumerate();
    let sources: Vec<Source<'_>> =
        sources.map(|(index, saved)| Source { index, ..saved.source() }).collect();
    let command = REGISTRY.parse(line).expect("a line").expect("a command");
    let mut out = Vec::new();
    let answer = command.call.answer(&mut DumpContext {
        sources: &sources,
        shared: command.call.shared().expect("a kind of .dump"),
        names: saved[0],
        cancel: &Cancel::default(),
        session: &Session::default(),
        screen,
        out: &mut out,
        messages: &mut Messages::new(&mut io::sink(), screen),
        flow: Flow::Continue,
    });
    answer.unwrap_or_else(|error| panic!("{line}: {error}"));
    String::from_utf8(out).expect("text")
}

fn text(saved: &SavedTrace, options: &str) -> String {
    printed(&[saved], &format!(".dump ObjectRef {options}"), Screen::PLAIN)
}

fn json_of(saved: &[&SavedTrace], line: &str) -> Value {
    let text = printed(saved, line, Screen::PLAIN);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns a trace with an event, a file, a mapping, and a handle from before the trace.
fn mixed() -> SavedTrace {
    let mut fixture = Fixture::new();
    let stack = fixture.stack(&["nt.exe!NtCreateEvent", "app.exe+0x1a2b", "0x1F4B0000123"]);
    fixture.object(NewObject {
        name: r"\BaseNamedObjects\Signal",
        events: vec![
            create(APP, 1_000, 0xC0).on(stack),
            duplicate(OTHER, 2_000, 0x8000_1DDC, (APP, 0xC0)).leaked(),
            duplicate(APP, 3_000, 0xC0, (APP, 0xC0)).inherited_by(CHILD),
            close(APP, 4_000, 0xC0),
            close(CHILD, 5_000, 0xC0),
        ],
        existing: vec![(OTHER, 0x8000_1DDC)],
        is_multiprocess: true,
        ..NewObject::default()
    });
    fixture.object(NewObject {
        kind: "File",
        events: vec![
            object_create(APP, 10_000),
            reference(APP, 11_000, 2),
            create(APP, 12_000, 0x10),
            reference(APP, 13_000, -2),
            close(APP, 14_000, 0x10),
            object_delete(APP, 15_000),
        ],
        ..NewObject::default()
    });
    fixture.object(NewObject {
        kind: "FileMapping",
        events: vec![
            map(APP, 20_000, 0x1_0000, 0x10_0000),
            unmap(APP, 21_000, 0x1_0000, 0x10_0000),
        ],
        ..NewObject::default()
    });
    fixture.object(NewObject {
        kind: "Key",
        name: r"\REGISTRY\X",
        existing: vec![(APP, 0x44)],
        ..NewObject::default()
    });
    fixture.object(NewObject {
        kind: "Key",
        existing: vec![(APP, 0x48), (OTHER, 0x48)],
        ..NewObject::default()
    });
    fixture.save()
}
