//! Answers about handle traces, and the messages about what they lack.

use serde_json::{Value, json};

use super::{SESSION, answer, with};

#[test]
fn questions_about_leaks_processes_handles_and_stacks_are_answered() {
    let shell = with(SESSION);
    let ids = |options: &str| {
        let command = format!(".dump ObjectRef {options} -json");
        let run = shell.run(&["session.log", "-c", &command]).ok();
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        answer["objects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|object| object["id"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("-Leak"), [2]);
    assert_eq!(ids("-LeakAtExit"), [0_u64; 0]);
    assert_eq!(ids("-pn 6120"), [1, 2]);
    assert_eq!(ids("-Handle 0x34"), [1]);
    assert_eq!(ids("-CreateStack *Cache::Open*"), [2]);
    assert_eq!(ids("-DestroyStack *ZwClose*"), [1]);
    assert_eq!(ids("-Type UnknownType -StackFilter *ZwCreateEvent*"), [1]);
    assert_eq!(ids("-SortBy lifetime -TopN 1"), [1]);
    let run = shell.run(&["session.log", "-c", ".dump ObjectRef -ShowTotal Process"]).ok();
    assert!(run.stdout.contains("process 0x17e8"), "{}", run.stdout);
    assert!(run.stdout.contains("Handles Created/Closed/Duplicated: 2/1/0 Diff: 1"));
}

#[test]
fn times_are_printed_as_unknown_everywhere() {
    let shell = with(SESSION);
    let run = |command: &str| shell.run(&["session.log", "-c", command]).ok().stdout;
    let text = run(".dump ObjectRef -TimeFmt Local");
    assert!(text.starts_with("unknown "), "{text}");
    assert!(text.contains("\tunknown  6120/6124  HandleCreate    0x34    unknown"), "{text}");
    assert!(text.contains("Id: 1 Object: unknown  Lifetime: unknown "), "{text}");
    assert!(text.contains("Id: 2 Object: unknown  Lifetime: never closed "), "{text}");
    let answer: Value = serde_json::from_str(&run(".dump ObjectRef -json")).unwrap();
    assert_eq!(answer["files"][0]["session_start_utc"], Value::Null);
    for object in answer["objects"].as_array().unwrap() {
        for member in ["lifetime_s", "first_create_ns", "last_destroy_ns"] {
            assert_eq!(object[member], Value::Null, "{member}");
        }
        assert_eq!(object["events"][0]["time_ns"], Value::Null);
    }
    for line in run(".dump ObjectRef -ndjson").lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&event["time_ns"], &event["lifetime_s"]), (&Value::Null, &Value::Null));
    }
    let csv = run(".dump ObjectRef -csv -NoCSVSeparator");
    let mut lines = csv.lines().map(|line| line.split(';').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let rows: Vec<_> = lines.collect();
    let column = |name: &str| {
        let at = header.iter().position(|title| *title == name).unwrap();
        rows.iter().map(|row| row[at]).collect::<Vec<_>>()
    };
    assert_eq!(column("Time"), ["", "", ""]);
    assert_eq!(column("Date"), ["", "", ""]);
    assert_eq!(column("Object Ptr"), ["", "", ""]);
    assert_eq!(column("Lifetime in s (9999 is not closed)"), ["", "", "9999"]);
    let sql =
        run(".sql SELECT key, opened_ns, ended_ns, lifetime_ns FROM handles ORDER BY id -csv");
    assert_eq!(sql.lines().skip(1).collect::<Vec<_>>(), ["0x34,,,", "0x38,,,"]);
    assert!(run(".list").contains("unknown"));
}

#[test]
fn filters_on_times_say_that_there_is_no_clock() {
    let shell = with(SESSION);
    for command in [
        ".dump ObjectRef -MinMaxTime 0 1",
        ".dump ObjectRef -MinMaxDuration 0 1",
        ".dump Stack -MinMaxTime 0 1",
    ] {
        let run = shell.run(&["session.log", "-c", command]);
        assert_eq!(run.status, Some(1), "{command}");
        let option = command.split(' ').nth(2).unwrap();
        let expected = format!("session.log: has no clock, so {option} cannot choose by time");
        assert!(run.stderr.contains(&expected), "{}", run.stderr);
    }
    let run = shell.run(&["session.log", "-c", ".converttime -time 1s"]).ok();
    assert!(run.stderr.contains("session.log: has no clock"), "{}", run.stderr);
}

#[test]
fn limits_of_the_text_are_reported_at_load_with_answers_and_in_stats() {
    let shell = with(SESSION);
    let run = shell.run(&["session.log", "-c", ".dump Stats -json"]).ok();
    let expected = "session.log: it is text of !htrace, so times, lifetimes, object types and names, \
                    programs and earlier handles are unknown";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    let stats: Value = serde_json::from_str(&run.stdout).unwrap();
    let file = &stats["files"][0];
    assert_eq!((&file["clock"], &file["session_start_utc"]), (&json!("none"), &Value::Null));
    assert_eq!(file["events"][1]["kind"], "htrace:open");
    let (answer, _) = answer(SESSION);
    assert_eq!(answer["caveats"][0]["kind"], "no_clock");
    assert_eq!(answer["caveats"].as_array().unwrap().len(), 1);
}

#[test]
fn values_that_differ_in_their_tag_bits_are_one_handle() {
    let entry = |handle: &str, operation: &str| {
        format!(
            "--------------------------------------\nHandle = 0x{handle} - {operation}\n\
             Thread ID = 0x000017ec, Process ID = 0x000017e8\n\n\
             0x77ca2e4c: ntdll!Nt{operation}+0x0000000c\n"
        )
    };
    // The newest entry comes first.
    let entries = [entry("34", "OPEN"), entry("1a2", "CLOSE"), entry("1a0", "OPEN")].concat();
    let rule = "--------------------------------------";
    let text = format!(
        "0:000> !htrace\n{entries}{rule}\nParsed 0x3 stack traces.\nDumped 0x3 stack traces.\n"
    );
    let run = with(&text).run(&["session.log", "-c", ".dump ObjectRef -json"]).ok();
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    let handles: Vec<Vec<&str>> = answer["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| {
            object["events"]
                .as_array()
                .unwrap()
                .iter()
                .map(|event| event["handle"].as_str().unwrap())
                .collect()
        })
        .collect();
    assert_eq!(handles, [vec!["0x1A0", "0x1A2"], vec!["0x34"]], "{text}");
    assert_eq!(answer["totals"]["leaked_handles"], 1);
}

#[test]
fn references_to_invalid_handles_are_counted_and_their_stacks_kept() {
    for operation in ["BAD REF", "*** BAD REFERENCE ***:", "BADREF"] {
        let shell = with(SESSION.replace("CLOSE", operation));
        let run = shell.run(&["session.log", "-c", ".dump Stack -StackFilter *ZwClose* -ss"]).ok();
        let message = "1 reference to an invalid handle (BAD REF); .dump Stack has its stack, first in line 9";
        assert!(run.stderr.contains(message), "{}", run.stderr);
        assert!(run.stdout.contains("\tntdll!ZwClose"), "{}", run.stdout);
        let run = shell.run(&["session.log", "-c", ".dump ObjectRef -ShowTotal File"]).ok();
        assert!(run.stdout.contains("Created/Closed/Duplicated: 2/0/0 Diff: 2"), "{}", run.stdout);
    }
}
