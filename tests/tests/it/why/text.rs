//! What `.why` prints for people: a headline, and the suspects that are not small compared with the worst.

use handlescope_tests::binary::{handlescope, run_over, run_script};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::needs_data;
use handlescope_tests::payload::HeapCall;
use handlescope_tests::published::PublishedTrace;
use handlescope_tests::scenario::{MappedView, TraceBuilder};

use super::{EVENT, KERNEL, MS, OBJECT, asked, suspects};

const SECOND: i64 = 1000 * MS;
const SERVER: u64 = 0x7ff6_0000_0000;
const TOOL: u64 = 0x7ff6_1000_0000;
const NTDLL: u64 = 0x7ff8_0000_0000;
/// Kernel frames of closes at process exit.
const SWEEP: [u64; 3] = [0xffff_f800_0000_1500, 0xffff_f800_0000_1600, 0xffff_f800_0000_2000];

/// Builds a server that runs for a minute, and a tool that exits.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    trace.process(700, "server.exe");
    trace.process(800, "tool.exe").started(MS).ended(50 * SECOND);
    trace.module(0, r"\SystemRoot\ntoskrnl.exe", 0xffff_f800_0000_0000, 0x1_0000).rundown_only();
    trace.module(700, r"C:\server.exe", SERVER, 0x1_0000);
    trace.module(800, r"C:\tool.exe", TOOL, 0x1_0000);
    trace.module(800, r"C:\Windows\System32\ntdll.dll", NTDLL, 0x1_0000);
    trace.object_type(EVENT, "Event");
    trace.end(60 * SECOND);
    trace
}

/// Opens this many handles on a stack, one every 1.4 s; the tool's handles are closed when it exits.
fn open(trace: &mut TraceBuilder, pid: u32, count: u32, place: u64) {
    for number in 0..count {
        let handle = 4 * number + 4;
        let object = OBJECT + (place & 0x1fff_ffff) * 0x1000 + 0x100 * u64::from(number);
        let ns = 1400 * MS * i64::from(number + 1);
        trace.create_handle(ns, (pid, pid + 1), object, handle, EVENT).stack(&KERNEL, &[place]);
        if pid == 800 {
            let ns = 50 * SECOND - MS + i64::from(number);
            trace.close_handle(ns, (pid, pid + 1), object, handle, EVENT, "").stack(&SWEEP, &[]);
        }
    }
}

fn why(trace: &TraceBuilder, options: &str) -> String {
    run_over(trace, &format!(".why {options}\n")).ok().stdout
}

/// Returns the second line, below the name of the trace.
fn headline(trace: &TraceBuilder, options: &str) -> String {
    why(trace, options).lines().nth(1).unwrap_or_default().to_owned()
}

/// Returns the ranks of the printed suspects.
fn ranks(text: &str) -> Vec<&str> {
    text.split("\n\n")
        .filter_map(|block| block.split_once("  "))
        .map(|(rank, _)| rank)
        .filter(|rank| rank.starts_with(|first: char| first.is_ascii_digit()))
        .collect()
}

/// Builds a steady leak, and leaks of a few handles.
fn with_small_suspects() -> TraceBuilder {
    let mut trace = trace();
    open(&mut trace, 700, 40, SERVER + 0x1000);
    open(&mut trace, 700, 3, SERVER + 0x2000);
    open(&mut trace, 700, 1, SERVER + 0x3000);
    trace
}

#[test]
fn suspects_that_are_small_beside_the_worst_are_counted_in_the_last_line() {
    let trace = with_small_suspects();
    let text = why(&trace, "");
    assert_eq!(text.lines().nth(1), Some("44 handles leaked by 3 suspects of server.exe"));
    assert!(text.contains("\n1  40 of 40 Event handles leaked   server.exe(700)\n"), "{text}");
    assert_eq!(ranks(&text), ["1"], "{text}");
    assert!(
        text.ends_with("\n\n+ 2 more suspects with 1 to 3 handles each: .why 2, .why -All\n"),
        "{text}"
    );

    let all = why(&trace, "-All");
    assert_eq!(ranks(&all), ["1", "2", "3"], "{all}");
    assert!(!all.contains("more"), "{all}");
    assert_eq!(suspects(&asked(&trace, "")).len(), 3, "JSON has all");
    let rows = why(&trace, "-ndjson");
    assert_eq!(rows.lines().count(), 3, "{rows}");
}

