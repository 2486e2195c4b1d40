//! Allocations in the page of `.report`, with and without handles, and by count in `.plot` and `.flame`.

use std::fs;
use std::process::{Command, Stdio};

use handlescope_tests::allocations::{MS, gdi_handle, trace};
use handlescope_tests::binary::{ProgramRun, Shell};
use handlescope_tests::needs_chromium;
use handlescope_tests::payload::HeapCall;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Value, json};

/// Returns the data and the HTML of the page about a trace, after running a command.
fn page(trace: &TraceBuilder, line: &str) -> (Value, String, ProgramRun) {
    let shell = Shell::new();
    trace.write(shell.path("trace.etl")).unwrap();
    let run = shell.run(&["trace.etl", "-c", line]).ok();
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    (serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap(), page.clone(), run)
}

fn file(trace: &TraceBuilder, line: &str) -> Value {
    page(trace, line).0["files"][0].clone()
}

/// Builds kernel handles and GDI handles beside the allocations.
fn mixed() -> TraceBuilder {
    let mut trace = trace();
    trace.object_type(16, "Event");
    for n in 0..12_u32 {
        let object = 0xffff_8100_0000_1000 + u64::from(n) * 0x100;
        let ns = MS * (10 + i64::from(n) * 5) + MS / 3;
        trace.create_handle(ns, (700, 701), object, 4 * (n + 1), 16).stack(&[], &[0x1000_0060]);
    }
    gdi_handle(&mut trace, 30 * MS, 700, 0x20010);
    gdi_handle(&mut trace, 50 * MS, 700, 0x20020);
    trace.end(100 * MS);
    trace
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().unwrap_or_else(|| panic!("{member}: {value}"))
}

fn texts(values: &[Value], member: &str) -> Vec<String> {
    values.iter().map(|own| own[member].as_str().unwrap().to_owned()).collect()
}

fn kind<'a>(file: &'a Value, name: &str) -> &'a Value {
    list(file, "kinds").iter().find(|own| own["kind"] == name).unwrap()
}

/// Returns the values drawn at the end and at the peak, summed over all processes.
fn drawn(kind: &Value) -> (u64, u64) {
    let series = list(&kind["timeline"], "series");
    let open = |one: &Value| -> Vec<u64> {
        list(one, "open").iter().map(|own| own.as_u64().unwrap()).collect()
    };
    let mut sums = vec![0; open(&series[0]).len()];
    for one in series {
        sums.iter_mut().zip(open(one)).for_each(|(sum, own)| *sum += own);
    }
    (*sums.last().unwrap(), *sums.iter().max().unwrap())
}

fn width(kind: &Value) -> u64 {
    list(kind, "flame").iter().map(|own| own["count"].as_u64().unwrap()).sum()
}

#[test]
fn a_page_about_allocations_has_pictures_of_each_kind_and_nothing_of_handles() {
    let (data, page, run) = page(&trace(), ".report page.html");
    let file = &data["files"][0];
    assert_eq!(file["has_handles"], json!(false));
    assert_eq!(texts(list(file, "kinds"), "kind"), ["heap", "commit", "reserve"]);
    let heap = kind(file, "heap");
    assert_eq!(heap["unit"], json!("bytes"));
    let totals = [
        "heap: 4 (46 B) allocated, 3 (36 B) leaked, 0 (0 B) freed only by process exit",
        "(0 B) leaked, 1 (16.00 KiB) freed only by process exit",
    ];
    totals.into_iter().for_each(|text| assert!(page.contains(text), "{text}: {page}"));
    // 10 bytes are freed; 46 were allocated at the peak.
    assert_eq!((drawn(heap), width(heap)), ((36, 46), 36));
    let commit = kind(file, "commit");
    // What the process exit freed is not allocated at the end, but is in the flame graph.
    assert_eq!((drawn(commit), width(commit)), ((0, 0x8000), 0x4000));
    let frames = list(&list(heap, "flame")[0], "frames");
    let names = frames.iter().map(|at| &data["frames"][at.as_u64().unwrap() as usize]["name"]);
    let names: Vec<&Value> = names.collect();
    assert_eq!(names, ["leaky.exe(700)", "leaky.exe+0x10", "[heap 0x10000]"]);
    let row = &list(file, "allocated")[2];
    assert_eq!(
        (&row["kind"], &row["function"], &row["leaked"], &row["bytes"]),
        (&json!("heap"), &json!("leaky.exe+0x10"), &json!(3), &json!(36))
    );
    let older = "allocations from before the trace are unknown; 1 free matches no known allocation";
    assert!(page.contains(&format!("<p class=\"caveat\">{older}</p>")), "{page}");
    assert!(run.stderr.contains(older), "{}", run.stderr);
}

#[needs_chromium]
#[test]
fn a_browser_shows_the_pictures_of_allocations_and_no_empty_sections_of_handles() {
    let shell = Shell::new();
    trace().write(shell.path("trace.etl")).unwrap();
    let _ = shell.run(&["trace.etl", "-c", ".report page.html"]).ok();
    let profile = format!("--user-data-dir={}", shell.path("profile").to_str().unwrap());
    let address = format!("file://{}", shell.path("page.html").to_str().unwrap());
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000"])
        .args([profile.as_str(), "--dump-dom", address.as_str()])
        .stdin(Stdio::null())
        .output()
        .expect("chromium starts");
    let page = String::from_utf8(output.stdout).unwrap();
    let headings: Vec<&str> = page
        .split("<h2>")
        .skip(1)
        .filter_map(|rest| rest.split_once("</h2>").map(|(heading, _)| heading))
        .collect();
    let expected = [
        "Suspects",
        "Allocated bytes over time: heap",
        "Flame graph of allocations not freed: heap",
        "Allocated bytes over time: commit",
        "Flame graph of allocations not freed: commit",
        "Allocated bytes over time: reserve",
        "Flame graph of allocations not freed: reserve",
        "Suspects in detail",
        "All groups of allocations",
    ];
    assert_eq!(headings, expected, "{page}");
    let line = "heap: 4 (46 B) allocated, 3 (36 B) leaked, 0 (0 B) freed only by process exit";
    for text in [line, "all (16.00 KiB, 100.0 %)", "leaky.exe(700): 36 B at the end"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("0 handles"), "{page}");
}

