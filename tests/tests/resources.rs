//! Allocations: those of the published traces have their known answers, and every option does what it says.

use std::collections::BTreeMap;
use std::fs;

use handlescope_tests::binary::{Run, handlescope, run_over, run_script};
use handlescope_tests::data::{SharedTrace, synthetic};
use handlescope_tests::needs_data;
use handlescope_tests::payload::{HeapCall, MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, RangeRecord};
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Deserializer, Value};

const MS: i64 = 1_000_000;
const HEAP: u64 = 0x1_0000;

/// Traces whose events are not read yet.
const NOT_READ: [&str; 1] = ["generic"];

/// Members of totals that are counted.
const COUNTED: [&str; 15] = [
    "allocs",
    "alloc_bytes",
    "frees",
    "freed_bytes",
    "replaced",
    "replaced_bytes",
    "destroyed",
    "destroyed_bytes",
    "orphan_frees",
    "orphan_bytes",
    "ignored",
    "at_exit",
    "at_exit_bytes",
    "outstanding",
    "outstanding_bytes",
];

/// Names of the published traces that have known answers about allocations, with these.
fn published() -> Vec<(String, Value)> {
    let files = fs::read_dir(synthetic()).unwrap().map(|entry| entry.unwrap().path());
    let mut published: Vec<(String, Value)> = files
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".expected.json")?.to_owned();
            let known: Value = serde_json::from_str(&fs::read_to_string(&path).ok()?).unwrap();
            (known.get("resources").is_some() && !NOT_READ.contains(&name.as_str()))
                .then_some((name, known))
        })
        .collect();
    published.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(published.len() >= 2);
    published
}

/// The document that a command prints over a published trace.
fn document(name: &str, command: &str) -> Value {
    let trace = SharedTrace::open(&format!("synthetic/{name}"));
    let (home, pdbs) = (tempfile::tempdir().unwrap(), trace.pdbs());
    fs::copy(trace.etl(), home.path().join("trace.etl")).unwrap();
    let mut program = handlescope(home.path());
    program.arg("--symbol-path").arg(pdbs.path()).arg("trace.etl");
    serde_json::from_str(&run_script(&mut program, &format!("{command}\n")).ok().stdout).unwrap()
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().map_or(&[], Vec::as_slice)
}

/// Rows by what they are about.
fn by_key(rows: &[Value], members: &[&str]) -> BTreeMap<String, Value> {
    let key = |row: &Value| members.iter().map(|member| row[member].to_string() + " ").collect();
    let map: BTreeMap<String, Value> = rows.iter().map(|row| (key(row), row.clone())).collect();
    assert_eq!(map.len(), rows.len(), "rows that are about the same");
    map
}

#[needs_data]
#[test]
fn totals_of_published_traces_are_those_of_the_script() {
    for (name, known) in published() {
        let document = document(&name, ".dump Resource -json");
        let key = ["kind", "allocator", "process", "process_start_ns"];
        let found = by_key(list(&document, "totals"), &key);
        let known = by_key(list(&known["resources"], "totals"), &key);
        assert_eq!(found.keys().collect::<Vec<_>>(), known.keys().collect::<Vec<_>>(), "{name}");
        for (key, known) in known {
            for member in COUNTED {
                let known = known.get(member).cloned().unwrap_or(Value::from(0));
                assert_eq!(found[&key][member], known, "{name}: {key}: {member}");
            }
        }
    }
}

/// The frames of a stack, or that there is none.
fn frames(stacks: &Value, stack: &Value) -> Value {
    let frame = |frame: &Value| match (frame["module"].as_str(), frame["function"].as_str()) {
        (Some(module), Some(function)) => format!("{module}!{function}"),
        (Some(module), None) => format!("{module}+{}", frame["rva"].as_str().unwrap()),
        _ => "<UnknownMethod>".to_owned(),
    };
    match &stacks[stack.to_string()] {
        Value::Array(frames) => Value::from(frames.iter().map(frame).collect::<Vec<_>>()),
        _ => Value::Null,
    }
}

