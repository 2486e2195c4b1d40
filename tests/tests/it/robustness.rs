//! Traces that are odd but no reason to fail, and what a query must not do to an extract.

use std::fs;

use handlescope_tests::binary::{Shell, run_over, sample_symbols};
use handlescope_tests::payload::{DuplicateRecord, KernelPayload, type_rundown};
use handlescope_tests::scenario::TraceBuilder;

const MS: i64 = 1_000_000;
const OBJECT: u64 = 0xffff_8100_0000_1000;
const EVENT: u16 = 16;

fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "app.exe");
    trace.object_type(EVENT, "Event");
    trace.create_handle(MS, (700, 1), OBJECT, 4, EVENT);
    trace
}

/// Returns the number of objects that a text answer lists.
fn objects(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("Id: ")).count()
}

#[test]
fn a_type_that_is_named_twice_is_not_an_error() {
    let mut trace = trace();
    for at in [2, 3] {
        trace.kernel_event(at * MS, (4, 8), &type_rundown(true, EVENT, "Event"));
    }
    let run = run_over(&trace, ".dump ObjectRef -Type Event\n").ok();
    assert_eq!(objects(&run.stdout), 1, "{run:?}");
}

#[test]
fn a_duplicate_from_no_process_is_not_an_error() {
    let mut trace = trace();
    for (n, source) in [0, u32::MAX, 4711].into_iter().enumerate() {
        let duplicate = DuplicateRecord {
            object: OBJECT,
            source_handle: 4,
            target_handle: 8 + 4 * n as u32,
            target_pid: 700,
            type_id: EVENT,
            source_pid: Some(source),
        };
        trace.duplicate_handle((2 + n as i64) * MS, (700, 1), duplicate);
    }
    let run = run_over(&trace, ".dump ObjectRef -Leak\n").ok();
    assert_eq!(run.stdout.matches("HandleDuplicate").count(), 3, "{run:?}");
    assert!(run.stdout.contains("SourceProcess: Invalid(0)"), "{run:?}");
}

#[test]
fn a_payload_that_is_too_short_or_too_long_costs_only_its_event() {
    let mut trace = trace();
    for (n, length) in [0, 3, 11].into_iter().enumerate() {
        for hook in [0x1120, 0x1121, 0x1122, 0x1125, 0x1127, 0x1130, 0x1131, 0x1132] {
            let payload = KernelPayload { hook, version: 2, bytes: vec![0xee; length] };
            trace.kernel_event((2 + n as i64) * MS, (700, 1), &payload);
        }
    }
    let mut longer = OBJECT.to_le_bytes().to_vec();
    longer.extend([8, 0, 0, 0, 16, 0, 0, 0]);
    longer.extend([0; 100]);
    let payload = KernelPayload { hook: 0x1120, version: 2, bytes: longer };
    trace.kernel_event(9 * MS, (700, 1), &payload);
    let run = run_over(&trace, ".dump ObjectRef -Object *1000\n").ok();
    assert!(run.stdout.contains("Create+Duplicate-Close: 2+0-0 = 2"), "{run:?}");
    assert!(run.stderr.contains("warning: trace.etl: "), "{run:?}");
}

#[test]
fn a_trace_of_a_few_kilobytes_is_extracted() {
    let run = run_over(&trace(), ".dump ObjectRef\n").ok();
    assert!(trace().to_bytes().len() < 1024 * 1024);
    assert_eq!(objects(&run.stdout), 1, "{run:?}");
}

#[test]
fn a_trace_without_stacks_answers_questions_about_stacks() {
    let script = "\
.dump ObjectRef -ShowStack
.dump ObjectRef -CreateStack *NtCreateEvent*
.dump ObjectRef -CreateStack !*NtCreateEvent*
.dump ObjectRef -StackFilter !*NtCreateEvent*
.dump ObjectRef -DestroyStack *
";
    let run = run_over(&trace(), script).ok();
    assert_eq!(objects(&run.stdout), 3, "{run:?}");
    assert_eq!(run.stdout.matches("Stack: None").count(), 3, "{run:?}");
}

#[test]
fn an_exact_frame_matches_its_line() {
    let symbols = sample_symbols().display().to_string();
    let shell = Shell::new();
    let found = |filter: &str| {
        let script = format!(".dump ObjectRef -CreateStack {filter}\n");
        objects(&shell.script(&["--symbol-path", &symbols, "leaky.etl"], &script).ok().stdout)
    };
    assert!(found("ntdll.dll!NtCreateEvent") > 20);
    assert_eq!(found("ntdll.dll!NtCreateEvent"), found("*dll!NtCreateEvent*"));
    assert_eq!(found("tdll.dll!NtCreateEvent") + found("ntdll.dll!NtCreateEven"), 0);
}

#[test]
fn names_come_with_the_symbols_also_after_the_extract_was_written() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let query = ".dump ObjectRef -MinMaxId 89 89 -ShowStack -ShowAddress";
    let script = format!("{query}\n.sympath {}\n{query}\n", symbols.display());
    let run = shell.script(&["leaky.etl"], &script).ok();
    let (before, after) = run.stdout.split_at(run.stdout.rfind("Id: 89 ").unwrap());
    assert!(before.contains("leaky.exe+0x") && !before.contains("GetOrCreate"), "{before}");
    assert!(after.contains("leaky.exe!leaky::EventCache::GetOrCreate+0x"), "{after}");
}

#[test]
fn queries_and_symbols_leave_the_extract_as_it_is() {
    let shell = Shell::new();
    let extract = shell.path("Extract/leaky.json7z");
    let _ = shell.script(&["leaky.etl"], ".list\n").ok();
    let before = fs::read(&extract).unwrap();
    let script = format!(
        ".sympath {}\n.dump ObjectRef -Leak -ShowStack\n.dump ObjectRef -MinMaxTime 1\n",
        sample_symbols().display()
    );
    let _ = shell.script(&["Extract/leaky.json7z"], &script).ok();
    assert_eq!(fs::read(&extract).unwrap(), before);
    assert_eq!(fs::read_dir(shell.path("Extract")).unwrap().count(), 1, "nothing is left beside");
}
