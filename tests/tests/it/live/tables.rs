//! The tables of a live trace, at the end and in between.

use handlescope_extract::Recording;
use handlescope_model::{Table, Trace};
use handlescope_tests::binary::sample_trace;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::StackMode;

use super::{extracted, growing, replayed, saved, until};

fn assert_equal(live: &Trace, file: &Trace, tables: impl IntoIterator<Item = Table>, what: &str) {
    for table in tables {
        let (live, file) = (live.frame(table).unwrap(), file.frame(table).unwrap());
        let name = table.name();
        assert!(live.equals_missing(&file), "{what}, {name}:\n{live}\nnot as of the file:\n{file}");
    }
}

#[test]
fn the_sample_replayed_event_by_event_gives_the_tables_of_its_extract() {
    let etl = sample_trace();
    let live = saved(&replayed(&etl, None, |_, _| {}));
    assert_equal(&live, &extracted(&etl), Table::ALL, "leaky.etl");
}

#[needs_data]
#[test]
fn published_traces_replayed_event_by_event_give_the_tables_of_their_extracts() {
    let synthetic = [
        "synthetic/eventleak",
        "synthetic/threadleak",
        "synthetic/registry",
        "synthetic/objectref",
        "synthetic/filemap",
        "synthetic/duplicates",
        "synthetic/growth",
        "synthetic/generic",
        "synthetic/heap",
        "synthetic/valloc",
    ];
    let real = [
        "real/ShutdownPerfDiagLogger",
        "real/TraceLoggingTester",
        "real/net.4.5.2.x64",
        "real/slow-ppt-2011",
    ];
    for name in synthetic.into_iter().chain(real) {
        let trace = SharedTrace::open(name);
        let live = saved(&replayed(trace.etl(), None, |_, _| {}));
        assert_equal(&live, &extracted(trace.etl()), Table::ALL, name);
    }
}

/// Builds a TRACE_LOGFILE_HEADER of a 64-bit system, with what a real-time session knows about itself.
fn session_header(of: &Recording) -> Vec<u8> {
    let mut bytes = vec![0; 280];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &of.header.buffer_size.to_le_bytes());
    put(4, &of.header.version);
    put(8, &of.header.os_build.to_le_bytes());
    put(12, &of.header.cpu_count.to_le_bytes());
    put(44, &of.header.pointer_size.to_le_bytes());
    put(248, &of.header.boot_time.to_le_bytes());
    put(256, &of.header.perf_freq.to_le_bytes());
    put(264, &of.header.start_time.to_le_bytes());
    put(272, &1u32.to_le_bytes());
    bytes
}

#[test]
fn a_session_without_a_file_says_itself_how_its_times_are_counted() {
    let etl = sample_trace();
    let mut window = replayed(&etl, None, |_, _| {});
    let file = window.recording.clone();
    let session = Recording::for_session("live", &session_header(&file), file.clock.base).unwrap();
    assert_eq!(
        (session.source_name.as_str(), session.clock.frequency),
        ("live", file.clock.frequency)
    );
    window.recording = session;
    let tables = Table::ALL.into_iter().filter(|table| *table != Table::Trace);
    let live = saved(&window);
    assert_equal(&live, &extracted(&etl), tables, "a session");
    let (live, file) =
        (live.frame(Table::Trace).unwrap(), extracted(&etl).frame(Table::Trace).unwrap());
    for column in ["os_version", "os_build", "perf_freq", "session_start_filetime", "events_total"]
    {
        assert_eq!(live.column(column).unwrap(), file.column(column).unwrap());
    }
    assert_eq!(live.column("session_end_filetime").unwrap().null_count(), 1);
    assert!(Recording::for_session("live", &[0; 280], 0).is_none(), "no clock");
    assert!(Recording::for_session("live", &[0; 100], 0).is_none(), "too short");
}

#[test]
fn tables_made_in_between_are_those_of_a_file_that_ends_there() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [StackMode::Fragments, StackMode::Keys] {
        let trace = growing(mode).build();
        let (whole, part) = (folder.path().join("whole.etl"), folder.path().join("part.etl"));
        trace.clone().write(&whole).unwrap();
        let mut times: Vec<i64> = trace.events().map(|(time, ..)| time).collect();
        times.sort_unstable();
        // Events with the same time arrive together.
        let points = [times.len() / 7, times.len() / 3, times.len() / 2, times.len() - 2];
        let mut points = points.map(|at| times[at]).into_iter().peekable();
        let mut compared = 0;
        let mut last: Option<(i64, Trace)> = None;
        replayed(&whole, None, |window, time| {
            let Some(point) = points.peek().copied() else { return };
            if time <= point {
                if time == point {
                    last = Some((point, saved(window)));
                }
                return;
            }
            points.next();
            let (point, live) = last.take().expect("events of the point");
            until(&trace, point).write(&part).unwrap();
            let file = extracted(&part);
            // The header of the file has more than is known before the end.
            let tables = Table::ALL.into_iter().filter(|table| *table != Table::Trace);
            assert_equal(&live, &file, tables, "in between");
            compared += 1;
        });
        assert!(compared >= 3, "{compared}");
    }
}