#[needs_data]
#[test]
fn what_nothing_freed_in_published_traces_is_that_of_the_script_frame_for_frame() {
    for (name, known) in published() {
        let document = document(&name, ".dump Resource -ShowStack -json");
        for member in ["outstanding", "at_exit"] {
            let with_frames = |row: &Value, frames: Value| {
                let mut row = row.clone();
                row["frames"] = frames;
                row
            };
            let known = list(&known["resources"], member).iter().map(|row| {
                let stack = usize::try_from(row["stack"].as_i64().unwrap()).ok();
                let frames = stack.map_or(Value::Null, |stack| known["stacks"][stack].clone());
                with_frames(row, frames)
            });
            let found = list(&document, member).iter();
            let found =
                found.map(|row| with_frames(row, frames(&document["stacks"], &row["stack"])));
            let key = ["kind", "allocator", "process", "process_start_ns", "by", "frames"];
            let (found, known) = (
                by_key(&found.collect::<Vec<_>>(), &key),
                by_key(&known.collect::<Vec<_>>(), &key),
            );
            let keys = |rows: &BTreeMap<String, Value>| rows.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(&found), keys(&known), "{name}: {member}");
            for (key, known) in known {
                for figure in ["count", "bytes", "first_ns", "last_ns"] {
                    assert_eq!(found[&key][figure], known[figure], "{name}: {key}: {figure}");
                }
            }
        }
    }
}

#[needs_data]
#[test]
fn every_way_of_grouping_counts_the_same() {
    let groupings = [
        "-GroupBy kind",
        "-GroupBy process",
        "-GroupBy kind,thread",
        "-GroupBy createstack",
        "-GroupBy allocator,freestack",
        "-GroupBy by,end,size",
        "-ShowTotal File",
    ];
    for (name, known) in published() {
        let sum = |rows: &[Value], member: &str| -> i64 {
            rows.iter().filter_map(|row| row[member].as_i64()).sum()
        };
        let known = list(&known["resources"], "totals");
        for grouping in groupings {
            let document = document(&name, &format!(".dump Resource {grouping} -json"));
            let rows = list(&document, "groups");
            // An allocation that ended in parts, and a call that ended several, count in each group.
            let splits = ["end", "size", "freestack"].iter().any(|own| grouping.contains(own));
            let splits_calls = splits || grouping.contains("thread") || grouping.contains("stack");
            for member in COUNTED {
                let (found, known) = (sum(rows, member), sum(known, member));
                let is_split = !member.ends_with("_bytes")
                    && if member == "frees" { splits_calls } else { splits };
                assert!(found >= known, "{name} {grouping}: {member}");
                assert!(
                    is_split || found == known,
                    "{name} {grouping}: {member}: {found}, {known}"
                );
            }
        }
    }
}

/// Two programs: one leaks blocks of a heap, one commits memory and ends.
fn trace() -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    trace.process(700, "leaky.exe");
    trace.process(800, "tool.exe").started(MS).ended(90 * MS);
    trace.module(700, r"C:\leaky.exe", 0x1000_0000, 0x10000);
    trace.module(800, r"C:\tool.exe", 0x2000_0000, 0x10000);
    let leaky = (700, 701);
    for n in 0..4u64 {
        let (time, address) = (MS * (2 + n as i64 * 10), 0x5000 + n * 0x100);
        let call = HeapCall::Alloc { address, size: 10 + n };
        trace.heap(time, leaky, HEAP, call).stack(&[], &[0x1000_0010]);
    }
    trace.heap(60 * MS, leaky, HEAP, HeapCall::Free { address: 0x5000 });
    trace.heap(61 * MS, leaky, HEAP, HeapCall::Free { address: 0x5000 });
    let range =
        RangeRecord { base: 0x10_0000, size: 0x4000, pid: 800, flags: MEM_COMMIT | MEM_RESERVE };
    trace.virtual_alloc(3 * MS, (800, 801), range).stack(&[], &[0x2000_0020]);
    let other = RangeRecord { base: 0x20_0000, ..range };
    trace.virtual_alloc(4 * MS, (800, 801), other).stack(&[], &[0x2000_0030]);
    let freed = RangeRecord { flags: MEM_RELEASE, size: 0, ..other };
    trace.virtual_free(5 * MS, (800, 801), freed).stack(&[], &[0x2000_0040]);
    trace
}

fn dumped(options: &str) -> Run {
    run_over(&trace(), &format!(".dump Resource {options}")).ok()
}

fn json(options: &str) -> Value {
    serde_json::from_str(&dumped(&format!("{options} -json")).stdout).unwrap()
}

#[test]
fn totals_and_leaks_are_printed() {
    insta::assert_snapshot!(dumped("-TimeFmt s").stdout);
    insta::assert_snapshot!(dumped("-Leak -LeakAtExit -TimeFmt s -ShowStack").stdout);
}

