//! Counting open handles while events arrive.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::Duration;

use handlescope_extract::live::{LiveCounts, Replay, WhenFull, live_queue};
use handlescope_model::Cancel;
use handlescope_tests::binary::sample_trace;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::StackMode;
use handlescope_tests::windows_handles::windows_handles;

use super::{MS, extracted, growing, leaked, until};

/// Returns the counts at the end of a replay.
fn counted(etl: &Path) -> BTreeMap<u64, u64> {
    let replay = Replay::open(etl, &Cancel::default()).unwrap();
    let (sender, mut receiver) = live_queue(64 << 20, WhenFull::Wait);
    let sending =
        thread::spawn(move || replay.run(&sender, |_| ControlFlow::Continue(())).map(drop));
    let mut counts = LiveCounts::default();
    while let Some(events) = receiver.receive(Duration::from_secs(60)) {
        events.iter().for_each(|event| counts.event(&event, |_, _| {}));
    }
    sending.join().unwrap().unwrap();
    counts
        .processes()
        .map(|(pid, open)| (u64::from(pid), open.count()))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[test]
fn handles_counted_while_they_come_are_those_that_a_file_that_ends_there_leaves_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part.etl");
    let trace = growing(StackMode::Fragments).build();
    for ms in [3, 40, 100, 250, 299, 320, 500] {
        until(&trace, trace.options.raw(ms * MS)).write(&path).unwrap();
        assert_eq!(counted(&path), leaked(&extracted(&path)), "{ms} ms");
    }
    assert_eq!(counted(&sample_trace()), leaked(&extracted(&sample_trace())));
}

#[test]
fn handles_of_system_moved_and_inherited_ones_are_counted_as_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part.etl");
    let trace = windows_handles().build();
    // Before the child starts, a process creation fails. Later, the child closes what it inherited.
    for ms in [4, 6, 8, 10, 14, 15, 17, 18, 25, 26, 27, 28, 29, 41, 53, 56, 70] {
        until(&trace, trace.options.raw(ms * MS) + 500).write(&path).unwrap();
        assert_eq!(counted(&path), leaked(&extracted(&path)), "{ms} ms");
    }
}

#[needs_data]
#[test]
fn handles_counted_in_published_traces_are_those_that_are_left_open() {
    for name in ["eventleak", "threadleak", "registry", "objectref", "growth", "heap", "valloc"] {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        assert_eq!(counted(trace.etl()), leaked(&extracted(trace.etl())), "{name}");
    }
}
