//! The same scenario in every form a trace file can have gives the same answers.

use std::fmt::Write as _;

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::{Cancel, EventKind, Table, Trace};
use handlescope_sources::extract;
use handlescope_tests::bytes::PointerSize;
use handlescope_tests::file::{BufferOrder, ExtraBuffer, FileOptions, RawClock, SessionEnd};
use handlescope_tests::header::HeaderKind;
use handlescope_tests::scenario::{DuplicatedHandle, MappedView, StackMode, TraceBuilder};

/// The form in which the scenario is written.
#[derive(Clone)]
struct ScenarioForm {
    options: FileOptions,
    header: HeaderKind,
    stacks: StackMode,
}

impl ScenarioForm {
    fn new() -> Self {
        let options = FileOptions { buffer_size: 4096, ..FileOptions::default() };
        Self { options, header: HeaderKind::Compact, stacks: StackMode::Fragments }
    }

    fn is_64_bit(&self) -> bool {
        matches!(self.options.pointer, PointerSize::Eight)
    }
}

const US: i64 = 10_000;

/// Builds a leak, a close, a duplicate into another process, an inherited handle, a mapped view, a reused pid and a
/// handle in the rundown.
fn scenario(shape: &ScenarioForm) -> TraceBuilder {
    let (kernel, object) = if shape.is_64_bit() {
        (0xffff_f800_0000_0000, 0xffff_8100_0000_1000)
    } else {
        (0x8100_0000, 0x8600_1000)
    };
    let mut trace = TraceBuilder::with_options(shape.options.clone());
    trace.header_kind(shape.header).stack_mode(shape.stacks);
    trace.process(4, "System");
    trace.process(700, "app.exe").started(100 * US);
    trace.process(800, "old.exe").ended(500 * US);
    trace.process(800, "new.exe").started(600 * US);
    trace.process(900, "child.exe").parent(700).started(420 * US);
    trace.module(0, r"\SystemRoot\ntoskrnl.exe", kernel, 0x10_0000).rundown_only();
    trace.module(700, r"C:\app.exe", 0x40_0000, 0x2_0000).rundown_only();
    trace.object_type(16, "Event").object_type(37, "File").noise(200, 9);
    let frames = |n: u64| (kernel + 0x1000 + n, 0x40_1000 + n);
    let app = |cpu: u16| (700, 701, cpu);
    let at = |trace: &mut TraceBuilder, n: u64| {
        let (inner, outer) = frames(n);
        trace.stack(&[inner, kernel + 0x20], &[outer, 0x40_0100]);
    };
    trace.create_handle(200 * US, app(0), object, 0x10, 16);
    at(&mut trace, 1);
    trace.create_handle(210 * US, app(1), object + 0x100, 0x14, 16);
    at(&mut trace, 2);
    trace.close_handle(220 * US, app(2), object + 0x100, 0x14, 16, r"\Named");
    at(&mut trace, 3);
    let duplicate = DuplicatedHandle {
        object,
        source_handle: 0x10,
        target_handle: 0x44,
        target_pid: 800,
        type_id: 16,
        source_pid: Some(700),
    };
    trace.duplicate_handle(300 * US, app(3), duplicate);
    at(&mut trace, 4);
    let inherited =
        DuplicatedHandle { source_handle: 0x10, target_handle: 0x10, target_pid: 700, ..duplicate };
    trace.duplicate_handle(410 * US, app(0), inherited);
    at(&mut trace, 5);
    trace.close_handle(450 * US, (900, 901, 1), object, 0x10, 16, "");
    at(&mut trace, 6);
    trace.close_handle(650 * US, (800, 802, 1), object, 0x44, 16, "");
    at(&mut trace, 7);
    let view = MappedView {
        base: 0x5000_0000,
        size: 0x3000,
        file_key: object + 7,
        misc: 0,
        offset: 64,
        pid: 700,
    };
    trace.map(700 * US, app(2), view);
    at(&mut trace, 8);
    trace.handle_rundown_end(700, object, 0x10, 16, r"\Leaked");
    trace.handle_rundown_end(4, object + 0x900, 0x9000, 37, r"\Device\Old");
    trace
}

