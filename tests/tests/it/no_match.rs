//! Which filter matches nothing, and suggestions for what was meant: for allocations and handles, in every command with
//! filters.

use std::fs;

use handlescope_tests::allocations::trace;
use handlescope_tests::binary::{ProgramRun, Shell, run_over, sample_symbols};
use handlescope_tests::mcp::McpServer;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

const MS: i64 = 1_000_000;
const EVENT: u16 = 16;

fn document(run: &ProgramRun) -> Value {
    serde_json::from_str(&run.stdout).unwrap()
}

/// Asserts that a command reports the filter on stderr and in `no_match` of its document.
fn assert_named(trace: &TraceBuilder, line: &str, option: &str, rest: &str) {
    let run = run_over(trace, &format!("{line}\n")).ok();
    let expected = format!(" passes {option}{rest}\n");
    assert!(run.stderr.contains("nothing matches: none of "), "{line}: {}", run.stderr);
    assert!(run.stderr.contains(&expected), "{line}: {expected}: {}", run.stderr);
    let document = document(&run_over(trace, &format!("{line} -json\n")).ok());
    let no_match = &document["no_match"];
    assert_eq!(no_match["option"], json!(option), "{line}: {document}");
    let nearest = no_match["nearest"].as_array().unwrap();
    assert_eq!(nearest.is_empty(), !rest.contains("did you mean"), "{line}: {document}");
    assert!(nearest.iter().all(|own| rest.contains(own.as_str().unwrap())), "{line}: {document}");
}

#[test]
fn a_filter_that_no_allocation_passes_is_named() {
    for (options, option, rest) in [
        ("-Kind heep", "-Kind heep", ", did you mean -Kind heap?"),
        ("-Kind zzz", "-Kind zzz", "; there are commit, heap, reserve"),
        ("-pn leeky", "-pn leeky", ", did you mean -pn leaky.exe?"),
        ("-Kind heap -pn tol", "-pn tol", "; there are leaky.exe"),
        (
            "-Allocator VirtualAloc",
            "-Allocator VirtualAloc",
            ", did you mean -Allocator VirtualAlloc?",
        ),
        ("-Kind heap -Allocator VirtualAlloc", "-Allocator VirtualAlloc", "; there are "),
        ("-CreateStack leaky", "-CreateStack leaky", ", did you mean -CreateStack *leaky*?"),
        ("-CreateStack nope", "-CreateStack nope", ""),
        ("-FreeStack nope", "-FreeStack nope", ""),
        ("-pn leaky -MinMaxTime 100", "-MinMaxTime", "; there are events from 0 to 0.0913004 s"),
        ("-MinMaxSize 1GB", "-MinMaxSize", ""),
        ("-Leak -pn tool", "-Leak", ""),
        ("-Leak -LeakAtExit -MinMaxSize 1GB", "-MinMaxSize", ""),
        ("-GroupBy kind -pn leeky", "-pn leeky", ", did you mean -pn leaky.exe?"),
        ("-ShowTotal Total -pn leeky", "-pn leeky", ", did you mean -pn leaky.exe?"),
    ] {
        let trace = trace();
        let rest = if rest == "; there are " { "; there are 0x10000" } else { rest };
        assert_named(&trace, &format!(".dump Resource {options}"), option, rest);
    }
    let run = run_over(&trace(), ".dump Resource -Kind heap -json\n").ok();
    assert!(document(&run).get("no_match").is_none());
}