#[test]
fn allocations_stand_beside_handles_and_what_has_no_bytes_is_counted() {
    let file = file(&mixed(), ".report page.html");
    assert_eq!(file["has_handles"], json!(true));
    assert_eq!(texts(list(&file, "kinds"), "kind"), ["heap", "commit", "reserve", "gdi"]);
    let gdi = kind(&file, "gdi");
    assert_eq!((&gdi["unit"], drawn(gdi), width(gdi)), (&json!("allocations"), (2, 2), 2));
    assert_eq!(list(&file, "groups").len(), 1);
    // A page about handles alone does not mention allocations.
    let shell = Shell::new();
    let _ = shell.run(&["leaky.etl", "-c", ".report page.html"]).ok();
    let text = fs::read_to_string(shell.path("page.html")).unwrap();
    assert!(text.contains("\"kinds\":[],"), "{text}");
    assert!(
        text.contains("<p class=\"totals\">101 handles opened") && !text.contains("allocated,")
    );
}

#[test]
fn options_choose_allocations_as_they_choose_handles() {
    let of = |options: &str| {
        let file = file(&mixed(), &format!(".report page.html {options}"));
        let types: Vec<String> = list(&file, "suspects")
            .iter()
            .map(|own| own["line"][4].as_str().unwrap())
            .map(str::to_owned)
            .collect();
        (texts(list(&file, "kinds"), "kind"), types)
    };
    let all = of("");
    assert!(all.1.contains(&"Event".to_owned()) && all.1.contains(&"heap".to_owned()), "{all:?}");
    assert!(all.1.contains(&"commit".to_owned()), "{all:?}");
    let (kinds, types) = of("-pn tool");
    assert_eq!(kinds, ["commit", "reserve"]);
    assert!(types.iter().all(|own| own == "commit" || own == "reserve"), "{types:?}");
    assert_eq!(of("-Type heap"), (vec!["heap".to_owned()], vec!["heap".to_owned()]));
    let (kinds, types) = of("-CreateStack leaky.exe+0x10");
    assert_eq!((kinds, types), (vec!["heap".to_owned()], vec!["heap".to_owned()]));
    // Allocations have no names.
    let (kinds, types) = of("-ObjectName !*x*");
    assert_eq!((kinds, types), (Vec::new(), vec!["Event".to_owned()]));
    let (kinds, _) = of("-MinMaxTime 0.0025s 0.0035s");
    assert_eq!(kinds, ["commit", "reserve"]);
}

#[test]
fn names_from_a_trace_are_text_among_allocations() {
    const HOSTILE: &str = "x<!--</script><script>owned()\u{202e}";
    let mut trace = TraceBuilder::new();
    trace.process(700, HOSTILE);
    trace.module(700, &format!(r"C:\{HOSTILE}"), 0x40_0000, 0x2_0000);
    let call = HeapCall::Alloc { address: 0x10, size: 100 };
    trace.heap(MS, (700, 701), 0x1_0000, call).stack(&[], &[0x40_1000]);
    trace.end(10 * MS);
    let shell = Shell::new();
    trace.write(shell.path("trace.etl")).unwrap();
    let _ = shell.run(&["trace.etl", "-c", ".report page.html"]).ok();
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    assert!(!page.contains("<script>owned") && !page.contains('\u{202e}'), "{page}");
    assert!(page.contains("x\\u003C!--"), "{page}");
}

#[test]
fn plots_and_flame_graphs_count_what_has_no_bytes_or_on_request() {
    let shell = Shell::new();
    mixed().write(shell.path("trace.etl")).unwrap();
    let run = |line: &str| shell.run(&["trace.etl", "-c", line]).ok().stdout;
    let text = run(".plot -Kind gdi");
    assert!(text.starts_with("trace: allocations of the trace not yet freed\n"), "{text}");
    let row =
        |text: &str| text.lines().last().unwrap().split_whitespace().take(2).collect::<String>();
    assert_eq!(row(&text), "22", "{text}");
    let text = run(".plot -Kind heap -Count -GroupBy stack");
    assert_eq!(row(&text), "43", "{text}");
    assert!(text.contains("Allocated by"), "{text}");
    let _ = run(".flame a.svg -Kind gdi");
    let svg = fs::read_to_string(shell.path("a.svg")).unwrap();
    assert!(svg.contains("<title>all (2 allocations, 100%)"), "{svg}");
    let _ = run(".diff 0.04s -Kind gdi -flame b.svg");
    let svg = fs::read_to_string(shell.path("b.svg")).unwrap();
    assert!(svg.contains("Allocated at end, compared with 0.04s (allocations)"), "{svg}");
    assert!(svg.contains("<title>[gdi bitmap] (2 allocations, 100.00%; +50.00%)"), "{svg}");
}
