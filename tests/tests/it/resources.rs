//! Allocations: the published traces give their known answers, and every option does what it says.

use std::collections::BTreeMap;
use std::fs;

use handlescope_tests::allocations::{HEAP, MS, trace};
use handlescope_tests::binary::{ProgramRun, handlescope, run_over, run_script};
use handlescope_tests::data::{SharedTrace, synthetic};
use handlescope_tests::needs_data;
use handlescope_tests::payload::HeapCall;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::{Deserializer, Value};

/// Members of totals that are compared.
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
    "closed_at_exit",
    "closed_at_exit_bytes",
    "leaked",
    "leaked_bytes",
];

/// Returns the name of a member in the known answers.
fn known_as(member: &str) -> String {
    member.replace("closed_at_exit", "at_exit").replace("leaked", "outstanding")
}

/// Returns the published traces with known answers about allocations: their names and the answers.
fn published() -> Vec<(String, Value)> {
    let mut published: Vec<(String, Value)> = fs::read_dir(synthetic())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".expected.json")?.to_owned();
            let known: Value = serde_json::from_str(&fs::read_to_string(&path).ok()?).unwrap();
            known.get("resources").is_some().then_some((name, known))
        })
        .collect();
    published.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(published.len() >= 3);
    published
}

/// Returns the document that a command prints about a published trace.
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

/// Indexes rows by these members.
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
                let known = known.get(known_as(member)).cloned().unwrap_or(Value::from(0));
                assert_eq!(found[&key][member], known, "{name}: {key}: {member}");
            }
        }
    }
}

#[needs_data]
#[test]
fn groups_distinguish_processes_that_had_one_id_after_another() {
    const PID: u32 = 9300;
    let lives = document("heap", &format!(".dump Process -pn {PID} -json"));
    let starts: Vec<&Value> =
        list(&lives, "processes").iter().map(|own| &own["start_ns"]).collect();
    for options in ["-GroupBy process", "-ShowTotal Process"] {
        let groups = document("heap", &format!(".dump Resource {options} -json"));
        let groups = by_key(list(&groups, "groups"), &["pid", "process_start_ns"]);
        let reused = groups.values().filter(|group| group["pid"] == PID);
        let (names, mut found): (Vec<&Value>, Vec<&Value>) =
            reused.map(|group| (&group["keys"]["process"], &group["process_start_ns"])).unzip();
        found.sort_by_key(|start| start.as_i64());
        assert_eq!((found.len(), &found), (2, &starts), "{options}");
        assert_eq!(names, ["converter.exe(9300)"; 2], "{options}");
    }
}

