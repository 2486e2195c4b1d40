//! The console on a dataset.

use std::fs;

use handlescope_tests::allocations;
use handlescope_tests::binary::{ProgramRun, Shell};
use handlescope_tests::file::FileOptions;
use handlescope_tests::scenario::TraceBuilder;
use serde_json::Value;

use crate::dataset::unfinished;

const SECOND: i64 = 1_000_000_000;
/// A day in FILETIME units of 100 ns.
const DAY: i64 = 864_000_000_000;
pub const EVENT: u16 = 16;
pub const PID: u32 = 700;
pub const BASE: u64 = 0x7ff6_0000_0000;

/// Opens a handle every two seconds of a minute, on its own stack; nothing closes it.
fn leak(trace: &mut TraceBuilder, place: u64) {
    for number in 0..29 {
        let (object, handle) = (0xffff_8100_0000_0000 + place * 0x10_0000 + number * 0x100, number);
        let handle = (place + handle * 4) as u32;
        let ns = (1 + 2 * number as i64) * SECOND + (number * number * 1_000_000) as i64;
        trace.create_handle(ns, (PID, PID + 4), object, handle, EVENT).stack(&[], &[BASE + place]);
    }
}

/// Builds a minute of a program that leaks on one stack, and with `leaks_anew` on a second one.
pub fn trace(day: i64, machine: u64, leaks_anew: bool) -> TraceBuilder {
    let usual = FileOptions::default();
    let start = usual.start + day * DAY + machine as i64;
    let mut trace = TraceBuilder::with_options(FileOptions { start, ..usual });
    trace.process(4, "System");
    trace.process(PID, "server.exe").parent(4);
    trace.module(PID, r"C:\demo\server.exe", BASE, 0x10_0000);
    trace.object_type(EVENT, "Event");
    trace.end(60 * SECOND);
    leak(&mut trace, 0x1000);
    if leaks_anew {
        leak(&mut trace, 0x2000);
    }
    trace
}

/// Makes a dataset of three machines with two builds, each on its own day. The second build leaks anew on two machines.
pub fn small_fleet() -> Shell {
    let shell = Shell::new();
    for (day, build) in [(0, "1.9"), (1, "1.10")] {
        for machine in 0..3 {
            let name = format!("{build}-{machine}.etl");
            trace(day, machine, day == 1 && machine < 2).write(shell.path(&name)).unwrap();
            let computer = format!("WS-{machine}");
            let options = ["--build", build, "--machine", &computer];
            let _ = shell.run(&[&["dataset", "add", "fleet", &name], &options[..]].concat()).ok();
        }
    }
    shell
}

pub fn document(run: &ProgramRun) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

/// Returns the document that a command on the dataset prints.
fn asked(shell: &Shell, command: &str) -> Value {
    document(&shell.run(&["fleet", "-c", command]).ok())
}

/// Returns these members of each element of a list.
pub fn rows(document: &Value, list: &str, members: &[&str]) -> Vec<Vec<Value>> {
    let rows = document[list].as_array().unwrap_or_else(|| panic!("{document:#}"));
    rows.iter().map(|row| members.iter().map(|name| row[name].clone()).collect()).collect()
}

#[test]
fn suspects_are_ranked_over_machines_with_their_first_builds_and_days() {
    let shell = small_fleet();
    let answer = document(&shell.run(&["why", "fleet", "-json"]).ok());
    let members = [
        "machines",
        "machines_of_process",
        "traces",
        "leaked",
        "first_build",
        "last_build",
        "traces_without",
    ];
    let found = rows(&answer, "suspects", &members);
    let expected: Vec<Value> = serde_json::from_str(
        r#"[[3, 3, 6, 174, "1.9", "1.10", 0], [2, 3, 2, 58, "1.10", "1.10", 0]]"#,
    )
    .unwrap();
    assert_eq!(Value::from(found), Value::from(expected), "{answer:#}");
    let (first, second) = (&answer["suspects"][0], &answer["suspects"][1]);
    assert_eq!(second["first_day"], first["last_day"]);
    assert_ne!(second["first_day"], first["first_day"]);
    assert_eq!(first["verdicts"][0]["word"], "steady");
    assert!(first["rate_per_minute"].as_f64() > Some(25.0), "{answer:#}");
    assert!(first["score"].as_f64() > second["score"].as_f64());
}

