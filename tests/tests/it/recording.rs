//! `handlescope record`, `live` and `wprp`: a dry run prints the session as data, and a profile for WPR is written.
//! Where nothing can be recorded, the message names the tools that can.

use std::fs;

use handlescope_tests::binary::{ProgramRun, Shell};
use quick_xml::{Reader, events::Event};
use serde_json::{Value, json};

fn dry_run(shell: &Shell, options: &[&str]) -> Value {
    let run = shell.run(&[&["record", "--dry-run"][..], options].concat()).ok();
    assert_eq!(run.stderr, "");
    serde_json::from_str(&run.stdout).expect("JSON")
}

/// Returns the values of the elements with this name in a profile, in order.
fn values(profile: &str, element: &str) -> Vec<String> {
    let mut reader = Reader::from_str(profile);
    let mut found = Vec::new();
    loop {
        match reader.read_event().expect("XML") {
            Event::Empty(tag) | Event::Start(tag) if tag.name().as_ref() == element.as_bytes() => {
                let value = tag.try_get_attribute("Value").expect("attributes").expect("a value");
                found.push(String::from_utf8(value.value.to_vec()).expect("UTF-8"));
            }
            Event::Eof => return found,
            _ => {}
        }
    }
}

#[test]
fn a_dry_run_prints_the_session_and_writes_nothing() {
    let shell = Shell::new();
    let plan = dry_run(&shell, &[]);
    assert_eq!(plan["logger"], "NT Kernel Logger");
    assert_eq!(plan["log_file"], "handles.etl");
    assert_eq!(
        plan["log_file_mode"],
        json!({
            "value": "0x00000101",
            "names": ["EVENT_TRACE_FILE_MODE_SEQUENTIAL", "EVENT_TRACE_REAL_TIME_MODE"],
        })
    );
    assert_eq!(plan["enable_flags"]["value"], "0x00000007");
    let none = "0x00000000";
    assert_eq!(
        plan["group_mask"],
        json!({
            "masks": ["0x00000007", none, none, none, "0x00000040", none, none, none],
            "names": ["PERF_OB_HANDLE"],
        })
    );
    let object = "89497f50-effe-4440-8cf2-ce6b1cdcaca7";
    assert_eq!(
        plan["stack_events"],
        json!([
            {"name": "HandleCreate", "class": object, "opcode": 32},
            {"name": "HandleClose", "class": object, "opcode": 33},
            {"name": "HandleDuplicate", "class": object, "opcode": 34},
        ])
    );
    assert_eq!((&plan["object_types"], &plan["stop_when"]), (&json!([]), &json!([])));
    assert_eq!(plan["duration_seconds"], Value::Null);
    assert!(!shell.path("handles.etl").exists());
}

#[test]
fn every_option_of_record_is_in_the_session() {
    let shell = Shell::new();
    for (options, member, expected) in [
        (&["--references"][..], "/group_mask/masks/4", json!("0x000000c0")),
        (&["--mappings"], "/enable_flags/value", json!("0x00008007")),
        (&["--virtual-alloc"], "/group_mask/masks/0", json!("0x00004007")),
        (&["--drop-close-stacks"], "/stack_events/1/name", json!("HandleDuplicate")),
        (&["--buffer-size", "64KiB"], "/buffer_kib", json!(64)),
        (&["--buffers", "300"], "/maximum_buffers", json!(300)),
        (&["--ring"], "/log_file_mode/names/0", json!("EVENT_TRACE_BUFFERING_MODE")),
        (&["leak.etl"], "/log_file", json!("leak.etl")),
        (&[], "/provider_sessions", json!([])),
        (&["--clr"], "/provider_sessions/0/provider/keywords/value", json!("0x18")),
        (&["--clr"], "/provider_sessions/1/provider/keywords/value", json!("0x138")),
        (&["--clr", "--ring"], "/provider_sessions/0/begin", json!("at_end")),
        (&["--duration", "1500ms"], "/duration_seconds", json!(1.5)),
        (
            &["--type", "event;Key"],
            "/object_types",
            json!([
                {"name": "Event", "tag": "Even", "filter": "0x6e657645"},
                {"name": "Key", "tag": "Key ", "filter": "0x2079654b"},
            ]),
        ),
        (
            &["--stop-when", "pn leaky.exe handles > 5000", "--stop-when", "pn \"a b\" handles>9"],
            "/stop_when",
            json!([
                {"processes": "leaky.exe", "handles_above": 5000},
                {"processes": "a b", "handles_above": 9},
            ]),
        ),
    ] {
        let plan = dry_run(&shell, options);
        assert_eq!(plan.pointer(member), Some(&expected), "{options:?}: {plan:#}");
    }
    let live = shell.run(&["live", "--type", "File", "--dry-run"]).ok().stdout;
    let live: Value = serde_json::from_str(&live).expect("JSON");
    assert_eq!(live["log_file_mode"]["names"], json!(["EVENT_TRACE_REAL_TIME_MODE"]));
    assert_eq!(
        (&live["log_file"], &live["object_types"][0]["tag"]),
        (&Value::Null, &json!("File"))
    );
}

