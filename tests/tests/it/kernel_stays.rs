//! Stacks of several events during one stay in the kernel; Windows logs their user part once.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use handlescope_extract::collect::{Collector, KernelSelector};
use handlescope_extract::stacks::KeptStacks;
use handlescope_extract::{ExtractOptions, OpenRecording, StackChoice};
use handlescope_model::tables::{Events, Frames, Stacks};
use handlescope_model::{EventKind, Trace};
use handlescope_tests::binary::{ProgramRun, handlescope};
use handlescope_tests::bytes::PointerSize;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::payload::profile_sample;
use handlescope_tests::scenario::{Caller, StackMode, TraceBuilder};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use serde_json::Value;

use crate::extraction_threads::archive_in;
use crate::handle_model::with_cases;

const US: i64 = 1_000;
const KERNEL: u64 = 0xFFFF_8000_0000_0000;
const USER: u64 = 0x7FF6_0000_1000;
const OBJECT: u64 = 0xFFFF_9000_0000_1000;
const APP: (u32, u32) = (700, 701);

fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(700, "app.exe");
    trace.object_type(16, "Event");
    trace
}

/// Opens a handle with a kernel stack.
fn create(trace: &mut TraceBuilder, ns: i64, caller: impl Into<Caller>, number: u64) {
    let (object, handle) = (OBJECT + 0x40 * number, 4 + 4 * number as u32);
    trace.create_handle(ns, caller, object, handle, 16).stack(&[KERNEL + number], &[]);
}

/// Returns the stack addresses of each opened handle, in time order.
fn stacks_of_creates(path: &Path, stacks: StackChoice, threads: usize) -> Vec<Vec<u64>> {
    let folder = tempfile::tempdir().unwrap();
    let threads = NonZeroUsize::new(threads).unwrap();
    let options = ExtractOptions { stacks, threads, ..ExtractOptions::default() };
    let extract = Trace::open(&archive_in(folder.path(), path, options).unwrap()).unwrap();
    let (kind, time) = (extract.values(Events::kind), extract.values(Events::time_ns));
    let (kind, time, stack) =
        (kind.unwrap(), time.unwrap(), extract.values(Events::stack).unwrap());
    let (lists, addresses) = (extract.values(Stacks::frames), extract.values(Frames::address));
    let (lists, addresses) = (lists.unwrap(), addresses.unwrap());
    let creates =
        (0..kind.len()).filter(|row| kind.get(*row) == Some(EventKind::HandleCreate.code()));
    let of_row = |row: usize| {
        let frames = stack.get(row).map(|stack| lists.get(stack.row()));
        let frames = frames.into_iter().flatten();
        frames.map(|frame| addresses.get(frame.row()).unwrap()).collect()
    };
    let stacks: BTreeMap<i64, Vec<u64>> =
        creates.map(|row| (time.get(row).unwrap(), of_row(row))).collect();
    stacks.into_values().collect()
}

/// Returns the stacks of opened handles; checks that they do not depend on how the trace is read.
fn creates(trace: &TraceBuilder) -> Vec<Vec<u64>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stays.etl");
    trace.write(&path).unwrap();
    let known = stacks_of_creates(&path, StackChoice::HandleEvents, 1);
    for (stacks, threads) in
        [(StackChoice::HandleEvents, 2), (StackChoice::HandleEvents, 3), (StackChoice::All, 8)]
    {
        assert_eq!(
            stacks_of_creates(&path, stacks, threads),
            known,
            "{stacks:?}, {threads} threads"
        );
    }
    known
}

#[test]
fn every_event_of_a_system_call_gets_the_user_part_of_its_first_one() {
    for mode in [StackMode::Fragments, StackMode::Keys, StackMode::KernelKey] {
        let mut trace = trace();
        trace.stack_mode(mode);
        for number in 0..3 {
            create(&mut trace, (10 + 10 * number as i64) * US, APP, number);
        }
        create(&mut trace, 15 * US, (700, 702), 9);
        trace.user_part(90 * US, 10 * US, APP, &[USER, USER + 5]);
        create(&mut trace, 95 * US, APP, 4);
        let kernel_and_user = |number| vec![KERNEL + number, USER, USER + 5];
        assert_eq!(
            creates(&trace),
            [
                kernel_and_user(0),
                vec![KERNEL + 9],
                kernel_and_user(1),
                kernel_and_user(2),
                vec![KERNEL + 4]
            ],
            "{mode:?}: neither another thread nor a later call"
        );
    }
}

#[test]
fn the_first_event_of_a_call_may_be_a_sample_or_on_another_processor() {
    let mut trace = trace();
    let sample = profile_sample(PointerSize::Eight, KERNEL, APP.1);
    trace.kernel_event(10 * US, Caller::new(700, 701).on(1), &sample).stack(&[KERNEL], &[]);
    create(&mut trace, 20 * US, Caller::new(700, 701).on(2), 1);
    trace.user_part(50 * US, 10 * US, Caller::new(700, 701).on(3), &[USER]);
    assert_eq!(creates(&trace), [[KERNEL + 1, USER]]);
}

