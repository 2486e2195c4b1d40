//! Ring traces: only the last minute of sessions of many hours is left, in a file or in memory, merged or not.
//! Everything that depends on time uses that minute.

use std::sync::OnceLock;

use handlescope_tests::binary::{ProgramRun, Shell};
use handlescope_tests::file::{BufferOrder, FileOptions, Ring};
use handlescope_tests::payload::HeapCall;
use handlescope_tests::scenario::{Caller, StackMode, TraceBuilder};
use serde_json::Value;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const EVENT: u16 = 16;
const HEAP: u64 = 0x1_0000;
const PID: u32 = 700;
const BASE: u64 = 0x7ff6_0000_0000;
const CPUS: u16 = 4;

/// Call sites in the program's code.
const LEAK: u64 = BASE + 0x100;
const POOL: u64 = BASE + 0x200;

/// Size of a buffer, and how many buffers hold a minute of the program.
const BUFFER: u32 = 4096;
const BUFFERS: usize = 40;

/// A program that leaks handles and heap blocks at a rate, and opens and closes others.
struct RingProgram {
    trace: TraceBuilder,
    opened: u32,
}

impl RingProgram {
    /// Records the program in a session of this length.
    fn new(layout: BufferOrder, length: i64) -> Self {
        Self::with_options(FileOptions { layout, ..FileOptions::default() }, length)
    }

    fn with_options(options: FileOptions, length: i64) -> Self {
        let options = FileOptions { buffer_size: BUFFER, cpus: CPUS.into(), ..options };
        let mut trace = TraceBuilder::with_options(options);
        trace.process(4, "System");
        trace.process(PID, "server.exe").parent(4);
        trace.module(PID, r"C:\demo\server.exe", BASE, 0x10_0000);
        trace.object_type(EVENT, "Event");
        trace.end(length);
        Self { trace, opened: 0 }
    }

    fn handle(&mut self) -> (u64, u32) {
        self.opened += 1;
        (0xffff_8100_0000_0000 + u64::from(self.opened) * 0x100, self.opened * 4)
    }

    /// Leaks this many handles, and blocks of 4,096 bytes, per minute.
    fn leaks(mut self, per_minute: i64, from: i64, to: i64) -> Self {
        let distance = MINUTE / per_minute;
        for (number, ns) in (from + distance / 3..to).step_by(distance as usize).enumerate() {
            let caller = Caller::new(PID, 701).on(number as u16 % CPUS);
            let (object, handle) = self.handle();
            self.trace.create_handle(ns, caller, object, handle, EVENT).stack(&[], &[LEAK]);
            let call = HeapCall::Alloc { address: object, size: 4096 };
            self.trace.heap(ns + 1_000, caller, HEAP, call).stack(&[], &[LEAK + 8]);
        }
        self
    }

    /// Opens handles on all processors, and closes each after 100 ms.
    fn works(mut self, distance: i64, from: i64, to: i64) -> Self {
        for (number, ns) in (from + SECOND / 7..to - SECOND).step_by(distance as usize).enumerate()
        {
            let caller = Caller::new(PID, 702).on(number as u16 % CPUS);
            let (object, handle) = self.handle();
            self.trace
                .create_handle(ns, caller, object, handle, EVENT)
                .stack(&[], &[POOL])
                .close_handle(ns + SECOND / 10, caller, object, handle, EVENT, "");
        }
        self
    }

    /// Runs the program in a session of `length`; for most of it, the rates differ from those of the last minutes.
    fn with_order(layout: BufferOrder, length: i64, per_minute: i64) -> Self {
        let busy = (length - 3 * MINUTE).max(0);
        Self::new(layout, length)
            .works(length / 400, 0, busy)
            .works(SECOND / 20, busy, length)
            .leaks(per_minute, busy, length)
    }
}

