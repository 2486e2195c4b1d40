//! Known leaks: answers leave out what `[[ignore]]` in the configuration file or `-Ignore FILE` names, and count it.

use std::fs;

use handlescope_tests::binary::{ProgramRun, Shell, sample_symbols};
use handlescope_tests::mcp::McpServer;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

use crate::fleet::console::{document, small_fleet};

const CACHE: &str = "[[ignore]]\nprogram = \"leaky\"\nfunction = \"*EventCache::GetOrCreate\"\n\
                     reason = \"the cache is never emptied, by design\"\n";

const ALL: &str = "[[ignore]]\nprogram = \"leaky\"\nreason = \"a demonstration\"\n";

/// Makes a folder with the sample and a list of known leaks.
fn shell(list: &str) -> Shell {
    let shell = Shell::new();
    fs::write(shell.path("known.toml"), list).unwrap();
    shell
}

/// Runs a subcommand on the sample, with its symbols.
fn sample(shell: &Shell, command: &str, options: &[&str]) -> ProgramRun {
    let symbols = sample_symbols().display().to_string();
    let words = [&[command, "leaky.etl", "--symbol-path", &symbols], options].concat();
    shell.run(&words)
}

fn ids(document: &Value) -> Vec<&str> {
    document["suspects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|suspect| suspect["id"].as_str().unwrap())
        .collect()
}

#[test]
fn why_counts_known_leaks_and_shows_them_when_asked() {
    let shell = shell(CACHE);
    let all = document(&sample(&shell, "why", &["-json"]).ok());
    assert_eq!((&all["ignored"], ids(&all).len()), (&json!(0), 4));
    for settings in ["--config", "--ignore"] {
        let why = |options: &[&str]| {
            sample(&shell, "why", &[&[settings, "known.toml"], options].concat())
        };
        let left = document(&why(&["-json"]).ok());
        assert_eq!(left["ignored"], json!(1), "{settings}");
        assert_eq!(ids(&left), ids(&all)[1..], "{settings}");
        assert_eq!(left["suspects"][0]["rank"], json!(1), "ranks are of those that are left");
        let text = why(&[]).ok();
        assert!(
            text.stdout.contains("\nignored: 1 suspect; -Ignored shows them with their reasons\n")
        );
        assert!(!text.stdout.contains("GetOrCreate"), "{}", text.stdout);
        assert!(!text.stderr.contains("known.toml"), "all entries are used: {}", text.stderr);
        let ignored = why(&["-Ignored"]).ok().stdout;
        assert!(ignored.contains("EventCache::GetOrCreate"), "{ignored}");
        let reason = "\n   Ignored: the cache is never emptied, by design (";
        assert!(ignored.contains(reason) && ignored.contains("known.toml: line 1)"), "{ignored}");
        let ignored = document(&why(&["-Ignored", "-json"]).ok());
        assert_eq!((ids(&ignored), &ignored["ignored"]), (ids(&all)[..1].to_vec(), &json!(1)));
        let reason = &ignored["suspects"][0]["ignored_because"];
        assert_eq!(reason, "the cache is never emptied, by design");
        // A suspect requested by id is shown, whether it is ignored or not.
        let named = why(&["-Which", ids(&all)[0]]).ok().stdout;
        assert!(named.contains("Ignored: the cache"), "{named}");
    }
}

#[test]
fn known_leaks_fail_no_gate() {
    let shell = shell(ALL);
    for gate in ["leak", "leaky.exe:0"] {
        for (options, status) in [
            (&[][..], 1),
            (&["--ignore", "known.toml"], 0),
            (&["--ignore", "known.toml", "-Ignored"], 0),
        ] {
            let run = sample(&shell, "why", &[&["--fail-on", gate], options].concat());
            assert_eq!(run.status, Some(status), "{gate} {options:?}: {}", run.stderr);
        }
    }
    let why = sample(&shell, "why", &["--ignore", "known.toml"]).ok().stdout;
    assert!(why.contains("Nothing else leaks: "), "{why}");
    let junit = sample(&shell, "why", &["--ignore", "known.toml", "--format", "junit"]).ok().stdout;
    assert!(junit.contains("failures=\"0\""), "{junit}");
    let markdown = sample(&shell, "why", &["--ignore", "known.toml", "--format", "markdown"]);
    assert!(markdown.ok().stdout.contains("ignored: 4 suspects"));
}

#[test]
fn a_stack_pattern_has_to_match_every_stack_of_a_suspect() {
    for (stack, ignored) in [("*EventCache::GetOrCreate*", 1), ("*no such function*", 0)] {
        let shell = shell(&format!("[[ignore]]\nstack = '{stack}'\nreason = 'x'\n"));
        let options = ["-json", "--ignore", "known.toml"];
        let why = document(&sample(&shell, "why", &options).ok());
        assert_eq!(why["ignored"], json!(ignored), "{stack}");
    }
}

#[test]
fn entries_that_ignore_nothing_are_reported() {
    let expired = "[[ignore]]\ntype = 'Event'\nreason = 'fixed in 1.4'\nuntil = 2026-01-31\n";
    let unused = "[[ignore]]\ntype = 'Mutant'\nreason = 'x'\n";
    let shell = shell(&format!("{expired}\n{unused}"));
    let why = |options: &[&str]| {
        sample(&shell, "why", &[&["--ignore", "known.toml"], options].concat()).ok()
    };
    let is_expired = "warning: known.toml: line 1: expired on 2026-01-31 and ignores nothing; remove \
                      it or set a later day\n";
    let is_unused = "warning: known.toml: line 6: ignores nothing here; an entry must match all \
                     create stacks of a suspect\n";
    let whole = why(&[]);
    assert!(whole.stderr.ends_with(&format!("{is_expired}{is_unused}")), "{}", whole.stderr);
    assert!(!whole.stdout.contains("ignored"), "{}", whole.stdout);
    for options in [&["-pn", "leaky"][..], &["-Type", "Event"], &["-Which", "1"], &["-Since", "1s"]]
    {
        let stderr = why(options).stderr;
        assert!(
            stderr.contains(is_expired) && !stderr.contains(is_unused),
            "{options:?}: {stderr}"
        );
    }
}

#[test]
fn a_list_that_cannot_be_used_is_refused() {
    for (list, expected) in [
        (
            "[[ignore]]\nprograms = 'a'\nreason = 'x'\n",
            "known.toml: line 2: ignore: 'programs' is not one of program, ",
        ),
        ("[[ignore]]\ntype = 'Event'\n", "known.toml: line 1: gives no reason; add reason = "),
        ("clip = true\n", "known.toml: line 1: 'clip' does not belong here; "),
        ("[[ignore]\n", "known.toml: line 1: "),
    ] {
        let run = sample(&shell(list), "why", &["--ignore", "known.toml", "--fail-on", "leak"]);
        assert_eq!(run.status, Some(2), "{list}: {}", run.stderr);
        assert!(run.stderr.contains(expected), "{list}: {}", run.stderr);
    }
    let missing = sample(&shell(ALL), "why", &["--ignore", "missing.toml", "--fail-on", "leak"]);
    assert_eq!(missing.status, Some(2), "{}", missing.stderr);
    assert!(missing.stderr.contains("; name another file with -Ignore\n"), "{}", missing.stderr);
}

#[test]
fn a_comparison_leaves_known_leaks_out_of_its_status() {
    let shell = shell("[[ignore]]\nprogram = 'app'\nreason = 'x'\n");
    for (name, count) in [("before.etl", 4_u32), ("after.etl", 90)] {
        let mut trace = TraceBuilder::new();
        trace.process(700, "app.exe");
        trace.module(700, r"C:\app.exe", 0x1000_0000, 0x10000);
        for number in 0..count {
            let ns = 10_000_000 * i64::from(number + 1);
            let object = 0xFFFF_8000_0000_1000 + 0x100 * u64::from(number);
            let handle = trace.create_handle(ns, (700, 701), object, 4 * number + 4, 1);
            handle.stack(&[], &[0x1000_0010]);
        }
        trace.end(2_000_000_000);
        trace.write(shell.path(name)).unwrap();
    }
    let diff =
        |options: &[&str]| shell.run(&[&["diff", "before.etl", "after.etl"], options].concat());
    assert_eq!(diff(&[]).status, Some(1));
    let without = diff(&["--ignore", "known.toml"]).ok();
    assert!(without.stdout.contains("Got worse: 0 of 0 groups"), "{}", without.stdout);
    let line = "ignored: 1 group; -Ignored shows them with their reasons\n";
    assert!(without.stdout.contains(line), "{}", without.stdout);
    let json = document(&diff(&["--ignore", "known.toml", "-json"]).ok());
    assert_eq!((&json["ignored"], &json["groups"]), (&json!(1), &json!([])));
    let shown = diff(&["--ignore", "known.toml", "-Ignored"]).ok().stdout;
    assert!(shown.contains("90 after") && shown.contains("Ignored: x ("), "{shown}");
    let findings = diff(&["--ignore", "known.toml", "--format", "github"]).ok().stdout;
    assert_eq!(findings, "");
}

#[test]
fn a_comparison_of_two_points_counts_known_leaks() {
    let shell = shell(CACHE);
    let diff = |options: &str| {
        let command = format!(".diff 0s 2s {options}");
        let symbols = sample_symbols().display().to_string();
        shell.run(&["leaky.etl", "--symbol-path", &symbols, "-c", &command]).ok()
    };
    let all = document(&diff("-json"));
    let known = document(&diff("-json -Ignore known.toml -Ignored"));
    let rest = document(&diff("-json -Ignore known.toml"));
    let [all, known_groups, left] =
        [&all, &known, &rest].map(|answer| answer["groups"].as_array().unwrap().len());
    assert_eq!((known_groups, left), (1, all - 1));
    assert_eq!((&known["ignored"], &rest["ignored"]), (&json!(1), &json!(1)));
    let text = diff("-Ignore known.toml").stdout;
    assert!(
        text.contains("\nignored: 1 group; -Ignored shows them with their reasons\n"),
        "{text}"
    );
    assert!(!text.contains("GetOrCreate"), "{text}");
    let text = diff("-Ignore known.toml -Ignored").stdout;
    assert!(text.contains("GetOrCreate") && text.contains("Ignored: the cache"), "{text}");
    let picture = diff("-Ignore known.toml -flame grown.svg");
    assert!(picture.stderr.contains("ignored: 1 group; -Ignored"), "{}", picture.stderr);
    fs::write(shell.path("all.toml"), ALL).unwrap();
    let everything = diff("-pn leaky -Ignore all.toml");
    assert!(everything.stdout.contains("Nothing else opened"), "{}", everything.stdout);
}

#[test]
fn reports_and_agents_respect_the_configuration_file() {
    let shell = shell(ALL);
    let run = shell.run(&["--config", "known.toml", "leaky.etl", "-c", ".report page.html"]);
    let _ = run.ok();
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    assert!(page.contains("ignored: 4 suspects") && page.contains("Nothing else leaks"));
    let asks = [".report shown.html -Ignored -Ignore known.toml", ".report page.html -Ignored"];
    let _ = shell.run(&["leaky.etl", "-c", asks[0], "-c", asks[1]]).ok();
    let page = fs::read_to_string(shell.path("shown.html")).unwrap();
    assert!(page.contains("Ignored: a demonstration (") && !page.contains("ignored: 4 suspects"));
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    assert!(!page.contains("demonstration"), "no entry ignores anything");
    let mut server = McpServer::start(&shell.path(""), &["--config", "known.toml"]);
    server.call("load", &json!({"paths": ["leaky.etl"]})).unwrap();
    let why = server.call("why", &json!({})).unwrap();
    let why = &why["document"];
    assert_eq!(why["ignored"], json!(4), "{why}");
    assert_eq!(why["suspects"], json!([]), "{why}");
}

#[test]
fn datasets_keep_known_leaks_and_answers_leave_them_out() {
    let shell = small_fleet();
    fs::write(
        shell.path("known.toml"),
        "[[ignore]]\nprogram = 'server'\ntype = 'Event'\nreason = 'x'\n",
    )
    .unwrap();
    let asked = |command: &str| shell.run(&["fleet", "-c", command]);
    let all = document(&asked(".why -json").ok());
    let number = all["suspects"].as_array().unwrap().len();
    assert!(number > 0 && all["ignored"] == json!(0), "{all}");
    let without = document(&asked(".why -Ignore known.toml -json").ok());
    assert_eq!((&without["ignored"], &without["suspects"]), (&json!(number), &json!([])));
    let text = asked(".why -Ignore known.toml").ok().stdout;
    assert!(
        text.contains("Nothing else leaks in 6 traces") && text.contains("ignored: "),
        "{text}"
    );
    let shown = asked(".why -Ignore known.toml -Ignored").ok().stdout;
    assert!(shown.contains("Ignored: x (known.toml: line 1)"), "{shown}");
    let _ = asked(".report page.html -Ignore known.toml -Ignored").ok();
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    assert!(page.contains("Ignored: x (known.toml: line 1)"), "{page}");
    let diff = document(&asked(".diff -build 1.9 1.10 -json").ok());
    let groups = diff["groups"].as_array().unwrap().len();
    let diff = document(&asked(".diff -build 1.9 1.10 -Ignore known.toml -json").ok());
    assert_eq!(diff["groups"], json!([]), "{diff}");
    assert!(groups > 0 && diff["ignored"] == json!(groups), "{diff}");
}