#[test]
fn a_filter_that_no_process_module_or_stack_passes_is_named() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let says = |line: &str, said: &str| {
        let arguments = ["--symbol-path", symbols.to_str().unwrap(), "leaky.etl"];
        let run = shell.script(&arguments, &format!("{line}\n{line} -json\n")).ok();
        let expected = format!("leaky.etl: nothing matches: none of {said}\n");
        assert_eq!(run.stderr.matches(&expected).count(), 2, "{line}: {}", run.stderr);
        let document = run.stdout.split_once('{').unwrap().1;
        let document: Value = serde_json::from_str(&format!("{{{document}")).unwrap();
        let no_match = &document["no_match"];
        let option = no_match["option"].as_str().unwrap();
        let begin = format!("{} ", no_match["before"]);
        assert!(said.starts_with(&begin) && said.contains(option), "{line}: {document}");
        let nearest = no_match["nearest"].as_array().unwrap();
        assert_eq!(nearest.is_empty(), !said.contains("did you mean"), "{line}: {document}");
    };
    for (line, said) in [
        ("Process -pn leeky", "6 processes passes -pn leeky, did you mean -pn leaky.exe?"),
        ("Process -CmdLine lea", "6 processes passes -CmdLine lea, did you mean -CmdLine *lea*?"),
        ("Process -pn leaky -NewProcess -2", "2 processes passes -NewProcess"),
        (
            "Process -pn leaky -Parent explrer.exe",
            "2 processes passes -Parent explrer.exe, did you mean -Parent explorer.exe?",
        ),
        (
            "Process -Parent nope",
            "6 processes passes -Parent nope; there are Idle, explorer.exe, leaky.exe",
        ),
        (
            "Module -pn nope",
            "6 modules passes -pn nope; there are System, csrss.exe, explorer.exe, leaky.exe",
        ),
        ("Version -Dll leeky.exe", "6 modules passes -Dll leeky.exe, did you mean -Dll leaky.exe?"),
        (
            "Version -pn leaky -Dll nope",
            "4 modules passes -Dll nope; there are KernelBase.dll, kernel32.dll, leaky.exe, ntdll.dll",
        ),
        ("Stack -pn nope", "30 stacks passes -pn nope; there are explorer.exe, leaky.exe"),
        (
            "Stack -StackFilter GetOrCreate -TopN 1",
            "30 stacks passes -StackFilter GetOrCreate, did you mean -StackFilter *GetOrCreate*?",
        ),
        ("Stack -Id 999", "30 stacks passes -Id"),
        (
            "Stack -pn leaky -MinMaxTime 999",
            "30 stacks passes -MinMaxTime; there are events from 0 to 2.1000059 s",
        ),
        (
            "Events -Event Handel",
            "29 kinds of events passes -Event Handel, did you mean -Event HandleDCEnd or -Event HandleDCStart?",
        ),
    ] {
        says(&format!(".dump {line}"), said);
    }
    let run = shell.script(&["leaky.etl"], ".dump Process -pn leaky -json\n").ok();
    assert!(document(&run).get("no_match").is_none(), "{}", run.stdout);
}

#[test]
fn a_filter_that_passes_in_another_trace_is_no_reason() {
    let shell = Shell::new();
    let mut other = TraceBuilder::new();
    other.process(900, "other.exe");
    other.write(shell.path("other.etl")).unwrap();
    let run = shell.script(&["leaky.etl", "other.etl"], ".dump Process -pn other\n").ok();
    assert!(!run.stderr.contains("nothing matches"), "{}", run.stderr);
    let run = shell.script(&["leaky.etl", "other.etl"], ".dump Process -pn othr\n").ok();
    assert!(run.stderr.contains("leaky.etl: nothing matches"), "{}", run.stderr);
    assert!(run.stderr.contains("did you mean -pn other.exe?"), "{}", run.stderr);
}

#[test]
fn filters_with_the_same_answer_are_not_proposed() {
    for (options, option) in [
        (".dump Resource -Leak -pn tool.exe -Kind heap", "-pn tool.exe"),
        (".dump Resource -Kind heap -CreateStack *tool*", "-CreateStack *tool*"),
    ] {
        let run = run_over(&trace(), &format!("{options}\n")).ok();
        assert!(run.stderr.contains(&format!("passes {option}")), "{}", run.stderr);
        assert!(!run.stderr.contains("did you mean"), "{options}: {}", run.stderr);
    }
    let mut handles = handles();
    handles.object_type(EVENT + 1, "Mutant");
    for (options, option, rest) in [
        (".dump ObjectRef -MinMaxId 1 -Type Mutant", "-Type Mutant", "; there are Event"),
        // 16 is 0x10; no handle in the trace is 0x16.
        (".dump ObjectRef -Handle 16", "-Handle 16", ", did you mean -Handle 0x10?"),
        (".dump ObjectRef -Handle 14", "-Handle 14", ", did you mean -Handle 0x14?"),
        (".dump ObjectRef -Handle 77", "-Handle 77", ""),
        (".dump ObjectRef -Leak -LeakAtExit -Handle 77", "-Handle 77", ""),
    ] {
        assert_named(&handles, options, option, rest);
    }
}

/// Builds handles 0x10, 0x14 and 0x18; the exit of its process closes the last one.
fn handles() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "server.exe");
    trace.process(800, "worker.exe").started(MS).ended(50 * MS);
    trace.object_type(EVENT, "Event");
    for (ns, pid, handle) in [(10, 700, 0x10), (20, 700, 0x14), (30, 800, 0x18)] {
        let object = 0xffff_8100_0000_1000 + 0x100 * u64::from(handle);
        trace.create_handle(ns * MS, (pid, pid + 1), object, handle, EVENT);
    }
    trace.end(100 * MS);
    trace
}

#[test]
fn leaks_of_either_sort_are_one_filter() {
    let mut closed = handles();
    for (ns, handle) in [(60, 0x10), (61, 0x14)] {
        let object = 0xffff_8100_0000_1000 + 0x100 * u64::from(handle);
        closed.close_handle(ns * MS, (700, 701), object, handle, EVENT, "");
    }
    assert_named(
        &closed,
        ".dump ObjectRef -Leak -LeakAtExit -Type Evnt",
        "-Type Evnt",
        ", did you mean -Type Event?",
    );
    let line = ".dump ObjectRef -Leak -LeakAtExit -Handle 0x10";
    assert_named(&closed, line, "-Handle 0x10", "");
}