#[test]
fn the_last_line_has_the_options_that_chose_the_suspects() {
    let text = why(&with_small_suspects(), "-pn server -Type Event");
    let options = "-pn server -Type Event";
    assert!(text.ends_with(&format!("each: .why {options} 2, .why {options} -All\n")), "{text}");
    let second = why(&with_small_suspects(), &format!("{options} 2"));
    assert!(second.contains("\n2  3 of 3 Event handles leaked   server.exe(700)\n"), "{second}");
}

#[test]
fn rows_are_ordered_and_cut_among_those_that_are_shown() {
    let mut trace = with_small_suspects();
    open(&mut trace, 700, 38, SERVER + 0x4000);
    let last = "+ 2 more suspects with 1 to 3 handles each: .why 3, .why -All";
    let one = why(&trace, "-TopN 1");
    assert_eq!(ranks(&one), ["1"]);
    assert!(one.ends_with(&format!("\n+ 1 more suspect\n{last}\n")), "{one}");
    let second = why(&trace, "-TopN 1 1");
    assert_eq!(ranks(&second), ["2"]);
    assert!(second.contains("   server.exe+0x4000\n"), "{second}");
    let by_rank = why(&trace, "-SortBy rank -TopN 2");
    assert_eq!(ranks(&by_rank), ["2", "1"], "the largest number first");
    assert!(by_rank.ends_with(&format!("\n{last}\n")), "{by_rank}");
    assert_eq!(ranks(&why(&trace, "-All -SortBy rank -TopN 2")), ["4", "3"]);
}

#[test]
fn each_trace_has_its_own_headline_and_last_line() {
    let home = tempfile::tempdir().unwrap();
    with_small_suspects().write(home.path().join("a.etl")).unwrap();
    let mut other = trace();
    open(&mut other, 700, 1, SERVER + 0x3000);
    other.write(home.path().join("b.etl")).unwrap();
    let run = run_script(handlescope(home.path()).args(["a.etl", "b.etl"]), ".why\n").ok();
    let (a, b) = run.stdout.split_once("b.etl\n").unwrap();
    assert!(
        a.ends_with("\n+ 2 more suspects with 1 to 3 handles each: .why 2, .why -All\n"),
        "{a}"
    );
    assert!(
        b.starts_with(
            "1 handle leaked by 1 suspect of server.exe\n\n1  1 of 1 Event handle leaked"
        ),
        "{b}"
    );
    assert!(!b.contains("more"), "{b}");
}

#[test]
fn handles_of_system_stacks_closed_at_exit_are_only_counted_beside_others() {
    let mut trace = trace();
    open(&mut trace, 800, 2, NTDLL + 0x1000);
    let text = why(&trace, "");
    assert_eq!(ranks(&text), ["1"], "{text}");
    open(&mut trace, 800, 1, NTDLL + 0x2000);
    let text = why(&trace, "");
    assert_eq!(ranks(&text), ["1"], "{text}");
    assert!(text.ends_with("\n\n+ 1 more suspect with 1 handle: .why 2, .why -All\n"), "{text}");

    open(&mut trace, 800, 2, TOOL + 0x1000);
    open(&mut trace, 800, 3, NTDLL + 0x3000);
    let text = why(&trace, "");
    let shown = "1  3 of 3 Event handles closed only by process exit   tool.exe(800)\n";
    assert!(text.contains(shown), "three are not a few: {text}");
    assert!(text.contains("   tool.exe+0x1000\n"), "a function of the program: {text}");
    assert_eq!(ranks(&text).len(), 2, "{text}");
    assert!(
        text.ends_with("\n\n+ 2 more suspects with 1 to 2 handles each: .why 2, .why -All\n"),
        "{text}"
    );
}

#[test]
fn the_headline_says_what_leaks_of_which_programs_and_what_only_their_ends_close() {
    let mut trace = trace();
    open(&mut trace, 800, 1, TOOL + 0x1000);
    let exits = "1 handle opened by 1 suspect of tool.exe, closed only by process exit";
    assert_eq!(headline(&trace, ""), exits);
    open(&mut trace, 700, 4, SERVER + 0x1000);
    let both = "4 handles leaked by 1 suspect of server.exe; 1 more closed only by the exit of tool.exe (1 more suspect)";
    assert_eq!(headline(&trace, ""), both);
    assert_eq!(headline(&trace, "-pn tool"), exits, "of what is asked for");

    trace.process(900, "third.exe");
    open(&mut trace, 900, 2, 0x7ff7_0000_0000);
    let programs = "6 handles leaked by 2 suspects of 2 programs; 1 more closed only by the exit of tool.exe (1 more suspect)";
    assert_eq!(headline(&trace, ""), programs);
    let view = MappedView { base: 0x10_0000, ..MappedView::default() };
    trace.map(20 * SECOND, (700, 701), view).stack(&KERNEL, &[SERVER + 0x2000]);
    assert!(headline(&trace, "").starts_with("7 handles and views leaked by 3 suspects of "));
}

