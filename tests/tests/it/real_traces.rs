//! The published real traces: everything that the reader finds in them matches the known answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;

use handlescope_extract::collect::{Collector, EventCounter, KernelSelector};
use handlescope_extract::etl::{Event, EventId, Selector};
use handlescope_extract::stacks::KeptStacks;
use handlescope_extract::{OpenRecording, Recording};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Session files that were neither merged nor relogged.
const UNMERGED: [&str; 3] = ["real/WsRm01", "real/HTTP_Server", "real/ShutdownPerfDiagLogger"];

const MERGED: [&str; 4] =
    ["real/TraceLoggingTester", "real/slow-ppt-2011", "real/net.4.5.2.x64", "real/PktMon"];

/// Selects every event, and counts them.
#[derive(Default)]
struct CountedEvents(EventCounter);

impl Selector for CountedEvents {
    fn select(&mut self, event: &Event<'_>) -> bool {
        self.0.count(event);
        true
    }
}

fn for_each_trace(check: impl Fn(&SharedTrace, &Value)) {
    for name in UNMERGED.into_iter().chain(MERGED) {
        let trace = SharedTrace::open(name);
        let text = std::fs::read_to_string(trace.expected()).unwrap();
        check(&trace, &serde_json::from_str(&text).unwrap());
    }
}

pub fn collect(trace: &SharedTrace) -> (Recording, Collector) {
    let open = OpenRecording::open(trace.etl()).unwrap();
    let mut collector = Collector::new(KeptStacks::all());
    let recording = open
        .read(
            &mut KernelSelector::default(),
            |_| ControlFlow::Continue(()),
            |event| collector.event(event),
        )
        .unwrap();
    collector.finish();
    (recording, collector)
}

