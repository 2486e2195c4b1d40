//! Tests of text and JSON of the other dumps.

use super::*;

#[test]
fn processes_are_listed_by_pid() {
    let mut fixture = Fixture::new();
    fixture.processes.command_line[1] = r#""C:\app.exe" /x"#.into();
    fixture.processes.exit_code[2] = Some(-1_073_741_819);
    fixture.processes.session_id[1] = Some(1);
    let saved = fixture.save();
    insta::assert_snapshot!(printed(&[&saved], ".dump Process -TimeFmt s", Screen::PLAIN), @r#"
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
            "is_zombie": false,
        }] })
    );
}

#[test]
fn services_have_a_better_name_beside_that_of_their_executable() {
    let mut fixture = Fixture::new();
    fixture.processes.name[OTHER as usize] = "svchost.exe".into();
    fixture.processes.command_line[OTHER as usize] = "svchost.exe -s Winmgmt".into();
    fixture.object(NewObject { events: vec![create(OTHER, 1, 4)], ..NewObject::default() });
    let saved = fixture.save();
    let document = json_of(&[&saved], r#".dump Process -pn "svchost WMI*" -json"#);
    let process = &document["processes"][0];
    assert_eq!((&process["name"], &process["pid"]), (&json!("svchost.exe"), &json!(300)));
    assert_eq!(process["pretty_name"], "svchost WMI Service");
    let document = json_of(&[&saved], ".dump ObjectRef -json");
    let object = &document["objects"][0];
    assert_eq!(object["creator"]["name"], "svchost.exe");
    assert_eq!(object["creator"]["pretty_name"], "svchost WMI Service");
    assert_eq!(object["events"][0]["process"], "svchost.exe");
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
fn stats_begin_with_lost_events() {
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
    LOST while recording: 1,234 events, 5 buffers. A handle whose close event was lost looks leaked, unless it is counted as closed unseen: record again with more or larger buffers before trusting counts.
    Warnings:
      1 x buffer cut short, first at offset 0x1000
    Source                      (0 bytes)
    Computer                   unknown
    Windows                    unknown
    Processors                 0, 0 byte pointers
    Session start (UTC)        2024-05-10T10:46:34.5000000Z
    Session end (UTC)          unknown
    Recorded                   unknown
    Boot (UTC)                 unknown
    Local time                 UTC+02:00
    Clock                      qpc, 0 ticks per second
    Buffers                    0 of 0 bytes
    Events                     0
    Objects                    1
    Handle events              2
    Leaked handles             1
    Leaked views               0
    Closed only at exit        0
    Closed unseen              0
    Stack events               0
    Stacks kept                0
    Distinct stacks            0
    Distinct frames            0
    Frames in modules          0
    Extracted by                (layout 9)
    Process of object events taken from
      their own header                                   2
      their stack                                        0
      a process that had ended before                    0
      assumed System                                     0
      nowhere: dropped                                   0
    Count  Event         Kind
    1,000  CreateHandle  hook:1120
        7                classic:b3e675d7-2554-4f18-830b-2762732560de:36
    ");
    let document = json_of(&[&saved], ".dump Stats -json");
    let file = &document["files"][0];
    assert_eq!(file["events_lost"], 1234);
    assert_eq!(file["attribution"]["header"], 2);
    let warning = json!([{ "kind": "buffer cut short", "count": 1, "first_offset": 4096, "first_line": null }]);
    assert_eq!(file["warnings"], warning);
    assert_eq!(file["events"][1]["name"], Value::Null);
    assert_eq!((&file["handle_events"], &file["leaked_handles"]), (&json!(2), &json!(1)));
    assert_eq!(file["boot_time_utc"], Value::Null);
}
