//! Tests every option of `.dump ObjectRef` with the program: its example runs, and it changes the output.

use std::collections::HashSet;

use handlescope_commands::registry::REGISTRY;
use handlescope_session::grammar::OptionSpec;
use handlescope_tests::binary::{Shell, sample_symbols};
use handlescope_tests::payload::DuplicateRecord;
use handlescope_tests::scenario::{MappedView, TraceBuilder};

const MS: i64 = 1_000_000;
const OBJECT: u64 = 0xffff_8100_0000_1000;

/// Returns a trace with what the sample lacks: views, references, a service.
fn other_trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    let service = r"C:\Windows\System32\svchost.exe -k netsvcs -s Schedule";
    trace.process(600, "svchost.exe").command_line(service);
    let rdp = r"C:\Windows\System32\svchost.exe -k NetworkService -s TermService";
    trace.process(610, "svchost.exe").command_line(rdp);
    trace.process(700, "app.exe").started(MS).ended(90 * MS);
    trace.object_type(16, "Event");
    for (n, pid) in [600, 610, 700].into_iter().enumerate() {
        let object = OBJECT + n as u64 * 0x100;
        trace.create_handle((2 + n as i64) * MS, (pid, 8), object, 4, 16);
    }
    trace.reference(10 * MS, (700, 8), OBJECT, b"Test", 2);
    let view = MappedView {
        base: 0x1_b544_0000_0000,
        size: 0x1_0000,
        file_key: 7,
        misc: 0,
        offset: 0,
        pid: 700,
    };
    trace.map(20 * MS, (700, 8), view);
    let duplicate = DuplicateRecord {
        object: OBJECT,
        source_handle: 4,
        target_handle: 8,
        target_pid: 700,
        type_id: 16,
        source_pid: Some(600),
    };
    trace.duplicate_handle(30 * MS, (600, 8), duplicate);
    trace
}

fn shell() -> Shell {
    let shell = Shell::new();
    other_trace().write(shell.path("other.etl")).unwrap();
    let known = "[[ignore]]\nprogram = 'no.exe'\nreason = 'an example'\n";
    std::fs::write(shell.path("known.toml"), known).unwrap();
    shell
}

#[test]
fn the_example_of_every_option_runs() {
    let shell = shell();
    let symbols = sample_symbols().display().to_string();
    for kind in REGISTRY.kinds() {
        let line =
            |option: &dyn OptionSpec| format!(".dump {} {}\n", kind.name(), option.doc().example);
        // The exit status of .dump Diff with two traces says that the second is worse, and -Format needs two traces.
        let is_of_one = |option: &&dyn OptionSpec| {
            kind.name() != "Diff" || !option.doc().names.contains(&"-Format")
        };
        let options = kind.options();
        let script: String =
            options.iter().copied().filter(|option| is_of_one(option)).map(line).collect();
        let traces =
            if kind.name() == "Diff" { &["leaky.etl"][..] } else { &["leaky.etl", "other.etl"] };
        let arguments = [&["--symbol-path", symbols.as_str()], traces].concat();
        let _ = shell.script(&arguments, &script).ok();
    }
}

