//! `.dump Stack`: the most frequent stacks of handle events or of all events.

use std::path::Path;

use handlescope_tests::binary::{Shell, handlescope, run_script, sample_symbols, sample_trace};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Deserializer, Value};
use tempfile::TempDir;

const MS: i64 = 1_000_000;

/// Extracts a trace with all its stacks into a folder.
fn extracted(trace: &Path) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::copy(trace, home.path().join("trace.etl")).unwrap();
    let arguments = ["extract", "--stacks", "all", "trace.etl", "--outdir", "."];
    let run = run_script(handlescope(home.path()).args(arguments), "").ok();
    assert!(run.stdout.contains(" stacks, "), "{run:?}");
    home
}

/// Returns the document that `.dump Stack` prints for an extract.
fn stacks(home: &TempDir, options: &str) -> Value {
    let script = format!(".dump Stack {options} -json\n");
    let run = run_script(handlescope(home.path()).arg("trace.json7z"), &script).ok();
    Deserializer::from_str(&run.stdout).into_iter().next().unwrap().unwrap()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[needs_data]
#[test]
fn frames_of_real_traces_lie_where_a_reference_reader_found_them() {
    for name in ["net.4.5.2.x64", "slow-ppt-2011", "TraceLoggingTester"] {
        let trace = SharedTrace::open(&format!("real/{name}"));
        let expected: Value =
            serde_json::from_str(&std::fs::read_to_string(trace.expected()).unwrap()).unwrap();
        let expected = &expected["stacks"];
        let document = stacks(&extracted(trace.etl()), "");
        let figure = |member: &str| document[member].as_u64().unwrap();
        assert_eq!(document["frames_total"], expected["frames"], "{name}");
        let in_image = expected["frames_in_image_at_event_time"].as_u64().unwrap();
        assert!(figure("frames_in_modules") >= in_image, "{name}");
        let kinds = ["frames_in_modules", "frames_managed", "frames_unknown"].map(figure);
        assert_eq!(kinds.iter().sum::<u64>(), figure("frames_total"), "{name}");
        let counted = array(&document["stacks"])
            .iter()
            .map(|stack| (stack["count"].as_u64().unwrap(), array(&stack["frames"]).len() as u64));
        let (events, frames) = counted.fold((0, 0), |(events, frames), (count, depth)| {
            (events + count, frames + count * depth)
        });
        assert_eq!(frames, figure("frames_total"), "{name}");
        assert_eq!(events, expected["merged"].as_u64().unwrap(), "{name}");
        if name == "net.4.5.2.x64" {
            assert_eq!(kinds, [178_116, 30_087, 330]);
        }
    }
}

#[needs_data]
#[test]
fn managed_frames_have_assembly_type_and_method() {
    let trace = SharedTrace::open("real/net.4.5.2.x64");
    let home = extracted(trace.etl());
    let document = stacks(&home, "-pn Test.x64 -StackFilter *System.DateTime.get_Day* -TopN 1");
    let frames = array(&document["stacks"][0]["frames"]);
    let managed: Vec<_> = frames.iter().filter(|frame| frame["managed"] == true).collect();
    let texts: Vec<String> = managed
        .iter()
        .map(|frame| format!("{}!{}", frame["module"], frame["function"]).replace('"', ""))
        .collect();
    assert!(texts.iter().any(|text| text.starts_with("mscorlib.dll!System.DateTime.get_Day")));
    assert!(frames.iter().any(|frame| frame.get("managed").is_none()), "{document}");
    assert_eq!(document["stacks"][0]["process"], "Test.x64.exe");
}

/// A 32-bit process on 64-bit Windows: its stacks go from the kernel through the 64-bit layer into 32-bit code. One
/// library is unloaded, another one takes its address, and the first comes back elsewhere.
#[test]
fn modules_are_found_by_process_address_and_time() {
    const KERNEL: u64 = 0xFFFF_F800_0000_0000;
    const LAYER: u64 = 0x5_0000_0000;
    const APP: u64 = 0x0040_0000;
    const PLACE: u64 = 0x1000_0000;
    const ELSEWHERE: u64 = 0x1200_0000;
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "app32.exe");
    trace.process(800, "other.exe");
    trace.module(0, r"\SystemRoot\ntoskrnl.exe", KERNEL, 0x10_0000).rundown_only();
    trace.module(700, r"C:\Windows\System32\wow64.dll", LAYER, 0x1_0000).rundown_only();
    trace.module(700, r"C:\app32.exe", APP, 0x1_0000).rundown_only();
    trace.module(700, r"C:\first.dll", PLACE, 0x1_0000).loaded(10 * MS).unloaded(20 * MS);
    trace.module(700, r"C:\second.dll", PLACE, 0x1_0000).loaded(30 * MS).unloaded(40 * MS);
    trace.module(700, r"C:\first.dll", ELSEWHERE, 0x1_0000).loaded(50 * MS);
    trace.module(800, r"C:\third.dll", PLACE, 0x1_0000).rundown_only();
    for (number, (time, pid, top)) in [
        (15 * MS, 700, PLACE),
        (25 * MS, 700, PLACE),
        (35 * MS, 700, PLACE),
        (55 * MS, 700, ELSEWHERE),
        (55 * MS + 10_000, 700, PLACE),
        (60 * MS, 800, PLACE),
    ]
    .into_iter()
    .enumerate()
    {
        let object = 0xFFFF_8000_0000_1000 + 0x100 * number as u64;
        trace
            .create_handle(time, (pid, pid + 1), object, 4 + 4 * number as u32, 16)
            .stack(&[KERNEL + 0x123], &[LAYER + 0x456, top + 0x789, APP + 0x10]);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    trace.write(&path).unwrap();
    let document = stacks(&extracted(&path), "");
    let place = |frame: &Value| format!("{}+{}", frame["module"], frame["rva"]).replace('"', "");
    let mut seen: Vec<String> = array(&document["stacks"])
        .iter()
        .map(|stack| {
            let frames: Vec<String> = array(&stack["frames"]).iter().map(place).collect();
            format!("{} {} {}", stack["count"], stack["process"], frames.join(" "))
        })
        .collect();
    seen.sort();
    insta::assert_snapshot!(seen.join("\n"));
}

#[test]
fn without_all_stacks_those_of_handle_events_are_counted_and_it_is_said() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let arguments = ["--symbol-path", symbols.to_str().unwrap(), "leaky.etl"];
    let script = ".dump Stack -TopN 3\n.dump Stack -pn leaky -TopN 1 -ShowStack\n";
    insta::assert_snapshot!(shell.script(&arguments, script).ok().stdout);
}

