//! Drive letters: text shows paths as programs write them, filters accept both forms, and documents keep the kernel's
//! form.

use handlescope_tests::binary::run_over;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::payload::path_prefix;
use handlescope_tests::scenario::TraceBuilder;

const OBJECT: u64 = 0xffff_8100_0000_1000;

/// Builds a program that opens a file on its own volume and one on another, which only this trace maps.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "app.exe");
    trace.module(700, r"\Device\HarddiskVolume3\Tools\app.exe", 0x40_0000, 0x2_0000);
    trace.classic_event(1, (4, 8), &path_prefix(r"\Device\HarddiskVolume9\", r"E:\"));
    trace.object_type(16, "File");
    for (n, name) in
        [r"\Device\HarddiskVolume3\a.log", r"\Device\HarddiskVolume9\b.log"].into_iter().enumerate()
    {
        let (n, ns) = (n as u64, 10 * (n as i64 + 1));
        trace.create_handle(ns, (700, 8), OBJECT + n * 0x100, 4 * (n as u32 + 1), 16);
        trace.close_handle(ns + 5, (700, 8), OBJECT + n * 0x100, 4 * (n as u32 + 1), 16, name);
    }
    trace
}

fn run(line: &str) -> String {
    run_over(&trace(), &format!("{line}\n")).ok().stdout
}

#[test]
fn text_shows_drive_letters_and_documents_what_the_kernel_wrote() {
    let objects = run(".dump ObjectRef");
    assert!(objects.contains(r" C:\a.log ") && objects.contains(r" E:\b.log "), "{objects}");
    for kind in ["Module", "Version"] {
        let text = run(&format!(".dump {kind}"));
        assert!(text.contains(r"C:\Tools\app.exe") && !text.contains("HarddiskVolume"), "{text}");
        for format in ["-json", "-csv", "-ndjson"] {
            let document = run(&format!(".dump {kind} {format}"));
            assert!(document.contains("HarddiskVolume3") && !document.contains("C:"), "{document}");
        }
    }
    for format in ["-json", "-csv", "-ndjson"] {
        let document = run(&format!(".dump ObjectRef {format}"));
        assert!(document.contains("HarddiskVolume9") && !document.contains("E:"), "{document}");
    }
    let volumes = run(".sql SELECT dos_prefix FROM volumes ORDER BY nt_prefix -csv");
    assert!(volumes.contains("C:\\") && volumes.contains("E:\\"), "{volumes}");
}

#[test]
fn filters_take_a_path_in_either_way_to_write_it() {
    for (filter, expected) in [
        (r"E:\*", [false, true]),
        (r"\Device\HarddiskVolume9\*", [false, true]),
        (r"!E:\*", [true, false]),
        (r"*.log", [true, true]),
    ] {
        let text = run(&format!(".dump ObjectRef -ObjectName {filter}"));
        assert_eq!(
            ["a.log", "b.log"].map(|name| text.contains(name)),
            expected,
            "{filter}: {text}"
        );
    }
    let version = |filter: &str| run(&format!(".dump Version -VersionFilter {filter}"));
    assert!(version(r"C:\Tools\*").contains("Selected 1/"));
    assert!(version(r"\Device\HarddiskVolume3\Tools\*").contains("Selected 1/"));
    assert!(version(r"!C:\*").contains("Selected 0/"));
}

#[needs_data]
#[test]
fn real_traces_say_what_their_drives_are() {
    for name in ["real/slow-ppt-2011", "real/net.4.5.2.x64", "real/TraceLoggingTester"] {
        let trace = SharedTrace::open(name);
        let home = tempfile::tempdir().unwrap();
        let line = ".dump Module -Dll ntdll.dll";
        let mut command = handlescope_tests::binary::handlescope(home.path());
        let output = command.arg(trace.etl()).args(["-c", line]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
        assert!(text.contains(r"c:\windows\system32\ntdll.dll"), "{name}: {text}");
    }
}
