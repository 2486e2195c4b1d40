//! Whatever makes an answer wrong or incomplete is reported wherever the answer is: at extraction, at load, with every
//! answer, on stderr and in JSON.

use std::fs;

use handlescope_tests::binary::{ProgramRun, Shell, run_over};
use handlescope_tests::corrupt::buffers;
use handlescope_tests::data::SharedTrace;
use handlescope_tests::file::FileOptions;
use handlescope_tests::scenario::TraceBuilder;
use handlescope_tests::{allocations, needs_data};
use serde_json::{Deserializer, Value};

const MS: i64 = 1_000_000;
const OBJECT: u64 = 0xffff_8100_0000_1000;
const EVENT: u16 = 16;
const KERNEL: [u64; 1] = [0xffff_f800_0000_1000];
const QUERY: &str = ".dump ObjectRef -json\n";

/// Adds a process, a type and an open handle.
fn trace_of(mut trace: TraceBuilder) -> TraceBuilder {
    trace.process(4, "System");
    trace.process(700, "server.exe");
    trace.object_type(EVENT, "Event");
    trace.create_handle(MS, (700, 1), OBJECT, 4, EVENT).stack(&KERNEL, &[]);
    trace
}

fn trace() -> TraceBuilder {
    trace_of(TraceBuilder::new())
}

fn with_rundown() -> TraceBuilder {
    let mut trace = trace();
    trace.handle_rundown_end(700, OBJECT, 4, EVENT, "");
    trace
}

fn document(run: &ProgramRun) -> Value {
    Deserializer::from_str(&run.stdout).into_iter().next().unwrap().unwrap()
}

