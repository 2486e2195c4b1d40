//! GDI and USER handles are counted wherever handles are listed.

use handlescope_tests::allocations::{MS, gdi_handle, trace};
use handlescope_tests::binary::Shell;
use serde_json::{Value, json};

/// Makes a folder with a trace of two bitmaps of process 700 and a kernel handle.
fn shell() -> Shell {
    let mut trace = trace();
    trace.object_type(16, "Event");
    trace.create_handle(20 * MS, (700, 701), 0xffff_8100_0000_1000, 4, 16);
    gdi_handle(&mut trace, 30 * MS, 700, 0x20010);
    gdi_handle(&mut trace, 50 * MS, 700, 0x20020);
    trace.end(100 * MS);
    let shell = Shell::new();
    trace.write(shell.path("trace.etl")).unwrap();
    shell
}

fn text(shell: &Shell, line: &str) -> String {
    shell.run(&["trace.etl", "-c", line]).ok().stdout
}

const LINE: &str = "GDI handles: 2 created, 0 closed, 2 leaked, 0 closed only by process exit (bitmap 2): \
                    .dump Resource -Kind gdi -Leak -LeakAtExit";

#[test]
fn handles_of_gdi_are_counted_below_the_objects_and_below_totals() {
    let shell = shell();
    for line in [".dump ObjectRef", ".dump ObjectRef -Leak", ".dump ObjectRef -ShowTotal Process"] {
        let text = text(&shell, line);
        assert!(text.lines().any(|own| own == LINE), "{line}: {text}");
    }
    assert!(
        text(&shell, ".dump ObjectRef -Type gdi").contains(LINE),
        "a type that objects have not"
    );
}

#[test]
fn options_that_leave_them_out_do_so() {
    let shell = shell();
    for line in [
        ".dump ObjectRef -Type Event",
        ".dump ObjectRef -Type !gdi",
        ".dump ObjectRef -pn 4",
        ".dump ObjectRef -ObjectName *",
        ".dump ObjectRef -ShowTotal None",
    ] {
        let text = text(&shell, line);
        assert!(!text.contains("GDI"), "{line}: {text}");
    }
}

#[test]
fn a_document_has_them_by_trace_and_kind() {
    let shell = shell();
    let document = |line: &str| -> Value { serde_json::from_str(&text(&shell, line)).unwrap() };
    let gdi = json!([{
        "file": 0, "kind": "gdi", "created": 2, "closed": 0, "leaked": 2, "closed_at_exit": 0,
        "leaked_by_type": [["bitmap", 2]],
    }]);
    assert_eq!(document(".dump ObjectRef -json")["gui_handles"], gdi);
    assert_eq!(document(".dump ObjectRef -Type Event -json").get("gui_handles"), None);
}