#[needs_data]
#[test]
fn young_handles_explain_why_the_extraction_counts_more_leaks() {
    let shared = SharedTrace::open("synthetic/growth");
    let home = tempfile::tempdir().unwrap();
    std::fs::copy(shared.etl(), home.path().join("growth.etl")).unwrap();
    let run = run_script(handlescope(home.path()).arg("growth.etl"), ".why\n").ok();
    assert!(run.stderr.contains(" 1,593 leaked handles, 48 leaked views "), "{}", run.stderr);
    let listed = "1,408 handles and views leaked by 24 suspects";
    let young = "\nnot counted: 233 handles and views, and 3 closed only by process exit, of 14 \
                 groups where handles are usually closed; none is older than the oldest closed one \
                 was; also in .dump ObjectRef -Leak -LeakAtExit\n";
    assert!(run.stdout.contains(listed) && run.stdout.contains(young), "{}", run.stdout);
}

#[needs_data]
#[test]
fn the_counts_of_allocations_add_up_to_those_of_the_extraction() {
    let heap = "1 heap allocation of 1 group where allocations are usually freed; 1 is older than \
                any freed one was, but that may be chance";
    let generic = "2 resource allocations of 2 groups where allocations are usually freed; 2 are \
                   older than any freed one was, but that may be chance";
    let valloc = "195 reserve allocations of 21 groups with commit allocations that are counted";
    for (name, [leaked, at_exit], listed, (rest, text)) in [
        ("heap", [256, 21], vec![(276, "heap")], (1, heap)),
        ("generic", [244, 4], vec![(246, "resource")], (2, generic)),
        ("valloc", [431, 21], vec![(253, "commit"), (4, "reserve")], (195, valloc)),
    ] {
        let shared = SharedTrace::open(&format!("synthetic/{name}"));
        let home = tempfile::tempdir().unwrap();
        std::fs::copy(shared.etl(), home.path().join("a.etl")).unwrap();
        let run = run_script(handlescope(home.path()).arg("a.etl"), ".why\n").ok();
        let counts = format!(" {leaked} leaked (and {at_exit} freed only by process exit), ");
        assert!(run.stderr.contains(&counts), "{}", run.stderr);
        for (count, kind) in &listed {
            let headline = format!(" in {count} {kind} allocations leaked by ");
            assert!(run.stdout.contains(&headline), "{}", run.stdout);
        }
        let last = format!("\nnot counted: {text}; also in .dump Resource -Leak\n");
        assert!(run.stdout.ends_with(&last), "{}", run.stdout);
        let listed: u64 = listed.iter().map(|(count, _)| count).sum();
        assert_eq!(listed + rest, leaked + at_exit, "{name}");
    }
}

#[needs_data]
#[test]
fn sizes_that_are_negative_or_zero_are_no_leaked_bytes() {
    let trace = PublishedTrace::open("generic");
    let text = trace.ask(".why -All");
    let amounts = [" Credit allocation leaked   ", " Credit allocation leaked, 100 B of 100 B   "];
    assert!(amounts.iter().all(|amount| text.contains(amount)), "{text}");
    assert!(!text.contains("-300 B") && !text.contains(" 0 B of 0 B"), "{text}");
    let rest = "\n+ 31 more suspects with 1 B to 64.00 KiB each and 2 with 1 allocation each: .why 6, .why -All";
    let text = trace.ask(".why");
    assert!(text.contains(rest) && text.contains(" leaked by 38 suspects "), "{text}");
}

#[needs_data]
#[test]
fn an_object_with_several_handles_is_named_with_their_number() {
    let text = PublishedTrace::open("growth").ask(".why -All");
    let object = "\n   Object: \\Sessions\\1\\BaseNamedObjects\\ConfigBlock (all 37 handles)\n";
    assert!(text.contains(object), "{text}");
}

#[test]
fn handles_without_stacks_are_a_suspect() {
    let mut trace = trace();
    trace.create_handle(SECOND, (700, 701), OBJECT, 4, EVENT);
    assert_eq!(headline(&trace, ""), "1 handle leaked by 1 suspect of server.exe");
    open(&mut trace, 700, 1, SERVER + 0x1000);
    let both = "2 handles leaked by 2 suspects of server.exe";
    assert_eq!(headline(&trace, ""), both);
}

