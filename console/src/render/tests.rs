//! What users and scripts see of small traces made by hand.

use std::collections::BTreeSet;

use handlescope_model::tables::{Module, ModuleLoad};
use serde_json::{Value, json};

use crate::command::{Command, Dump};
use crate::query::fixture::{
    APP, CHILD, Fixture, NewObject, OTHER, Saved, With, close, create, duplicate, map,
    object_create, object_delete, reference, unmap,
};
use crate::query::{self, Source};
use crate::screen::Screen;

/// What a `.dump` prints for some traces.
fn printed(saved: &[&Saved], line: &str, screen: Screen) -> String {
    let sources: Vec<Source<'_>> = saved.iter().map(|saved| saved.source()).collect();
    let mut out = Vec::new();
    let Ok(Some(Command::Dump(dump))) = Command::parse(line) else { panic!("{line}") };
    match dump {
        Dump::ObjectRef(args) => {
            let answer = query::object_ref(&sources, &args, saved[0]).expect("an answer");
            super::object_ref(&answer, &args, screen, &mut out)
        }
        Dump::Process(args) => {
            let answers = query::processes(&sources, &args).expect("an answer");
            super::processes(&answers, &args, screen, &mut out)
        }
        Dump::Module(args) => {
            let answers = query::modules(&sources, &args).expect("an answer");
            super::modules(&answers, &args, screen, &mut out)
        }
        Dump::Stats(args) => {
            let answers = query::stats(&sources).expect("an answer");
            super::stats(&answers, &args, screen, &mut out)
        }
    }
    .expect("written");
    String::from_utf8(out).expect("text")
}

fn text(saved: &Saved, options: &str) -> String {
    printed(&[saved], &format!(".dump ObjectRef {options}"), Screen::PLAIN)
}