#[test]
fn traces_and_processes_are_chosen_by_machine_build_and_day() {
    let shell = small_fleet();
    let machines = |options: &str| {
        let command = format!(".dump ObjectRef -GroupBy machine,build -json {options}");
        let answer = asked(&shell, &command);
        let keys = rows(&answer, "groups", &["keys", "leaked"]);
        let text = |row: &Vec<Value>| {
            format!("{} {} {}", row[0]["machine"], row[0]["build"], row[1]).replace('"', "")
        };
        let mut groups: Vec<String> = keys.iter().map(text).collect();
        groups.sort();
        groups
    };
    let of_second = ["WS-0 1.10 58", "WS-1 1.10 58", "WS-2 1.10 29"];
    assert_eq!(machines("").len(), 6);
    assert_eq!(machines("-build 1.10"), of_second);
    assert_eq!(machines("-machine WS-0;WS-1 -build 1.10"), of_second[..2]);
    let suspects = asked(&shell, ".why -json");
    let day = suspects["suspects"][1]["first_day"].as_str().unwrap().to_owned();
    assert_eq!(machines(&format!("-day {day}")), of_second);
    assert_eq!(machines(&format!("-day {day}..")), of_second);
    assert_eq!(machines(&format!("-day !{day} -machine WS-2")), ["WS-2 1.9 29"]);
    assert_eq!(machines("-pn nothing"), [""; 0]);
    let run = shell.run(&["why", "fleet", "-machine", "LAB*", "-day", "2020-01-01.."]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("no trace of the dataset passes -machine LAB*"), "{run:?}");
}

#[test]
fn a_filter_that_nothing_passes_is_named() {
    let shell = small_fleet();
    for (options, said) in [
        ("-build 9.9", "none of 12 processes passes -build 9.9, did you mean -build 1.9?"),
        ("-pn nope.exe", "none of 12 processes passes -pn nope.exe; there are System, server.exe"),
        (
            "-build 1.9 -pn serve.exe",
            "none of 6 processes passes -pn serve.exe, did you mean -pn server.exe?",
        ),
        ("-Type Evnt", "none of 8 groups passes -Type Evnt, did you mean -Type Event?"),
    ] {
        for command in [".why", ".dump ObjectRef", ".dump ObjectRef -Leak -GroupBy machine"] {
            let run = shell.run(&["fleet", "-c", &format!("{command} {options}")]).ok();
            assert!(
                run.stderr.contains(&format!("nothing matches: {said}\n")),
                "{options}: {run:?}"
            );
            assert!(!run.stdout.contains("Nothing leaks"), "{options}: {run:?}");
            let document = asked(&shell, &format!("{command} {options} -json"));
            let caveat = &document["caveats"][0];
            assert_eq!(caveat["kind"], "no_match", "{options}: {document}");
        }
        let run = shell.run(&["fleet", "-c", &format!(".plot {options}")]);
        assert!(run.stderr.contains(said), "{options}: {run:?}");
        let _ = shell.run(&["fleet", "-c", &format!(".report page.html -Force {options}")]);
    }
    let run = shell.run(&["diff", "fleet", "-build", "1.9", "1.10", "-pn", "nope.exe"]);
    assert!(run.stderr.contains("none of 12 processes passes -pn nope.exe"), "{run:?}");
    // Something passes, and does not leak.
    let run = shell.run(&["why", "fleet", "-pn", "System"]).ok();
    assert!(run.stdout.contains("Nothing leaks in 6 traces"), "{run:?}");
    assert!(!run.stderr.contains("nothing matches"), "{run:?}");
}

#[test]
fn allocations_are_no_leaked_handles() {
    let shell = Shell::new();
    allocations::trace().write(shell.path("memory.etl")).unwrap();
    let _ = shell.run(&["dataset", "add", "fleet", "leaky.etl", "memory.etl"]).ok();
    for by in ["process", "kind", "machine", "trace"] {
        let answer = asked(&shell, &format!(".dump ObjectRef -GroupBy {by} -json"));
        let sum = |name: &str| -> i64 {
            answer["groups"].as_array().unwrap().iter().filter_map(|row| row[name].as_i64()).sum()
        };
        let query = "SELECT sum(CASE WHEN kind IN ('handle', 'view') THEN leaked ELSE 0 END) AS leaked, \
            sum(CASE WHEN kind IN ('handle', 'view') THEN acquired ELSE 0 END) AS created, \
            sum(CASE WHEN kind IN ('handle', 'view') THEN 0 ELSE leaked END) AS unfreed, \
            sum(CASE WHEN kind IN ('handle', 'view') THEN 0 ELSE acquired END) AS allocations FROM groups";
        let row = asked(&shell, &format!(".sql {query} -json"))["rows"][0].clone();
        for name in ["leaked", "created", "unfreed", "allocations"] {
            assert_eq!(row[name], sum(name), "{by}: {name}");
        }
        assert_eq!((sum("leaked"), sum("created")), (19, 101));
        assert!(sum("unfreed") > 0 && sum("allocations") > sum("unfreed"));
        let run = shell.run(&["fleet", "-c", &format!(".dump ObjectRef -GroupBy {by}")]).ok();
        let handles = "101 opened, 19 leaked, 1 closed only by process exit of handles; ";
        assert!(run.stdout.contains(handles), "{run:?}");
    }
}

