//! `why --fail-on` and `--format` as a gate for CI.

use std::process::Command;

use handlescope_tests::binary::{
    ProgramRun, handlescope, run_script, sample_symbols, sample_trace,
};
use handlescope_tests::scenario::TraceBuilder;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;

fn run(command: &mut Command) -> ProgramRun {
    command.output().expect("the program starts").into()
}

/// Runs `handlescope why` on the sample, with its symbols.
fn why(options: &[&str]) -> ProgramRun {
    let home = tempfile::tempdir().unwrap();
    let mut program = handlescope(home.path());
    program.arg("why").arg(sample_trace()).arg("--symbol-path").arg(sample_symbols());
    run(program.args(options))
}

#[test]
fn the_status_says_whether_anything_fails_the_gate() {
    for (options, status) in [
        (&["--fail-on", "leak"][..], 1),
        (&["--fail-on", "steady"], 0),
        (&["--fail-on", "leaky.exe:0"], 1),
        (&["--fail-on", "leaky.exe:19"], 1),
        (&["--fail-on", "leaky.exe:20"], 0),
        (&["--fail-on", "other.exe:0"], 0),
        (&["--fail-on", "steady", "--fail-on", "leaky:5"], 1),
        (&["-failon", "leak", "-json"], 1),
        (&[], 0),
    ] {
        let run = why(options);
        assert_eq!(run.status, Some(status), "{options:?}: {}", run.stderr);
        let is_said = run.stderr.contains(" fail --fail-on\n");
        assert_eq!(is_said, status == 1, "{options:?}: {}", run.stderr);
    }
    for options in [&["--fail-on", "leek"][..], &["--fail-on", "leaky.exe:x"], &["--format", "xml"]]
    {
        let run = why(options);
        assert_eq!(run.status, Some(2), "{options:?}: {}", run.stderr);
    }
}

#[test]
fn trouble_is_no_pass() {
    let home = tempfile::tempdir().unwrap();
    let missing = run(handlescope(home.path()).args(["why", "missing.etl", "--fail-on", "leak"]));
    assert_eq!(missing.status, Some(2), "{}", missing.stderr);
    let mut empty = TraceBuilder::new();
    empty.process(700, "app.exe");
    empty.write(home.path().join("empty.etl")).unwrap();
    let empty = run(handlescope(home.path()).args(["why", "empty.etl", "--fail-on", "leak"]));
    assert_eq!(empty.status, Some(2), "{}", empty.stderr);
    assert!(
        empty.stderr.contains("empty.etl: no handle events, so --fail-on cannot decide"),
        "{empty:?}"
    );
}

#[test]
fn findings_are_as_few_as_asked_for_with_all_names() {
    let markdown = why(&["--format", "markdown", "-TopN", "3"]).stdout;
    assert_eq!(markdown.matches("\n### ").count(), 3, "{markdown}");
    assert!(markdown.contains("are closed by leaky::Session::Close"), "{markdown}");
    let second = why(&["--format", "markdown", "-TopN", "1", "1"]).stdout;
    assert!(second.contains("ThreadPool::StartWorker") && !second.contains("EventCache"));
}

#[test]
fn junit_is_xml_with_a_failure_for_each_suspect_that_fails() {
    let xml = why(&["--format", "junit", "--fail-on", "leak"]).stdout;
    let mut reader = Reader::from_str(&xml);
    let (mut cases, mut failures) = (Vec::new(), 0);
    loop {
        match reader.read_event().expect("XML") {
            Event::Start(tag) if tag.name().as_ref() == b"testcase" => {
                let line = tag.try_get_attribute("line").unwrap().expect("a line");
                cases.push(String::from_utf8(line.value.into_owned()).unwrap());
            }
            Event::Start(tag) if tag.name().as_ref() == b"failure" => failures += 1,
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(cases, ["29", "92", "54", "145"], "{xml}");
    assert_eq!(failures, 4, "{xml}");
    let passing = why(&["--format", "junit", "--fail-on", "steady"]).stdout;
    assert!(passing.contains("failures=\"0\"") && !passing.contains("<failure"), "{passing}");
}

#[test]
fn sarif_has_a_result_with_its_place_for_each_suspect() {
    let sarif: Value = serde_json::from_str(&why(&["--format", "sarif"]).stdout).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "leaky.cpp");
    assert_eq!(place["region"]["startLine"], 29);
    assert_eq!(results[0]["partialFingerprints"]["suspect/v1"], "33434dfa4c");
    let rules: Vec<&Value> =
        sarif["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().iter().collect();
    for result in results {
        assert!(rules.iter().any(|rule| rule["id"] == result["ruleId"]), "{result}");
    }
}

#[test]
fn annotations_and_markdown_name_functions_and_lines() {
    let annotations = why(&["--format", "github", "--fail-on", "leak"]).stdout;
    assert_eq!(annotations.lines().count(), 4, "{annotations}");
    let first =
        "::error file=leaky.cpp,line=29,title=8 of 56 Event handles leaked by leaky.exe(7316)::";
    assert!(annotations.starts_with(first), "{annotations}");
    let markdown = why(&["--format", "markdown"]).stdout;
    let heading = "### 8 of 56 Event handles leaked by leaky.exe(7316)\n\n\
                   - `leaky.exe!leaky::EventCache::GetOrCreate` in `leaky.cpp:29`\n";
    assert!(markdown.contains(heading), "{markdown}");
    assert!(markdown.contains("**19 handles leaked by 3 suspects of leaky.exe; "), "{markdown}");
}

#[test]
fn a_comparison_has_what_got_worse_as_findings() {
    let home = tempfile::tempdir().unwrap();
    let trace = |count: u32| {
        let mut trace = TraceBuilder::new();
        trace.process(700, "app.exe");
        trace.module(700, r"C:\app.exe", 0x1000_0000, 0x10000);
        for number in 0..count {
            let ns = 10_000_000 * i64::from(number + 1);
            let object = 0xFFFF_8000_0000_1000 + 0x100 * u64::from(number);
            trace
                .create_handle(ns, (700, 701), object, 4 * number + 4, 1)
                .stack(&[], &[0x1000_0010]);
        }
        trace.end(2_000_000_000);
        trace
    };
    trace(4).write(home.path().join("before.etl")).unwrap();
    trace(90).write(home.path().join("after.etl")).unwrap();
    let diff = |options: &[&str]| {
        run(handlescope(home.path()).args(["diff", "before.etl", "after.etl"]).args(options))
    };
    let worse = diff(&["--format", "github"]);
    assert_eq!(worse.status, Some(1), "{}", worse.stderr);
    assert!(worse.stdout.starts_with("::error title=app.exe "), "{}", worse.stdout);
    assert!(worse.stdout.contains("4 leaked before%2C 90 after"), "{}", worse.stdout);
    let one = run(handlescope(home.path()).args(["diff", "after.etl", "--format", "sarif"]));
    assert_eq!(one.status, Some(2), "{}", one.stderr);
    assert!(one.stderr.contains("needs two traces"), "{}", one.stderr);
    let within =
        run_script(handlescope(home.path()).arg("after.etl"), ".diff 0.1s -Format sarif\n");
    assert!(within.stderr.contains("-Format needs two traces to compare"), "{within:?}");
}
