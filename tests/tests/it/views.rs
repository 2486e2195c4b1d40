//! Views of files: their owners, whichever process their events are logged in.

use handlescope_extract::{ExtractOptions, NoObserver};
use handlescope_model::{Cancel, EventKind, Table, Trace};
use handlescope_sources::extract;
use handlescope_tests::scenario::{MappedView, TraceBuilder};

const MS: i64 = 1_000_000;
const BASE: u64 = 0x1_b544_0000_0000;

fn view(pid: u32) -> MappedView {
    MappedView { base: BASE, size: 0x1000, file_key: 7, misc: 0, offset: 0, pid }
}

/// Returns pointer, event kinds and leaked events of each object.
fn objects(trace: &TraceBuilder) -> Vec<(u64, Vec<EventKind>, Vec<bool>)> {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("a.etl"), folder.path().join("a.json7z"));
    trace.write(&input).unwrap();
    extract(&input, &output, ExtractOptions::default(), &NoObserver, &Cancel::default()).unwrap();
    let trace = Trace::open(&output).unwrap();
    let (objects, events) =
        (trace.frame(Table::Objects).unwrap(), trace.frame(Table::Events).unwrap());
    let order = trace.event_order().unwrap();
    let kinds = events.column("kind").unwrap();
    let leaked = events.column("leaked").unwrap();
    (0..objects.height())
        .map(|row| {
            let pointer = objects.column("pointer").unwrap().u64().unwrap().get(row).unwrap();
            let slice = order.first[row] as usize..order.first[row + 1] as usize;
            let kind =
                |event| EventKind::from_code(kinds.u32().unwrap().get(event).unwrap()).unwrap();
            (
                pointer,
                slice.clone().map(kind).collect(),
                slice.map(|event| leaked.bool().unwrap().get(event).unwrap()).collect(),
            )
        })
        .collect()
}

#[test]
fn an_unmap_long_after_the_end_of_its_process_still_ends_the_view() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "app.exe").ended(10 * MS);
    trace.map(MS, (700, 701), view(700));
    trace.unmap(20 * MS, (700, 701), view(700));
    let (map, unmap) = (EventKind::Map, EventKind::Unmap);
    // Windows unmaps the views of a process after its exit, however long that takes.
    assert_eq!(objects(&trace), [(BASE | 700 << 42, vec![map, unmap], vec![false, false])]);
}

#[test]
fn a_view_of_an_unknown_process_is_not_one_of_system() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.map(MS, (4, 5), view(4));
    trace.map(2 * MS, (999, 1), view(999));
    trace.unmap(3 * MS, (999, 1), view(999));
    let (map, unmap) = (EventKind::Map, EventKind::Unmap);
    let expected = [
        (BASE | 999 << 42, vec![map, unmap], vec![false, false]),
        (BASE | 4 << 42, vec![map], vec![true]),
    ];
    assert_eq!(objects(&trace), expected);
}