#[test]
fn differences_name_it_too() {
    for (line, option, rest) in [
        (".diff 5ms 60ms -pn sever", "-pn sever", ", did you mean -pn server.exe?"),
        (".diff 5ms 60ms -Type Evnt", "-Type Evnt", ", did you mean -Type Event?"),
    ] {
        assert_named(&handles(), line, option, rest);
        let printed = run_over(&handles(), &format!("{line}\n")).ok().stdout;
        assert!(printed.contains(&format!("No handle matches {option}")), "{printed}");
    }
    for (line, option, rest) in [
        (".diff 5ms 60ms -Kind heep", "-Kind heep", ", did you mean -Kind heap?"),
        (".diff 5ms 60ms -Kind heap -pn leeky", "-pn leeky", ", did you mean -pn leaky.exe?"),
    ] {
        assert_named(&trace(), line, option, rest);
        let printed = run_over(&trace(), &format!("{line}\n")).ok().stdout;
        assert!(printed.contains(&format!("No allocation matches {option}")), "{printed}");
    }
}

#[test]
fn of_two_traces_none_has_to_match() {
    let shell = Shell::new();
    for (name, trace) in [("handles", handles()), ("blocks", trace())] {
        for copy in ["a", "b"] {
            trace.write(shell.path(&format!("{name}-{copy}.etl"))).unwrap();
        }
    }
    for (name, options, option) in [
        ("handles", "-pn sever", "-pn sever"),
        ("handles", "-Type Evnt", "-Type Evnt"),
        ("blocks", "-Kind heap -pn leeky", "-pn leeky"),
    ] {
        let files = [format!("{name}-a.etl"), format!("{name}-b.etl")];
        let [a, b] = files.each_ref().map(String::as_str);
        let mut arguments = vec!["diff", a, b, "-json"];
        arguments.extend(options.split(' '));
        let run = shell.run(&arguments);
        assert_eq!(run.status, Some(2), "{options}: {}", run.stderr);
        for file in [a, b] {
            let expected = format!("{file}: nothing matches: none of ");
            assert!(run.stderr.contains(&expected), "{options}: {}", run.stderr);
        }
        assert_eq!(document(&run)["no_match"]["option"], json!(option), "{}", run.stdout);
    }
    // One of the traces has a match.
    let run = shell.run(&["blocks-a.etl", "handles-a.etl", "-c", ".dump Resource -pn leaky"]).ok();
    assert!(!run.stderr.contains("nothing matches"), "{}", run.stderr);
    let run = shell.run(&["blocks-a.etl", "handles-a.etl", "-c", ".dump Resource -pn leeky"]).ok();
    assert_eq!(run.stderr.matches("nothing matches").count(), 1, "{}", run.stderr);
}

#[test]
fn the_page_and_pictures_name_it_by_their_own_options() {
    let shell = Shell::new();
    trace().write(shell.path("trace.etl")).unwrap();
    for (line, expected) in [
        (".report page.html -CreateStack nope", "passes -CreateStack nope"),
        (".report page.html -DestroyStack nope", "passes -DestroyStack nope"),
        (".report page.html -Type heep", "passes -Type heep, did you mean -Type heap?"),
        (".report page.html -pn leeky", "passes -pn leeky, did you mean -pn leaky.exe?"),
    ] {
        let run = shell.run(&["trace.etl", "-c", line]).ok();
        assert!(run.stderr.contains(expected), "{line}: {}", run.stderr);
        let page = fs::read_to_string(shell.path("page.html")).unwrap();
        assert!(page.contains(expected), "{line}");
    }
    let run = shell.run(&["trace.etl", "-c", ".plot -Kind heep"]);
    assert!(run.stderr.contains("passes -Kind heep, did you mean -Kind heap?"), "{}", run.stderr);
}

#[test]
fn a_filter_that_matches_only_allocations_matches() {
    let mut both = trace();
    both.object_type(EVENT, "Event");
    both.create_handle(5 * MS, (700, 701), 0xffff_8100_0000_1000, 4, EVENT);
    let run = run_over(&both, ".why -Type heap\n").ok();
    assert!(!run.stderr.contains("nothing matches"), "{}", run.stderr);
    let run = run_over(&both, ".why -Type heep\n").ok();
    assert!(run.stderr.contains("passes -Type heep"), "{}", run.stderr);
}

#[test]
fn agents_are_answered_the_same() {
    let shell = Shell::new();
    let mut server = McpServer::with_sample(&shell, &[]);
    trace().write(shell.path("traces/blocks.etl")).unwrap();
    server.call("load", &json!({"paths": ["blocks.etl"]})).unwrap();
    let arguments = json!({"by": ["kind"], "process": "leeky"});
    let answer = server.call("allocations", &arguments).unwrap();
    assert_eq!(
        answer["document"]["no_match"]["nearest"],
        json!(["`process` leaky.exe"]),
        "{answer}"
    );
    assert!(answer["warnings"].to_string().contains("nothing matches"), "{answer}");
}
