//! Memory, GDI and USER handles, images and .NET stacks as Windows logs them: the traces of known faults give the right
//! answers.

use std::path::Path;

use handlescope_tests::allocations::{GuiEvent, HEAP, MS, gui_event};
use handlescope_tests::binary::{handlescope, run_over, run_script};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::payload::{
    HeapCall, MEM_COMMIT, MEM_DECOMMIT, MEM_RELEASE, MEM_RESERVE, RangeRecord,
};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::Value;

const KERNEL: u64 = 0xFFFF_F800_0000_0000;

fn run(trace: &Path, arguments: &[&str], script: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut program = handlescope(home.path());
    let name = trace.file_name().unwrap();
    std::fs::copy(trace, home.path().join(name)).unwrap();
    run_script(program.args(arguments).arg(name), &format!("{script}\n")).ok().stdout
}

/// Returns the document that a command prints about the trace of a fault.
fn fault(name: &str, command: &str) -> Value {
    let trace = SharedTrace::open(&format!("faults/windows/{name}"));
    serde_json::from_str(&run(trace.etl(), &[], command)).unwrap()
}

fn over(trace: &TraceBuilder, command: &str) -> Value {
    serde_json::from_str(&run_over(trace, &format!("{command}\n")).ok().stdout).unwrap()
}

/// Returns a number from the only row of `totals` with this kind and process.
fn total(document: &Value, kind: &str, process: &str, member: &str) -> i64 {
    let rows: Vec<&Value> = document["totals"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["kind"] == kind && row["process"] == process)
        .collect();
    assert_eq!(rows.len(), 1, "{kind} of {process}: {document}");
    rows[0][member].as_i64().unwrap()
}

fn totals(document: &Value, kind: &str, process: &str, members: &[&str]) -> Vec<i64> {
    members.iter().map(|member| total(document, kind, process, member)).collect()
}

const ENDS: [&str; 5] = ["allocs", "frees", "closed_at_exit", "leaked", "orphan_frees"];

#[needs_data]
#[test]
fn values_of_gdi_have_32_bits_and_the_end_of_a_process_destroys_what_is_left() {
    let document = fault("gdi", ".dump Resource -json");
    assert_eq!(totals(&document, "gdi", "paint.exe(6100)", &ENDS), [50, 50, 0, 0, 0]);
    assert_eq!(totals(&document, "gdi", "shot.exe(6200)", &ENDS), [50, 0, 50, 0, 0]);
    assert_eq!(totals(&document, "gdi", "public(0)", &ENDS), [10, 0, 0, 10, 0]);
    let why = fault("gdi", ".why -pn shot -json");
    assert_eq!(why["suspects"][0]["closed_at_exit"], 50, "{why}");
}

#[needs_data]
#[test]
fn views_and_handles_that_the_end_of_a_process_closed_are_no_leaks() {
    for (name, at_exit) in [("mapexit", 40), ("viewexit", 50)] {
        let stats = fault(name, ".dump Stats -json");
        let stats = &stats["files"][0];
        let members = ["leaked_handles", "leaked_views", "closed_at_exit"];
        assert_eq!(members.map(|member| stats[member].clone()), [0, 0, at_exit], "{stats}");
    }
    let by_type = fault("mapexit", ".dump ObjectRef -LeakAtExit -GroupBy type -json");
    let mut counts: Vec<(String, Value)> = by_type["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            (group["keys"]["type"].as_str().unwrap().to_owned(), group["closed_at_exit"].clone())
        })
        .collect();
    counts.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(counts, [("Event".into(), 20.into()), ("FileMapping".into(), 20.into())]);
    let why = fault("mapexit", ".why -json");
    let counts: Vec<Value> = why["suspects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|suspect| suspect["closed_at_exit"].clone())
        .collect();
    assert_eq!(counts, [20, 20], "{why}");
}

#[needs_data]
#[test]
fn a_commit_without_an_address_reserves() {
    let document = fault("implicit", ".dump Resource -json");
    let members = ["leaked", "leaked_bytes", "orphan_frees"];
    assert_eq!(totals(&document, "reserve", "plain.exe(6100)", &members), [20, 20 << 20, 0]);
    assert_eq!(totals(&document, "commit", "plain.exe(6100)", &members), [0, 0, 0]);
}

#[needs_data]
#[test]
fn placeholders_stay_reserved() {
    let document = fault("holder", ".dump Resource -json");
    let members = ["leaked", "leaked_bytes", "orphan_frees", "replaced_bytes"];
    assert_eq!(totals(&document, "reserve", "v8host.exe(6100)", &members), [20, 20 << 20, 0, 0]);
    assert_eq!(totals(&document, "commit", "v8host.exe(6100)", &members), [0; 4]);
}