fn sha256_of_sorted(mut lines: Vec<String>) -> String {
    lines.sort_unstable();
    let mut hash = Sha256::new();
    for line in &lines {
        hash.update(line.as_bytes());
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn or_none(ns: Option<i64>) -> String {
    ns.map_or_else(|| "None".to_owned(), |ns| ns.to_string())
}

#[needs_data]
#[test]
fn the_header_is_read() {
    for_each_trace(|trace, expected| {
        let open = OpenRecording::open(trace.etl()).unwrap();
        let header = &open.recording.header;
        let known = &expected["header"];
        assert_eq!(known["buffer_size"], header.buffer_size);
        assert_eq!(known["os_build"], header.os_build);
        assert_eq!(known["cpu_count"], header.cpu_count);
        assert_eq!(known["start_time"], header.start_time);
        assert_eq!(known["end_time"], header.end_time);
        assert_eq!(known["boot_time"], header.boot_time);
        assert_eq!(known["perf_freq"], header.perf_freq);
        assert_eq!(known["clock_type"], header.clock_type);
        assert_eq!(known["log_file_mode"], header.log_file_mode);
        assert_eq!(known["buffers_written"], header.buffers_written);
        assert_eq!(known["events_lost"], header.events_lost);
        assert_eq!(known["buffers_lost"], header.buffers_lost);
        assert_eq!(known["pointer_size"], header.pointer_size);
        assert_eq!(known["tz_bias_minutes"], header.time_zone.bias);
        assert_eq!(known["cpu_mhz"], header.cpu_mhz);
        assert_eq!(known["max_file_size_mb"], header.maximum_file_size);
        assert_eq!(known["timer_resolution"], header.timer_resolution);
        assert_eq!(known["version"], header.version.map(|part| part.to_string()).join("."));
        assert_eq!(expected["buffers"], open.recording.buffers_found);
        assert_eq!(expected["uncompressed_bytes"], open.uncompressed_bytes());
        let clock = open.recording.clock;
        let known = &expected["clock"];
        assert_eq!(known["type"], header.clock_type);
        assert_eq!(known["base_raw"], clock.base);
        assert_eq!(known["frequency"], clock.frequency);
        assert_eq!(known["last_ns"], clock.ns(known["last_raw"].as_i64().unwrap()));
    });
}

#[needs_data]
#[test]
fn the_recorded_time_is_the_session_where_no_ring_was_used() {
    for_each_trace(|trace, expected| {
        let (recording, _) = collect(trace);
        let header = &expected["header"];
        let filetime = |name: &str| header[name].as_i64().unwrap();
        let session_ns = (filetime("end_time") - filetime("start_time")) * 100;
        let recorded = recording.recorded.unwrap();
        let name = trace.etl().display();
        assert_eq!((recorded.from_ns, recorded.to_ns), (0, session_ns), "{name}");
        assert_eq!(recording.losses, [], "{name}");
    });
}

#[needs_data]
#[test]
fn every_event_is_read_and_in_the_right_order() {
    for_each_trace(|trace, expected| {
        let open = OpenRecording::open(trace.etl()).unwrap();
        let clock = open.recording.clock;
        let mut selector = CountedEvents::default();
        let mut lines = Vec::new();
        let mut order = Vec::new();
        let mut by_processor: BTreeMap<String, u64> = BTreeMap::new();
        let recording = open
            .read(
                &mut selector,
                |_| ControlFlow::Continue(()),
                |event| {
                    lines.push(format!(
                        "{} {} {} {}\n",
                        event.time,
                        event.id,
                        event.processor,
                        event.payload.len()
                    ));
                    order.push((clock.ns(event.time), event.id, event.processor));
                    *by_processor.entry(event.processor.to_string()).or_default() += 1;
                },
            )
            .unwrap();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for kind in selector.0.kinds() {
            *counts.entry(kind.id.to_string()).or_default() += kind.tally.count;
        }
        assert_eq!(json!(counts), expected["events_by_kind"]);
        assert_eq!(expected["total_events"], selector.0.total());
        assert_eq!(json!(by_processor), expected["events_by_cpu"]);
        assert_eq!(expected["events_digest"], sha256_of_sorted(lines));
        let rows = |events: &[(i64, EventId, u16)]| -> Value {
            events.iter().map(|(ns, id, cpu)| json!([ns, id.to_string(), cpu])).collect()
        };
        let first = expected["first_events"].as_array().unwrap().len();
        let last = expected["last_events"].as_array().unwrap().len();
        assert_eq!(rows(&order[..first]), expected["first_events"]);
        assert_eq!(rows(&order[order.len() - last..]), expected["last_events"]);
        assert!(recording.diagnostics.warnings().is_empty());
    });
}

#[needs_data]
#[test]
fn processes_and_threads_are_found() {
    for_each_trace(|trace, expected| {
        let (recording, collected) = collect(trace);
        let ns = |raw: Option<i64>| raw.map(|raw| recording.clock.ns(raw));
        let mut rows: Vec<_> = collected
            .processes
            .rows
            .iter()
            .map(|row| {
                let process = &row.process;
                let line: String = process.command_line.chars().take(200).collect();
                (
                    (process.pid, ns(row.start)),
                    json!([
                        process.pid,
                        process.parent_pid,
                        process.name,
                        line,
                        ns(row.start),
                        ns(row.end)
                    ]),
                )
            })
            .collect();
        rows.sort_by_key(|(key, _)| *key);
        let rows: Value = rows.into_iter().map(|(_, row)| row).collect();
        assert_eq!(rows, expected["processes"], "{}", trace.etl().display());
        let threads: BTreeSet<_> =
            collected.threads.rows.iter().map(|row| (row.pid, row.tid)).collect();
        assert_eq!(expected["threads"], threads.len());
        let sids: BTreeSet<_> =
            collected.processes.rows.iter().filter_map(|row| row.process.sid.as_deref()).collect();
        assert_eq!(json!(sids), expected["process_sids"]);
    });
}

#[needs_data]
#[test]
fn images_and_their_pdbs_are_found() {
    for_each_trace(|trace, expected| {
        let (recording, collected) = collect(trace);
        let images = &collected.images;
        let ns = |raw: Option<i64>| raw.map(|raw| recording.clock.ns(raw));
        let lines = images.rows.iter().map(|image| {
            format!(
                "{}|{:x}|{:x}|{}|{}|{}\n",
                image.pid,
                image.base,
                image.size,
                images.paths[image.path as usize],
                or_none(ns(image.load)),
                or_none(ns(image.unload))
            )
        });
        assert_eq!(expected["images"], images.rows.len());
        assert_eq!(expected["images_sha256"], sha256_of_sorted(lines.collect()));
        let pdbs: BTreeSet<String> = images
            .rows
            .iter()
            .filter_map(|image| {
                let (guid, age, _) = image.file.pdb.as_ref()?;
                let path = images.paths[image.path as usize].to_lowercase();
                let name = path.rsplit('\\').next().unwrap_or_default();
                Some(format!("{name}|{guid}|{age}"))
            })
            .collect();
        let known = &expected["image_pdbs"];
        assert_eq!(known["distinct_loaded_name_guid_age"], pdbs.len());
        // The known answer hashes the joined lines, so no PDB at all is one line feed.
        let text = pdbs.into_iter().collect::<Vec<_>>().join("\n") + "\n";
        let hash = sha256_of_sorted(vec![text]);
        assert_eq!(known["sha256_loaded_name_guid_age"], hash);
    });
}

#[needs_data]
#[test]
fn stacks_are_joined() {
    for_each_trace(|trace, expected| {
        let (_, collected) = collect(trace);
        let stacks = collected.stacks.all.as_ref().unwrap();
        let lines = stacks.stacks().iter().map(|stack| {
            let frames: Vec<_> =
                stacks.addresses(stack).iter().map(|address| format!("{address:x}")).collect();
            format!(
                "{}|{}|{}|{}|{}\n",
                stack.event_time,
                stack.pid,
                stack.tid,
                stack.processor,
                frames.join(",")
            )
        });
        let known = &expected["stacks"];
        assert_eq!(known["merged"], stacks.stacks().len());
        assert_eq!(known["sha256"], sha256_of_sorted(lines.collect()));
    });
}