#[test]
fn filters_choose_allocations() {
    let allocs = |options: &str| -> u64 {
        let totals = json(options);
        list(&totals, "totals").iter().map(|row| row["allocs"].as_u64().unwrap()).sum()
    };
    for (options, expected) in [
        ("", 8),
        ("-Kind heap", 4),
        ("-Kind !heap", 4),
        ("-Kind commit;reserve -pn tool", 4),
        ("-pn 700", 4),
        ("-Allocator 0x10000", 4),
        ("-Allocator VirtualAlloc", 4),
        ("-MinMaxSize 11 12", 2),
        ("-MinMaxSize 16KiB", 4),
        ("-MinMaxTime 0 4ms", 5),
        ("-CreateStack leaky.exe*", 4),
        ("-CreateStack !leaky.exe*", 4),
        ("-FreeStack tool.exe*", 2),
        ("-Kind gdi", 0),
    ] {
        assert_eq!(allocs(options), expected, "{options}");
    }
}

#[test]
fn leaks_are_outstanding_or_taken_by_the_end_of_their_process() {
    let count = |options: &str, member: &str| -> u64 {
        let document = json(options);
        list(&document, member).iter().map(|row| row["count"].as_u64().unwrap()).sum()
    };
    for (options, outstanding, at_exit) in
        [("", 3, 2), ("-Leak", 3, 0), ("-LeakAtExit", 0, 2), ("-Leak -LeakAtExit", 3, 2)]
    {
        assert_eq!(count(options, "outstanding"), outstanding, "{options}");
        assert_eq!(count(options, "at_exit"), at_exit, "{options}");
    }
}

#[test]
fn sorted_and_cut_documents_are_those_of_the_table() {
    let document = json("-SortBy allocs -TopN 1");
    assert_eq!(list(&document, "totals").len(), 1);
    assert_eq!(document["totals"][0]["kind"], "heap");
    let leaks = json("-Leak -LeakAtExit -SortBy count -TopN 1");
    assert_eq!((list(&leaks, "outstanding").len(), list(&leaks, "at_exit").len()), (1, 0));
    assert_eq!(list(&leaks, "totals").len(), 3, "they are not what is cut");
    let by_bytes = json("-SortBy bytes");
    assert_eq!(by_bytes["totals"][0]["kind"], "heap", "16 KiB of the others are no leak");
}

#[test]
fn bytes_over_time_are_those_that_are_allocated_at_the_end_of_each_part() {
    let document = json("-Kind heap -ShowTotal File -ShowTime 4");
    let over_time = &document["groups"][0]["over_time"];
    let parts: Vec<i64> = list(&document["groups"][0], "over_time")
        .iter()
        .map(|bytes| bytes.as_i64().unwrap())
        .collect();
    assert_eq!(parts.len(), 4, "{over_time}");
    assert_eq!(parts.last(), Some(&36), "{over_time}");
    assert!(parts.contains(&46), "{over_time}");
}

#[test]
fn a_trace_without_allocations_says_so_and_how_to_record_them() {
    let mut trace = TraceBuilder::new();
    trace.process(700, "app.exe");
    let run = run_over(&trace, ".dump Resource -Kind heap\n.dump Resource -json\n").ok();
    assert!(run.stderr.contains("no events of allocations (heap)"), "{}", run.stderr);
    assert!(run.stderr.contains("-heap -pids"), "{}", run.stderr);
    assert!(run.stderr.contains("--virtual-alloc"), "{}", run.stderr);
    let start = run.stdout.find('{').unwrap();
    let documents = Deserializer::from_str(&run.stdout[start..]).into_iter::<Value>();
    let document = documents.last().unwrap().unwrap();
    assert_eq!(document["caveats"][0]["kind"], "no_resource_events");
    assert_eq!(document["totals"], Value::Array(Vec::new()));
}