#[needs_data]
#[test]
fn a_reallocation_is_one_whatever_its_thread_does_between() {
    let document = fault("reheap", ".dump Resource -json");
    let members = ["allocs", "frees", "replaced", "leaked", "orphan_frees"];
    assert_eq!(totals(&document, "heap", "grow.exe(6100)", &members), [60, 60, 0, 0, 0]);
}

#[needs_data]
#[test]
fn a_file_with_and_without_its_volume_is_one_module() {
    let modules = fault("volpath", ".sql SELECT name, path FROM modules ORDER BY name -json");
    let modules: Vec<(String, String)> =
        serde_json::from_value::<Vec<Value>>(modules["rows"].clone())
            .unwrap()
            .iter()
            .map(|row| {
                [&row["name"], &row["path"]].map(|text| text.as_str().unwrap().to_lowercase())
            })
            .map(|[name, path]| (name, path))
            .collect();
    let with_volume =
        |path: &str| path.starts_with(r"\device\") || path.starts_with(r"\systemroot");
    for (name, path) in &modules {
        assert!(with_volume(path), "{path}");
        assert_eq!(modules.iter().filter(|(other, _)| other == name).count(), 1, "{name}");
    }
    let why = fault("volpath", ".why -json");
    assert_eq!(why["suspects"].as_array().unwrap().len(), 1, "{why}");
    let stacks = fault("volpath", ".sql SELECT count(DISTINCT stack) AS n FROM events -json");
    assert_eq!(stacks["rows"][0]["n"], 1);
}

#[needs_data]
#[test]
fn real_traces_have_a_module_for_each_file() {
    let files = |name: &str| -> usize {
        let trace = SharedTrace::open(name);
        let modules = run(trace.etl(), &[], ".sql SELECT path, size FROM modules -json");
        let modules: Value = serde_json::from_str(&modules).unwrap();
        let modules = modules["rows"].as_array().unwrap().iter().map(|row| {
            let path = row["path"].as_str().unwrap().to_lowercase();
            let path = path.replace(r"\systemroot\", r"\windows\");
            let on_volume = path.strip_prefix(r"\device\").and_then(|rest| rest.find('\\'));
            let path =
                on_volume.map_or(path.clone(), |at| path[r"\device\".len() + at..].to_owned());
            (path, row["size"].clone().to_string())
        });
        let mut modules: Vec<(String, String)> = modules.collect();
        let count = modules.len();
        modules.sort();
        modules.dedup();
        assert_eq!(modules.len(), count, "{name}");
        count
    };
    assert_eq!(files("real/slow-ppt-2011"), 1113);
    assert!(files("real/net.4.5.2.x64") > 100);
}

#[needs_data]
#[test]
fn stacks_of_the_dotnet_runtime_belong_to_the_event_before() {
    let trace = SharedTrace::open("real/net.4.5.2.x64");
    let home = tempfile::tempdir().unwrap();
    let mut program = handlescope(home.path());
    program.arg("extract").arg(trace.etl()).args([
        "-events",
        "Microsoft-Windows-DotNETRuntime",
        "-outdir",
        ".",
    ]);
    let _ = run_script(&mut program, "").ok();
    let extract = home.path().join(trace.etl().with_extension("json7z").file_name().unwrap());
    let query = ".sql SELECT count(*) AS n, count(stack) AS stacks, count(DISTINCT stack) AS different \
                 FROM provider_events -json";
    let counts: Value = serde_json::from_str(&run(&extract, &[], query)).unwrap();
    assert_eq!(counts["rows"][0]["stacks"], 14_983, "{counts}");
}

/// Builds a program that exits, and another one that keeps running.
fn program(name: &str) -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(700, name).started(MS).ended(90 * MS);
    trace.process(800, "other.exe");
    trace.module(700, r"C:\app.exe", 0x1000_0000, 0x10000);
    trace
}

#[test]
fn handles_of_user_and_gdi_are_known_by_their_lower_32_bits() {
    let mut trace = program("app.exe");
    for (n, (created, destroyed)) in [
        (0x8005_0001, 0xFFFF_FFFF_8005_0001),
        (0xFFFF_FFFF_8005_0002, 0x8005_0002),
        (0x1_0005_0003, 0x0005_0003),
    ]
    .into_iter()
    .enumerate()
    {
        let at = (10 + n as i64) * MS;
        for (create, destroy) in [
            (GuiEvent::CREATE_USER, GuiEvent::DESTROY_USER),
            (GuiEvent::CREATE_GDI, GuiEvent::DESTROY_GDI),
        ] {
            gui_event(&mut trace, at, (800, 801), create, &[created], 800);
            gui_event(&mut trace, at + MS / 2, (800, 801), destroy, &[destroyed], 800);
        }
    }
    gui_event(&mut trace, 30 * MS, (800, 801), GuiEvent::CREATE_GDI, &[0x8005_0009], 800);
    gui_event(
        &mut trace,
        31 * MS,
        (800, 801),
        GuiEvent::TRANSFORM,
        &[0xFFFF_FFFF_8005_0009, 0x8105_0009],
        800,
    );
    gui_event(
        &mut trace,
        32 * MS,
        (800, 801),
        GuiEvent::DESTROY_GDI,
        &[0xFFFF_FFFF_8105_0009],
        800,
    );
    let document = over(&trace, ".dump Resource -json");
    assert_eq!(totals(&document, "user", "other.exe(800)", &ENDS), [3, 3, 0, 0, 0]);
    assert_eq!(totals(&document, "gdi", "other.exe(800)", &ENDS), [4, 4, 0, 0, 0]);
}

#[test]
fn what_a_program_destroys_at_its_end_is_not_what_the_end_destroys() {
    let mut trace = program("app.exe");
    let (program_stack, sweep) = ([KERNEL + 0x10], [KERNEL + 0x20]);
    let create = |trace: &mut TraceBuilder, at, value| {
        gui_event(trace, at, (700, 701), GuiEvent::CREATE_GDI, &[value], 700);
    };
    let destroy = |trace: &mut TraceBuilder, at, value, stack: &[u64]| {
        gui_event(trace, at, (700, 701), GuiEvent::DESTROY_GDI.on(stack), &[value], 700);
    };
    create(&mut trace, 10 * MS, 1);
    destroy(&mut trace, 11 * MS, 1, &program_stack);
    for value in 2..8 {
        create(&mut trace, (10 + value as i64) * MS, value);
    }
    destroy(&mut trace, 89 * MS, 2, &program_stack);
    for value in 3..6 {
        destroy(&mut trace, 89 * MS + 1000 * value as i64, value, &sweep);
    }
    destroy(&mut trace, 95 * MS, 6, &program_stack);
    let document = over(&trace, ".dump Resource -json");
    // Of handles 2 to 7, the program destroyed one, the sweep three, the kernel one later, and nothing the last.
    assert_eq!(totals(&document, "gdi", "app.exe(700)", &ENDS), [7, 2, 5, 0, 0]);
}

#[test]
fn a_public_handle_is_of_no_process() {
    let mut trace = program("app.exe");
    gui_event(&mut trace, 10 * MS, (700, 701), GuiEvent::CREATE_GDI, &[1], 700);
    gui_event(&mut trace, 11 * MS, (700, 701), GuiEvent::OWNER_GDI, &[1], 0);
    gui_event(&mut trace, 12 * MS, (700, 701), GuiEvent::CREATE_USER, &[1], 0);
    let document = over(&trace, ".dump Resource -pn public -json");
    assert_eq!(totals(&document, "gdi", "public(0)", &ENDS), [1, 0, 0, 1, 0]);
    assert_eq!(totals(&document, "user", "public(0)", &ENDS), [1, 0, 0, 1, 0]);
    let callers = over(&trace, ".dump Resource -GroupBy allocated_by -json");
    assert_eq!(callers["groups"][0]["keys"]["allocated_by"], "app.exe(700)", "{callers}");
}

#[test]
fn memory_freed_after_the_end_of_its_process_was_freed_only_by_that() {
    let mut trace = program("app.exe");
    let range =
        RangeRecord { base: 0x10_0000, size: 0x1_0000, pid: 700, flags: MEM_COMMIT | MEM_RESERVE };
    let release = RangeRecord { size: 0, flags: MEM_RELEASE, ..range };
    trace.virtual_alloc(10 * MS, (700, 701), range);
    trace.virtual_free(140 * MS, (700, 701), release);
    trace.heap(10 * MS, (700, 701), HEAP, HeapCall::Alloc { address: 0x5000, size: 8 });
    trace.heap(140 * MS, (700, 701), HEAP, HeapCall::Free { address: 0x5000 });
    let document = over(&trace, ".dump Resource -json");
    for kind in ["commit", "reserve", "heap"] {
        assert_eq!(totals(&document, kind, "app.exe(700)", &ENDS), [1, 0, 1, 0, 0], "{kind}");
    }
}

const PRESERVE: u32 = MEM_RELEASE | 2;
const COALESCE: u32 = MEM_RELEASE | 1;
const PLACEHOLDER: u32 = MEM_RESERVE | 0x4_0000;
const REPLACE: u32 = MEM_RESERVE | MEM_COMMIT | 0x4000;

#[test]
fn a_release_without_size_ends_with_its_placeholder() {
    let mut trace = program("app.exe");
    let mut at = 10 * MS;
    let mut call = |is_free: bool, base: u64, size: u64, flags: u32| {
        let range = RangeRecord { base: 0x100_0000 + base, size, pid: 800, flags };
        at += MS;
        if is_free {
            trace.virtual_free(at, (800, 801), range);
        } else {
            trace.virtual_alloc(at, (800, 801), range);
        }
    };
    // Three placeholders in one reservation: the first is freed, the others are merged and freed as a whole.
    call(false, 0, 0x3_0000, PLACEHOLDER);
    call(true, 0, 0x1_0000, PRESERVE);
    call(true, 0x1_0000, 0x1_0000, PRESERVE);
    call(false, 0x1_0000, 0x1_0000, REPLACE);
    call(true, 0, 0, MEM_RELEASE);
    call(true, 0x1_0000, 0x1_0000, PRESERVE);
    call(true, 0x1_0000, 0x2_0000, COALESCE);
    // Two adjoining reservations are merged; releasing part of them leaves the rest.
    call(false, 0x10_0000, 0x1_0000, PLACEHOLDER);
    call(false, 0x11_0000, 0x1_0000, PLACEHOLDER);
    call(true, 0x10_0000, 0x2_0000, COALESCE);
    call(true, 0x10_0000, 0, MEM_RELEASE);
    let document = over(&trace, ".dump Resource -json");
    let members = ["allocs", "freed_bytes", "leaked_bytes", "replaced_bytes", "orphan_frees"];
    assert_eq!(
        totals(&document, "reserve", "other.exe(800)", &members),
        [3, 0x3_0000, 0x2_0000, 0, 0]
    );
    assert_eq!(totals(&document, "commit", "other.exe(800)", &members), [1, 0x1_0000, 0, 0, 0]);
}

#[test]
fn a_commit_reserves_where_nothing_is_reserved_and_units_of_reservations_are() {
    let mut trace = program("app.exe");
    let mut at = 10 * MS;
    let mut call = |is_free: bool, pid: u32, base: u64, size: u64, flags: u32| {
        let range = RangeRecord { base, size, pid, flags };
        at += MS;
        if is_free {
            trace.virtual_free(at, (pid, pid + 1), range);
        } else {
            trace.virtual_alloc(at, (pid, pid + 1), range);
        }
    };
    // All reservations of a process that started in the trace are known, so every commit elsewhere also reserves.
    call(false, 700, 0x10_0000, 0x3000, MEM_COMMIT);
    call(true, 700, 0x10_0000, 0x3000, MEM_DECOMMIT);
    call(false, 700, 0x10_1000, 0x1000, MEM_COMMIT);
    call(true, 700, 0x10_0000, 0, MEM_RELEASE);
    // In an older process, a commit may be inside an older reservation.
    call(false, 800, 0x10_0000, 0x3000, MEM_COMMIT);
    call(false, 800, 0x20_1000, 0x1_0000, MEM_COMMIT);
    call(false, 800, 0x30_0000, 0x1_0000, MEM_COMMIT);
    call(true, 800, 0x10_0000, 0, MEM_RELEASE);
    let document = over(&trace, ".dump Resource -json");
    let members = ["allocs", "frees", "leaked", "orphan_frees"];
    assert_eq!(totals(&document, "reserve", "app.exe(700)", &members), [1, 1, 0, 0]);
    assert_eq!(totals(&document, "commit", "app.exe(700)", &members), [2, 2, 0, 0]);
    assert_eq!(totals(&document, "reserve", "other.exe(800)", &members), [1, 0, 1, 0]);
    assert_eq!(totals(&document, "commit", "other.exe(800)", &members), [3, 1, 2, 0]);
}

#[test]
fn a_reallocation_is_followed_though_its_old_address_is_in_use_again() {
    let mut trace = program("app.exe");
    let (one, other) = ((800, 801), (800, 802));
    let alloc = |address, size| HeapCall::Alloc { address, size };
    trace.heap(10 * MS, one, HEAP, alloc(0x1000, 8));
    trace.heap(11 * MS, one, HEAP, alloc(0x2000, 16));
    trace.heap(12 * MS, one, HEAP, HeapCall::Free { address: 0x1000 });
    trace.heap(13 * MS, other, HEAP, alloc(0x1000, 8));
    trace.heap(14 * MS, other, HEAP, alloc(0x3000, 8));
    let moved = HeapCall::ReAlloc { address: 0x2000, old_address: 0x1000, size: 16, old_size: 8 };
    trace.heap(15 * MS, one, HEAP, moved);
    for address in [0x1000, 0x2000, 0x3000] {
        trace.heap(20 * MS, other, HEAP, HeapCall::Free { address });
    }
    let document = over(&trace, ".dump Resource -json");
    let members = ["allocs", "frees", "replaced", "leaked", "orphan_frees"];
    assert_eq!(totals(&document, "heap", "other.exe(800)", &members), [4, 4, 0, 0, 0]);
}