#[test]
fn all_stacks_of_the_sample_hold_those_of_its_handle_events() {
    let shell = Shell::new();
    let count = |shell: &Shell| {
        let run = shell.run(&["Extract/leaky.json7z", "-c", ".dump Stack -json"]).ok();
        let is_noted = run.stderr.contains("extract with -stacks all");
        let document: Value =
            Deserializer::from_str(&run.stdout).into_iter().next().unwrap().unwrap();
        let events =
            array(&document["stacks"]).iter().map(|stack| stack["count"].as_u64().unwrap());
        let has_every_stack = document["has_every_stack"] == true;
        assert_ne!(is_noted, has_every_stack);
        (has_every_stack, events.sum::<u64>())
    };
    let _ = shell.run(&["extract", "leaky.etl"]).ok();
    let (has_every_stack, handle_events) = count(&shell);
    assert!(!has_every_stack);
    let _ = shell.run(&["-extract", "ObjectRef", "-stacks", "all", "-fd", "leaky.etl"]).ok();
    let (has_every_stack, events) = count(&shell);
    assert!(has_every_stack);
    assert!(events >= handle_events, "{events} {handle_events}");
}

#[test]
fn stacks_are_written_in_every_format_with_their_frames() {
    let shell = Shell::new();
    for format in ["-json", "-csv", "-ndjson"] {
        let run = shell.script(&["leaky.etl"], &format!(".dump Stack -ss {format}\n")).ok();
        assert!(run.stdout.contains("ntoskrnl.exe"), "{format}");
    }
}

/// Returns the number of stacks in an extract with these options: as counted by `.dump Stats`, as counted by `.dump
/// Stack`, and as the number of table rows with a stack.
fn counted(trace: &Path, options: &[&str]) -> [u64; 3] {
    let home = tempfile::tempdir().unwrap();
    std::fs::copy(trace, home.path().join("trace.etl")).unwrap();
    let mut extract = handlescope(home.path());
    let _ =
        run_script(extract.args(["extract", "trace.etl", "--outdir", "."]).args(options), "").ok();
    let ask = |command: &str| -> Value {
        let run = run_script(handlescope(home.path()).arg("trace.json7z"), &format!("{command}\n"));
        serde_json::from_str(&run.ok().stdout).unwrap()
    };
    let stats = ask(".dump Stats -json")["files"][0]["stacks_total"].as_u64().unwrap();
    let stacks = ask(".dump Stack -json");
    let counts = array(&stacks["stacks"]).iter().map(|stack| stack["count"].as_u64().unwrap());
    let rows = |table: &str| {
        let rows = ask(&format!(".sql SELECT count(stack) AS n FROM {table} -json"));
        rows["rows"][0]["n"].as_u64().unwrap()
    };
    let taken = rows(if options.contains(&"all") { "stack_events" } else { "events" });
    [stats, counts.sum(), taken + rows("provider_events")]
}

#[test]
fn stacks_of_the_sample_that_are_kept_are_counted_alike() {
    assert_eq!(counted(&sample_trace(), &[]), [183; 3]);
    assert_eq!(counted(&sample_trace(), &["--stacks", "all"]), [184; 3]);
}

#[needs_data]
#[test]
fn stacks_that_events_of_providers_carry_count_where_these_events_are_kept() {
    let all = ["--stacks", "all", "--events", "all"];
    let net = SharedTrace::open("real/net.4.5.2.x64");
    // 655 events have a stack of their own, and 2 of those have no description; the runtime logs the stacks of 14,983
    // more.
    assert_eq!(counted(net.etl(), &all), [7_746 + 653 + 14_983; 3]);
    let logging = SharedTrace::open("real/TraceLoggingTester");
    assert_eq!(counted(logging.etl(), &["--events", "all"]), [70; 3]);
}

#[needs_data]
#[test]
fn stacks_of_allocations_are_kept_and_each_counts_once() {
    for (name, all, of_allocations) in [("heap", 4_419, 4_399), ("generic", 2_057, 2_006)] {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let both = ["--stacks", "all", "--events", "all"];
        assert_eq!(counted(trace.etl(), &both)[..2], [all; 2], "{name}");
        assert_eq!(counted(trace.etl(), &[])[0], of_allocations, "{name}");
    }
}