fn json_of(saved: &[&Saved], line: &str) -> Value {
    let text = printed(saved, line, Screen::PLAIN);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// An event, a file, a mapping and a handle from before the trace.
fn mixed() -> Saved {
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

#[test]
fn objects_stand_above_their_events_in_time_order() {
    insta::assert_snapshot!(text(&mixed(), "-ShowRef"), @r"
    2024-05-10 12:46:34    demo
    Id: 4 Object: 0xFFFF810000000030 \REGISTRY\X Lifetime: 9999.000000 s  Type: Key Owner: app.exe(100), Handle Value: 0x44
    Id: 5 Object: 0xFFFF810000000040  Lifetime: 9999.000000 s  Type: Key Handle Count: 2
    Id: 1 Object: 0xFFFF810000000000 \BaseNamedObjects\Signal Lifetime: 9999.000000 s  Type: Event Create+Duplicate-Close: 1+2-2 = 1
    	2024-05-10 12:46:34.501000   100/7     HandleCreate    0xC0    app.exe Stack: 0
    	2024-05-10 12:46:34.502000   300/7     HandleDuplicate 0x80001DDC other.exe SourceProcess: app.exe(100) SourceHandle: 0xC0 Stack: None
    	2024-05-10 12:46:34.503000   100/7     HandleDuplicate 0xC0    app.exe Inherited by process child.exe(200) +- Stack: None
    	2024-05-10 12:46:34.504000   100/7     HandleClose     0xC0    app.exe Stack: None
    	2024-05-10 12:46:34.505000   200/7     HandleClose     0xC0    child.exe +-  Inherited from app.exe(100) Stack: None
    Id: 2 Object: 0xFFFF810000000010  Lifetime: 0.005000 s  Type: File Create+Duplicate-Close: 1+0-1 = 0
    	2024-05-10 12:46:34.510000   100/7     Object Create   app.exe ------------------------------- None
    	2024-05-10 12:46:34.511000   100/7     RefChange       app.exe 2 Stack: None
    	2024-05-10 12:46:34.512000   100/7     HandleCreate    0x10    app.exe Stack: None
    	2024-05-10 12:46:34.513000   100/7     RefChange       app.exe -2 Stack: None
    	2024-05-10 12:46:34.514000   100/7     HandleClose     0x10    app.exe Stack: None
    	2024-05-10 12:46:34.515000   100/7     Object Delete   app.exe ------------------------------- None
    Id: 3 MappingObject: 0xFFFF810000000020 Lifetime: 0.001000 s
    	2024-05-10 12:46:34.520000   100/7     Map app.exe 0x10000-0x110000 Size:     1,048,576 bytes, Offset: 65536 Stack: None
    	2024-05-10 12:46:34.521000   100/7     Unmap app.exe 0x10000 Stack: None
    Objects Created/Destroyed: 3/2 Diff: 1,  Handles Created/Closed/Duplicated: 2/3/2 Diff: 1,  RefChanges: 2 FileMap/Unmap: 1/1
    File Map/Unmap Count 1/1 - 0 outstanding
    File Map/Unmap Size  1,048,576/1,048,576 - 0 bytes outstanding
    ");
}

#[test]
fn reference_changes_are_shown_on_request_only() {
    let shown = text(&mixed(), "-MinMaxId 2 2");
    assert!(!shown.contains("RefChange "), "{shown}");
    assert!(shown.contains("RefChanges: 2 "), "{shown}");
}

#[test]
fn stacks_are_numbers_or_frames_on_lines_of_their_own() {
    insta::assert_snapshot!(text(&mixed(), "-Handle 0xC0 -MinMaxTime 0 1ms -ShowStack"), @r"
    2024-05-10 12:46:34    demo
    Id: 1 Object: 0xFFFF810000000000 \BaseNamedObjects\Signal Lifetime: 9999.000000 s  Type: Event Create+Duplicate-Close: 1+0-0 = 1
    	2024-05-10 12:46:34.501000   100/7     HandleCreate    0xC0    app.exe Stack: nt.exe!NtCreateEvent
    app.exe+0x1A2B
    <UnknownMethod> 0x1F4B0000123

    Objects Created/Destroyed: 1/0 Diff: 1,  Handles Created/Closed/Duplicated: 1/0/0 Diff: 1,  RefChanges: 0 FileMap/Unmap: 0/0
    ");
    insta::assert_snapshot!(
        text(&mixed(), "-Handle 0xC0 -MinMaxTime 0 1ms -ShowStack -ShowAddress"),
        @r"
        2024-05-10 12:46:34    demo
        Id: 1 Object: 0xFFFF810000000000 \BaseNamedObjects\Signal Lifetime: 9999.000000 s  Type: Event Create+Duplicate-Close: 1+0-0 = 1
        	2024-05-10 12:46:34.501000   100/7     HandleCreate    0xC0    app.exe Stack: nt.exe!NtCreateEvent+0x1F 0x7FF600009000
        app.exe+0x1A2B 0x7FF601001A2B
        <UnknownMethod> 0x1F4B0000123

        Objects Created/Destroyed: 1/0 Diff: 1,  Handles Created/Closed/Duplicated: 1/0/0 Diff: 1,  RefChanges: 0 FileMap/Unmap: 0/0
        "
    );
}

#[test]
fn tables_replace_objects_and_none_replaces_sums() {
    insta::assert_snapshot!(text(&mixed(), "-ShowTotal Total"), @r"
    2024-05-10 12:46:34    demo
    Not closed Handle counts for 2 processes
    Event                                                       :       1
    Key                                                         :       3
    =====================================================================
    Sum                                                         :       4
    Objects Created/Destroyed: 3/2 Diff: 1,  Handles Created/Closed/Duplicated: 2/3/2 Diff: 1,  RefChanges: 2 FileMap/Unmap: 1/1
    File Map/Unmap Count 1/1 - 0 outstanding
    File Map/Unmap Size  1,048,576/1,048,576 - 0 bytes outstanding
    ");
    insta::assert_snapshot!(text(&mixed(), "-ShowTotal Process -TopN 1"), @r"
    2024-05-10 12:46:34    demo
    Not closed handles at trace end:
    app.exe(100)                                                :       2
    =====================================================================
    Sum                                                         :       2
    Objects Created/Destroyed: 3/2 Diff: 1,  Handles Created/Closed/Duplicated: 2/3/2 Diff: 1,  RefChanges: 2 FileMap/Unmap: 1/1
    File Map/Unmap Count 1/1 - 0 outstanding
    File Map/Unmap Size  1,048,576/1,048,576 - 0 bytes outstanding
    ");
    insta::assert_snapshot!(text(&mixed(), "-ShowTotal None -MinMaxId 4 4"), @r"
    2024-05-10 12:46:34    demo
    Id: 4 Object: 0xFFFF810000000030 \REGISTRY\X Lifetime: 9999.000000 s  Type: Key Owner: app.exe(100), Handle Value: 0x44
    ");
}

#[test]
fn several_traces_get_a_sum_over_all() {
    let (one, two) = (mixed(), mixed());
    let shown = printed(&[&one, &two], ".dump ObjectRef -Map 1", Screen::PLAIN);
    let counts: Vec<_> =
        shown.lines().filter(|line| line.starts_with("File Map/Unmap C")).collect();
    assert_eq!(counts.len(), 3);
    assert_eq!(counts[2], "File Map/Unmap Count 2/2 - 0 outstanding");
    let none = printed(&[&one, &two], ".dump ObjectRef -ShowTotal Process", Screen::PLAIN);
    assert_eq!(none.matches("Objects Created").count(), 2);
}

#[test]
fn colors_are_etwanalyzers() {
    let screen = Screen { width: Some(200), color: true };
    let shown = printed(&[&mixed()], ".dump ObjectRef -MinMaxId 4 4", screen);
    insta::assert_snapshot!(shown.replace('\u{1b}', "^"), @r"
    ^[36m2024-05-10 12:46:34    demo^[0m
    Id: 4 Object: 0xFFFF810000000030 \REGISTRY\X Lifetime: 9999.000000 s  Type: ^[32mKey^[0m Owner: ^[35mapp.exe(100)^[0m, Handle Value: 0x44
    ^[33mObjects Created/Destroyed: 0/0 Diff: 0,  Handles Created/Closed/Duplicated: 0/0/0 Diff: 0,  RefChanges: 0 FileMap/Unmap: 0/0^[0m
    ");
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let document = json_of(&[&mixed()], ".dump ObjectRef -MinMaxId 1 1 -ShowStack -json");
    assert_eq!(document["command"], ".dump ObjectRef -MinMaxId 1 1 -ShowStack -json");
    assert_eq!(
        document["files"],
        json!([{
            "file": 0, "path": "demo.etl", "session_start_utc": "2024-05-10T10:46:34.5000000Z",
            "session_end_utc": null, "events_lost": 0, "buffers_lost": 0,
        }])
    );
    assert_eq!(
        document["totals"],
        json!({
            "objects_created": 1, "objects_destroyed": 0, "handles_created": 1, "handles_closed": 2,
            "handles_duplicated": 2, "ref_changes": 0, "map_count": 0, "unmap_count": 0,
            "map_size": 0, "unmap_size": 0, "leaked_handles": 1,
        })
    );
    let object = &document["objects"][0];
    assert_eq!(object["pointer"], "0xFFFF810000000000");
    assert_eq!(object["lifetime_s"], Value::Null);
    assert_eq!(object["creator"], json!({ "pid": 100, "name": "app.exe", "start_ns": null }));
    assert_eq!(object["existing_handles"], json!([{ "pid": 300, "handle": "0x80001DDC" }]));
    let events = &object["events"];
    assert_eq!(
        events[0],
        json!({
            "kind": "handle_create", "time_ns": 1_000_000, "pid": 100, "process": "app.exe",
            "tid": 7, "handle": "0xC0", "leaked": false, "stack": 0,
        })
    );
    assert_eq!(
        events[1],
        json!({
            "kind": "handle_duplicate", "time_ns": 2_000_000, "pid": 300, "process": "other.exe",
            "tid": 7, "handle": "0x80001DDC", "leaked": true, "source_pid": 100,
            "source_handle": "0xC0", "caller_pid": 300, "inherited_by_pid": null, "stack": null,
        })
    );
    assert_eq!(events[2]["inherited_by_pid"], 200);
    assert_eq!(events[3].get("leaked"), None);
    assert!(document.get("not_closed").is_none());
}

#[test]
fn json_stacks_hold_modules_functions_and_addresses() {
    let document = json_of(&[&mixed()], ".dump ObjectRef -ShowStack -json");
    let frame = |at: usize| document["stacks"]["0"][at].clone();
    assert_eq!(
        frame(0),
        json!({
            "module": "nt.exe", "function": "NtCreateEvent", "offset": 31, "rva": "0x9000",
            "address": "0x7FF600009000", "inlined": false, "file": null, "line": null,
        })
    );
    assert_eq!(
        frame(1),
        json!({
            "module": "app.exe", "function": null, "offset": null, "rva": "0x1A2B",
            "address": "0x7FF601001A2B", "inlined": false, "file": null, "line": null,
        })
    );
    assert_eq!(
        frame(2),
        json!({
            "module": null, "function": null, "offset": null, "rva": null,
            "address": "0x1F4B0000123", "inlined": false, "file": null, "line": null,
        })
    );
    assert!(json_of(&[&mixed()], ".dump ObjectRef -json").get("stacks").is_none());
}

#[test]
fn a_module_at_two_addresses_has_no_address() {
    let mut fixture = Fixture::new();
    let stack = fixture.stack(&["app.exe!main"]);
    fixture.event_object(vec![create(APP, 1, 4).on(stack)]);
    let load = ModuleLoad { module: 0, pid: 300, base: 0x1_0000, ..ModuleLoad::default() };
    fixture.module_loads.push(load);
    let document = json_of(&[&fixture.save()], ".dump ObjectRef -ShowStack -json");
    assert_eq!(document["stacks"]["0"][0]["address"], Value::Null);
}

#[test]
fn json_of_references_views_and_plain_objects() {
    let document = json_of(&[&mixed()], ".dump ObjectRef -json");
    let ids: Vec<_> =
        document["objects"].as_array().expect("objects").iter().map(|o| o["id"].as_u64()).collect();
    assert_eq!(ids, [Some(4), Some(5), Some(1), Some(2), Some(3)]);
    let objects = &document["objects"];
    assert_eq!(objects[0]["creator"], Value::Null);
    assert_eq!(objects[1]["name"], Value::Null);
    assert_eq!(objects[3]["events"][1]["ref_delta"], 2);
    assert_eq!(objects[3]["events"][1]["kind"], "reference");
    assert_eq!(objects[3]["events"][3]["kind"], "dereference");
    assert_eq!(objects[3]["lifetime_s"], 0.005);
    assert_eq!(
        objects[4]["events"][0],
        json!({
            "kind": "map", "time_ns": 20_000_000, "pid": 100, "process": "app.exe", "tid": 7,
            "leaked": false, "view_base": "0x10000", "view_size": 1_048_576,
            "byte_offset": 65536, "file_object": "0xFFFF820800005AF0", "stack": null,
        })
    );
}

#[test]
fn facts_about_an_object_do_not_depend_on_filters() {
    let document = json_of(&[&mixed()], ".dump ObjectRef -MinMaxTime 13ms 14ms -json");
    let object = &document["objects"][0];
    assert_eq!(object["events"].as_array().map(Vec::len), Some(2));
    assert_eq!(object["lifetime_s"], 0.005);
    assert_eq!(object["first_create_ns"], 10_000_000);
    assert_eq!(object["last_destroy_ns"], 15_000_000);
    assert_eq!(document["totals"]["objects_created"], 0);
}

#[test]
fn json_tables_replace_objects() {
    let (one, two) = (mixed(), mixed());
    let line = ".dump ObjectRef -ShowTotal Process -TopN 1 -json";
    let document = json_of(&[&one, &two], line);
    assert_eq!(document["objects"], json!([]));
    let expected =
        json!({ "by": "process", "rows": [["app.exe(100)", 4]], "sum": 4, "process_count": 2 });
    assert_eq!(document["not_closed"], expected);
    let by_type = json_of(&[&one], ".dump ObjectRef -ShowTotal Total -json");
    assert_eq!(by_type["not_closed"]["rows"], json!([["Event", 1], ["Key", 3]]));
    let none = json_of(&[&one], ".dump ObjectRef -ShowTotal None -json");
    assert!(none.get("not_closed").is_none());
    assert_eq!(none["objects"].as_array().map(Vec::len), Some(5));
}

#[test]
fn stacks_of_several_traces_have_different_numbers() {
    let (one, two) = (mixed(), mixed());
    let document = json_of(&[&one, &two], ".dump ObjectRef -Leak -CreateStack * -json");
    assert_eq!(document["objects"].as_array().map(Vec::len), Some(2));
    let document = json_of(&[&one, &two], ".dump ObjectRef -MinMaxId 1 1 -ShowStack -json");
    assert_eq!(document["objects"][0]["events"][0]["stack"], 0);
    assert_eq!(document["objects"][1]["events"][0]["stack"], 1);
    assert_eq!(document["objects"][1]["file"], 1);
    assert_eq!(document["stacks"].as_object().map(serde_json::Map::len), Some(2));
}

/// Names of the members of a value and of all values in it, except the numbers of stacks.
fn member_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Array(elements) => elements.iter().for_each(|element| member_names(element, names)),
        Value::Object(members) => {
            for (name, value) in members {
                if name.parse::<u64>().is_err() {
                    names.insert(name.clone());
                }
                member_names(value, names);
            }
        }
        _ => {}
    }
}

#[test]
fn every_member_is_in_the_documentation() {
    let contract = include_str!("../../../docs/dump-json.md");
    let saved = mixed();
    for line in [
        ".dump ObjectRef -ShowStack -json",
        ".dump ObjectRef -ShowTotal Total -json",
        ".dump Process -json",
        ".dump Module -json",
        ".dump Stats -json",
    ] {
        let mut names = BTreeSet::new();
        member_names(&json_of(&[&saved], line), &mut names);
        for name in names {
            assert!(contract.contains(&format!("`{name}`")), "{line}: {name}");
        }
    }
}

#[test]
fn every_object_has_a_line_unless_pretty_is_wanted() {
    let lines = printed(&[&mixed()], ".dump ObjectRef -json", Screen::PLAIN);
    assert_eq!(lines.lines().filter(|line| line.contains("\"pointer\"")).count(), 5);
    assert!(lines.ends_with("}\n"));
    let pretty = printed(&[&mixed()], ".dump ObjectRef -json-pretty", Screen::PLAIN);
    let value = |text: &str| -> Value { serde_json::from_str(text).expect("json") };
    assert!(pretty.contains("\n      \"pointer\": "));
    assert_eq!(value(&pretty)["objects"], value(&lines)["objects"]);
}

#[test]
fn names_cannot_break_lines_or_reach_the_terminal() {
    let mut fixture = Fixture::new();
    let events = vec![create(APP, 1, 4)];
    fixture.object(NewObject { name: "a\u{1b}[2J\nb", events, ..NewObject::default() });
    let shown = text(&fixture.save(), "");
    assert!(shown.contains(r"a\u{1b}[2J\nb Lifetime"), "{shown}");
}

#[test]
fn processes_are_listed_by_pid() {
    let mut fixture = Fixture::new();
    fixture.processes.command_line[1] = r#""C:\app.exe" /x"#.into();
    fixture.processes.exit_code[2] = Some(-1_073_741_819);
    fixture.processes.session_id[1] = Some(1);
    let saved = fixture.save();
    insta::assert_snapshot!(printed(&[&saved], ".dump Process", Screen::PLAIN), @r#"
    demo.etl
    Pid  Name       Parent  Session  Start [s]   End [s]   Exit code  Command line
      4  System          0        -          -         -           -
    100  app.exe         0        1          -         -           -  "C:\app.exe" /x
    200  child.exe       0        -   0.000001  0.009000  0xC0000005
    300  other.exe       0        -          -         -           -
    4 processes, 1 started in the trace
    "#);
    let document = json_of(&[&saved], ".dump Process -pn child -json");
    assert_eq!(
        document,
        json!({ "processes": [{
            "file": 0, "pid": 200, "parent_pid": 0, "name": "child.exe", "image_path": null,
            "command_line": "", "session_id": null, "sid": null, "start_ns": 1000,
            "end_ns": 9_000_000, "exit_code": -1_073_741_819, "is_new": true, "has_ended": true,
        }] })
    );
}

#[test]
fn modules_are_listed_by_name_with_their_loads() {
    let mut fixture = Fixture::new();
    fixture.module("zlib.dll");
    let kernel = fixture.module("ntoskrnl.exe");
    fixture.modules.pdb_name[1] = Some("ntkrnlmp.pdb".into());
    fixture.modules.pdb_guid[1] = Some("0155fe84-c000-1eb1-57c6-858e85d46b4c".into());
    fixture.modules.pdb_age[1] = Some(1);
    fixture.module_loads.pid[1] = 0;
    fixture.module_loads.process[1] = None;
    fixture.modules.push(Module { name: "Unused.dll".into(), ..Module::default() });
    assert_eq!(kernel, 1);
    let saved = fixture.save();
    insta::assert_snapshot!(printed(&[&saved], ".dump Module", Screen::PLAIN), @r"
    demo.etl
    Name          Size  Version  Loaded by  Base            Pdb                                                  Path
    ntoskrnl.exe     0  -        kernel     0x7FF601000000  ntkrnlmp.pdb 0155fe84-c000-1eb1-57c6-858e85d46b4c 1
    Unused.dll       0  -        -          -               -
    zlib.dll         0  -        pid 100    0x7FF600000000  -
    3 modules, 2 without a PDB identity
    ");
    let document = json_of(&[&saved], ".dump Module -pn System -json");
    assert_eq!(document["modules"].as_array().map(Vec::len), Some(1));
    let module = &document["modules"][0];
    assert_eq!(module["pdb_guid"], "0155fe84-c000-1eb1-57c6-858e85d46b4c");
    let load = json!({ "pid": 0, "base": "0x7FF601000000", "load_ns": null, "unload_ns": null });
    assert_eq!(module["loads"], json!([load]));
    let of_app = json_of(&[&saved], ".dump Module -pn app -json");
    assert_eq!(of_app["modules"][0]["name"], "zlib.dll");
}

#[test]
fn stats_begin_with_what_was_lost() {
    let mut fixture = Fixture::new();
    fixture.event_object(vec![create(APP, 1, 4).leaked(), close(APP, 2, 8)]);
    fixture.info.events_lost = 1234;
    fixture.info.buffers_lost = 5;
    fixture.info.attributed_header = 2;
    fixture.warning("buffer cut short", 1, Some(4096));
    fixture.event_count("hook:1120", Some("CreateHandle"), 1000);
    fixture.event_count("classic:b3e675d7-2554-4f18-830b-2762732560de:36", None, 7);
    let saved = fixture.save();
    insta::assert_snapshot!(printed(&[&saved], ".dump Stats", Screen::PLAIN), @r"
    demo.etl
    LOST while recording: 1,234 events, 5 buffers. A lost close looks like a leak: record again with more or larger buffers before trusting counts.
    Warnings:
               1 x buffer cut short, first at byte 4096
    Source                      (0 bytes)
    Computer                   unknown
    Windows                     build 0
    Processors                 0, 0 byte pointers
    Session start (UTC)        2024-05-10T10:46:34.5000000Z
    Session end (UTC)          unknown
    Boot (UTC)                 unknown
    Local time                 UTC+02:00
    Clock                      qpc, 0 ticks per second
    Buffers                    0 of 0 bytes
    Events                     0
    Objects                    1
    Handle events              2
    Leaked handles             1
    Stack events               0
    Stacks kept                0
    Distinct stacks            0
    Distinct frames            0
    Frames in modules          0
    Extracted by                (layout 1)
    Process of object events taken from
      their own header                                   2
      their stack                                        0
      a process ended up to 2 ms before                  0
      System, for want of a better                       0
      nowhere: dropped                                   0
    Count  Event         Kind
    1,000  CreateHandle  hook:1120
        7                classic:b3e675d7-2554-4f18-830b-2762732560de:36
    ");
    let document = json_of(&[&saved], ".dump Stats -json");
    let file = &document["files"][0];
    assert_eq!(file["events_lost"], 1234);
    assert_eq!(file["attribution"]["header"], 2);
    let warning = json!([{ "kind": "buffer cut short", "count": 1, "first_offset": 4096 }]);
    assert_eq!(file["warnings"], warning);
    assert_eq!(file["events"][1]["name"], Value::Null);
    assert_eq!((&file["handle_events"], &file["leaked_handles"]), (&json!(2), &json!(1)));
    assert_eq!(file["boot_time_utc"], Value::Null);
}