#[test]
fn a_profile_has_heaps_and_handles_of_gdi_and_user_when_they_are_asked_for() {
    let shell = Shell::new();
    let plain = shell.run(&["wprp"]).ok().stdout;
    assert!(values(&plain, "HeapProcessId").is_empty() && values(&plain, "Keyword").len() == 3);
    let profile = shell.run(&["wprp", "--heap-pids", "4711,8", "--gdi-user"]).ok().stdout;
    assert_eq!(values(&profile, "HeapProcessId"), ["4711", "8"]);
    assert_eq!(values(&profile, "Keyword").last().map(String::as_str), Some("0x30000000000"));
    let profile = shell.run(&["wprp", "--clr"]).ok().stdout;
    assert_eq!(values(&profile, "Keyword").split_off(3), ["0x20098", "0x20118"]);
    let run: ProgramRun = shell.run(&["wprp", "--heap-pids", "app.exe"]);
    assert_eq!(run.status, Some(2));
}

#[test]
fn a_value_that_no_session_takes_is_wrong_usage() {
    let shell = Shell::new();
    for (options, message) in [
        (&["--type", "A;B;C;D;E"][..], "too many object types (5)"),
        (&["--type", "Event;;File"], "an object type is empty"),
        (&["--type", "Evént"], "\"Evént\" is not an object type"),
        (&["--buffer-size", "3KiB"], "4 to 16384 KiB, in whole KiB"),
        (&["--buffer-size", "17MiB"], "4 to 16384 KiB, in whole KiB"),
        (&["--buffer-size", "big"], "'big' is not a valid size"),
        (&["--buffers", "1"], "there must be at least 2 buffers, not 1"),
        (&["--buffers", "many"], "'many' is not a whole number"),
        (&["--duration", "0"], "'0' is not a valid time above 0"),
        (&["--duration", "1 year"], "'1 year' is not a valid time (s, ms, us, ns)"),
        (&["--stop-when", "handles > 5"], "use pn PROCESSES handles > N"),
        (&["--ring", "--stop-when", "pn a handles > 5"], "cannot be used with"),
        (&["leak.txt"], "name a file that ends with .etl"),
        (&["leak.zip"], "name a file that ends with .etl"),
    ] {
        let run = shell.run(&[&["record", "--dry-run"][..], options].concat());
        assert_eq!((run.status, run.stdout.as_str()), (Some(2), ""), "{options:?}");
        assert!(run.stderr.contains(message), "{options:?}: {}", run.stderr);
    }
}

/// Returns the command lines in a refusal.
fn commands(run: &ProgramRun) -> Vec<String> {
    run.stderr.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect()
}

#[cfg(unix)]
#[test]
fn where_nothing_can_be_recorded_the_command_lines_that_record_the_same_are_printed() {
    let shell = Shell::new();
    let run = shell.run(&["record", "leak.etl", "--mappings", "--buffers", "64"]);
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.starts_with("error: handlescope record needs Windows, "), "{run:?}");
    let lines = commands(&run);
    assert_eq!(
        lines,
        [
            "handlescope wprp handlescope.wprp --mappings --buffers 64",
            "wpr -start handlescope.wprp!Handle -filemode",
            "rem reproduce the leak, then",
            "wpr -stop leak.etl",
            "xperf -on PROC_THREAD+LOADER+OB_HANDLE+VAMAP -stackwalk \
             HandleCreate+HandleClose+HandleDuplicate+MapFile+UnMapFile \
             -BufferSize 1024 -MinBuffers 64 -MaxBuffers 64 -f leak.kernel.etl",
            "rem reproduce the leak, then",
            "xperf -stop",
            "xperf -merge leak.kernel.etl leak.etl",
        ]
    );
    assert!(!shell.path("leak.etl").exists() && !run.stderr.contains("Neither"), "{run:?}");

    // The first command also works here, and writes the profile that the second one starts.
    let words: Vec<&str> = lines[0].split(' ').skip(1).collect();
    let _ = shell.run(&words).ok();
    let profile = fs::read_to_string(shell.path("handlescope.wprp")).unwrap();
    assert_eq!(values(&profile, "Keyword").last().map(String::as_str), Some("VAMap"));
    assert_eq!(values(&profile, "Buffers"), ["64"]);
}

