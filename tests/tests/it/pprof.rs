//! `.flame NAME.pb.gz`: profiles, read by another program's reader.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use handlescope_model::is_harmful;
use handlescope_tests::binary::{ProgramRun, Shell, sample_symbols};
use handlescope_tests::scenario::TraceBuilder;
use handlescope_tests::{allocations, needs_linker, needs_protobuf};
use serde_json::Value;

use crate::symbol_servers::inlined_code;

/// What Python's protobuf reads in a profile.
fn read(shell: &Shell, file: &str) -> Value {
    let python = env::var_os("HANDLESCOPE_PYTHON").expect("HANDLESCOPE_PYTHON is set");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/pprof.py");
    let mut command = Command::new(python);
    command.arg(script).arg(shell.path(file)).stdin(Stdio::null());
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let run = ProgramRun::from(command.output().expect("Python starts")).ok();
    serde_json::from_str(&run.stdout).unwrap()
}

fn profile(shell: &Shell, trace: &str, command: &str) -> Value {
    let symbols = sample_symbols();
    let command = format!(".flame out.pb.gz {command} -Force");
    let arguments = ["--symbol-path", symbols.to_str().unwrap(), trace, "-c", &command];
    let _ = shell.run(&arguments).ok();
    read(shell, "out.pb.gz")
}

/// The answer of a command as JSON.
fn json(shell: &Shell, command: &str) -> Value {
    let symbols = sample_symbols();
    let arguments = ["--symbol-path", symbols.to_str().unwrap(), "leaky.etl", "-c", command];
    serde_json::from_str(&shell.run(&arguments).ok().stdout).unwrap()
}

fn samples(profile: &Value) -> &[Value] {
    profile["samples"].as_array().unwrap()
}

fn sum(profile: &Value, name: &str) -> i64 {
    samples(profile).iter().map(|sample| sample["values"][name].as_i64().unwrap()).sum()
}

/// Sums of a value by a label.
fn sums(profile: &Value, label: &str, name: &str) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for sample in samples(profile) {
        let key = sample["labels"][label].as_str().unwrap_or_default().to_owned();
        *sums.entry(key).or_default() += sample["values"][name].as_i64().unwrap();
    }
    sums
}

/// The functions of a sample, innermost first.
fn functions(sample: &Value) -> Vec<&str> {
    sample["stack"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|place| place["lines"].as_array().unwrap())
        .map(|line| line["name"].as_str().unwrap())
        .collect()
}

#[needs_protobuf]
#[test]
fn a_profile_has_what_was_opened_and_what_leaked_of_it() {
    let shell = Shell::new();
    let profile = profile(&shell, "leaky.etl", "");
    assert_eq!(profile["types"], serde_json::json!(["alloc_objects count", "inuse_objects count"]));
    assert_eq!(profile["default"], "inuse_objects");
    // 2026-02-10T09:30:00Z
    assert_eq!(profile["time_nanos"], 1_770_715_800_000_000_000_i64);
    assert_eq!(profile["duration_nanos"], 2_100_005_900_i64);
    let why = json(&shell, ".why -json");
    let totals = &why["files"][0]["totals"];
    let total =
        |names: &[&str]| -> i64 { names.iter().map(|name| totals[name].as_i64().unwrap()).sum() };
    assert_eq!(sum(&profile, "alloc_objects"), total(&["handles_created", "handles_duplicated"]));
    assert_eq!(sum(&profile, "inuse_objects"), total(&["leaked_handles", "closed_at_exit"]));
    let mut suspects = BTreeMap::new();
    for suspect in why["suspects"].as_array().unwrap() {
        let number = |name: &str| suspect[name].as_i64().unwrap();
        let id = suspect["id"].as_str().unwrap().to_owned();
        suspects.insert(id, (number("created"), number("leaked") + number("closed_at_exit")));
    }
    let opened = sums(&profile, "suspect", "alloc_objects");
    let leaked = sums(&profile, "suspect", "inuse_objects");
    let labelled = opened
        .iter()
        .filter(|(id, _)| !id.is_empty())
        .map(|(id, opened)| (id.clone(), (*opened, leaked[id])));
    assert_eq!(labelled.collect::<BTreeMap<_, _>>(), suspects);
    assert_eq!(leaked[""], 0, "all that leaks here is suspect");
}