/// Returns the kinds of rings.
fn rings() -> [(&'static str, BufferOrder); 4] {
    let in_memory = |per_processor, renumbered| {
        let buffers = if per_processor { BUFFERS / usize::from(CPUS) } else { BUFFERS };
        BufferOrder::InMemory(Ring { buffers, per_processor, renumbered })
    };
    [
        ("circular", BufferOrder::Circular { max_buffers: BUFFERS as u64 }),
        ("memory", in_memory(false, false)),
        ("merged", in_memory(false, true)),
        ("processors", in_memory(true, false)),
    ]
}

/// Makes a folder with `file.etl`, a minute of the program; `faster.etl`, in which it leaks four times as much; and
/// rings of both: `NAME-1.etl` of an hour, `NAME-24.etl` of a day, `NAME-faster.etl`.
fn shell() -> &'static Shell {
    static SHELL: OnceLock<Shell> = OnceLock::new();
    SHELL.get_or_init(|| {
        let shell = Shell::new();
        let write =
            |name: &str, program: RingProgram| program.trace.write(shell.path(name)).unwrap();
        write("file.etl", RingProgram::with_order(BufferOrder::Sequential, MINUTE, 30));
        write("faster.etl", RingProgram::with_order(BufferOrder::Sequential, MINUTE, 120));
        for (name, layout) in rings() {
            for hours in [1, 24] {
                write(
                    &format!("{name}-{hours}.etl"),
                    RingProgram::with_order(layout, hours * HOUR, 30),
                );
            }
            write(&format!("{name}-faster.etl"), RingProgram::with_order(layout, HOUR, 120));
        }
        shell
    })
}

fn names() -> Vec<String> {
    let hours = |(name, _): (&str, BufferOrder)| [1, 24].map(|hours| format!("{name}-{hours}.etl"));
    rings().into_iter().flat_map(hours).collect()
}

fn asked(file: &str, question: &str) -> Value {
    let run = shell().run(&[file, "-c", &format!("{question} -json")]).ok();
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

fn recorded(file: &str) -> (i64, i64) {
    let stats = asked(file, ".dump Stats");
    let member = |name: &str| stats["files"][0][name].as_i64().unwrap();
    (member("recorded_from_ns"), member("recorded_to_ns"))
}

fn list<'a>(document: &'a Value, name: &str) -> &'a Vec<Value> {
    document[name].as_array().unwrap_or_else(|| panic!("{name} in {document}"))
}

#[test]
fn stats_have_the_session_and_what_is_left_of_it() {
    assert_eq!(recorded("file.etl").0, 0);
    for name in names() {
        let (from, to) = recorded(&name);
        let length = if name.contains("24") { 24 * HOUR } else { HOUR };
        assert!((length..length + SECOND).contains(&to), "{name}: {to}");
        assert!((40 * SECOND..80 * SECOND).contains(&(to - from)), "{name}: {from} to {to}");
        let text = shell().run(&[&name, "-c", ".dump Stats"]).ok().stdout;
        let line = text.lines().find(|line| line.starts_with("Recorded")).unwrap();
        let session = if length == HOUR { "60.0 min" } else { "24.0 h" };
        assert!(line.ends_with(&format!(" of {session}")), "{line}");
    }
}

