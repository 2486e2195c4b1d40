//! Allocations as pictures, and the differences between two traces.

use std::fs;

use handlescope_tests::allocations::{MS, trace};
use handlescope_tests::binary::{ProgramRun, Shell, handlescope, run_over, run_script};
use handlescope_tests::payload::HeapCall;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::Value;

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the picture that a command makes of the trace.
fn picture(command: &str, file: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    trace().write(home.path().join("trace.etl")).unwrap();
    let script = format!("{command}\n");
    let _ = run_script(handlescope(home.path()).arg("trace.etl"), &script).ok();
    fs::read_to_string(home.path().join(file)).unwrap()
}

#[test]
fn a_flame_graph_is_as_wide_as_the_bytes_that_are_lost() {
    let svg = picture(".flame a.svg -Kind heap", "a.svg");
    assert!(svg.contains("<title>all (36 bytes, 100%)"), "{svg}");
    assert!(svg.contains("<title>leaky.exe(700) (36 bytes"), "{svg}");
    assert!(svg.contains("<title>leaky.exe+0x10 (36 bytes"), "{svg}");
    assert!(svg.contains("<title>[heap 0x10000] (36 bytes"), "{svg}");
    let svg = picture(".flame a.svg -Kind * -Count -LeakAtExit", "a.svg");
    assert!(svg.contains("<title>all (2 allocations, 100%)"), "{svg}");
    let text = picture(".flame a.speedscope.json -Kind heap;commit", "a.speedscope.json");
    let document: Value = serde_json::from_str(&text).unwrap();
    let profile = &document["profiles"][0];
    assert_eq!((&profile["unit"], &profile["endValue"]), (&"bytes".into(), &(36 + 16384).into()));
}

#[test]
fn a_plot_draws_the_bytes_that_are_allocated() {
    let svg = picture(".plot a.svg -Kind * -GroupBy type", "a.svg");
    for text in ["allocated bytes", "heap 0x10000", "commit VirtualAlloc", "not yet freed"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    let run = run_over(&trace(), ".plot -Kind heap -GroupBy stack").ok();
    assert!(run.stdout.starts_with("trace: bytes allocated in the trace"), "{}", run.stdout);
    assert!(run.stdout.contains("46 B"), "{}", run.stdout);
    assert!(run.stdout.contains("leaky.exe+0x10"), "{}", run.stdout);
}

#[test]
fn pictures_of_allocations_refuse_what_only_handles_have() {
    for (command, error) in [
        (".plot -Kind heap -Type Event", "-Kind and an option about objects"),
        (".flame a.svg -Kind heap -ObjectName x", "-Kind and an option about objects"),
        (".flame a.svg -Kind gdi", "none of the chosen allocations leaks"),
        (".plot -Kind gdi", "none of the chosen allocations was made"),
    ] {
        let run = run_over(&trace(), command);
        assert_eq!(run.status, Some(1), "{command}: {}", run.stdout);
        assert!(run.stderr.contains(error), "{command}: {}", run.stderr);
    }
}

/// Builds a program that keeps allocating blocks at one of two places, `count` blocks of `size` bytes in all, and frees
/// none.
fn leaks(place: u64, count: u64, size: u64, seconds: i64) -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    let pid = 700 + u32::try_from(place).unwrap();
    trace.process(pid, "leaky.exe");
    trace.module(pid, r"C:\leaky.exe", 0x1000_0000 * place, 0x10000);
    for n in 0..count {
        let call = HeapCall::Alloc { address: 0x10_0000 + n * size, size };
        let time = seconds * 1000 * MS / i64::try_from(count).unwrap() * i64::try_from(n).unwrap();
        trace.heap(time, (pid, 8), 0x10000 * place, call);
        trace.stack(&[], &[0x1000_0000 * place + 0x10]);
    }
    trace.end(seconds * 1000 * MS);
    trace
}

/// Returns state, allocations and whether it got worse for each group, and the exit status.
fn differences(before: &TraceBuilder, after: &TraceBuilder) -> (Vec<Value>, Option<i32>) {
    let home = tempfile::tempdir().unwrap();
    before.write(home.path().join("a.etl")).unwrap();
    after.write(home.path().join("b.etl")).unwrap();
    let command = ".diff -Kind * -json";
    let output = handlescope(home.path()).args(["a.etl", "b.etl", "-c", command]).output().unwrap();
    let run = ProgramRun::from(output);
    let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    let row = |row: &Value| {
        assert!((0.0..=1.0).contains(&row["p_value"].as_f64().unwrap()), "{row}");
        ["state", "before", "after", "after_bytes", "got_worse"].map(|name| row[name].clone())
    };
    let rows = list(&document, "groups").iter().map(|own| Value::from(row(own).to_vec()));
    (rows.collect(), run.status)
}

