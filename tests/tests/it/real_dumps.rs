//! The four published real traces through the program's JSON: `.dump Stats`, `Process` and `Module` print the known
//! answers.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use handlescope_tests::binary::{handlescope, run_script};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use serde_json::{Deserializer, Map, Value, json};
use sha2::{Digest, Sha256};

use crate::real_traces::collect;

const TRACES: [&str; 4] =
    ["TraceLoggingTester", "slow-ppt-2011", "net.4.5.2.x64", "ShutdownPerfDiagLogger"];

fn for_each_trace(dump: &str, check: impl Fn(&str, &Value, &Value)) {
    for name in TRACES {
        let trace = SharedTrace::open(&format!("real/{name}"));
        let expected = std::fs::read_to_string(trace.expected()).unwrap();
        let home = tempfile::tempdir().unwrap();
        std::fs::copy(trace.etl(), home.path().join("trace.etl")).unwrap();
        let script = format!(".dump {dump} -json\n");
        let run = run_script(handlescope(home.path()).arg("trace.etl"), &script).ok();
        let document = Deserializer::from_str(&run.stdout).into_iter().next().unwrap().unwrap();
        check(name, &document, &serde_json::from_str(&expected).unwrap());
    }
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[needs_data]
#[test]
fn stats_show_the_header_and_count_every_kind_of_event() {
    for_each_trace("Stats", |name, document, expected| {
        let stats = &document["files"][0];
        let header = &expected["header"];
        for member in ["os_build", "cpu_count", "perf_freq", "events_lost", "buffers_lost"] {
            assert_eq!(stats[member], header[member], "{name}: {member}");
        }
        assert_eq!(stats["pointer_size"], header["pointer_size"], "{name}");
        assert_eq!(stats["boot_time_utc"], header["boot_time_utc"], "{name}");
        assert_eq!(stats["session_start_utc"], expected["session_start_utc"], "{name}");
        assert_eq!(stats["session_end_utc"], expected["session_end_utc"], "{name}");
        assert_eq!(stats["clock"], "qpc", "{name}");
        assert_eq!(stats["buffers"], expected["buffers"], "{name}");
        assert_eq!(stats["events_total"], expected["total_events"], "{name}");
        assert_eq!(stats["stack_fragments"], expected["stacks"]["fragment_events"], "{name}");
        assert_eq!(stats["warnings"], json!([]), "{name}");
        let counts: Map<String, Value> = array(&stats["events"])
            .iter()
            .map(|event| (event["kind"].as_str().unwrap().to_owned(), event["count"].clone()))
            .collect();
        assert_eq!(Value::Object(counts), expected["events_by_kind"], "{name}");
    });
}

#[needs_data]
#[test]
fn processes_have_their_names_parents_and_times() {
    for_each_trace("Process", |name, document, expected| {
        let mut rows: Vec<_> = array(&document["processes"])
            .iter()
            .map(|process| {
                let line = process["command_line"].as_str().unwrap();
                let line: String = line.chars().take(200).collect();
                let start = &process["start_ns"];
                let row = json!([
                    process["pid"],
                    process["parent_pid"],
                    process["name"],
                    line,
                    start,
                    process["end_ns"]
                ]);
                ((process["pid"].as_u64(), start.as_i64()), row)
            })
            .collect();
        rows.sort_by_key(|(key, _)| *key);
        let rows: Value = rows.into_iter().map(|(_, row)| row).collect();
        assert_eq!(rows, expected["processes"], "{name}");
    });
}

/// Returns the file name of a path in lower case. One file is one module, however events spell its path.
fn file_name(path: &str) -> String {
    path.rsplit('\\').next().unwrap_or_default().to_lowercase()
}

/// Returns the images of a trace as the reader finds them; `real_traces.rs` knows their hash with full paths.
fn images_of(trace: &SharedTrace) -> Vec<String> {
    let (recording, collected) = collect(trace);
    let images = &collected.images;
    let ns = |raw: Option<i64>| match raw {
        Some(raw) => recording.clock.ns(raw).to_string(),
        None => "None".to_owned(),
    };
    let mut lines: Vec<_> = images
        .rows
        .iter()
        .map(|image| {
            let name = file_name(&images.paths[image.path as usize]);
            let (load, unload) = (ns(image.load), ns(image.unload));
            format!("{}|{:x}|{:x}|{name}|{load}|{unload}\n", image.pid, image.base, image.size)
        })
        .collect();
    lines.sort_unstable();
    lines
}

#[needs_data]
#[test]
fn modules_have_their_loads_and_pdb_identities() {
    for_each_trace("Module", |name, document, expected| {
        let (mut images, mut pdbs) = (Vec::new(), BTreeSet::new());
        for module in array(&document["modules"]) {
            let size = module["size"].as_u64().unwrap();
            let path = module["path"].as_str().unwrap();
            for load in array(&module["loads"]) {
                let base = load["base"].as_str().unwrap().trim_start_matches("0x").to_lowercase();
                let ns = |member: &str| match &load[member] {
                    Value::Null => "None".to_owned(),
                    ns => ns.to_string(),
                };
                images.push(format!(
                    "{}|{base}|{size:x}|{}|{}|{}\n",
                    load["pid"],
                    file_name(path),
                    ns("load_ns"),
                    ns("unload_ns")
                ));
            }
            if let Some(guid) = module["pdb_guid"].as_str() {
                let file = module["name"].as_str().unwrap().to_lowercase();
                pdbs.insert(format!("{file}|{guid}|{}", module["pdb_age"]));
            }
        }
        images.sort_unstable();
        assert_eq!(expected["images"], images.len(), "{name}");
        assert_eq!(images, images_of(&SharedTrace::open(&format!("real/{name}"))), "{name}");
        let known = &expected["image_pdbs"];
        assert_eq!(known["distinct_loaded_name_guid_age"], pdbs.len(), "{name}");
        let text = pdbs.into_iter().collect::<Vec<_>>().join("\n") + "\n";
        assert_eq!(known["sha256_loaded_name_guid_age"], sha256(&text), "{name}");
    });
}