#[test]
fn what_speaks_against_the_answer_is_said() {
    let kinds = |document: &Value| -> Vec<String> {
        let caveats = list(document, "caveats").iter();
        caveats.map(|caveat| caveat["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&json("")), ["older_unknown"]);
    assert_eq!(kinds(&json("-pn tool")), ["older_unknown"]);
    let mut trace = TraceBuilder::new();
    trace.process(4, "System");
    let call = HeapCall::Alloc { address: 0x5000, size: 8 };
    trace.heap(2 * MS, (700, 701), HEAP, call);
    let run = run_over(&trace, ".dump Resource -json").ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(kinds(&document), ["processes_unknown", "stacks_missing"]);
    assert_eq!(document["totals"][0]["pid"], 700);
}

#[test]
fn options_that_cannot_go_together_are_refused() {
    let run = run_over(&trace(), ".dump Resource -GroupBy kind -ShowTotal File");
    assert_ne!(run.status, Some(0));
    assert!(run.stderr.contains("-ShowTotal"), "{}", run.stderr);
}

/// The rows of a query over the trace above.
fn sql(query: &str) -> Vec<Value> {
    let run = run_over(&trace(), &format!(".sql {query} -json")).ok();
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    list(&document, "rows").to_vec()
}

#[test]
fn tables_and_views_have_words_beside_their_codes() {
    let rows = |query: &str| Value::from(sql(query));
    assert_eq!(
        rows("SELECT kind_name, count(*) AS n FROM allocators GROUP BY kind_name ORDER BY 1"),
        serde_json::json!([
            {"kind_name": "commit", "n": 1},
            {"kind_name": "heap", "n": 1},
            {"kind_name": "reserve", "n": 1},
        ])
    );
    assert_eq!(
        rows("SELECT end_name, count(*) AS n FROM resources GROUP BY end_name ORDER BY 1"),
        serde_json::json!([
            {"end_name": "at_exit", "n": 2},
            {"end_name": "freed", "n": 3},
            {"end_name": "open", "n": 3},
        ])
    );
    assert_eq!(
        rows("SELECT what_name FROM resource_misses"),
        serde_json::json!([{"what_name": "orphan_free"}])
    );
    assert_eq!(sql("SELECT * FROM allocations").len(), 8);
    assert_eq!(
        rows(
            "SELECT kind, allocator, process, pid, key, size, at_exit, stack_text FROM resource_leaks \
              WHERE time_ns < 13000000 ORDER BY kind"
        ),
        serde_json::json!([
            {"kind": "commit", "allocator": "VirtualAlloc", "process": "tool.exe", "pid": 800, "key": "0x100000",
             "size": 16384, "at_exit": true, "stack_text": "tool.exe+0x20"},
            {"kind": "heap", "allocator": "0x10000", "process": "leaky.exe", "pid": 700, "key": "0x5100", "size": 11,
             "at_exit": false, "stack_text": "leaky.exe+0x10"},
            {"kind": "reserve", "allocator": "VirtualAlloc", "process": "tool.exe", "pid": 800, "key": "0x100000",
             "size": 16384, "at_exit": true, "stack_text": "tool.exe+0x20"},
        ])
    );
}

#[needs_data]
#[test]
fn every_outstanding_allocation_of_published_traces_is_in_the_view() {
    let query = ".sql SELECT min(time_ns) AS ns, min(kind) AS kind, min(allocator) AS allocator, min(process) AS \
                 process, min(pid) AS pid, min(tid) AS tid, min(key) AS key, sum(size) AS bytes, min(stack_text) AS \
                 text FROM resource_leaks WHERE NOT at_exit GROUP BY coalesce(part_of, resource) -json";
    for (name, known) in published() {
        let document = document(&name, query);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut found: Vec<String> = list(&document, "rows")
            .iter()
            .map(|row| {
                let process = format!("{}({})", text(&row["process"]), row["pid"]);
                let stack = text(&row["text"]).replace('\n', ",");
                let (kind, allocator) = (text(&row["kind"]), text(&row["allocator"]));
                let key = text(&row["key"]).to_lowercase();
                let (ns, tid, bytes) = (&row["ns"], &row["tid"], &row["bytes"]);
                format!("{ns} {kind} {allocator} {process} {tid} {key} {bytes} {stack}")
            })
            .collect();
        let mut expected: Vec<String> = list(&known["resources"], "leaks")
            .iter()
            .map(|leak| {
                let stack = usize::try_from(leak[7].as_i64().unwrap()).ok();
                let frames = stack.map(|stack| known["stacks"][stack].as_array().unwrap());
                let frames: Vec<String> = frames.into_iter().flatten().map(text).collect();
                let words = [1, 2, 3].map(|at| text(&leak[at]));
                let (ns, tid, key, bytes) = (&leak[0], &leak[4], text(&leak[5]), &leak[6]);
                format!("{ns} {} {tid} {key} {bytes} {}", words.join(" "), frames.join(","))
            })
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{name}");
    }
}

/// What a picture over the trace above says in its texts.
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
    for text in ["allocated bytes", "heap 0x10000", "commit VirtualAlloc", "not freed yet"] {
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
        (".flame a.svg -Kind gdi", "nothing of the allocations that were chosen is left"),
        (".plot -Kind gdi", "nothing of what was chosen was allocated"),
    ] {
        let run = run_over(&trace(), command);
        assert_eq!(run.status, Some(1), "{command}: {}", run.stdout);
        assert!(run.stderr.contains(error), "{command}: {}", run.stderr);
    }
}

/// A program that allocates so many blocks of so many bytes, at one of two places, and frees none.
fn leaks(place: u64, count: u64, size: u64, seconds: i64) -> TraceBuilder {
    let mut trace = TraceBuilder::new();
    let pid = 700 + u32::try_from(place).unwrap();
    trace.process(pid, "leaky.exe");
    trace.module(pid, r"C:\leaky.exe", 0x1000_0000 * place, 0x10000);
    for n in 0..count {
        let call = HeapCall::Alloc { address: 0x10_0000 + n * size, size };
        let time = MS * (1 + i64::try_from(n).unwrap());
        trace.heap(time, (pid, 8), 0x10000 * place, call);
        trace.stack(&[], &[0x1000_0000 * place + 0x10]);
    }
    trace.end(seconds * 1000 * MS);
    trace
}

/// State, allocations and whether it got worse of each group, and the exit status.
fn differences(before: &TraceBuilder, after: &TraceBuilder) -> (Vec<Value>, Option<i32>) {
    let home = tempfile::tempdir().unwrap();
    before.write(home.path().join("a.etl")).unwrap();
    after.write(home.path().join("b.etl")).unwrap();
    let command = ".diff -Kind * -json";
    let output = handlescope(home.path()).args(["a.etl", "b.etl", "-c", command]).output().unwrap();
    let run = Run::from(output);
    let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    let row = |row: &Value| {
        ["state", "before", "after", "after_bytes", "got_worse"].map(|name| row[name].clone())
    };
    let rows = list(&document, "groups").iter().map(|own| Value::from(row(own).to_vec()));
    (rows.collect(), run.status)
}

#[test]
fn what_the_second_of_two_traces_leaves_more_of_is_worse() {
    use serde_json::json;
    let before = || leaks(1, 10, 10_000, 2);
    let same = (vec![json!(["same", 10, 10, 100_000, false])], Some(0));
    assert_eq!(differences(&before(), &before()), same);
    // Pid, heap and base of the module differ between runs.
    let worse = (vec![json!(["worse", 10, 20, 200_000, true])], Some(1));
    assert_eq!(differences(&before(), &leaks(2, 20, 10_000, 2)), worse);
    let longer = (vec![json!(["same", 10, 20, 200_000, false])], Some(0));
    assert_eq!(differences(&before(), &leaks(2, 20, 10_000, 4)), longer);
    let few = (vec![json!(["same", 10, 20, 2000, false])], Some(0));
    assert_eq!(differences(&leaks(1, 10, 100, 2), &leaks(2, 20, 100, 2)), few);
    let better = (vec![json!(["better", 20, 10, 100_000, false])], Some(0));
    assert_eq!(differences(&leaks(2, 20, 10_000, 2), &before()), better);
    let mut idle = TraceBuilder::new();
    idle.process(700, "leaky.exe");
    idle.heap(MS, (700, 8), 0x10000, HeapCall::Free { address: 0x10 });
    idle.end(2000 * MS);
    assert_eq!(
        differences(&idle, &before()),
        (vec![json!(["new", 0, 10, 100_000, true])], Some(1))
    );
    assert_eq!(differences(&before(), &idle), (vec![json!(["gone", 10, 0, 0, false])], Some(0)));
}

#[test]
fn one_trace_is_compared_with_nothing() {
    let run = run_over(&trace(), ".diff -Kind heap").ok();
    assert!(run.stdout.contains("3 allocations: 3 never freed (36 B)"), "{}", run.stdout);
    let run = run_over(&trace(), ".diff 5ms -Kind heap");
    assert!(run.stderr.contains("-Kind and -From cannot be had together"), "{}", run.stderr);
}