/// Option, other options to type, and a value that makes a difference in the two traces.
const EFFECTS: &[(&str, &str, &str)] = &[
    ("-Leak", "", ""),
    ("-LeakAtExit", "", ""),
    ("-MinMaxDuration", "", "0 10ms"),
    ("-pn", "", "leaky"),
    ("-CmdLine", "", "*Schedule*"),
    ("-NewProcess", "", "1"),
    ("-RelatedProcess", "", "9044"),
    ("-Suspect", "", "33434dfa4c"),
    ("-ObjectName", "", "*Signal_41"),
    ("-Type", "", "Thread"),
    ("-Object", "", "*1000"),
    ("-Id", "", "3;5"),
    ("-MinMaxId", "", "3 5"),
    ("-fd", "", "*leaky*"),
    ("-MinMaxTime", "", "1.5s 2500ms"),
    ("-Handle", "", "0xC0;0xC4"),
    ("-ss", "", ""),
    ("-CreateStack", "", "*Session::Connect*"),
    ("-DestroyStack", "", "*Session::Close*"),
    ("-sf", "", "*GetOrCreate*"),
    ("-ShowAddress", "-MinMaxId 89 89 -ss", ""),
    ("-ShowLine", "-MinMaxId 89 89 -ss", ""),
    ("-MultiProcess", "", ""),
    ("-Overlapped", "", ""),
    ("-Inherit", "", ""),
    ("-Map", "", "1"),
    ("-PtrInMap", "", "0x1B544000010"),
    ("-ViewBase", "", "0x1B5*"),
    ("-MinMaxMapSize", "", "64KiB 10MB"),
    ("-ShowTotal", "", "Process"),
    ("-TopN", "-ShowTotal Process", "1"),
    ("-ShowRef", "", ""),
    ("-ShowTarget", "", ""),
    ("-TimeFmt", "", "s"),
    ("-TimeDigits", "", "3"),
    ("-ProcessFmt", "", "s"),
    ("-ppn", "", ""),
    ("-NoDigitSep", "-Map 1", ""),
    ("-sffn", "", ""),
    ("-json", "-MinMaxId 89 89", ""),
    ("-json-pretty", "-MinMaxId 89 89", ""),
    ("-csv", "", "a.csv"),
    ("-SortBy", "", "name"),
    ("-ndjson", "", ""),
    ("-parquet", "", "a.parquet"),
    ("-NoCSVSeparator", "-csv FILE", ""),
    ("-NoCmdLine", "-csv FILE", ""),
    ("-GroupBy", "", "type"),
    ("-MinCount", "-GroupBy name", "5"),
    ("-Depth", "-GroupBy process,type", "1"),
    ("-Rows", "-GroupBy process,type", "2 1"),
    ("-FoldStack", "-GroupBy createstack -ss", "leaky.exe*"),
    ("-StackFrom", "-GroupBy createstack -ss", "leaky.exe*"),
    ("-ShowTime", "-GroupBy type", "3"),
    ("-Columns", "-GroupBy type", "share"),
];

/// Options that change nothing here. Some say how to cut lines on a terminal, but a pipe gets whole lines. Others
/// concern existing files, or texts that look like formulas, and have their own tests.
const WITHOUT_EFFECT: [&str; 4] = ["-Clip", "-NoClip", "-Force", "-csvraw"];

#[test]
fn every_option_changes_what_is_printed() {
    let shell = shell();
    let symbols = sample_symbols().display().to_string();
    let printed = |options: &str| {
        let line = format!(".dump ObjectRef {}", options.replace("FILE", "b.csv"));
        let arguments = ["--symbol-path", &symbols, "leaky.etl", "other.etl", "-c", &line];
        let stdout = shell.run(&arguments).ok().stdout;
        let file = std::fs::read(shell.path("b.csv")).unwrap_or_default();
        // A document repeats the typed command.
        (stdout.replace(options.trim(), ""), file)
    };
    for (name, others, value) in EFFECTS {
        let (without, with) = (printed(others), printed(&format!("{others} {name} {value}")));
        assert!(without != with, "{others} {name} {value} changes nothing");
    }
}

#[test]
fn no_option_was_forgotten() {
    let known: HashSet<&str> =
        EFFECTS.iter().map(|(name, ..)| *name).chain(WITHOUT_EFFECT).collect();
    let kind = REGISTRY.kind("ObjectRef").unwrap();
    for option in kind.options() {
        let is_idle = !option.has_effect();
        let is_known = option.doc().names.iter().any(|name| known.contains(name));
        assert!(is_idle != is_known, "{}", option.name());
    }
}

#[test]
fn an_option_without_effect_says_why() {
    let shell = shell();
    let kind = REGISTRY.kind("ObjectRef").unwrap();
    let plain = shell.run(&["leaky.etl", "-c", ".dump ObjectRef"]).ok();
    for option in kind.options() {
        if !option.has_effect() {
            let line = format!(".dump ObjectRef {}", option.doc().example);
            let run = shell.run(&["leaky.etl", "-c", &line]).ok();
            assert_eq!(run.stdout, plain.stdout, "{line}");
            assert!(run.stderr.lines().count() > 1, "{line}: {}", run.stderr);
        }
    }
}