/// Returns the objects and their events as text, with addresses relative to `object`.
fn answers(shape: &ScenarioForm, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("a.etl"), folder.path().join("a.json7z"));
    std::fs::write(&input, bytes).unwrap();
    extract(&input, &output, ExtractOptions::default(), &NoObserver, &Cancel::default()).unwrap();
    let trace = Trace::open(&output).unwrap();
    let frame = |table| trace.frame(table).unwrap();
    let (objects, order) = (frame(Table::Objects), trace.event_order().unwrap());
    let events = frame(Table::Events);
    let (processes, names) = (frame(Table::Processes), frame(Table::Names));
    let (stacks, frames) = (frame(Table::Stacks), frame(Table::Frames));
    let modules = frame(Table::Modules);
    let u32_at = |frame: &polars::prelude::DataFrame, column: &str, row: usize| {
        frame.column(column).unwrap().u32().unwrap().get(row)
    };
    let text = |frame: &polars::prelude::DataFrame, column: &str, row: u32| {
        frame.column(column).unwrap().str().unwrap().get(row as usize).unwrap().to_owned()
    };
    let stack_text = |stack: u32| {
        let list = stacks.column("frames").unwrap().list().unwrap().get_as_series(stack as usize);
        let rows: Vec<u32> = list.unwrap().u32().unwrap().into_no_null_iter().collect();
        let places = rows.into_iter().map(|row| {
            let module = u32_at(&frames, "module", row as usize).map(|m| text(&modules, "name", m));
            let rva = frames.column("rva").unwrap().u64().unwrap().get(row as usize);
            match (module, rva) {
                (Some(module), Some(rva)) => format!("{module}+{rva:x}"),
                _ => "unknown".to_owned(),
            }
        });
        places.collect::<Vec<_>>().join(" ")
    };
    let base = if shape.is_64_bit() { 0xffff_8100_0000_1000u64 } else { 0x8600_1000 };
    let mut out = String::new();
    for row in 0..objects.height() {
        let pointer = objects.column("pointer").unwrap().u64().unwrap().get(row).unwrap();
        let name = u32_at(&objects, "name", row).map(|name| text(&names, "name", name));
        let events_of = order.first[row] as usize..order.first[row + 1] as usize;
        let existing = order.first_listed[row + 1] - order.first_listed[row];
        let place = pointer.wrapping_sub(base) % 0x1000;
        writeln!(out, "object {place:x} {} existing {existing}", name.unwrap_or_default()).unwrap();
        for event in events_of {
            let kind = EventKind::from_code(u32_at(&events, "kind", event).unwrap()).unwrap();
            let ns = events.column("time_ns").unwrap().i64().unwrap().get(event).unwrap();
            let process = u32_at(&events, "process", event).unwrap();
            let handle = events.column("handle").unwrap().u64().unwrap().get(event);
            let leaked = events.column("leaked").unwrap().bool().unwrap().get(event).unwrap();
            let child = u32_at(&events, "inherited_by", event);
            writeln!(
                out,
                "  {:>3} {} {}/{} {:x}{}{} | {}",
                (ns + US / 2) / US,
                kind.name(),
                text(&processes, "name", process),
                u32_at(&events, "tid", event).unwrap(),
                handle.unwrap_or(0),
                if leaked { " leaked" } else { "" },
                child
                    .map(|row| format!(" by {}", text(&processes, "name", row)))
                    .unwrap_or_default(),
                u32_at(&events, "stack", event).map(stack_text).unwrap_or_default()
            )
            .unwrap();
        }
    }
    out
}

fn expected() -> String {
    let shape = ScenarioForm::new();
    answers(&shape, &scenario(&shape).to_bytes())
}

#[track_caller]
fn assert_same(what: &str, shape: &ScenarioForm) {
    let bytes = scenario(shape).to_bytes();
    assert_eq!(answers(shape, &bytes), expected(), "{what}");
}

#[test]
fn the_scenario_has_the_answers_it_was_written_for() {
    insta::assert_snapshot!(expected());
}