#[test]
fn a_callback_into_user_mode_ends_a_stay_and_begins_another_one() {
    let mut trace = trace();
    create(&mut trace, 10 * US, APP, 0);
    create(&mut trace, 20 * US, APP, 1);
    trace.user_part(30 * US, 10 * US, APP, &[USER]);
    create(&mut trace, 40 * US, APP, 2);
    create(&mut trace, 50 * US, APP, 3);
    trace.user_part(60 * US, 40 * US, APP, &[USER + 0x77, USER]);
    let inner = |number| vec![KERNEL + number, USER + 0x77, USER];
    let outer = |number| vec![KERNEL + number, USER];
    assert_eq!(creates(&trace), [outer(0), outer(1), inner(2), inner(3)]);
}

#[test]
fn a_user_part_of_a_later_event_leaves_a_stack_with_its_kernel_part() {
    let mut trace = trace();
    create(&mut trace, 10 * US, APP, 0);
    create(&mut trace, 20 * US, APP, 1);
    trace.user_part(30 * US, 20 * US, APP, &[USER]);
    trace.user_part(40 * US, 5 * US, APP, &[USER + 1]);
    assert_eq!(creates(&trace), [vec![KERNEL], vec![KERNEL + 1, USER]]);
}

#[test]
fn the_user_part_of_an_event_counts_more_than_that_of_an_earlier_one() {
    let mut trace = trace();
    create(&mut trace, 10 * US, APP, 0);
    create(&mut trace, 20 * US, APP, 1);
    trace.user_part(30 * US, 10 * US, APP, &[USER]);
    trace.user_part(40 * US, 20 * US, APP, &[USER + 1]);
    assert_eq!(creates(&trace), [[KERNEL, USER], [KERNEL + 1, USER + 1]]);
}

#[test]
fn a_thread_that_ends_leaves_its_stacks_as_they_are() {
    let mut trace = trace();
    trace.thread(700, 705).started(5 * US).ended(30 * US);
    trace.thread(700, 705).started(40 * US);
    let thread = (700, 705);
    create(&mut trace, 10 * US, thread, 0);
    create(&mut trace, 20 * US, thread, 1);
    create(&mut trace, 50 * US, thread, 2);
    trace.user_part(60 * US, 8 * US, thread, &[USER]);
    assert_eq!(creates(&trace), [vec![KERNEL], vec![KERNEL + 1], vec![KERNEL + 2, USER]]);
}

#[test]
fn frames_of_kernel_and_user_in_one_part_are_a_whole_stack() {
    let mut trace = trace();
    trace.stack_mode(StackMode::Single);
    let record = trace.create_handle(20 * US, APP, OBJECT, 4, 16);
    record.stack(&[KERNEL], &[USER]);
    trace.stack_mode(StackMode::Fragments);
    create(&mut trace, 30 * US, APP, 1);
    trace.user_part(60 * US, 10 * US, APP, &[USER + 9]);
    assert_eq!(creates(&trace), [[KERNEL, USER], [KERNEL + 1, USER + 9]]);
}

/// The second of a processor's three buffers is missing, between the kernel part and the user part.
#[test]
fn a_stack_gets_no_user_part_across_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lost.etl");
    let mut trace = trace();
    for number in 0..4_000 {
        create(&mut trace, (100 + 10 * number as i64) * US, (700, 703), 10 + number);
    }
    create(&mut trace, 110 * US + 1_000, APP, 0);
    trace.user_part(30_000 * US, 10 * US, APP, &[USER]);
    let whole = trace.to_bytes();
    std::fs::write(&path, &whole).unwrap();
    let is_shared = |path: &Path| {
        let stacks = stacks_of_creates(path, StackChoice::HandleEvents, 2);
        stacks.into_iter().find(|stack| stack[0] == KERNEL).unwrap() == [KERNEL, USER]
    };
    assert!(is_shared(&path));
    // The header, the first buffer of events, and everything after the second one.
    let size = trace.options().buffer_size as usize;
    assert!(whole.len() > 5 * size);
    std::fs::write(&path, [&whole[..2 * size], &whole[3 * size..]].concat()).unwrap();
    assert!(!is_shared(&path));
}

/// A stack part of a thread; there is one at each step of time.
#[derive(Debug, Clone, Copy)]
struct StackStep {
    thread: usize,
    cpu: u16,
    /// `None`: an event with a kernel part. `Some(n)`: the user part of the thread's event `n` events back.
    user_part_of: Option<usize>,
}

