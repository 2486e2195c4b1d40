//! Converts our tables to ETWAnalyzer's members and back: no answer changes.

use std::fs;
use std::path::Path;

use handlescope_model::SCHEMA_VERSION;
use handlescope_tests::binary::{
    ProgramRun, handlescope, run_script, sample_symbols, sample_trace,
};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::foreign::{json_members, pack};
use handlescope_tests::needs_data;
use handlescope_tests::windows_handles::windows_handles;
use serde_json::Value;
use tempfile::TempDir;

const TRACES: [&str; 6] =
    ["eventleak", "threadleak", "registry", "objectref", "filemap", "duplicates"];

/// Questions for every trace, besides the trace's own ones.
const QUESTIONS: &str = "\
.dump ObjectRef -ShowStack
.dump ObjectRef -ShowStack -json
.dump ObjectRef -Leak -ShowStack -ShowTotal Total
.dump ObjectRef -ShowRef -json
.dump ObjectRef -MultiProcess -Inherit
.dump Process
.dump Process -json
.dump Module
.dump Module -json
.dump Stack
.dump Stack -json
.dump Stats
.dump Stats -json
.sql SELECT * FROM events
.sql SELECT * FROM module_loads
.sql SELECT * FROM modules
.sql SELECT * FROM threads
";

/// A folder with three archives of one trace, each named `trace.json7z` in its own folder: with our tables, with our
/// tables and ETWAnalyzer's members, and with ETWAnalyzer's members alone.
struct ThreeWays {
    home: TempDir,
}

impl ThreeWays {
    fn from_trace(etl: &Path, symbols: Option<&Path>) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::copy(etl, home.path().join("trace.etl")).unwrap();
        let three = Self { home };
        let mut command = handlescope(three.home.path());
        command.args(["extract", "trace.etl", "-o", "tables"]);
        let _ = ProgramRun::from(command.output().unwrap()).ok();
        let mut command = handlescope(three.home.path());
        command.args(["extract", "--etwanalyzer", "trace.etl", "-o", "both"]);
        if let Some(symbols) = symbols {
            command.arg("-symFolder").arg(symbols);
        }
        let _ = ProgramRun::from(command.output().unwrap()).ok();
        three.strip();
        three
    }

    fn archive(&self, way: &str) -> std::path::PathBuf {
        self.home.path().join(way).join("trace.json7z")
    }

    fn strip(&self) {
        let members = json_members(&self.archive("both"));
        fs::create_dir_all(self.home.path().join("members")).unwrap();
        pack(&self.archive("members"), &members);
    }

    fn ask(&self, way: &str, symbols: Option<&Path>, script: &str) -> ProgramRun {
        let mut command = handlescope(self.home.path());
        command.current_dir(self.home.path().join(way)).arg("trace.json7z");
        if let Some(symbols) = symbols {
            command.arg("--symbol-path").arg(symbols);
        }
        run_script(&mut command, script).ok()
    }
}

/// Asks all three the same questions. Names come from `symbols` where the archive has none.
fn check(what: &str, etl: &Path, symbols: Option<&Path>, script: &str) {
    let three = ThreeWays::from_trace(etl, symbols);
    let expected = three.ask("tables", symbols, script);
    let both = three.ask("both", None, script);
    assert!(!both.stderr.contains("converted"), "{what}: the tables are there: {}", both.stderr);
    let members = three.ask("members", None, script);
    assert!(members.stderr.contains("converted"), "{what}: {}", members.stderr);
    for (way, found) in [("both", both), ("members", members)] {
        let lines = expected.stdout.lines().zip(found.stdout.lines());
        if let Some((expected, found)) = lines.into_iter().find(|(a, b)| a != b) {
            panic!("{what}: {way} differ\nexpected {expected}\nfound    {found}");
        }
        assert_eq!(expected.stdout.len(), found.stdout.len(), "{what}: {way}");
    }
}

#[test]
fn the_sample_has_the_same_answers_with_and_without_symbols() {
    check("sample", &sample_trace(), None, QUESTIONS);
    check("sample with symbols", &sample_trace(), Some(&sample_symbols()), QUESTIONS);
}

#[test]
fn tables_of_another_version_are_not_read_and_that_is_said() {
    let three = ThreeWays::from_trace(&sample_trace(), None);
    let said = "written by another version of handlescope; what ETWAnalyzer does not support is \
                left out; extract the trace again";
    let script = ".dump ObjectRef -ShowStack\n";
    let current = three.ask("members", None, script);
    assert!(!current.stderr.contains("another version"), "{}", current.stderr);
    let (mut members, mut changed) = (json_members(&three.archive("both")), 0);
    let sound = members.clone();
    for version in [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1] {
        let (now, other) = (
            format!("\"schema_version\":{SCHEMA_VERSION}"),
            format!("\"schema_version\":{version}"),
        );
        for ((_, content), (_, sound)) in members.iter_mut().zip(&sound) {
            let text = str::from_utf8(sound).unwrap();
            changed += text.matches(&now).count();
            *content = text.replace(&now, &other).into_bytes();
        }
        pack(&three.archive("members"), &members);
        let found = three.ask("members", None, script);
        assert!(found.stderr.contains(said), "{version}: {}", found.stderr);
        assert!(found.stdout.contains("leaky.exe"), "{version}: {}", found.stdout);
    }
    assert_eq!(changed, 2);
}

#[test]
fn handles_of_system_and_moved_and_inherited_ones_have_the_same_answers() {
    let home = tempfile::tempdir().unwrap();
    let etl = home.path().join("windows.etl");
    windows_handles().write(&etl).unwrap();
    let script =
        format!("{QUESTIONS}.dump ObjectRef -LeakAtExit -json\n.sql SELECT * FROM leaks\n");
    check("windows", &etl, None, &script);
}