#[test]
fn every_header_kind_and_stack_mode_reads_alike() {
    let headers = [HeaderKind::System, HeaderKind::Compact, HeaderKind::PerfInfo];
    let stacks = [
        StackMode::Fragments,
        StackMode::UserOn(2),
        StackMode::Single,
        StackMode::Keys,
        StackMode::KernelKey,
    ];
    for header in headers {
        for mode in stacks {
            let shape = ScenarioForm { header, stacks: mode, ..ScenarioForm::new() };
            assert_same(&format!("{header:?}, {mode:?}"), &shape);
        }
    }
}

#[test]
fn traces_of_32_bit_systems_read_alike() {
    for header in [HeaderKind::System, HeaderKind::Compact, HeaderKind::PerfInfo] {
        let mut shape = ScenarioForm { header, ..ScenarioForm::new() };
        shape.options.pointer = PointerSize::Four;
        assert_same(&format!("32-bit, {header:?}"), &shape);
    }
}

#[test]
fn every_clock_reads_alike() {
    let clocks = [
        RawClock::Qpc { frequency: 2_143_632 },
        RawClock::Qpc { frequency: 24_000_000 },
        RawClock::SystemTime,
        RawClock::CpuCycles { mhz: 3_592 },
    ];
    for clock in clocks {
        let mut shape = ScenarioForm::new();
        shape.options.clock = clock;
        assert_same(&format!("{clock:?}"), &shape);
    }
}

#[test]
fn every_layout_of_the_file_reads_alike() {
    let mut shapes = Vec::new();
    let mut add = |what: &'static str, change: &dyn Fn(&mut FileOptions)| {
        let mut shape = ScenarioForm::new();
        change(&mut shape.options);
        shapes.push((what, shape));
    };
    add("compressed", &|o| o.compressed = true);
    add("many processors", &|o| o.cpus = 64);
    add("old processor byte", &|o| o.wide_cpu_index = false);
    add("not merged", &|o| o.merged = false);
    add("preallocated", &|o| {
        o.preallocated = 5;
        o.mode |= 0x20;
    });
    add("circular but not full", &|o| o.layout = BufferOrder::Circular { max_buffers: 500 });
    add("never closed", &|o| o.end = SessionEnd::NotClosed);
    add("buffer of another type", &|o| {
        o.extra_buffers = vec![ExtraBuffer { buffer_type: 2, flags: 0, content: vec![7; 64] }];
    });
    for (what, shape) in shapes {
        assert_same(what, &shape);
    }
}

#[test]
fn old_versions_of_process_and_image_events_read_alike() {
    for (process, image) in [(2, 2), (3, 2), (3, 3), (4, 3), (5, 3)] {
        let shape = ScenarioForm::new();
        let mut trace = scenario(&shape);
        trace.event_versions(process, image);
        assert_eq!(answers(&shape, &trace.to_bytes()), expected(), "{process}, {image}");
    }
}

#[test]
fn a_circular_file_that_wrapped_around_is_read_in_time_order() {
    let mut shape = ScenarioForm::new();
    shape.options.layout = BufferOrder::Circular { max_buffers: 12 };
    let mut trace = TraceBuilder::with_options(shape.options);
    trace.process(4, "System");
    for step in 0..4_000u32 {
        let object = 0xffff_8100_0000_1000 + u64::from(step % 50) * 0x100;
        let (ns, caller) = (US * i64::from(step + 1), (4, 5, (step % 4) as u16));
        match step % 100 {
            0..50 => trace.create_handle(ns, caller, object, 4 + step, 16),
            _ => trace.close_handle(ns, caller, object, 4 + step - 50, 16, ""),
        };
    }
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("a.etl"), folder.path().join("a.json7z"));
    trace.write(&input).unwrap();
    let summary =
        extract(&input, &output, ExtractOptions::default(), &NoObserver, &Cancel::default())
            .unwrap();
    assert!(summary.objects > 50, "{summary:?}");
    // The oldest creates are overwritten, so some closes have no object; there is no other warning.
    let kinds: Vec<_> = summary.warnings.iter().map(|warning| warning.kind.as_str()).collect();
    assert!(
        kinds.iter().all(|kind| *kind == "close of a handle opened before the trace"),
        "{kinds:?}"
    );
}
