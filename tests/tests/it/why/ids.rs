//! The id of a suspect is the same in every run, and selects what it leaked.

use std::collections::{BTreeMap, BTreeSet};

use handlescope_tests::allocations::HEAP;
use handlescope_tests::binary::{
    ProgramRun, Shell, handlescope, run_over, run_script, sample_symbols,
};
use handlescope_tests::needs_data;
use handlescope_tests::payload::HeapCall;
use handlescope_tests::published::PublishedTrace;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

use super::{EVENT, MS, OBJECT, USER, asked, close, open, suspects, trace};

const PROGRAM: u64 = 0x7ff6_0000_0000;

fn ids(document: &Value) -> Vec<&str> {
    suspects(document).iter().map(|suspect| suspect["id"].as_str().unwrap()).collect()
}

fn document(printed: &str) -> Value {
    serde_json::from_str(printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// Builds a trace in which a server leaks handles on one stack and heap blocks on another.
fn both() -> TraceBuilder {
    let mut trace = trace();
    for at in 1..=20_u64 {
        let ns = 1_000 * MS * at as i64;
        open(&mut trace, ns, (700, 701), OBJECT + 0x100 * at, 4 * at as u32);
        let call = HeapCall::Alloc { address: HEAP + 0x100 * at, size: 10 };
        trace.heap(ns + MS, (700, 701), HEAP, call).stack(&[], &USER);
    }
    trace
}

/// Builds a trace with so many suspects that some ids start alike. Each leaked one handle, on its own stack.
fn many() -> TraceBuilder {
    let mut trace = trace();
    trace.module(700, r"C:\server.exe", PROGRAM, 0x10_0000);
    for at in 1..=1000_u64 {
        let ns = MS * at as i64;
        let object = OBJECT + 0x100 * at;
        trace.create_handle(ns, (700, 701), object, 4 * at as u32, EVENT);
        trace.stack(&[], &[PROGRAM + 0x10 * at]);
    }
    trace
}

#[test]
fn an_id_is_the_same_in_every_run_and_in_whatever_place_its_trace_is_loaded() {
    let shell = Shell::new();
    both().write(shell.path("both.etl")).unwrap();
    let symbols = sample_symbols();
    let of = |files: &[&str], threads: &str| {
        let mut program = shell.command(&["--symbol-path", symbols.to_str().unwrap()]);
        program.args(files).env("RAYON_NUM_THREADS", threads).env("POLARS_MAX_THREADS", threads);
        let document = document(&run_script(&mut program, ".why -json\n").ok().stdout);
        let mut of_files: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for suspect in suspects(&document) {
            let file = &document["files"][suspect["file"].as_u64().unwrap() as usize];
            let id = suspect["id"].as_str().unwrap().to_owned();
            of_files.entry(file["path"].as_str().unwrap().to_owned()).or_default().push(id);
        }
        of_files
    };
    let expected = of(&["leaky.etl", "both.etl"], "1");
    // These are the same in every version.
    let sample = ["33434dfa4c", "774d09aefa", "dc070df8cf", "763824f706"];
    assert_eq!(expected["leaky.etl"], sample);
    assert_eq!(expected["both.etl"].len(), 2);
    assert_eq!(of(&["both.etl", "leaky.etl"], "4"), expected);
    for file in ["leaky.etl", "both.etl"] {
        let alone = of(&[file], "2");
        assert_eq!(alone[file], expected[file]);
    }
}

#[needs_data]
#[test]
fn an_id_is_the_same_with_other_numbers_of_threads() {
    for name in ["growth", "valloc", "generic"] {
        let trace = PublishedTrace::open(name);
        let of = |threads: &str| -> Vec<String> {
            let printed = trace.ask_with(".why -json", &[("RAYON_NUM_THREADS", threads)]);
            ids(&document(&printed)).into_iter().map(str::to_owned).collect()
        };
        let alone = of("1");
        let each: BTreeSet<&String> = alone.iter().collect();
        assert!(alone.len() > 20 && each.len() == alone.len(), "{name}: {alone:?}");
        assert_eq!(alone, of("3"), "{name}");
    }
}

#[test]
fn an_id_finds_its_suspect_with_symbols_and_without() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let with = ["--symbol-path", symbols.to_str().unwrap()];
    let ask = |line: &str, options: &[&str]| {
        shell.run(&[options, &["leaky.etl", "-c", line]].concat()).ok().stdout
    };
    let listed = |id: &str, options: &[&str]| -> Vec<String> {
        let shown = document(&ask(&format!(".dump ObjectRef -Suspect {id} -json"), options));
        shown["objects"].as_array().unwrap().iter().map(|object| object["id"].to_string()).collect()
    };
    let named = document(&ask(".why -json", &with));
    let unnamed = document(&ask(".why -json", &[]));
    for suspect in suspects(&named) {
        let id = suspect["id"].as_str().unwrap();
        let other = suspect["id_without_symbols"].as_str().unwrap();
        let of_other = suspects(&unnamed).iter().find(|suspect| suspect["id"] == other).unwrap();
        assert_eq!(of_other["id_without_symbols"], Value::Null);
        let expected = listed(id, &with);
        assert!(!expected.is_empty());
        let both = format!("{id}-{other}");
        for (id, options) in [(other, &with[..]), (other, &[]), (&both, &with), (&both, &[])] {
            assert_eq!(listed(id, options), expected, "{id} {options:?}");
        }
        let in_full = ask(&format!(".why {other}"), &with);
        assert!(in_full.contains(&format!(" -Suspect {both} ")), "{in_full}");
        let refused = shell.run(&["leaky.etl", "-c", &format!(".why {id}")]);
        assert!(
            refused.stderr.contains("an id made with symbols needs the same symbols"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn ids_depend_on_the_names_of_functions() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let of = |arguments: &[&str]| {
        document(&shell.run(&[&["why", "leaky.etl", "-json"], arguments].concat()).ok().stdout)
    };
    let (with, without) = (of(&["--symbol-path", symbols.to_str().unwrap()]), of(&[]));
    assert!(ids(&with).iter().all(|id| !ids(&without).contains(id)), "{with} {without}");
}

#[test]
fn the_beginning_of_an_id_is_enough_where_it_is_that_of_no_other() {
    let home = tempfile::tempdir().unwrap();
    many().write(home.path().join("many.etl")).unwrap();
    let run = |script: &str| -> ProgramRun {
        run_script(handlescope(home.path()).arg("many.etl"), &format!("{script}\n"))
    };
    let all = document(&run(".why -json").ok().stdout);
    let by_process = document(&run(".why -ByProcess -json").ok().stdout);
    assert_eq!(ids(&all).len(), 1000);
    let mut beginnings: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for id in ids(&all).into_iter().chain(ids(&by_process)) {
        beginnings.entry(&id[..4]).or_default().insert(id);
    }
    let several = beginnings.iter().find(|(_, ids)| ids.len() > 1);
    let (beginning, found) = several.expect("some ids that begin alike");
    let refused = run(&format!(".dump ObjectRef -Suspect {beginning}"));
    let list = found.iter().copied().collect::<Vec<_>>().join(", ");
    let expected = format!("several suspect ids begin with {beginning}: {list}; write more digits");
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    assert!(refused.status != Some(0) && refused.stdout.is_empty(), "{}", refused.stdout);
    let longer =
        run(&format!(".dump ObjectRef -Suspect {} -json", list.split(", ").next().unwrap()));
    assert_eq!(document(&longer.ok().stdout)["objects"].as_array().unwrap().len(), 1);

    let (alone, _) = beginnings.iter().find(|(_, ids)| ids.len() == 1).unwrap();
    let one = run(&format!(".dump ObjectRef -Suspect {} -json", alone.to_uppercase())).ok();
    assert_eq!(document(&one.stdout)["objects"].as_array().unwrap().len(), 1);

    let unknown = (0..0xffff_u32)
        .map(|id| format!("{id:04x}"))
        .find(|id| !beginnings.contains_key(id.as_str()))
        .unwrap();
    for (command, what) in [
        (".dump ObjectRef", "handles"),
        (".flame a.svg", "handles"),
        (".plot", "handles"),
        (".report a.html", "handles or allocations"),
    ] {
        let refused = run(&format!("{command} -Suspect {unknown}"));
        let expected = format!("no suspect among {what} has the id {unknown}; .dump Why lists ");
        assert!(refused.stderr.contains(&expected), "{command}: {}", refused.stderr);
        assert_ne!(refused.status, Some(0), "{command}");
    }
    // Without any allocations in the trace, the answer is empty, whatever the id.
    let empty = run(&format!(".dump Resource -Suspect {unknown} -json")).ok();
    assert_eq!(document(&empty.stdout)["totals"], json!([]));
}

#[test]
fn a_suspect_is_searched_for_in_each_trace() {
    let home = tempfile::tempdir().unwrap();
    both().write(home.path().join("a.etl")).unwrap();
    many().write(home.path().join("b.etl")).unwrap();
    both().write(home.path().join("c.etl")).unwrap();
    let run = |script: &str| {
        let mut program = handlescope(home.path());
        run_script(program.args(["a.etl", "b.etl", "c.etl"]), &format!("{script}\n")).ok().stdout
    };
    let all = document(&run(".why -json"));
    let of_file = |file: u64| suspects(&all).iter().find(move |own| own["file"] == file).unwrap();
    assert_eq!(of_file(0)["id"], of_file(2)["id"], "the same program, type and functions");
    let id = of_file(0)["id"].as_str().unwrap();
    let shown = document(&run(&format!(".dump ObjectRef -Suspect {id} -json")));
    let files: Vec<&Value> =
        shown["objects"].as_array().unwrap().iter().map(|object| &object["file"]).collect();
    let count = |file: u64| files.iter().filter(|own| ***own == file).count();
    assert_eq!([count(0), count(1), count(2)], [20, 0, 20]);
}

#[test]
fn other_options_choose_among_the_leaks_of_a_suspect_whose_totals_count_all() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let run = |line: &str| {
        shell.run(&["--symbol-path", symbols.to_str().unwrap(), "leaky.etl", "-c", line]).ok()
    };
    let why = document(&run(".why -json").stdout);
    for suspect in suspects(&why) {
        let (id, leaked) = (suspect["id"].as_str().unwrap(), suspect["leaked"].as_u64().unwrap());
        let exits = suspect["closed_at_exit"].as_u64().unwrap();
        for (options, count) in [
            ("", leaked + exits),
            ("-Leak", leaked),
            ("-LeakAtExit", exits),
            ("-Type Thread", if suspect["type"] == "Thread" { leaked } else { 0 }),
            ("-RelatedProcess !4", leaked + exits),
            ("-MinMaxTime 1000", 0),
        ] {
            let line = format!(".dump ObjectRef -Suspect {id} {options} -json");
            let shown = document(&run(&line).stdout);
            let events = shown["objects"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|object| object["events"].as_array().unwrap());
            assert_eq!(events.count() as u64, count, "{line}: {shown}");
        }
        let line = format!(".dump ObjectRef -Suspect {id} -json");
        let totals = document(&run(&line).stdout)["totals"].clone();
        let total = |name: &str| totals[name].as_u64().unwrap();
        let opened = total("handles_created") + total("handles_duplicated") + total("map_count");
        assert_eq!(opened, suspect["created"].as_u64().unwrap(), "{line}: {totals}");
        assert_eq!(opened - total("handles_closed") - total("unmap_count"), leaked);
        assert_eq!((total("leaked_handles"), total("closed_at_exit")), (leaked, exits));
        let groups =
            format!(".dump ObjectRef -Suspect {id} -GroupBy process,type,createstack -json");
        let groups = document(&run(&groups).stdout);
        let groups = groups["groups"].as_array().unwrap();
        assert_eq!(groups.len(), 1);
        assert_eq!(
            (&groups[0]["leaked"], &groups[0]["closed_at_exit"]),
            (&json!(leaked), &json!(exits))
        );
    }
    let id = suspects(&why)[0]["id"].as_str().unwrap();
    let nothing = run(&format!(".dump ObjectRef -Type Event -pn nope -Suspect {id}"));
    assert!(nothing.stderr.contains("passes -pn nope"), "{}", nothing.stderr);
    let nothing = run(&format!(".dump ObjectRef -Type Thread -Suspect {id}"));
    let expected = format!("passes -Suspect {id}");
    assert!(nothing.stderr.contains(&expected), "{}", nothing.stderr);
}

#[test]
fn pictures_and_a_page_are_of_the_suspect_that_is_asked_for() {
    let shell = Shell::new();
    both().write(shell.path("both.etl")).unwrap();
    let run = |line: &str| shell.run(&["both.etl", "-c", line]);
    let why = document(&run(".why -json").ok().stdout);
    let [handles, blocks] = suspects(&why) else { panic!("{why}") };
    let id = |suspect: &Value| suspect["id"].as_str().unwrap().to_owned();
    let (handles, blocks) = (id(handles), id(blocks));
    let picture = |line: &str, file: &str| {
        let _ = run(line).ok();
        std::fs::read_to_string(shell.path(file)).unwrap()
    };
    let flame = picture(&format!(".flame a.svg -Suspect {handles}"), "a.svg");
    assert!(flame.contains("all (20 handles, 100%)"), "{flame}");
    let flame = picture(&format!(".flame b.svg -Kind heap -Count -Suspect {blocks}"), "b.svg");
    assert!(flame.contains("all (20 "), "{flame}");
    let plot = picture(&format!(".plot c.svg -Suspect {handles}"), "c.svg");
    assert!(plot.contains("server.exe(700)"), "{plot}");
    for (id, kind) in [(&handles, "Event"), (&blocks, "heap")] {
        let page = picture(&format!(".report page.html -Suspect {id} -Force"), "page.html");
        let commands = page.matches("-Suspect ").count();
        assert_eq!(commands, 3, "its own line, one suspect, and the Markdown of that");
        assert!(page.contains(&format!("data-title=\"Type\">{kind}<")), "{page}");
    }
    // A suspect of handles is no suspect of allocations.
    let refused = run(&format!(".dump Resource -Suspect {handles}"));
    assert!(
        refused.stderr.contains("no suspect among allocations has the id "),
        "{}",
        refused.stderr
    );
    let refused = run(&format!(".dump ObjectRef -Suspect {blocks}"));
    assert!(refused.stderr.contains("no suspect among handles has the id "), "{}", refused.stderr);
}

#[test]
fn a_bad_id_is_refused_with_what_one_looks_like() {
    let run = run_over(&both(), ".dump ObjectRef -Suspect leaky\n");
    let expected = "'leaky' is not the id of a suspect (4 to 10 hexadecimal digits, like 3f2a)";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
}

#[test]
fn rows_of_every_format_have_the_id() {
    let trace = both();
    let why = asked(&trace, "");
    for format in ["-csv", "-ndjson"] {
        let printed = run_over(&trace, &format!(".why {format}\n")).ok().stdout;
        for id in ids(&why) {
            assert!(printed.contains(id), "{format}: {printed}");
        }
    }
    let text = run_over(&trace, ".why\n").ok().stdout;
    for (id, kind) in ids(&why).into_iter().zip(["ObjectRef", "Resource"]) {
        let command = format!("   .dump {kind} -Suspect {id} -ShowStack\n");
        assert!(text.contains(&command), "{text}");
    }
}

#[test]
fn commands_of_a_page_of_trimmed_stacks_show_its_suspects() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let run = |line: &str| {
        shell.run(&["--symbol-path", symbols.to_str().unwrap(), "leaky.etl", "-c", line]).ok()
    };
    let _ = run(".report page.html -FoldStack *Event*;*Session*");
    let page = std::fs::read_to_string(shell.path("page.html")).unwrap();
    let member = |text: &str, name: &str| -> u64 {
        let start = format!("\"{name}\":");
        let digits = text.split(&start).nth(1).unwrap().split(',').next().unwrap();
        digits.parse().unwrap()
    };
    let suspects: Vec<&str> = page.split("{\"rank\":").skip(1).collect();
    assert!(suspects.len() > 2, "{page}");
    for suspect in suspects {
        let command = suspect.split("\"command\":\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(command.contains(" -FoldStack *Event*;*Session* "), "{command}");
        let run = run(&format!("{command} -json"));
        assert!(!run.stderr.contains("-FoldStack has no effect"), "{}", run.stderr);
        let shown = document(&run.stdout);
        let counts = ["leaked_handles", "closed_at_exit"].map(|own| shown["totals"][own].as_u64());
        assert_eq!(counts.iter().flatten().sum::<u64>(), member(suspect, "amount"), "{command}");
    }
}

#[test]
fn a_suspect_is_listed_by_itself() {
    for trace in [both(), many()] {
        let all = asked(&trace, "");
        for suspect in &suspects(&all)[..2] {
            let id = suspect["id"].as_str().unwrap();
            let document = asked(&trace, &format!("-Suspect {id}"));
            let [alone] = suspects(&document) else { panic!("{document}") };
            for member in ["id", "leaked", "created", "bytes", "verdict", "evidence", "type"] {
                assert_eq!(alone[member], suspect[member], "{member}");
            }
        }
    }
}

#[test]
fn of_an_object_that_two_suspects_opened_each_shows_its_handle_alone() {
    let mut trace = trace();
    trace.module(700, r"C:\server.exe", PROGRAM, 0x10_0000);
    for at in 1..=6_u64 {
        let (ns, object) = (100 * MS * at as i64, OBJECT + 0x100 * at);
        for (step, place) in (0..).zip([PROGRAM + 0x1000, PROGRAM + 0x2000]) {
            let handle = 8 * at as u32 + 4 * step;
            trace.create_handle(ns + MS * i64::from(step), (700, 701), object, handle, EVENT);
            trace.stack(&[], &[place]);
        }
        if at > 4 {
            close(&mut trace, ns + 20 * MS, (700, 701), object, 8 * at as u32);
        }
    }
    let why = asked(&trace, "");
    assert_eq!(suspects(&why).len(), 2, "{why}");
    for suspect in suspects(&why) {
        let id = suspect["id"].as_str().unwrap();
        let printed = run_over(&trace, &format!(".dump ObjectRef -Suspect {id} -json\n")).ok();
        let shown = document(&printed.stdout);
        let objects = shown["objects"].as_array().unwrap();
        let is_first = suspect["function"].as_str().unwrap().ends_with("0x1000");
        assert_eq!(objects.len(), if is_first { 4 } else { 6 }, "{suspect}");
        for object in objects {
            let events = object["events"].as_array().unwrap();
            assert_eq!(events.len(), 1, "{object}");
            let handle = events[0]["handle"].as_str().unwrap();
            let handle = u32::from_str_radix(handle.trim_start_matches("0x"), 16).unwrap();
            assert_eq!(handle % 8, if is_first { 0 } else { 4 }, "{object}");
        }
    }
}