#[cfg(unix)]
#[test]
fn limits_of_the_windows_tools_are_reported_and_live_needs_windows() {
    let shell = Shell::new();
    let run = shell.run(&["record", "--ring", "--type", "Event", "--duration", "5"]);
    assert_eq!(run.status, Some(1));
    let lines = commands(&run);
    assert!(lines.contains(&"wpr -start handlescope.wprp!Handle".to_owned()), "{lines:?}");
    let flush = "xperf -flush \"NT Kernel Logger\" -f handles.kernel.etl";
    assert!(lines.contains(&flush.to_owned()), "{lines:?}");
    for said in ["Neither has --type", "Neither stops by itself"] {
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
    }
    let run = shell.run(&["live", "--drop-close-stacks"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.starts_with("error: handlescope live needs Windows, "), "{run:?}");
    let lines = commands(&run);
    assert!(lines.contains(&"handlescope wprp handlescope.wprp --drop-close-stacks".to_owned()));
    assert_eq!(lines.last().map(String::as_str), Some("handlescope live --replay handles.etl"));
}

#[test]
fn a_profile_is_printed_or_written_whole_with_the_chosen_options() {
    let shell = Shell::new();
    let options =
        ["--references", "--virtual-alloc", "--drop-close-stacks", "--buffer-size", "2MiB"];
    let printed = shell.run(&[&["wprp"][..], &options].concat()).ok().stdout;
    let written = shell.run(&[&["wprp", "a.wprp"][..], &options].concat()).ok();
    assert_eq!(written.stdout, "");
    assert_eq!(fs::read_to_string(shell.path("a.wprp")).unwrap(), printed);
    assert_eq!(
        values(&printed, "Keyword").join(" "),
        "ProcessThread Loader Handle Object VirtualAllocation"
    );
    assert_eq!(
        values(&printed, "Stack").join(" "),
        "HandleCreate HandleDuplicate ObjectCreate ObjectDelete ObjectReference \
         VirtualAllocation VirtualFree"
    );
    assert_eq!(values(&printed, "BufferSize"), ["2048"]);
}

#[test]
fn a_profile_takes_the_place_of_its_own_kind_only() {
    let shell = Shell::new();
    let _ = shell.run(&["wprp", "a.wprp"]).ok();
    let _ = shell.run(&["wprp", "a.wprp", "--mappings"]).ok();
    fs::write(shell.path("b.wprp"), "mine").unwrap();
    let run = shell.run(&["wprp", "b.wprp"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("use --force to replace it"), "{run:?}");
    assert_eq!(fs::read_to_string(shell.path("b.wprp")).unwrap(), "mine");
    for forced in [["wprp", "b.wprp", "--force"], ["--force", "wprp", "b.wprp"]] {
        let _ = shell.run(&forced).ok();
    }
    assert!(fs::read_to_string(shell.path("b.wprp")).unwrap().starts_with("<?xml"));
    for (name, status, message) in [
        ("none/a.wprp", 1, "none/a.wprp: cannot be written: folder not found"),
        ("a.xml", 2, "name a file that ends with .wprp"),
    ] {
        let run = shell.run(&["wprp", name]);
        assert_eq!(run.status, Some(status), "{run:?}");
        assert!(run.stderr.contains(message), "{run:?}");
    }
}

#[test]
fn names_of_files_act_on_no_terminal() {
    let shell = Shell::new();
    let name = "a\u{202e}b\u{1b}[2J.etl";
    let plan = shell.run(&["record", "--dry-run", name]).ok().stdout;
    let refused = shell.run(&["record", name]).stderr;
    for text in [&plan, &refused] {
        assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text:?}");
    }
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(plan["log_file"], name);
}

#[test]
fn shells_complete_the_options_of_recordings() {
    let shell = Shell::new();
    let offered = |words: &[&str]| {
        let run = shell.run(&[&["complete", "--"][..], words].concat()).ok();
        let names = run.stdout.lines().filter_map(|line| line.split('\t').next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(offered(&["wpr"]), ["wprp"]);
    assert_eq!(offered(&["record", "--d"]), ["--drop-close-stacks", "--duration", "--dry-run"]);
    assert_eq!(offered(&["wprp", "--f"]), ["--force"]);
}