/// Returns the kinds of caveats in an answer.
fn kinds(run: &ProgramRun) -> Vec<String> {
    let document = document(run);
    document["caveats"]
        .as_array()
        .unwrap()
        .iter()
        .map(|caveat| caveat["kind"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns how often a text is on stderr: once for the load, once for each answer.
fn times(run: &ProgramRun, text: &str) -> usize {
    run.stderr.matches(text).count()
}

#[test]
fn a_sound_trace_has_no_caveats() {
    let run = run_over(&with_rundown(), QUERY).ok();
    assert_eq!(kinds(&run), [""; 0]);
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
}

#[test]
fn a_trace_without_handle_events_says_so_once_and_in_every_document() {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "server.exe");
    let run = run_over(&trace, &[QUERY, QUERY].concat()).ok();
    assert_eq!(times(&run, "no handle events"), 1, "{}", run.stderr);
    assert_eq!(times(&run, "wpr -start Handle"), 1, "{}", run.stderr);
    assert_eq!(kinds(&run), ["no_handle_events"]);
}

#[test]
fn a_trace_of_allocations_without_handles_says_so_to_who_asks_for_handles() {
    let run = run_over(&allocations::trace(), ".dump Resource\n").ok();
    assert_eq!(times(&run, "no handle events"), 0, "{}", run.stderr);
    let run = run_over(&allocations::trace(), ".dump ObjectRef\n").ok();
    assert_eq!(times(&run, "no handle events"), 1, "{}", run.stderr);
    assert!(run.stderr.contains("its allocations are in .dump Resource"), "{}", run.stderr);
}

#[needs_data]
#[test]
fn real_traces_without_handle_events_say_so_when_they_are_extracted() {
    let shell = Shell::new();
    for name in ["TraceLoggingTester", "ShutdownPerfDiagLogger"] {
        let trace = SharedTrace::open(&format!("real/{name}"));
        let (etl, out) = (trace.etl(), shell.path(name));
        let run = shell.run(&["extract", etl.to_str().unwrap(), "-o", out.to_str().unwrap()]).ok();
        assert_eq!(times(&run, "no handle events"), 1, "{name}: {}", run.stderr);
    }
}

#[test]
fn a_trace_without_rundown_at_its_end_says_what_is_unknown() {
    let mut trace = trace();
    trace.rundowns(true, false);
    let run = run_over(&trace, QUERY).ok();
    assert_eq!(kinds(&run), ["no_end_rundown"]);
    assert_eq!(times(&run, "no rundown of open handles at the end"), 1, "{}", run.stderr);
}

#[test]
fn handles_of_a_trace_without_processes_are_of_processes_without_a_name() {
    let mut trace = trace();
    trace.rundowns(false, false);
    let run = run_over(&trace, QUERY).ok();
    assert_eq!(kinds(&run), ["no_end_rundown"]);
    let why = run_over(&trace, ".why").ok();
    assert!(!why.stdout.contains("Nothing leaks: 0 handles"), "{}", why.stdout);
    let stats = run_over(&trace, ".dump Stats -json").ok();
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    let attribution = &stats["files"][0]["attribution"];
    assert_eq!(
        (&attribution["system"], &attribution["dropped"]),
        (&0.into(), &0.into()),
        "{stats}"
    );
}

#[test]
fn losses_while_recording_and_in_the_file_are_said_once_and_in_every_document() {
    let options = FileOptions { events_lost: 12, buffers_lost: 1, ..FileOptions::default() };
    let mut lost = trace_of(TraceBuilder::with_options(options));
    lost.handle_rundown_end(700, OBJECT, 4, EVENT, "");
    let run = run_over(&lost, QUERY).ok();
    assert_eq!(kinds(&run), ["lost_while_recording"]);
    assert_eq!(times(&run, "12 events and 1 buffer were lost"), 1, "{}", run.stderr);

    let shell = Shell::new();
    let mut whole = with_rundown();
    whole.noise(20_000, 7);
    let bytes = whole.to_bytes();
    std::fs::write(shell.path("cut.etl"), &bytes[..bytes.len() - 70_000]).unwrap();
    let script = format!("{QUERY}.dump Stats\n");
    let run = shell.script(&["cut.etl"], &script).ok();
    assert!(kinds(&run).contains(&"missing_in_file".to_owned()), "{}", run.stderr);
    assert!(run.stdout.contains("INCOMPLETE"), "{}", run.stdout);
    assert!(!run.stdout.contains("No events and no buffers were lost"), "{}", run.stdout);
}

#[test]
fn one_missing_buffer_is_singular_and_more_are_plural() {
    let mut trace = trace();
    trace.noise(20_000, 7);
    let whole = trace.to_bytes();
    let places = buffers(&whole);
    for (missing, expected) in [
        (1, ["(1 missing buffer)", "  1 missing buffer\n"]),
        (2, ["(2 missing buffers)", "  2 missing buffers\n"]),
    ] {
        let shell = Shell::new();
        let end = places[places.len() - missing].start;
        fs::write(shell.path("cut.etl"), &whole[..end]).unwrap();
        let run = shell.run(&["cut.etl", "-c", ".dump Stats"]).ok();
        let [at_load, stats] = expected;
        assert!(run.stderr.contains(at_load), "{}", run.stderr);
        assert!(!run.stderr.contains("cut.etl: 1 missing"), "said twice: {}", run.stderr);
        assert!(run.stdout.contains(stats), "{}", run.stdout);
    }
}

#[test]
fn missing_stacks_of_creates_are_said_when_stacks_are_asked_for() {
    let mut trace = with_rundown();
    trace.create_handle(2 * MS, (700, 1), OBJECT + 0x100, 8, EVENT);
    let run = run_over(&trace, ".dump ObjectRef -ShowStack -json\n").ok();
    assert_eq!(kinds(&run), ["stacks_missing"]);
    assert_eq!(times(&run, "stacks are missing for 50 % of creates"), 1, "{}", run.stderr);
    assert_eq!(kinds(&run_over(&trace, QUERY).ok()), [""; 0]);
}

#[test]
fn a_filter_on_stacks_without_symbols_names_the_modules_that_need_them() {
    let mut trace = with_rundown();
    trace.module(0, r"\SystemRoot\system32\ntoskrnl.exe", 0xffff_f800_0000_0000, 0x10_0000);
    let run = run_over(&trace, ".dump ObjectRef -CreateStack *NtCreateEvent* -json\n").ok();
    assert_eq!(kinds(&run), ["symbols_missing"]);
    assert_eq!(
        times(&run, "the filter on stacks cannot match functions there"),
        1,
        "{}",
        run.stderr
    );
}

#[test]
fn a_filter_that_matches_nothing_is_named_with_what_it_could_have_meant() {
    let shell = Shell::new();
    for (options, expected) in [
        ("-Type Evnt", "none of 101 objects passes -Type Evnt, did you mean -Type Event?"),
        ("-Handle F4", "none of 101 objects passes -Handle F4, did you mean -Handle 0xF4?"),
        ("-pn leeky", "passes -pn leeky, did you mean -pn leaky.exe?"),
        ("-pn notepad", "passes -pn notepad; there are "),
        (
            "-ObjectName Leaky_Signal_02",
            "-ObjectName Leaky_Signal_02, did you mean -ObjectName *Leaky_Signal_02?",
        ),
        ("-Leak -MinMaxTime 100", "none of 19 objects passes -MinMaxTime"),
        ("-Type Event -pn leaky -Handle 0xFFFC", "passes -Handle 0xFFFC"),
    ] {
        let run = shell.run(&["leaky.etl", "-c", &format!(".dump ObjectRef {options}")]).ok();
        assert!(run.stderr.contains(expected), "{options}: {}", run.stderr);
        let run = shell.run(&["leaky.etl", "-c", &format!(".dump ObjectRef {options} -json")]).ok();
        let option = document(&run)["no_match"]["option"].clone();
        assert!(expected.contains(option.as_str().unwrap()), "{options}: {option}");
    }
    let run = shell.run(&["leaky.etl", "-c", ".dump ObjectRef -Type Event -json"]).ok();
    assert!(document(&run).get("no_match").is_none());
}

#[test]
fn the_same_is_said_of_suspects_whose_owner_is_meant() {
    let shell = Shell::new();
    for (options, expected) in [
        ("-Type Evnt", "none of 101 objects passes -Type Evnt, did you mean -Type Event?"),
        ("-pn leeky", "none of 101 objects passes -pn leeky, did you mean -pn leaky.exe?"),
        (
            "-pn notepad",
            "none of 101 objects passes -pn notepad; there are explorer.exe, leaky.exe",
        ),
        ("-pn !leaky;!explorer", "passes -pn !leaky;!explorer; there are explorer.exe, leaky.exe"),
        ("-Type Thread -pn leeky", "passes -pn leeky, did you mean -pn leaky.exe?"),
    ] {
        let run = shell.run(&["leaky.etl", "-c", &format!(".why {options}")]).ok();
        assert!(run.stderr.contains("leaky.etl: nothing matches: "), "{}", run.stderr);
        assert!(run.stderr.contains(expected), "{options}: {}", run.stderr);
        assert!(run.stdout.contains("No handle matches -"), "{options}: {}", run.stdout);
        let run = shell.run(&["leaky.etl", "-c", &format!(".why {options} -json")]).ok();
        let option = document(&run)["no_match"]["option"].clone();
        assert!(expected.contains(option.as_str().unwrap()), "{options}: {option}");
    }
    for options in ["", "-pn leaky", "-pn 7316"] {
        let run = shell.run(&["leaky.etl", "-c", &format!(".why {options} -json")]).ok();
        assert!(document(&run).get("no_match").is_none(), "{options}");
    }
    fs::copy(shell.path("leaky.etl"), shell.path("other.etl")).unwrap();
    let run = shell.run(&["leaky.etl", "other.etl", "-c", ".report page.html -Type Evnt"]).ok();
    assert!(run.stderr.contains("nothing matches: none of 101 objects passes"), "{}", run.stderr);
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    assert!(page.contains("nothing matches: none of 101 objects passes -Type Evnt"), "{page}");
}

#[test]
fn a_repeated_filter_and_an_open_quote_are_errors() {
    let shell = Shell::new();
    for (options, expected) in [
        ("-pn leaky -pn System", "-pn is given twice"),
        ("-pn leaky -ProcessName System", "-ProcessName is given twice"),
        ("-Type \"Event", "the quote in front of 'Event' is never closed"),
    ] {
        let run = shell.script(&["leaky.etl"], &format!(".dump ObjectRef {options}\n"));
        assert_eq!(run.status, Some(1), "{options}");
        assert!(run.stderr.contains(expected), "{options}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{options}");
    }
}