#[test]
fn a_ring_is_said_and_a_file_is_not() {
    let kinds = |file: &str| -> Vec<String> {
        let document = asked(file, ".why");
        list(&document, "caveats")
            .iter()
            .map(|own| own["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    let part = "part_of_session".to_owned();
    assert!(!kinds("file.etl").contains(&part));
    for name in names() {
        assert!(kinds(&name).contains(&part), "{name}: {:?}", kinds(&name));
        let run = shell().run(&[&name, "-c", ".list"]).ok();
        assert!(run.stderr.contains("of a session of "), "{run:?}");
    }
}

#[test]
fn a_file_whose_first_event_comes_late_is_no_ring() {
    let merge = FileOptions::default().mode;
    for (name, mode, is_part) in [("late.etl", 0, false), ("late-merged.etl", merge, true)] {
        let options = FileOptions { mode, merged: mode != 0, ..FileOptions::default() };
        let program =
            RingProgram::with_options(options, MINUTE).works(SECOND / 20, MINUTE / 2, MINUTE);
        program.trace.write(shell().path(name)).unwrap();
        let (from, to) = recorded(name);
        assert!(to >= MINUTE - SECOND && (from > MINUTE / 2) == is_part, "{name}: {from} to {to}");
        let run = shell().run(&[name, "-c", ".list"]).ok();
        assert_eq!(run.stderr.contains("of a session of "), is_part, "{run:?}");
        assert!(!run.stderr.contains("no older events"), "{run:?}");
    }
}

#[test]
fn a_leak_in_the_last_minute_is_judged_as_in_a_file_of_a_minute() {
    for name in names().iter().map(String::as_str).chain(["file.etl"]) {
        let document = asked(name, ".why");
        let suspects = list(&document, "suspects");
        let kinds: Vec<&str> = suspects.iter().map(|own| own["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["Event", "heap"], "{name}: {document}");
        for suspect in suspects {
            assert_eq!(suspect["verdict"], "steady", "{name}: {suspect}");
            let rate = suspect["rate_per_minute"].as_f64().unwrap();
            assert!((29.0..31.0).contains(&rate), "{name}: {suspect}");
        }
    }
}

#[test]
fn parts_of_the_time_are_those_that_were_recorded() {
    for name in names() {
        let of_handles = ".dump ObjectRef -Leak -GroupBy type -ShowTime 8";
        let of_blocks = ".dump Resource -Kind heap -GroupBy kind -ShowTime 8";
        for (question, member) in [(of_handles, "outstanding"), (of_blocks, "over_time")] {
            let document = asked(&name, question);
            let parts = list(&document["groups"][0], member);
            let parts: Vec<i64> = parts.iter().map(|part| part.as_i64().unwrap()).collect();
            assert!(parts.is_sorted_by(|one, other| one < other), "{name}: {parts:?}");
            assert!(parts[0] > 0 && parts[0] * 4 < parts[7], "{name}: {parts:?}");
        }
    }
}

#[test]
fn plots_and_the_report_begin_when_the_recording_does() {
    for name in names() {
        let (from, to) = recorded(&name);
        let text = shell().run(&[&name, "-c", ".plot -Leak -GroupBy type"]).ok().stdout;
        assert!(text.contains(&(to / SECOND).to_string()), "{name}: {text}");
        let page = format!("{name}.html");
        let _ = shell().run(&[&name, "-c", &format!(".report {page}")]).ok();
        let page = std::fs::read_to_string(shell().path(&page)).unwrap();
        let starts = page.split("\"timeline\":{\"start\":").nth(1).expect("a timeline");
        let start: f64 = starts.split(',').next().unwrap().parse().unwrap();
        assert!((start - from as f64 / 1e9).abs() < 1e-3, "{name}: {start}");
        let recorded = page.split("<p class=\"about\">Recorded ").nth(1).unwrap();
        let length = recorded.split(" for ").nth(1).unwrap().split(" · ").next().unwrap();
        let (number, unit) = length.split_once(' ').unwrap();
        let unit = [("ms", 1e6), ("s", 1e9), ("min", 6e10)].into_iter().find(|own| own.0 == unit);
        let ns = number.parse::<f64>().unwrap() * unit.expect(length).1;
        assert!((ns / (to - from) as f64 - 1.0).abs() < 0.01, "{name}: {length}");
    }
}

fn diff(before: &str, after: &str, options: &[&str]) -> ProgramRun {
    shell().run(&[&["diff", before, after, "-json"], options].concat())
}

#[test]
fn a_ring_and_a_file_of_one_program_are_alike_and_a_faster_leak_is_worse_in_either() {
    for (name, _) in rings() {
        let (ring, faster) = (format!("{name}-1.etl"), format!("{name}-faster.etl"));
        for (before, after) in [("file.etl", ring.as_str()), (&ring, "file.etl")] {
            for options in [&[][..], &["-Kind", "heap"]] {
                let run = diff(before, after, options);
                assert_eq!(run.status, Some(0), "{before} {after} {options:?}: {run:?}");
            }
        }
        for (before, after) in
            [("file.etl", faster.as_str()), (&ring, "faster.etl"), (&ring, &faster)]
        {
            for options in [&[][..], &["-Kind", "heap"]] {
                let run = diff(before, after, options);
                assert_eq!(run.status, Some(1), "{before} {after} {options:?}: {run:?}");
            }
            let document: Value = serde_json::from_str(&diff(before, after, &[]).stdout).unwrap();
            assert_eq!(document["groups"][0]["state"], "worse", "{before} {after}: {document}");
        }
    }
}

/// Rings in which processors have different parts of the session: 3 still has its first buffer, and 2 was idle until
/// the last seconds.
#[test]
fn processors_that_idle_neither_stretch_the_time_of_a_ring_nor_cut_it() {
    for (name, layout) in &rings()[..3] {
        let mut program = RingProgram::new(*layout, HOUR);
        for ns in (SECOND..HOUR - SECOND).step_by(100 * SECOND as usize) {
            let (object, handle) = program.handle();
            let caller = Caller::new(PID, 703).on(3);
            program.trace.create_handle(ns, caller, object, handle, EVENT).stack(&[], &[LEAK]);
        }
        let late = HOUR - 5 * SECOND;
        for number in 0..10 {
            let (object, handle) = program.handle();
            let (caller, ns) = (Caller::new(PID, 704).on(2), late + number * SECOND / 4);
            program.trace.create_handle(ns, caller, object, handle, EVENT).stack(&[], &[POOL]);
            program.trace.close_handle(ns + 9_000, caller, object, handle, EVENT, "");
        }
        let work = |program: &mut RingProgram, distance: i64, place, from: i64, is_closed| {
            for (number, ns) in (from..HOUR - SECOND).step_by(distance as usize).enumerate() {
                let (object, handle) = program.handle();
                let caller = Caller::new(PID, 702).on(number as u16 % 2);
                program.trace.create_handle(ns, caller, object, handle, EVENT).stack(&[], &[place]);
                if is_closed {
                    program.trace.close_handle(ns + SECOND / 10, caller, object, handle, EVENT, "");
                }
            }
        };
        work(&mut program, SECOND / 20, POOL, HOUR - 5 * MINUTE, true);
        work(&mut program, 2 * SECOND, LEAK, HOUR - 5 * MINUTE, false);
        let home = Shell::new();
        program.trace.write(home.path("ring.etl")).unwrap();
        let ask = |question: &str| -> Value {
            let run = home.run(&["ring.etl", "-c", &format!("{question} -json")]).ok();
            serde_json::from_str(&run.stdout).unwrap()
        };
        let stats = &ask(".dump Stats")["files"][0];
        let from = stats["recorded_from_ns"].as_i64().unwrap();
        let length = stats["recorded_to_ns"].as_i64().unwrap() - from;
        assert!((40 * SECOND..80 * SECOND).contains(&length), "{name}: {length}");
        let suspect = &ask(".why")["suspects"][0];
        assert_eq!(suspect["verdict"], "steady", "{name}: {suspect}");
        let rate = suspect["rate_per_minute"].as_f64().unwrap();
        assert!((28.0..33.0).contains(&rate), "{name}: {suspect}");
    }
}

/// Each place opens handles that it does not close, with stacks by key. Keys are reused. A ring may therefore overwrite
/// the meaning of a key while events that refer to it are left, and may have kernel parts without their user parts.
#[test]
fn a_stack_that_is_left_is_the_right_one_and_others_are_unknown() {
    for (name, layout) in rings() {
        let mut program = RingProgram::new(layout, HOUR);
        program.trace.stack_mode(StackMode::Keys).stack_key_slots(6);
        let mut places = std::collections::HashMap::new();
        let mut number = 0_u64;
        for ns in (HOUR - 5 * MINUTE..HOUR - SECOND).step_by(SECOND as usize / 15) {
            let (object, handle) = program.handle();
            number += 1;
            // Processor 3 writes little, so its events are older than those of the others.
            let cpu = if number.is_multiple_of(40) { 3 } else { (number % 3) as u16 };
            let place = BASE + 0x1000 + number * 0x10;
            program
                .trace
                .create_handle(
                    ns,
                    Caller::new(PID, 701 + u32::from(cpu)).on(cpu),
                    object,
                    handle,
                    EVENT,
                )
                .stack(&[0xffff_f801_0000_1000 + number % 5], &[place]);
            places.insert(u64::from(handle), place - BASE);
        }
        let home = Shell::new();
        program.trace.write(home.path("ring.etl")).unwrap();
        let run = home.run(&["ring.etl", "-c", ".dump ObjectRef -ShowStack -json"]).ok();
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        let (mut known, mut unknown) = (0, 0);
        for event in list(&document, "objects").iter().flat_map(|own| list(own, "events")) {
            let handle = event["handle"].as_str().unwrap().trim_start_matches("0x");
            let place = places[&u64::from_str_radix(handle, 16).unwrap()];
            let stack = event["stack"].as_u64().map(|stack| &document["stacks"][stack.to_string()]);
            let mut frames = stack.and_then(Value::as_array).into_iter().flatten();
            match frames.rfind(|frame| frame["module"] == "server.exe") {
                Some(frame) => {
                    assert_eq!(frame["rva"], format!("0x{place:X}"), "{name}: {event}");
                    known += 1;
                }
                None => unknown += 1,
            }
        }
        assert!(unknown > 0, "{name}: {known} known");
        let stats = home.run(&["ring.etl", "-c", ".dump Stats"]).ok().stdout;
        assert!(stats.contains("stack keys without frames"), "{name}: {stats}");
        assert!(known > 100, "{name}: {known} known, {unknown} unknown");
    }
}