/// Returns the frames of a stack, or a note that there is none.
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
fn leaked_allocations_of_published_traces_match_the_script_frame_by_frame() {
    for (name, known) in published() {
        let document = document(&name, ".dump Resource -ShowStack -json");
        for member in ["leaked", "closed_at_exit"] {
            let with_caller = |row: &Value, caller: &Value, frames: Value| {
                let mut row = row.clone();
                row["caller"] = caller.clone();
                row["frames"] = frames;
                row
            };
            let known = list(&known["resources"], &known_as(member)).iter().map(|row| {
                let stack = usize::try_from(row["stack"].as_i64().unwrap()).ok();
                let frames = stack.map_or(Value::Null, |stack| known["stacks"][stack].clone());
                with_caller(row, &row["by"], frames)
            });
            let found = list(&document, member).iter().map(|row| {
                let frames = frames(&document["stacks"], &row["stack"]);
                with_caller(row, &row["allocated_by"], frames)
            });
            let key = ["kind", "allocator", "process", "process_start_ns", "caller", "frames"];
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
        "-GroupBy allocated_by,end,size",
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
            // An allocation that ended in parts counts in each group, and so does a call that ended several
            // allocations.
            let splits = ["end", "size", "freestack"].iter().any(|own| grouping.contains(own));
            let splits_calls = splits || grouping.contains("thread") || grouping.contains("stack");
            for member in COUNTED {
                let (found, known) = (sum(rows, member), sum(known, &known_as(member)));
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

fn dumped(options: &str) -> ProgramRun {
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
fn columns_are_chosen_and_rows_of_several_lines_become_a_table() {
    let run = dumped("-Leak -LeakAtExit -ShowStack -Columns process,kind,pid,Bytes");
    insta::assert_snapshot!(run.stdout, @r"
    trace.etl
    Process           Kind     pid      Bytes
    tool.exe(800) +-  reserve  800  16.00 KiB
    tool.exe(800) +-  commit   800  16.00 KiB
    leaky.exe(700)    heap     700       36 B
    5 allocations: 3 leaked (36 B), 2 freed only by process exit (32.00 KiB)
    ");
    let note = "note: -ShowStack has no effect with -Columns";
    assert!(run.stderr.lines().any(|line| line == note), "{}", run.stderr);
    let csv = dumped("-Columns pid,process -csv").stdout;
    assert!(csv.starts_with("pid,process\n800,tool.exe(800)\n"), "{csv}");
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
fn leaks_stay_or_are_taken_by_the_end_of_their_process() {
    let count = |options: &str, member: &str| -> u64 {
        let document = json(options);
        list(&document, member).iter().map(|row| row["count"].as_u64().unwrap()).sum()
    };
    for (options, leaked, at_exit) in
        [("", 3, 2), ("-Leak", 3, 0), ("-LeakAtExit", 0, 2), ("-Leak -LeakAtExit", 3, 2)]
    {
        assert_eq!(count(options, "leaked"), leaked, "{options}");
        assert_eq!(count(options, "closed_at_exit"), at_exit, "{options}");
    }
}

#[test]
fn sorted_and_cut_documents_are_those_of_the_table() {
    let document = json("-SortBy allocs -TopN 1");
    assert_eq!(list(&document, "totals").len(), 1);
    assert_eq!(document["totals"][0]["kind"], "heap");
    let leaks = json("-Leak -LeakAtExit -SortBy count -TopN 1");
    assert_eq!((list(&leaks, "leaked").len(), list(&leaks, "closed_at_exit").len()), (1, 0));
    assert_eq!(list(&leaks, "totals").len(), 3, "they are not what is cut");
    let by_bytes = json("-SortBy bytes");
    assert_eq!(by_bytes["totals"][0]["kind"], "heap", "16 KiB of the others are not a leak");
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
    assert!(run.stderr.contains("no allocation events (heap)"), "{}", run.stderr);
    assert!(run.stderr.contains("-heap -pids"), "{}", run.stderr);
    assert!(run.stderr.contains("--virtual-alloc"), "{}", run.stderr);
    let start = run.stdout.find('{').unwrap();
    let documents = Deserializer::from_str(&run.stdout[start..]).into_iter::<Value>();
    let document = documents.last().unwrap().unwrap();
    assert_eq!(document["caveats"][0]["kind"], "no_resource_events");
    assert_eq!(document["totals"], Value::Array(Vec::new()));
}

#[test]
fn caveats_of_the_answer_are_printed() {
    let kinds = |document: &Value| -> Vec<String> {
        list(document, "caveats")
            .iter()
            .map(|caveat| caveat["kind"].as_str().unwrap().to_owned())
            .collect()
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

/// Returns the rows of a query on that trace.
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
        rows(
            "SELECT \"end\" AS end_name, count(*) AS n FROM allocations GROUP BY end_name ORDER BY 1"
        ),
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
            "SELECT kind, allocator, process, pid, key, size, at_exit, stack_text FROM allocations \
              WHERE (leaked OR at_exit) AND opened_ns < 13000000 ORDER BY kind"
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
    let query = ".sql SELECT min(opened_ns) AS ns, min(kind) AS kind, min(allocator) AS allocator, min(process) AS \
                 process, min(pid) AS pid, min(opened_tid) AS tid, min(key) AS key, sum(size) AS bytes, min(stack_text) AS \
                 text FROM leaks GROUP BY coalesce(part_of, row) -json";
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

#[test]
fn each_figure_has_one_name_in_every_form() {
    let old = ["outstanding", "outstanding_bytes", "at_exit", "at_exit_bytes", "by"];
    let documents = ["", "-Leak", "-GroupBy kind,allocated_by"].map(json);
    for document in &documents {
        for rows in document.as_object().unwrap().values().filter_map(Value::as_array) {
            for row in rows.iter().filter_map(Value::as_object) {
                let members: Vec<_> = row
                    .get("keys")
                    .and_then(Value::as_object)
                    .into_iter()
                    .chain([row])
                    .flat_map(|object| object.keys())
                    .filter(|name| old.contains(&name.as_str()))
                    .collect();
                assert!(members.is_empty(), "{members:?}: {row:?}");
            }
        }
        assert!(document.get("outstanding").is_none() && document.get("at_exit").is_none());
    }
    assert_eq!(documents[2]["groups"][0]["keys"]["allocated_by"], Value::Null);
    let table = dumped("-GroupBy kind -csv").stdout;
    let columns: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    assert!(columns.contains(&"leaked_bytes") && columns.contains(&"closed_at_exit"), "{table}");
    assert!(columns.iter().all(|column| !old.contains(column)), "{table}");
    for refused in ["-SortBy outstanding", "-SortBy at_exit_bytes", "-GroupBy by"] {
        let run = run_over(&trace(), &format!(".dump Resource {refused}"));
        assert_ne!(run.status, Some(0), "{refused}: {run:?}");
    }
    let columns = sql("SELECT * FROM allocations LIMIT 1");
    let columns = columns[0].as_object().unwrap();
    assert!(columns.contains_key("opened_by") && !columns.contains_key("by"), "{columns:?}");
}