fn steps() -> impl Strategy<Value = (Vec<StackStep>, bool)> {
    let user_part = proptest::option::of(0..4_usize);
    let step = (0..2_usize, 0..3_u16, user_part);
    let step = step.prop_map(|(thread, cpu, user_part_of)| StackStep { thread, cpu, user_part_of });
    (vec(step, 1..60), any::<bool>())
}

/// Every kernel stack gets the first user part that its thread writes after it, unless that belongs to a later event.
/// Its own part has precedence.
#[test]
fn stacks_are_those_of_the_rule_whatever_threads_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.etl");
    with_cases(32, steps(), |(steps, with_keys): (Vec<StackStep>, bool)| {
        let mut trace = trace();
        trace.stack_mode(if with_keys { StackMode::Keys } else { StackMode::Fragments });
        // Events by thread, and user parts as (thread, event, written, frame), with times in microseconds.
        let (mut events, mut parts) = ([Vec::new(), Vec::new()], Vec::new());
        for (number, step) in (0..).zip(&steps) {
            let now = 10 + 2 * number as i64;
            let caller = Caller::new(700, 701 + step.thread as u32).on(step.cpu);
            let events = &mut events[step.thread];
            // An event has at most one user part of its own.
            let has_part = |event: i64| parts.iter().any(|part: &(_, i64, _, _)| part.1 == event);
            let event = step.user_part_of.and_then(|before| events.iter().rev().nth(before));
            match event.copied().filter(|(event, _)| !has_part(*event)) {
                None => {
                    create(&mut trace, now * US, caller, number);
                    events.push((now, number));
                }
                Some((event, _)) => {
                    trace.user_part(now * US, event * US, caller, &[USER + number]);
                    parts.push((step.thread, event, now, USER + number));
                }
            }
        }
        let user_of = |thread: usize, event: i64| {
            let of_thread = || parts.iter().filter(move |part| part.0 == thread);
            let own: Vec<_> = of_thread().filter(|part| part.1 == event).map(|it| it.3).collect();
            let decides = of_thread().find(|part| part.2 > event).filter(|part| part.1 < event);
            if own.is_empty() { decides.map(|it| it.3).into_iter().collect() } else { own }
        };
        let mut expected = BTreeMap::new();
        for (thread, events) in events.iter().enumerate() {
            for (event, number) in events {
                let user = user_of(thread, *event);
                expected.insert(*event, [vec![KERNEL + number], user].concat());
            }
        }
        trace.write(&path).unwrap();
        let expected: Vec<_> = expected.into_values().collect();
        for threads in [1, 3] {
            assert_eq!(stacks_of_creates(&path, StackChoice::HandleEvents, threads), expected);
        }
        assert_eq!(stacks_of_creates(&path, StackChoice::All, 1), expected);
        let open = OpenRecording::open(&path).unwrap();
        let mut collector = Collector::new(KeptStacks::all());
        let next = |_| ControlFlow::Continue(());
        open.read(&mut KernelSelector::default(), next, |event| collector.event(event)).unwrap();
        collector.finish();
        let all = collector.stacks.all.unwrap();
        let mut stacks: Vec<_> =
            all.stacks().iter().map(|stack| (stack.event_time, all.addresses(stack))).collect();
        stacks.sort();
        let stacks: Vec<_> = stacks.into_iter().map(|(_, stack)| stack).collect();
        assert_eq!(stacks, expected);
    });
}

/// Returns the suspects that `why` finds in a published trace, with its symbols if it has any.
fn suspects(name: &str, has_symbols: bool) -> Vec<Value> {
    let (trace, home) = (SharedTrace::open(name), tempfile::tempdir().unwrap());
    let mut command = handlescope(home.path());
    command.arg("why").arg(trace.etl()).arg("-json");
    let pdbs = has_symbols.then(|| trace.pdbs());
    if let Some(pdbs) = &pdbs {
        command.arg("--symbol-path").arg(pdbs.path().join("symbols"));
    }
    let run = ProgramRun::from(command.output().unwrap()).ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    document["suspects"].as_array().unwrap().clone()
}

#[needs_data]
#[test]
fn handles_that_create_process_opens_are_blamed_on_its_caller() {
    let suspects = suspects("faults/shared-user-part", true);
    let counts: Vec<_> = suspects
        .iter()
        .map(|it| {
            (
                it["leaked"].as_u64().unwrap(),
                it["type"].as_str().unwrap(),
                it["function"].as_str().unwrap(),
            )
        })
        .collect();
    assert!(counts.contains(&(60, "Thread", "launcher.exe!Jobs::Launch")), "{counts:?}");
    assert!(counts.iter().all(|(.., function)| !function.contains("NtCreate")), "{counts:?}");
}

#[needs_data]
#[test]
fn one_key_may_stand_for_a_kernel_and_a_user_stack_at_once() {
    let suspects = suspects("faults/windows/samekey", false);
    assert_eq!(suspects.len(), 1, "{suspects:?}");
    assert_eq!(suspects[0]["leaked"], 60);
}
