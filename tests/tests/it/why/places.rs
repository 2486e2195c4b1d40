//! Names of code and files that are gone.

use handlescope_tests::binary::run_over;
use handlescope_tests::bytes::PointerSize;
use handlescope_tests::payload::file_name;
use handlescope_tests::scenario::{MappedView, TraceBuilder};
use serde_json::json;

use super::{KERNEL, MS, OBJECT, asked, suspects, trace};

const PLACE: u64 = 0x7ff7_0000_0000;

#[test]
fn code_of_an_unloaded_module_has_the_name_of_the_last_one_that_lay_there() {
    let function = |ns: i64| {
        let mut trace = trace();
        trace.module(700, r"C:\plug\first.dll", PLACE, 0x1_0000).loaded(10 * MS).unloaded(20 * MS);
        trace.module(700, r"C:\plug\second.dll", PLACE, 0x1_0000).loaded(50 * MS).unloaded(60 * MS);
        let created = trace.create_handle(ns, (700, 701), OBJECT, 0x10, super::EVENT);
        created.stack(&KERNEL, &[PLACE + 0x789]);
        trace.end(100 * MS);
        let document = asked(&trace, "");
        suspects(&document)[0]["function"].as_str().unwrap().to_owned()
    };
    assert_eq!(function(5 * MS), "<UnknownMethod>", "before any was loaded");
    assert_eq!(function(15 * MS), "first.dll+0x789");
    assert_eq!(function(30 * MS), "first.dll+0x789", "after its unload");
    assert_eq!(function(55 * MS), "second.dll+0x789");
    assert_eq!(function(90 * MS), "second.dll+0x789", "after the unload of both");
}

/// Builds three views that stay mapped, of the files with these keys.
fn mapped(keys: [u64; 3]) -> TraceBuilder {
    let mut trace = trace();
    for (number, file_key) in (1..).zip(keys) {
        let base = 0x1_0000_0000 * number;
        let view =
            MappedView { base, size: 0x10_0000, file_key, pid: 700, ..MappedView::default() };
        trace.map(10 * MS * number as i64, (700, 701), view).stack(&KERNEL, &super::USER);
    }
    trace.end(200 * MS);
    trace
}

#[test]
fn views_have_the_names_of_their_files_where_the_trace_has_them() {
    let mut trace = mapped([0x10, 0x10, 0x20]);
    for (ns, key, name) in [
        (5, 0x10, r"\Device\HarddiskVolume3\data\cache.bin"),
        // The key is reused after the views were mapped.
        (60, 0x10, r"\Device\HarddiskVolume3\data\later.bin"),
        (150, 0x20, r"\Device\HarddiskVolume3\data\other.bin"),
    ] {
        trace.kernel_event(ns * MS, (4, 8), &file_name(key, name, PointerSize::Eight));
    }
    let document = asked(&trace, "");
    let [suspect] = suspects(&document) else { panic!("{document}") };
    let names = json!([
        {"name": r"\Device\HarddiskVolume3\data\cache.bin", "count": 2},
        {"name": r"\Device\HarddiskVolume3\data\other.bin", "count": 1},
    ]);
    assert_eq!(suspect["object_names"], names);
    let text = run_over(&trace, ".why\n").ok().stdout;
    let files = "\n   Files: \\Device\\HarddiskVolume3\\data\\cache.bin (2), \
                 \\Device\\HarddiskVolume3\\data\\other.bin (1)\n";
    assert!(text.contains(files), "{text}");
    assert!(text.contains("3 views of files are never unmapped (3.00 MiB)"), "{text}");
    let unnamed = run_over(&mapped([0x10, 0x10, 0x20]), ".why\n").ok().stdout;
    assert!(unnamed.contains("views of files") && !unnamed.contains("Files:"), "{unnamed}");
}