#[test]
fn a_build_that_leaks_anew_is_worse_and_ends_with_status_1() {
    let shell = small_fleet();
    let members = ["before", "after", "state", "got_worse", "after_machines"];
    let compare = |options: &[&str]| {
        let builds = ["diff", "fleet", "-build", "1.9", "1.10", "-json"];
        shell.run(&[&builds[..], options].concat())
    };
    let run = compare(&["-machine", "WS-0;WS-1"]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(run.stderr.contains("1 group got worse"), "{run:?}");
    let expected = r#"[[0, 58, "new", true, 2], [58, 58, "same", false, 2]]"#;
    let found = rows(&document(&run), "groups", &members);
    assert_eq!(Value::from(found), serde_json::from_str::<Value>(expected).unwrap());
    // With so much variation, two of three machines are no proof.
    let expected = r#"[[0, 58, "new", false, 2], [87, 87, "same", false, 3]]"#;
    let found = rows(&document(&compare(&[]).ok()), "groups", &members);
    assert_eq!(Value::from(found), serde_json::from_str::<Value>(expected).unwrap());
    let run = shell.run(&["diff", "fleet", "-build", "1.10", "1.9", "-json"]).ok();
    assert_eq!(document(&run)["groups"][0]["state"], "gone");
    let run = shell.run(&["diff", "fleet", "-build", "1.8", "1.9"]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains("build 1.8; there are 1.9, 1.10"), "{run:?}");
    let run = shell.run(&["diff", "fleet"]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.contains(".diff -build BEFORE AFTER"), "{run:?}");
}

#[test]
fn a_trace_of_a_dataset_is_loaded_by_the_beginning_of_its_id() {
    let shell = small_fleet();
    let suspects = asked(&shell, ".why -json");
    let worst = &suspects["suspects"][1]["worst"];
    let (trace, suspect) = (worst["trace"].as_str().unwrap(), worst["suspect"].as_str().unwrap());
    let script = format!(
        ".list\n.load {}\n.dump ObjectRef -Suspect {suspect} -Leak -ShowTotal Total\n.load fleet\n.list\n\
         .unload\n.list",
        &trace[..8]
    );
    let run = shell.script(&["fleet"], &script).ok();
    assert_eq!(run.stdout.matches("fleet: a dataset of 6 traces").count(), 2, "{run:?}");
    assert!(run.stdout.contains("29"), "{run:?}");
    assert!(run.stdout.ends_with("No traces are loaded.\n"), "{run:?}");
    assert!(run.stderr.contains("unloaded the dataset fleet"), "{run:?}");
    for (name, message) in [
        ("ffffffff", "the dataset has no trace"),
        ("nothing.etl", "file not found"),
        ("fleet 1.9-0.etl", "a dataset is loaded alone"),
    ] {
        let run = shell.run(&["fleet", "-c", &format!(".load {name}"), "-c", ".list"]);
        assert!(run.stderr.contains(message), "{name}: {run:?}");
    }
}

#[test]
fn what_works_on_traces_only_names_the_remedy() {
    let shell = small_fleet();
    for line in [
        ".flame a.svg",
        ".dump Process",
        ".dump ObjectRef -Overlapped",
        ".why -RaceWindow 1s",
        ".export out",
    ] {
        let run = shell.run(&["fleet", "-c", line]);
        assert_eq!(run.status, Some(1), "{line}");
        assert!(run.stderr.contains("a dataset is loaded; .load ID"), "{line}: {run:?}");
        assert!(run.stderr.contains(".load ID"), "{line}: {run:?}");
    }
    let run = shell.run(&["why", "fleet", "-nonsense"]);
    assert!(run.stderr.contains("unknown option -nonsense"), "{run:?}");
    let run = shell.run(&["fleet", "-c", ".why -fd x"]);
    assert!(run.stderr.contains("use -machine, -build or -day"), "{run:?}");
    let run = shell.run(&["leaky.etl", "-c", ".why -machine x"]);
    assert!(run.stderr.contains("unknown option -machine"), "{run:?}");
}

#[test]
fn queries_see_the_tables_of_the_dataset_without_unfinished_traces() {
    let shell = small_fleet();
    let sql = |query: &str| asked(&shell, &format!(".sql {query} -json"))["rows"].clone();
    let query = "SELECT machine, sum(leaked) AS n FROM groups GROUP BY machine ORDER BY machine";
    let expected =
        r#"[{"machine":"WS-0","n":87},{"machine":"WS-1","n":87},{"machine":"WS-2","n":58}]"#;
    assert_eq!(sql(query), serde_json::from_str::<Value>(expected).unwrap());
    let days = "SELECT count(distinct date) AS days, count(distinct trace) AS traces FROM Growth";
    assert_eq!(sql(days), serde_json::from_str::<Value>(r#"[{"days":2,"traces":6}]"#).unwrap());
    let counted = "SELECT type, count(*) FROM acquisitions GROUP BY type ORDER BY count(*) DESC";
    assert_eq!(sql(counted)[0]["type"], "Event");
    let day = asked(&shell, ".why -json")["suspects"][1]["first_day"].clone();
    let pruned =
        format!("SELECT count(*) AS n FROM traces WHERE date = DATE '{}'", day.as_str().unwrap());
    assert_eq!(sql(&pruned)[0]["n"], 3);
    let run = shell.run(&["fleet", "-c", ".sql SELECT machin FROM groups"]);
    assert!(run.stderr.contains("did you mean machine?"), "{run:?}");
    let run = shell.run(&["fleet", "-c", ".schema traces"]).ok();
    assert!(run.stdout.contains("started_utc"), "{run:?}");
    // The last trace looks as if it were not completely added.
    let partition =
        fs::read_dir(shell.path(&format!("fleet/traces/date={}", day.as_str().unwrap())));
    let partition = partition.unwrap().next().unwrap().unwrap().path();
    unfinished(&shell, partition.to_str().unwrap().split_once("trace=").unwrap().1);
    fs::remove_dir_all(partition).unwrap();
    assert_eq!(sql("SELECT count(distinct trace) AS n FROM groups")[0]["n"], 5);
    assert_eq!(asked(&shell, ".why -json")["traces"], 5);
}

#[test]
fn a_query_comes_from_a_file_or_after_comments_over_a_dataset_and_over_a_trace() {
    let shell = small_fleet();
    let query = "-- How many?\n-- n: Number.\nSELECT count(*) AS n FROM processes WHERE name = 'x'";
    let of_dataset = query.replace(" WHERE name = 'x'", "");
    fs::write(shell.path("trace.sql"), query).unwrap();
    fs::write(shell.path("fleet.sql"), &of_dataset).unwrap();
    for (loaded, file, query) in
        [("fleet", "fleet.sql", of_dataset.as_str()), ("leaky.etl", "trace.sql", query)]
    {
        let rows = |run: ProgramRun| document(&run.ok())["rows"].clone();
        let of_file = rows(shell.run(&[loaded, "-c", &format!(".sql {file} -json")]));
        assert!(of_file[0]["n"].is_u64(), "{of_file}");
        let typed = shell.run(&[loaded, "-c", &format!(".sql {query} -json")]);
        assert_eq!(rows(typed), of_file, "{loaded}");
        assert_eq!(rows(shell.script(&[loaded], &format!(".sql {query}\n-json"))), of_file);
    }
    let run = shell.run(&["fleet", "-c", ".sql missing.sql"]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains("missing.sql: the query cannot be read"), "{run:?}");
}

#[test]
fn totals_are_sums_by_type_process_or_trace() {
    let shell = small_fleet();
    let totals = |of: &str| {
        let answer = asked(&shell, &format!(".dump ObjectRef -ShowTotal {of} -json"));
        rows(&answer, "groups", &["keys", "leaked"])
    };
    let sum = 6 * 29 + 2 * 29;
    for (of, key, value) in [("Total", "type", "Event"), ("Process", "process", "server.exe")] {
        let [row] = totals(of).try_into().unwrap();
        assert_eq!((&row[0][key], &row[1]), (&value.into(), &sum.into()));
    }
    let of_files = totals("File -SortBy File");
    assert_eq!(of_files.len(), 6);
    let keys: Vec<&str> = of_files.iter().filter_map(|row| row[0]["trace"].as_str()).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    assert_eq!(totals("Method -SortBy Handles -TopN 1")[0][1], 58);
    // The same as in the traces, one by one.
    let traces = ["1.9-0.etl", "1.9-1.etl", "1.9-2.etl", "1.10-0.etl", "1.10-1.etl", "1.10-2.etl"];
    let of_traces = traces.map(|trace| {
        let line = ".dump ObjectRef -Leak -ShowTotal Total -json";
        let answer = document(&shell.run(&[trace, "-c", line]).ok());
        answer["not_closed"]["sum"].as_u64().unwrap_or_else(|| panic!("{answer:#}"))
    });
    assert_eq!(of_traces.iter().sum::<u64>(), sum);
    let run = shell.run(&["fleet", "-c", ".dump ObjectRef -GroupBy type -ShowTotal Total"]);
    assert!(run.stderr.contains("both count; choose one"), "{run:?}");
}

#[test]
fn a_dataset_of_a_newer_version_is_read_with_a_note_and_not_changed() {
    let shell = small_fleet();
    let before = asked(&shell, ".why -json")["suspects"].clone();
    let marker = shell.path("fleet/_dataset.json");
    let text = fs::read_to_string(&marker).unwrap();
    let version: Value = serde_json::from_str(&text).unwrap();
    let version = version["schema_version"].to_string();
    fs::write(&marker, text.replace(&version, "99")).unwrap();
    fs::create_dir_all(shell.path("fleet/later/date=2026-02-10/trace=ff")).unwrap();
    let run = shell.run(&["fleet", "-c", ".why -json"]).ok();
    assert_eq!(document(&run)["suspects"], before);
    assert!(run.stderr.contains("tables of version 99"), "{run:?}");
    for action in ["list", "check"] {
        let run = shell.run(&["dataset", action, "fleet"]).ok();
        assert!(run.stderr.contains("newer tables and columns are not read"), "{run:?}");
    }
    let id = asked(&shell, ".why -json")["suspects"][0]["worst"]["trace"].clone();
    for change in [
        &["dataset", "add", "fleet", "leaky.etl"][..],
        &["dataset", "remove", "fleet", id.as_str().unwrap()],
        &["dataset", "symbolize", "fleet"],
    ] {
        let run = shell.run(change);
        assert_eq!(run.status, Some(1));
        assert!(run.stderr.contains("use a newer handlescope"), "{run:?}");
    }
    assert_eq!(asked(&shell, ".why -json")["traces"], 6);
}

#[test]
fn growth_is_drawn_over_days_and_in_the_time_of_traces() {
    let shell = small_fleet();
    let run = shell.run(&["fleet", "-c", ".plot"]).ok();
    assert!(
        run.stdout.contains("open handles") || run.stdout.contains("not yet closed"),
        "{run:?}"
    );
    assert!(run.stdout.contains("server.exe"), "{run:?}");
    let run = shell.run(&["fleet", "-c", ".plot -Over trace -GroupBy build"]).ok();
    assert!(run.stdout.contains("100 %") && run.stdout.contains("1.10"), "{run:?}");
    let _ = shell.run(&["fleet", "-c", ".plot days.svg -GroupBy machine"]).ok();
    let svg = fs::read_to_string(shell.path("days.svg")).unwrap();
    assert!(svg.contains("WS-0, peak") && svg.contains("day of the session start"), "{svg}");
    let run = shell.run(&["fleet", "-c", ".plot -Bytes"]);
    assert!(run.stderr.contains("no picture"), "{run:?}");
}

#[test]
fn the_page_of_a_fleet_links_pages_of_its_worst_traces() {
    let shell = small_fleet();
    let _ = shell.run(&["report", "fleet", "page.html", "-Traces", "2"]).ok();
    let page = fs::read_to_string(shell.path("page.html")).unwrap();
    assert!(page.contains("default-src 'none'"), "no network");
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&data["machines"], &data["traces"]), (&3.into(), &6.into()));
    assert_eq!(data["heat"]["rows"].as_array().unwrap().len(), 3);
    assert_eq!(data["heat"]["rows"][2]["machine"], "WS-2", "it leaks least");
    let linked: Vec<&str> = data["suspects"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["page"].as_str())
        .collect();
    assert!(!linked.is_empty());
    for name in linked {
        let page = fs::read_to_string(shell.path(name)).unwrap();
        assert!(page.contains("server.exe"), "{name}");
    }
}

#[test]
fn help_and_completion_know_what_works_over_a_dataset() {
    let shell = small_fleet();
    let run = shell.run(&["fleet", "-c", ".help"]).ok();
    assert!(run.stdout.contains(".why") && !run.stdout.contains(".flame"), "{run:?}");
    let run = shell.run(&["why", "fleet", "--help"]).ok();
    assert!(run.stdout.contains("-machine FILTER"), "{run:?}");
}
