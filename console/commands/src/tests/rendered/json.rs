//! Tests of JSON as promised in docs/dump-json.md.

use std::collections::BTreeSet;

use super::*;

#[test]
fn json_has_the_fields_of_the_contract() {
    let document = json_of(&[&mixed()], ".dump ObjectRef -MinMaxId 1 1 -ShowStack -json");
    assert_eq!(document["command"], ".dump ObjectRef -MinMaxId 1 1 -ShowStack -json");
    assert_eq!(
        document["files"],
        json!([{
            "file": 0, "path": "demo.etl", "session_start_utc": "2024-05-10T10:46:34.5000000Z",
            "session_end_utc": null, "events_lost": 0, "buffers_lost": 0,
            "totals": document["totals"],
        }])
    );
    assert_eq!(
        document["totals"],
        json!({
            "objects_created": 1, "objects_destroyed": 0, "handles_created": 1, "handles_closed": 2,
            "handles_duplicated": 2, "ref_changes": 0, "map_count": 0, "unmap_count": 0,
            "map_size": 0, "unmap_size": 0, "leaked_handles": 1, "leaked_views": 0, "closed_at_exit": 0,
            "closed_unseen": 0,
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
            "tid": 7, "handle": "0xC0", "leaked": false, "closed_at_exit": false, "stack": 0,
            "closed_unseen": null, "closed_after_ns": null, "closed_before_ns": null,
        })
    );
    assert_eq!(
        events[1],
        json!({
            "kind": "handle_duplicate", "time_ns": 2_000_000, "pid": 300, "process": "other.exe",
            "tid": 7, "handle": "0x80001DDC", "leaked": true, "closed_at_exit": false,
            "source_pid": 100, "source_handle": "0xC0", "caller_pid": 300, "inherited_by_pid": null, "stack": null,
            "closed_unseen": null, "closed_after_ns": null, "closed_before_ns": null,
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
            "address": "0x7FF600009000", "inlined": false, "file": null, "line": null, "source": null,
        })
    );
    assert_eq!(
        frame(1),
        json!({
            "module": "app.exe", "function": null, "offset": null, "rva": "0x1A2B",
            "address": "0x7FF601001A2B", "inlined": false, "file": null, "line": null, "source": null,
        })
    );
    assert_eq!(
        frame(2),
        json!({
            "module": null, "function": null, "offset": null, "rva": null,
            "address": "0x1F4B0000123", "inlined": false, "file": null, "line": null, "source": null,
        })
    );
    assert!(json_of(&[&mixed()], ".dump ObjectRef -json").get("stacks").is_none());
}

#[test]
fn a_module_at_two_addresses_has_no_address() {
    let mut fixture = Fixture::new();
    let stack = fixture.stack(&["app.exe!main"]);
    fixture.event_object(vec![create(APP, 1, 4).on(stack)]);
    let load = ModuleLoad { pid: 300, base: Some(0x1_0000), ..ModuleLoad::default() };
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
            "closed_unseen": null, "closed_after_ns": null, "closed_before_ns": null,
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
    // Processes with the same name in two traces are two processes.
    let expected = json!({
        "by": "process", "counted": "open_at_end", "order": "largest_last", "rows": [["app.exe(100)", 2, 0]], "sum": 2,
        "left_out": { "rows": 3, "count": 6 }, "process_count": 4,
    });
    assert_eq!(document["not_closed"], expected);
    let by_type = json_of(&[&one], ".dump ObjectRef -ShowTotal Total -json");
    assert_eq!(by_type["not_closed"]["rows"], json!([["Event", 1], ["Key", 3]]));
    let none = json_of(&[&one], ".dump ObjectRef -ShowTotal None -json");
    assert!(none.get("not_closed").is_none());
    assert_eq!(none["objects"].as_array().map(Vec::len), Some(5));
}

#[test]
fn totals_of_files_replace_objects() {
    let (one, two) = (mixed(), mixed());
    let document = json_of(&[&one, &two], ".dump ObjectRef -ShowTotal File -json");
    assert_eq!(document["objects"], json!([]));
    let expected = json!({
        "by": "file", "counted": "open_at_end", "order": "largest_last", "rows": [["demo.etl", 4], ["demo.etl", 4]], "sum": 8,
        "left_out": { "rows": 0, "count": 0 }, "process_count": 4,
    });
    assert_eq!(document["not_closed"], expected);
    let totals_of = |file: usize| document["files"][file]["totals"].clone();
    assert_eq!(totals_of(0), totals_of(1));
    assert_eq!(
        (&totals_of(0)["map_size"], &document["totals"]["map_size"]),
        (&json!(1_048_576), &json!(2_097_152))
    );
}

#[test]
fn a_file_without_open_handles_has_its_row() {
    let mut fixture = Fixture::new();
    fixture.event_object(vec![create(APP, 1, 4)]);
    let document = json_of(&[&fixture.save()], ".dump ObjectRef -ShowTotal File -json");
    assert_eq!(document["not_closed"]["rows"], json!([["demo.etl", 0]]));
    assert_eq!(document["not_closed"]["process_count"], 0);
}

#[test]
fn rows_of_processes_have_plain_names() {
    let mut fixture = Fixture::new();
    fixture.processes.name[OTHER as usize] = "svchost.exe".into();
    fixture.processes.command_line[OTHER as usize] = "-s EventLog".into();
    fixture.object(NewObject { existing: vec![(OTHER, 4)], ..NewObject::default() });
    let saved = fixture.save();
    let document = json_of(&[&saved], ".dump ObjectRef -ShowTotal Process -json");
    assert_eq!(document["not_closed"]["rows"], json!([["svchost.exe(300)", 1]]));
    let shown = printed(&[&saved], ".dump ObjectRef -ShowTotal Process", Screen::PLAIN);
    assert!(shown.contains("svchost Event Log Service(300) "), "{shown}");
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

/// Collects the names of the members of a value and of all values in it, except stack numbers.
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
    let contract = include_str!("../../../../../docs/reference/json.md");
    let saved = mixed();
    for line in [
        ".dump ObjectRef -ShowStack -json",
        ".dump ObjectRef -ShowTotal Total -json",
        ".dump ObjectRef -ShowTotal File -json",
        ".dump Process -json",
        ".dump Module -json",
        ".dump Stack -json",
        ".dump Stats -json",
    ] {
        let mut names = BTreeSet::new();
        member_names(&json_of(&[&saved], line), &mut names);
        for name in names {
            // The whole contract, paths included, is compared by tests/tests/it/json_members.rs.
            let forms = [format!("`{name}`"), format!(".{name}`")];
            assert!(forms.iter().any(|form| contract.contains(form)), "{line}: {name}");
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