#[test]
fn groups_that_leak_more_in_the_second_trace_are_worse() {
    use serde_json::json;
    let before = || leaks(1, 10, 10_000, 2);
    let same = (vec![json!(["same", 10, 10, 100_000, false])], Some(0));
    assert_eq!(differences(&before(), &before()), same);
    // Pid, heap and module base differ between runs.
    let worse = (vec![json!(["worse", 10, 20, 200_000, true])], Some(1));
    assert_eq!(differences(&before(), &leaks(2, 20, 10_000, 2)), worse);
    let longer = (vec![json!(["same", 10, 20, 200_000, false])], Some(0));
    assert_eq!(differences(&before(), &leaks(2, 20, 10_000, 4)), longer);
    let few = (vec![json!(["same", 10, 20, 2000, false])], Some(0));
    assert_eq!(differences(&leaks(1, 10, 100, 2), &leaks(2, 20, 100, 2)), few);
    let better = (vec![json!(["better", 20, 10, 100_000, false])], Some(0));
    assert_eq!(differences(&leaks(2, 20, 10_000, 2), &before()), better);
    // A small increase may be chance, and a single block may be anything.
    let chance = (vec![json!(["same", 10, 14, 140_000, false])], Some(0));
    assert_eq!(differences(&before(), &leaks(2, 14, 10_000, 2)), chance);
    let mut idle = TraceBuilder::new();
    idle.process(700, "leaky.exe");
    idle.heap(MS, (700, 8), 0x10000, HeapCall::Free { address: 0x10 });
    idle.end(2000 * MS);
    let one = (vec![json!(["new", 0, 1, 1_000_000, false])], Some(0));
    assert_eq!(differences(&idle, &leaks(2, 1, 1_000_000, 2)), one);
    assert_eq!(
        differences(&idle, &before()),
        (vec![json!(["new", 0, 10, 100_000, true])], Some(1))
    );
    assert_eq!(differences(&before(), &idle), (vec![json!(["gone", 10, 0, 0, false])], Some(0)));
}

#[test]
fn a_flame_graph_of_two_traces_has_the_bytes_of_the_second_and_the_colours_of_what_changed() {
    let shell = Shell::new();
    let picture = |before: &TraceBuilder, after: &TraceBuilder| {
        before.write(shell.path("a.etl")).unwrap();
        after.write(shell.path("b.etl")).unwrap();
        let run = shell.run(&["diff", "a.etl", "b.etl", "-Kind", "heap", "-flame", "d.svg"]);
        assert!(run.stdout.starts_with("SVG export was successful."), "{run:?}");
        (fs::read_to_string(shell.path("d.svg")).unwrap(), run.status)
    };
    let (svg, status) = picture(&leaks(1, 10, 10_000, 2), &leaks(2, 20, 10_000, 2));
    assert!(svg.contains("Leaked in b, compared with a (bytes)"), "{svg}");
    assert!(svg.contains("<title>[heap] (200,000 bytes, 100.00%; +50.00%)"), "{svg}");
    assert_eq!(status, Some(1));
    // In a longer or shorter trace, a steady leak is expected to leak in proportion to the time.
    let (svg, _) = picture(&leaks(1, 10, 10_000, 2), &leaks(2, 20, 10_000, 4));
    assert!(svg.contains("<title>[heap] (200,000 bytes, 100.00%; 0.00%)"), "{svg}");
    let (svg, status) = picture(&leaks(2, 20, 10_000, 4), &leaks(1, 10, 10_000, 2));
    assert!(svg.contains("<title>[heap] (100,000 bytes, 100.00%; 0.00%)"), "{svg}");
    assert_eq!(status, Some(0));
    let mut idle = TraceBuilder::new();
    idle.process(700, "leaky.exe");
    idle.heap(MS, (700, 8), 0x10000, HeapCall::Free { address: 0x10 });
    idle.write(shell.path("b.etl")).unwrap();
    let run = shell.run(&["diff", "a.etl", "b.etl", "-Kind", "heap", "-flame", "e.svg"]).ok();
    let note = "no picture: nothing is left allocated in the second trace";
    assert!(run.stderr.contains(note), "{run:?}");
}

#[test]
fn of_a_suspect_of_allocations_a_difference_has_only_its_groups() {
    let json = |command: &str| -> Value {
        serde_json::from_str(&run_over(&trace(), command).ok().stdout).unwrap()
    };
    let (why, all) = (json(".why -All -json"), json(".diff -Kind * -json"));
    let suspects = list(&why, "suspects");
    let [suspect, other, ..] = suspects else { panic!("{why}") };
    assert_ne!(suspect["id"], other["id"]);
    for suspect in suspects {
        let id = suspect["id"].as_str().unwrap();
        let chosen = json(&format!(".diff -Kind * -Suspect {id} -json"));
        // What the process exit freed is gone at the end.
        assert_eq!(list(&chosen, "groups").is_empty(), suspect["leaked"] == 0, "{suspect}");
        for group in list(&chosen, "groups") {
            assert_eq!(
                (&group["kind"], &group["function"]),
                (&suspect["type"], &suspect["function"])
            );
            assert!(
                list(&all, "groups").iter().any(|of_all| of_all["kept"] == group["kept"]),
                "{all}"
            );
        }
    }
    let unknown = run_over(&trace(), ".diff -Kind * -Suspect 0000");
    assert!(unknown.stderr.contains("no suspect among allocations has the id 0000"), "{unknown:?}");
}