#[needs_protobuf]
#[test]
fn a_profile_has_the_stacks_of_the_flame_graph() {
    let shell = Shell::new();
    for choice in ["", "-Leak", "-LeakAtExit", "-Type Thread", "-FoldStack Kernel*;nt*"] {
        let profile = profile(&shell, "leaky.etl", choice);
        let mut stacks = BTreeSet::new();
        for sample in samples(&profile) {
            let count = sample["values"]["inuse_objects"].as_u64().unwrap();
            let mut frames = vec![sample["labels"]["process"].as_str().unwrap().to_owned()];
            frames.extend(functions(sample).into_iter().rev().map(str::to_owned));
            frames.push(format!("[{}]", sample["labels"]["type"].as_str().unwrap()));
            if count > 0 {
                stacks.insert((frames, count));
            }
        }
        let symbols = sample_symbols();
        let command = format!(".flame out.json {choice} -Force");
        let arguments = ["--symbol-path", symbols.to_str().unwrap(), "leaky.etl", "-c", &command];
        let _ = shell.run(&arguments).ok();
        let text = fs::read_to_string(shell.path("out.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let drawn = &document["profiles"][0];
        let pairs = drawn["samples"]
            .as_array()
            .unwrap()
            .iter()
            .zip(drawn["weights"].as_array().unwrap())
            .map(|(sample, weight)| {
                let frames = sample.as_array().unwrap().iter().map(|frame| {
                    let at = usize::try_from(frame.as_u64().unwrap()).unwrap();
                    document["shared"]["frames"][at]["name"].as_str().unwrap().to_owned()
                });
                (frames.collect::<Vec<_>>(), weight.as_u64().unwrap())
            });
        assert_eq!(stacks, pairs.collect(), "{choice}");
        assert!(!stacks.is_empty(), "{choice}");
    }
}

#[needs_protobuf]
#[test]
fn a_place_names_its_module_source_and_build() {
    let shell = Shell::new();
    let profile = profile(&shell, "leaky.etl", "-Leak -Type Event");
    let places = samples(&profile).iter().flat_map(|it| it["stack"].as_array().unwrap());
    let is_it =
        |place: &&Value| place["lines"][0]["name"] == "leaky.exe!leaky::EventCache::GetOrCreate";
    let place = places.into_iter().find(is_it).expect("the function that leaks");
    assert_eq!(place["module"], r"\Device\HarddiskVolume3\Tools\leaky.exe");
    assert_eq!(place["build_id"], "641FC44082B9E1ED4C4C44205044422E1");
    assert_eq!(place["rva"], 0x106F);
    assert_eq!(place["has_functions"], true);
    let line = &place["lines"][0];
    assert_eq!(line["system_name"], "leaky::EventCache::GetOrCreate");
    assert!(line["file"].as_str().unwrap().ends_with("leaky.cpp"), "{line}");
    assert_eq!(line["line"], 29);
}

#[needs_protobuf]
#[test]
fn code_without_symbols_is_known_by_its_offset() {
    let shell = Shell::new();
    let _ = shell.run(&["leaky.etl", "-c", ".flame out.pb.gz -Leak -Type Event"]).ok();
    let profile = read(&shell, "out.pb.gz");
    let sample = &samples(&profile)[0];
    assert!(functions(sample).contains(&"leaky.exe+0x106F"), "{sample}");
    for place in sample["stack"].as_array().unwrap() {
        let rva = place["rva"].as_u64().unwrap();
        let name = place["lines"][0]["name"].as_str().unwrap();
        assert!(name.ends_with(&format!("+0x{rva:X}")), "{place}");
        assert_eq!(
            (&place["lines"][0]["system_name"], &place["has_functions"]),
            (&"".into(), &false.into())
        );
    }
}

#[needs_linker]
#[needs_protobuf]
#[test]
fn inlined_functions_are_lines_of_one_place() {
    let shell = Shell::new();
    inlined_code(&shell.path("")).write(shell.path("inlined.etl")).unwrap();
    let run = ["--symbol-path", ".", "inlined.etl", "-c", ".flame out.pb.gz"];
    let _ = shell.run(&run).ok();
    let profile = read(&shell, "out.pb.gz");
    let places = samples(&profile)[0]["stack"].as_array().unwrap();
    // One for each address that the stack has.
    assert_eq!(places.len(), 0x18, "{places:?}");
    let lines = places.iter().map(|place| {
        let lines = place["lines"].as_array().unwrap().iter();
        let lines =
            lines.map(|line| (line["name"].as_str().unwrap(), line["line"].as_i64().unwrap()));
        lines.collect::<Vec<_>>()
    });
    let expected =
        [("m.dll!inner", 3), ("m.dll!leak::Cache::find", 8), ("m.dll!leak::Cache::open", 13)];
    assert!(lines.into_iter().any(|lines| lines == expected), "{places:#?}");
}

#[needs_protobuf]
#[test]
fn a_profile_of_allocations_has_their_bytes() {
    let shell = Shell::new();
    allocations::trace().write(shell.path("memory.etl")).unwrap();
    let all = profile(&shell, "memory.etl", "-Kind *");
    assert_eq!(
        all["types"],
        serde_json::json!([
            "alloc_objects count",
            "alloc_space bytes",
            "inuse_objects count",
            "inuse_space bytes"
        ])
    );
    assert_eq!(all["default"], "inuse_space");
    let of = |name| sums(&all, "type", name);
    let expected = |heap, commit, reserve| {
        let kinds = [("heap", heap), ("commit", commit), ("reserve", reserve)];
        BTreeMap::from(kinds.map(|(kind, sum)| (kind.to_owned(), sum)))
    };
    assert_eq!(of("alloc_objects"), expected(4, 2, 2));
    assert_eq!(of("alloc_space"), expected(10 + 11 + 12 + 13, 0x8000, 0x8000));
    assert_eq!(of("inuse_objects"), expected(3, 1, 1));
    assert_eq!(of("inuse_space"), expected(11 + 12 + 13, 0x4000, 0x4000));
    let suspects = sums(&all, "suspect", "inuse_space");
    let why = shell.run(&["memory.etl", "-c", ".why -All -json"]).ok().stdout;
    let why: Value = serde_json::from_str(&why).unwrap();
    let why: BTreeMap<String, i64> = why["suspects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|suspect| {
            (suspect["id"].as_str().unwrap().to_owned(), suspect["bytes"].as_i64().unwrap())
        })
        .collect();
    assert!(!why.is_empty());
    for (id, bytes) in why {
        assert_eq!(suspects.get(&id), Some(&bytes), "{id}: {suspects:?}");
    }
    let counted = profile(&shell, "memory.etl", "-Kind heap -Count");
    assert_eq!(counted["default"], "inuse_objects");
}

#[needs_protobuf]
#[test]
fn samples_of_several_traces_name_theirs() {
    let shell = Shell::new();
    fs::copy(shell.path("leaky.etl"), shell.path("again.etl")).unwrap();
    let _ = shell.run(&["leaky.etl", "again.etl", "-c", ".flame out.pb.gz -Leak"]).ok();
    let profile = read(&shell, "out.pb.gz");
    let traces = sums(&profile, "trace", "inuse_objects");
    assert_eq!(traces, BTreeMap::from([("again".to_owned(), 19), ("leaky".to_owned(), 19)]));
    // The same code is the same place.
    let stacks = |trace: &str| -> Vec<&Value> {
        samples(&profile)
            .iter()
            .filter(|it| it["labels"]["trace"] == trace)
            .map(|sample| &sample["stack"])
            .collect()
    };
    assert_eq!(stacks("again"), stacks("leaky"));
}

#[needs_protobuf]
#[test]
fn names_from_a_trace_are_escaped_in_a_profile() {
    const HOSTILE: &str = "a;b\u{202e}\u{1b}[2J\n";
    let shell = Shell::new();
    let mut trace = TraceBuilder::new();
    trace.process(700, HOSTILE);
    trace.module(700, &format!(r"C:\{HOSTILE}"), 0x40_0000, 0x2_0000);
    trace.object_type(16, HOSTILE);
    trace.create_handle(1_000_000, (700, 8), 0xffff_8100_0000_1000, 4, 16);
    trace.stack(&[], &[0x40_1000]);
    trace.write(shell.path("hostile.etl")).unwrap();
    let profile = profile(&shell, "hostile.etl", "");
    let text = samples(&profile)[0].to_string();
    let shown = r"a;b\\u{202e}\\u{1b}[2J\\n";
    assert_eq!(text.matches(shown).count(), 4, "process, type, module and function: {text}");
    assert!(!text.contains(is_harmful), "{text}");
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    let shell = Shell::new();
    for name in ["one.pb.gz", "two.pb.gz"] {
        let _ = shell.run(&["leaky.etl", "-c", &format!(".flame {name}")]).ok();
    }
    let one = fs::read(shell.path("one.pb.gz")).unwrap();
    assert!(one == fs::read(shell.path("two.pb.gz")).unwrap());
    // Gzip's header has no time.
    assert_eq!((&one[..2], &one[4..8]), (&[0x1f, 0x8b][..], &[0; 4][..]));
}

#[test]
fn only_a_whole_extension_asks_for_a_profile() {
    let shell = Shell::new();
    for name in ["leaks.gz", ".pb.gz", "leaks.pb"] {
        let run = shell.run(&["leaky.etl", "-c", &format!(".flame {name}")]);
        assert_eq!(run.status, Some(1), "{run:?}");
        assert!(run.stderr.contains("for pprof .pb.gz"), "{run:?}");
    }
    let run = shell.run(&["flame", "leaky.etl", "leaks.pb.gz", "-Type", "none"]);
    assert!(run.stderr.contains("no picture: none of the chosen handles was opened"), "{run:?}");
}