#[needs_data]
#[test]
fn every_published_trace_has_the_same_answers() {
    for name in TRACES {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let expected = fs::read_to_string(trace.expected()).unwrap();
        let expected: Value = serde_json::from_str(&expected).unwrap();
        let mut script = QUESTIONS.to_owned();
        for query in expected["queries"].as_array().unwrap() {
            let args = query["args"].as_str().unwrap();
            script += &format!(".dump ObjectRef {args}\n.dump ObjectRef {args} -json\n");
        }
        check(name, trace.etl(), None, &script);
        let pdbs = trace.pdbs();
        check(&format!("{name} with symbols"), trace.etl(), Some(pdbs.path()), &script);
    }
}

#[needs_data]
#[test]
fn real_traces_have_the_same_answers() {
    for name in ["ShutdownPerfDiagLogger", "TraceLoggingTester", "net.4.5.2.x64", "slow-ppt-2011"] {
        let trace = SharedTrace::open(&format!("real/{name}"));
        check(name, trace.etl(), None, QUESTIONS);
    }
}

#[needs_data]
#[test]
fn an_extract_of_etw_analyzer_that_is_saved_again_has_the_same_answers() {
    for name in TRACES {
        let trace = SharedTrace::open(&format!("synthetic/{name}"));
        let three = ThreeWays { home: tempfile::tempdir().unwrap() };
        for way in ["theirs", "both"] {
            fs::create_dir(three.home.path().join(way)).unwrap();
        }
        fs::copy(trace.file(".json7z"), three.archive("theirs")).unwrap();
        let saved = three.ask("theirs", None, ".save ../both/trace.json7z -etwanalyzer");
        assert!(saved.stdout.contains("with ETWAnalyzer's members"), "{saved:?}");
        three.strip();
        let expected = three.ask("theirs", None, QUESTIONS).stdout;
        assert!(expected.len() > 1000);
        for way in ["both", "members"] {
            assert_eq!(three.ask(way, None, QUESTIONS).stdout, expected, "{name}: {way}");
        }
    }
}

#[test]
fn a_saved_archive_replaces_ours_and_nothing_else() {
    let three = ThreeWays::from_trace(&sample_trace(), None);
    let run = |script: &str| {
        let mut command = handlescope(&three.home.path().join("tables"));
        run_script(command.arg("trace.json7z"), script)
    };
    let first = run(".save copy.json7z\n.save copy.json7z --etwanalyzer\n.save copy.json7z").ok();
    assert_eq!(first.stdout.lines().count(), 3, "{first:?}");
    let copy = three.home.path().join("tables/copy.json7z");
    assert!(json_members(&copy).is_empty(), "the last one was asked for tables only");
    let theirs = fs::read(three.archive("members")).unwrap();
    for (script, error) in [
        (".save trace.json7z -etwanalyzer -Force", "is never replaced"),
        (".save ../members/trace.json7z", "was not written by handlescope"),
        (".save copy.7z", "must end with .json7z"),
        (".save", "the name of the archive"),
        (".load+ copy.json7z\n.save new.json7z", "choose it with -fd"),
        (".unload\n.save new.json7z", "no trace is loaded"),
    ] {
        let refused = run(script);
        assert!(refused.stderr.contains(error) && refused.status == Some(1), "{refused:?}");
    }
    assert_eq!(fs::read(three.archive("members")).unwrap(), theirs);
    let chosen = run(".load+ copy.json7z\n.save new.json7z -fd copy*").ok();
    assert!(chosen.stdout.starts_with("new.json7z"), "{chosen:?}");
}

#[test]
fn an_extract_with_the_time_of_its_session_is_up_to_date() {
    let home = tempfile::tempdir().unwrap();
    fs::copy(sample_trace(), home.path().join("trace.etl")).unwrap();
    let run = |arguments: &[&str]| {
        ProgramRun::from(handlescope(home.path()).args(arguments).output().unwrap()).ok()
    };
    run(&["extract", "--etwanalyzer", "trace.etl"]);
    let archive = home.path().join("Extract/trace.json7z");
    let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    assert!(modified(&archive) < modified(&home.path().join("trace.etl")));
    let loaded = run(&["trace.etl", "-c", ".list"]);
    assert!(!loaded.stderr.contains("extracting"), "{loaded:?}");
    assert_eq!(json_members(&archive).len(), 4, "it is the very same");
    // A changed trace is still noticed.
    let later = modified(&home.path().join("trace.etl")) + std::time::Duration::from_secs(1);
    let etl = fs::File::options().write(true).open(home.path().join("trace.etl")).unwrap();
    etl.set_modified(later).unwrap();
    let loaded = run(&["trace.etl", "-c", ".list"]);
    assert!(loaded.stderr.contains("is older than the trace"), "{loaded:?}");
}

#[test]
fn names_that_are_stored_later_are_those_that_etw_analyzer_reads() {
    let three = ThreeWays::from_trace(&sample_trace(), None);
    let stacks = || {
        let members = json_members(&three.archive("both"));
        let stacks = members.iter().find(|(name, _)| name.ends_with("HandleStacks.json")).unwrap();
        let stacks: Value = serde_json::from_slice(&stacks.1).unwrap();
        stacks["StackList"].to_string()
    };
    assert!(stacks().contains("leaky.exe+0x"));
    three.ask("both", Some(&sample_symbols()), ".symbolize");
    assert!(!stacks().contains("leaky.exe+0x") && stacks().contains("leaky.exe!"));
}