#[test]
fn allocations_have_a_headline_with_their_bytes() {
    let mut trace = trace();
    open(&mut trace, 700, 4, SERVER + 0x1000);
    for step in 0..30_u64 {
        let call = HeapCall::Alloc { address: 0x1000 + 0x1_0000 * step, size: 1024 };
        let ns = SECOND * (step as i64 + 1) + MS;
        trace.heap(ns, (700, 701), 0x1_0000, call).stack(&[], &[SERVER + 0x2000]);
        trace.heap(ns + MS, (800, 801), 0x2_0000, call).stack(&[], &[TOOL + 0x2000]);
    }
    let text = why(&trace, "");
    let lines: Vec<&str> = text.lines().skip(1).take(2).collect();
    let both = "60.00 KiB in 60 heap allocations leaked by 2 suspects of 2 programs, including 30 freed only \
                by the exit of tool.exe";
    assert_eq!(lines, ["4 handles leaked by 1 suspect of server.exe", both]);
}

#[test]
fn a_further_cause_is_printed_where_it_explains_more() {
    let mut trace = super::causes::race(MS / 10, (700, 702), true);
    let text = why(&trace, "-All");
    assert!(
        text.contains("\n   Race: two threads (701, 702) opened the same object 100 µs apart"),
        "{text}"
    );
    assert!(!text.contains("1 of 2 is closed\n"), "{text}");
    super::open(&mut trace, 20 * MS, (700, 701), OBJECT + 0x500, 0x20);
    let text = why(&trace, "-All");
    assert!(
        text.contains(
            "\n   1 of 2: race: two threads (701, 702) opened the same object 100 µs apart"
        ),
        "{text}"
    );
    assert!(text.contains("\n   1 of 3 is closed\n"));
}

#[test]
fn the_first_look_is_a_table_and_the_worst_five_and_says_how_to_see_the_others() {
    let mut trace = trace();
    for number in 0..15 {
        open(&mut trace, 700, 40 - number, SERVER + 0x1000 * u64::from(number + 1));
    }
    let text = why(&trace, "");
    let table: Vec<&str> = text.lines().skip(3).take_while(|line| !line.is_empty()).collect();
    assert!(table[0].ends_with("Type   Process          Function"), "{text}");
    assert_eq!(table.len(), 13, "a heading and the worst twelve: {text}");
    assert!(table[12].starts_with("12  29 of 29 ") && table[12].ends_with("server.exe+0xC000"));
    assert_eq!(ranks(&text), ["1", "2", "3", "4", "5"]);
    let rest = "+ 10 more suspects with 26 to 35 handles each: .why 6, .why -All\n";
    assert!(text.ends_with(rest), "{text}");
    assert_eq!(text.lines().nth(1), Some("495 handles leaked by 15 suspects of server.exe"));

    let sixth = why(&trace, "6");
    assert_eq!(ranks(sixth.split_once('\n').unwrap().1), ["6"], "{sixth}");
    for part in [
        "   ntoskrnl.exe+",
        "   Open over time  ",
        "35 at most, 35 at the end",
        "   server.exe+0x6000",
    ] {
        assert!(sixth.contains(part), "{part}: {sixth}");
    }
    let command = sixth.lines().find(|line| line.contains("-Suspect")).unwrap();
    let id = command.split(' ').find(|word| word.len() == 10).unwrap();
    assert_eq!(why(&trace, id), sixth, "by its id, with the same rank");
    let of_server = text.replace(".why 6, .why -All", ".why server 6, .why server -All");
    assert_eq!(why(&trace, "server"), of_server, "a word names processes");
    assert_eq!(why(&trace, "server 6"), sixth);
    let missing = run_over(&trace, ".why 16\n");
    assert!(missing.status == Some(1), "{missing:?}");
    assert!(missing.stderr.contains("there is no suspect 16; the last one is 15"), "{missing:?}");
}

#[test]
fn a_leak_that_begins_late_is_shown_where_it_begins() {
    let mut trace = trace();
    for number in 0..40_u32 {
        let ns = 30 * SECOND + 700 * MS * i64::from(number);
        let object = OBJECT + 0x100 * u64::from(number);
        trace
            .create_handle(ns, (700, 701), object, 4 * number + 4, EVENT)
            .stack(&KERNEL, &[SERVER]);
    }
    let text = why(&trace, "1");
    let lines: Vec<&str> = text.lines().collect();
    let bars = lines.iter().position(|line| line.contains("Open over time")).unwrap();
    let mark = lines[bars + 1];
    assert_eq!(mark.trim(), "^ leaks since 30.0 s into the trace", "{text}");
    let first_open = lines[bars].chars().position(|bar| bar == '▂').unwrap();
    assert!(mark.find('^').unwrap().abs_diff(first_open) <= 1, "{text}");
}
