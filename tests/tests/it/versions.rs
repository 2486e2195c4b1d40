//! `.dump Version`: which processes run which version of which product.

use std::path::Path;

use handlescope_tests::binary::{handlescope, run_script};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::TraceBuilder;

const TOOL: &str = r"\Device\HarddiskVolume3\Tools\tool.exe";
const SYSTEM: &str = r"\Device\HarddiskVolume3\Windows\System32\ntdll.dll";

/// Builds two processes of one tool, one of which exits, and a third process that shares only a library with them.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "tool.exe");
    trace.process(800, "tool.exe").ended(5_000_000);
    trace.process(900, "other.exe");
    for pid in [700, 800] {
        trace.module(pid, TOOL, 0x40_0000, 0x2_0000).file_version("4.3.0.161").rundown_only();
    }
    for pid in [700, 800, 900] {
        trace.module(pid, SYSTEM, 0x7000_0000, 0x20_0000).rundown_only();
    }
    trace
}

fn printed(trace: &Path, line: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    std::fs::copy(trace, home.path().join("trace.etl")).unwrap();
    run_script(handlescope(home.path()).arg("trace.etl"), &format!("{line}\n")).ok().stdout
}

#[test]
fn modules_stand_under_the_processes_that_loaded_them_with_product_and_description() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    trace().write(&path).unwrap();
    insta::assert_snapshot!(printed(&path, ".dump Version"));
    insta::assert_snapshot!(printed(&path, ".dump Version -Dll tool.exe"));
}

/// Returns the names that pass a filter.
fn chosen(options: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    let mut trace = trace();
    trace.process(901, "late.exe").started(1_000_000).command_line("late.exe --now");
    trace.module(901, r"\Device\HarddiskVolume3\late.dll", 0x60_0000, 0x1_0000);
    trace.write(&path).unwrap();
    let csv = printed(&path, &format!(".dump Version {options} -csv"));
    csv.lines().skip(1).filter_map(|line| line.split(',').nth(1).map(str::to_owned)).collect()
}

#[test]
fn modules_are_chosen_by_version_and_by_the_processes_that_loaded_them() {
    assert_eq!(chosen("-VersionFilter 4.3.*"), ["tool.exe"]);
    assert_eq!(chosen(r"-VersionFilter *System32*;*Tools*4.3*"), ["ntdll.dll", "tool.exe"]);
    assert_eq!(chosen("-VersionFilter !4.3.*"), ["late.dll", "ntdll.dll"]);
    assert_eq!(chosen("-NewProcess 1"), ["late.dll"]);
    assert_eq!(chosen("-NewProcess -1 -Dll !ntdll*"), ["tool.exe"]);
    assert_eq!(chosen("-CmdLine *--now"), ["late.dll"]);
    assert_eq!(chosen("-pn other"), ["ntdll.dll"]);
}

#[needs_data]
#[test]
fn the_real_trace_s_version_resources_are_printed() {
    let trace = SharedTrace::open("real/slow-ppt-2011");
    let text = printed(trace.etl(), ".dump Version -Dll explorer.exe");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "explorer.exe(2640)");
    let row: Vec<&str> = lines[3].split("  ").filter(|cell| !cell.is_empty()).collect();
    let path = r"C:\Windows\explorer.exe";
    let version = "6.1.7600.16385 (win7_rtm.090713-1255)";
    let product = "Microsoft® Windows® Operating System";
    assert_eq!(row, ["explorer.exe", version, product, "Windows Explorer", path]);
    assert_eq!(lines[4], "Selected 1/1113 of all loaded modules");
}
