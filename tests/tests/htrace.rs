//! Text of WinDbg, cdb and kd with the output of `!htrace`.

use std::fs;
use std::path::Path;

use handlescope_tests::binary::{Shell, examples};
use serde_json::{Value, json};

const QUESTION: &str = ".dump ObjectRef -ShowStack -json";

/// A session of which the forms below are variants: an event that is closed, and one that is not.
const SESSION: &str = "\
0:000> !htrace
--------------------------------------
Handle = 0x00000038 - OPEN
Thread ID = 0x000017ec, Process ID = 0x000017e8

0x77ca2e3c: ntdll!ZwCreateFile+0x0000000c
0x00ab158f: my_app!Cache::Open+0x0000016f
--------------------------------------
Handle = 0x00000034 - CLOSE
Thread ID = 0x000017f0, Process ID = 0x000017e8

0x77ca2e4c: ntdll!ZwClose+0x0000000c
--------------------------------------
Handle = 0x00000034 - OPEN
Thread ID = 0x000017ec, Process ID = 0x000017e8

0x77ca310c: ntdll!ZwCreateEvent+0x0000000c
--------------------------------------
Parsed 0x3 stack traces.
Dumped 0x3 stack traces.
0:000> q
";

/// A folder with a text, `session.log`.
fn with(text: impl AsRef<[u8]>) -> Shell {
    let shell = Shell::new();
    fs::write(shell.path("session.log"), text).unwrap();
    shell
}

/// What the program answers about a text, and what it says beside.
fn answer(text: impl AsRef<[u8]>) -> (Value, String) {
    let run = with(text).run(&["session.log", "-c", QUESTION]).ok();
    (serde_json::from_str(&run.stdout).unwrap(), run.stderr)
}

/// Kind, handle, pid, tid and frames of each event, by object: frames as `module!function+offset`, `module+rva` or
/// an address.
fn events(answer: &Value) -> Vec<String> {
    let frame = |frame: &Value| {
        let text = |name: &str| frame[name].as_str().map(str::to_owned);
        let offset = frame["offset"].as_u64().map(|offset| format!("+0x{offset:X}"));
        match (text("module"), text("function"), text("rva")) {
            (Some(module), Some(function), _) => {
                format!("{module}!{function}{}", offset.unwrap_or_default())
            }
            (Some(module), None, Some(rva)) => format!("{module}+{rva}"),
            _ => text("address").unwrap_or_default(),
        }
    };
    let event = |event: &Value| {
        let frames = answer["stacks"][event["stack"].to_string()].as_array();
        let frames: Vec<String> = frames.into_iter().flatten().map(frame).collect();
        let (kind, handle) = (event["kind"].as_str().unwrap(), event["handle"].as_str().unwrap());
        let kind = kind.trim_start_matches("handle_");
        format!("{kind} {handle} {}/{} {}", event["pid"], event["tid"], frames.join(" "))
    };
    let objects = answer["objects"].as_array().unwrap().iter();
    objects.flat_map(|object| object["events"].as_array().unwrap().iter().map(event)).collect()
}

/// The events of [`SESSION`].
const EVENTS: [&str; 3] = [
    "create 0x34 6120/6124 ntdll!ZwCreateEvent+0xC",
    "close 0x34 6120/6128 ntdll!ZwClose+0xC",
    "create 0x38 6120/6124 ntdll!ZwCreateFile+0xC my_app!Cache::Open+0x16F",
];

#[test]
fn a_listing_is_turned_round_to_the_order_of_time() {
    let (answer, messages) = answer(SESSION);
    assert_eq!(events(&answer), EVENTS);
    let object = &answer["objects"][0];
    assert_eq!((&object["type"], &object["name"]), (&json!("UnknownType"), &Value::Null));
    assert_eq!((&object["pointer"], &object["creator"]["name"]), (&Value::Null, &Value::Null));
    assert_eq!(answer["stacks"]["0"][0]["address"], "0x77CA2E3C");
    let leaked = |object: usize| &answer["objects"][object]["events"][0]["leaked"];
    assert_eq!((leaked(0), leaked(1)), (&json!(false), &json!(true)));
    assert!(!messages.contains("first in line"), "{messages}");
}

#[test]
fn a_whole_session_with_other_output_around_it_counts_what_was_printed_twice_once() {
    let log = fs::read(examples().join("htrace.log")).unwrap();
    let run = with(log).run(&["session.log", "-c", ".dump ObjectRef -ShowStack"]).ok();
    insta::assert_snapshot!(run.stdout.replace('\t', "    "), @r"
    unknown                session.log
    Id: 1 Object: unknown  Lifetime: unknown  Type: UnknownType Create+Duplicate-Close: 1+0-1 = 0
        unknown  7316/7416  HandleCreate    0xD0    leaky.exe Stack: 2
            ntdll!NtCreateEvent
            KERNELBASE!CreateEventW
            leaky!leaky::Session::Connect

        unknown  7316/7416  HandleClose     0xD0    leaky.exe Stack: 1
            ntdll!NtClose
            KERNELBASE!CloseHandle
            leaky!leaky::Session::Close

    Id: 2 Object: unknown  Lifetime: never closed  Type: UnknownType Create+Duplicate-Close: 1+0-0 = 1
        unknown  7316/7420  HandleCreate    0xD4    leaky.exe Stack: 0
            ntdll!NtCreateEvent
            KERNELBASE!CreateEventW
            leaky!leaky::EventCache::GetOrCreate
            leaky!leaky::Worker::Run
            KERNEL32!BaseThreadInitThunk

    Id: 3 Object: unknown  Lifetime: never closed  Type: UnknownType Create+Duplicate-Close: 1+0-0 = 1
        unknown  7316/7416  HandleCreate    0xD0    leaky.exe Stack: 2
            ntdll!NtCreateEvent
            KERNELBASE!CreateEventW
            leaky!leaky::Session::Connect

    Objects Created/Destroyed: 3/1 Diff: 2,  Handles Created/Closed/Duplicated: 3/1/0 Diff: 2,  RefChanges: 0 FileMap/Unmap: 0/0
    ");
}

#[test]
fn dashes_signs_and_line_ends_of_all_sorts_are_read() {
    for (what, text) in [
        ("en dash", SESSION.replace(" - ", " \u{2013} ")),
        ("CRLF", SESSION.replace('\n', "\r\n")),
        ("no blank lines", SESSION.replace("\n\n", "\n")),
        ("no rules and no blank lines", {
            let lines = SESSION.lines().filter(|line| !line.is_empty() && !line.starts_with("---"));
            lines.map(|line| format!("{line}\n")).collect()
        }),
        ("quoted", SESSION.lines().map(|line| format!("> {line}\n")).collect()),
        ("ids in two lines", SESSION.replace(", Process", "\nProcess")),
        ("without prefixes", SESSION.replace("0x000017", "17").replace("= 0x", "= ")),
        ("comments", SESSION.replace("000c\n", "000c    <--- why + 0x7?\n")),
        ("without zeros", SESSION.replace("+0x0000000c", "+0xc").replace("0x000000", "0x")),
        ("without 0x in offsets", SESSION.replace("+0x", "+")),
        ("spaces", SESSION.replace("+0x", " + 0x").replace(": ntdll", " : ntdll")),
        (
            "other output between",
            SESSION.replace(
                "0x00ab158f",
                "*** ERROR: Symbol file could not be found. Defaulted to export symbols for my_app.exe -\n\
                 *** WARNING: Unable to verify checksum for my_app.exe\n0x00ab158f",
            ),
        ),
        (
            "64 bit",
            SESSION.replace("= 0x0000", "= 0x000000000000").replace("0x77ca", "0x0000000077ca"),
        ),
        ("64 bit, parted", SESSION.replace("= 0x", "= 0x00000000`").replace("0x77", "00000000`77")),
    ] {
        assert_eq!(events(&answer(&text).0), EVENTS, "{what}:\n{text}");
    }
}

#[test]
fn frames_without_symbols_are_modules_or_addresses() {
    let text = SESSION.replace(
        "0x77ca310c: ntdll!ZwCreateEvent+0x0000000c",
        "0x4aa4fe76: +0x4aa4fe76\n0x4aa4fe77\n0x00007ffb4c6f0a50: clr+0x3f",
    );
    let (answer, _) = answer(text);
    assert_eq!(events(&answer)[0], "create 0x34 6120/6124 0x4AA4FE76 0x4AA4FE77 clr+0x3F");
}

#[test]
fn names_of_functions_have_spaces_signs_and_templates_and_cannot_talk_to_the_terminal() {
    let name = "std::map<int,char [4]>::operator+=";
    let text =
        SESSION.replace("Cache::Open", name).replace("ZwCreateEvent", "a\u{1b}[2Jb\u{202e}c");
    let (answer, _) = answer(&text);
    assert!(events(&answer)[2].ends_with(&format!("my_app!{name}+0x16F")), "{answer}");
    let run = with(&text).run(&["session.log", "-c", ".dump ObjectRef -ss"]).ok();
    assert!(run.stdout.contains(r"a\u{1b}[2Jb\u{202e}c"), "{}", run.stdout);
}

#[test]
fn the_kernel_debugger_names_neither_thread_nor_pid() {
    let text = "kd> !htrace 7CC 81400300\nProcess 0x81400300\nObjectTable 0xE10CCF60\n\
                --------------------------------------\nHandle 0x7CC - CLOSE:\n\
                0x8018FCB9: ntoskrnl!ExDestroyHandle+0x103\n\
                --------------------------------------\nHandle 0x7CC - OPEN:\n\
                0x8018F44A: ntoskrnl!ExCreateHandle+0x94\n\
                --------------------------------------\n\nParsed 0x6 stack traces.\nDumped 0x2 stack traces.\n";
    let (answer, messages) = answer(text);
    assert_eq!(
        events(&answer),
        [
            "create 0x7CC null/null ntoskrnl!ExCreateHandle+0x94",
            "close 0x7CC null/null ntoskrnl!ExDestroyHandle+0x103"
        ]
    );
    assert!(messages.contains("2 x entry of !htrace without thread and process, first in line 5"));
}

#[test]
fn every_encoding_is_read() {
    let text = SESSION.replace(" - ", " \u{2013} ");
    let units = |mark: &'static str| -> Vec<u16> {
        mark.chars().chain(text.chars()).map(|c| c as u16).collect()
    };
    let little = |mark| units(mark).into_iter().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let big = |mark| units(mark).into_iter().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let one_byte = text.chars().map(|c| if c == '\u{2013}' { 0x96 } else { c as u8 });
    for (what, bytes) in [
        ("UTF-8 with mark", format!("\u{feff}{text}").into_bytes()),
        ("UTF-16LE with mark", little("\u{feff}")),
        ("UTF-16BE with mark", big("\u{feff}")),
        ("UTF-16LE", little("")),
        ("UTF-16BE", big("")),
        ("code page 1252", one_byte.collect()),
    ] {
        let (answer, messages) = answer(bytes);
        assert_eq!(events(&answer), EVENTS, "{what}");
        let is_lossy = messages.contains("3 x line with bytes that are no characters");
        assert_eq!(is_lossy, what.starts_with("code page"), "{what}: {messages}");
    }
}

#[test]
fn snapshots_and_differences_are_one_history() {
    let diff = "0:000> !htrace -diff\nHandle tracing information snapshot successfully taken.\n\
                0x1 new stack traces since the previous snapshot.\n\
                Ignoring handles that were already closed...\n\
                Outstanding handles opened since the previous snapshot:\n\
                --------------------------------------\nHandle = 0x00000038 - OPEN\n\
                Thread ID = 0x000017ec, Process ID = 0x000017e8\n\n\
                0x77ca2e3c: ntdll!ZwCreateFile+0x0000000c\n0x00ab158f: my_app!Cache::Open+0x0000016f\n\
                --------------------------------------\n\
                Displayed 0x1 stack traces for outstanding handles opened since the previous snapshot.\n";
    let snapshot =
        "0:000> !htrace -snapshot\nHandle tracing information snapshot successfully taken.\n";
    let nothing = "0:000> !htrace -diff\nHandle tracing information snapshot successfully taken.\n\
                   0x0 new stack traces since the previous snapshot.\n\
                   No outstanding handles opened since the previous snapshot were detected.\n";
    for text in [
        format!("{SESSION}{snapshot}{diff}"),
        format!("{diff}{SESSION}"),
        format!("{SESSION}{nothing}{SESSION}"),
    ] {
        let (answer, messages) = answer(&text);
        assert_eq!(events(&answer), EVENTS, "{text}");
        assert!(!messages.contains("first in line"), "{messages}");
    }
    let (answer, _) = answer(diff);
    assert_eq!(events(&answer), EVENTS[2..]);
}

#[test]
fn a_handle_value_that_is_used_again_has_a_new_life() {
    let again = SESSION.replace("Dumped 0x3", "Dumped 0x4").replace(
        "0:000> !htrace\n",
        "0:000> !htrace\n--------------------------------------\nHandle = 0x00000034 - OPEN\n\
         Thread ID = 0x00000001, Process ID = 0x000017e8\n\n0x00ab1588: my_app!Worker::Run+0x00000014\n",
    );
    let (answer, _) = answer(again);
    let objects = answer["objects"].as_array().unwrap();
    assert_eq!(objects.len(), 3);
    assert_eq!(events(&answer)[3], "create 0x34 6120/1 my_app!Worker::Run+0x14");
}

#[test]
fn questions_about_leaks_processes_handles_and_stacks_are_answered() {
    let shell = with(SESSION);
    let ids = |options: &str| {
        let command = format!(".dump ObjectRef {options} -json");
        let run = shell.run(&["session.log", "-c", &command]).ok();
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        let objects = answer["objects"].as_array().unwrap().iter();
        objects.map(|object| object["id"].as_u64().unwrap()).collect::<Vec<_>>()
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
    assert!(run.stdout.contains("unknown(6120)"), "{}", run.stdout);
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
        run(".sql SELECT handle, open_ns, close_ns, lifetime_ns FROM handles ORDER BY id -csv");
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
fn what_the_text_does_not_say_is_said_at_load_with_answers_and_in_stats() {
    let shell = with(SESSION);
    let run = shell.run(&["session.log", "-c", ".dump Stats -json"]).ok();
    let expected = "session.log: it is text of !htrace, so that times and lifetimes, types and names of objects, \
                    programs and what was open before are unknown";
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
fn a_cut_text_is_read_and_reported_with_its_line() {
    let at = |part: &str| &SESSION[..SESSION.find(part).unwrap() + part.len()];
    for (text, left, message) in [
        (
            at("Open+0x0000016f\n"),
            1,
            "output of !htrace without its last line, perhaps cut, first in line 7",
        ),
        (
            at("Handle = 0x00000034 - CLOSE\n"),
            2,
            "entry of !htrace without a stack, first in line 9",
        ),
        (
            at("Handle = 0x00000034 - CL"),
            1,
            "entry of !htrace that cannot be read, left out, first in line 9",
        ),
        (
            at("Thread ID = 0x000017f0, Proc"),
            1,
            "line cut at the end of the text, left out, first in line 10",
        ),
        (
            at("0x77ca2e4c: ntdll!ZwCl"),
            2,
            "line cut at the end of the text, left out, first in line 12",
        ),
        (
            at("Parsed 0x3 stack traces.\n"),
            3,
            "output of !htrace without its last line, perhaps cut, first in line",
        ),
    ] {
        let (answer, messages) = answer(text);
        assert_eq!(events(&answer).len(), left, "{text}");
        assert!(messages.contains(&format!("session.log: 1 {message}")), "{messages}");
        assert!(messages.contains("objects, closes and leaks may be wrong"), "{messages}");
    }
    let (_, messages) = answer(SESSION.replace("Dumped 0x3", "Dumped 0x5"));
    let message =
        "1 output of !htrace with another number of entries than it says, first in line 20";
    assert!(messages.contains(message), "{messages}");
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

#[test]
fn a_text_is_known_by_its_content_and_other_files_are_refused() {
    let shell = Shell::new();
    for name in ["anything.txt", "no-extension", "not.etl"] {
        fs::write(shell.path(name), SESSION).unwrap();
        let run = shell.run(&[name, "-c", QUESTION]).ok();
        assert_eq!(events(&serde_json::from_str(&run.stdout).unwrap()), EVENTS, "{name}");
    }
    for (name, content) in [
        ("notes.txt", "Handle 34 - what is it?\n".repeat(10_000).into_bytes()),
        ("empty.log", Vec::new()),
        ("binary.bin", b"\x00\x01\x02Handle = 0x34 - OPEN\n".to_vec()),
    ] {
        fs::write(shell.path(name), content).unwrap();
        let run = shell.run(&[name]);
        let expected = format!("error: {name}: neither an extract (.json7z) nor a trace");
        assert!(run.stderr.contains(&expected), "{}", run.stderr);
        assert_eq!(run.status, Some(1), "{name}");
        assert!(!shell.path("Extract").join(format!("{name}.json7z")).exists());
    }
}

#[test]
fn an_extract_is_written_beside_the_text_and_used_as_long_as_it_is_the_same() {
    let shell = with(SESSION);
    let run = shell.run(&["extract", "session.log"]).ok();
    let extract = Path::new("Extract").join("session.log.json7z");
    assert!(run.stdout.starts_with(&extract.to_string_lossy().into_owned()), "{}", run.stdout);
    assert!(run.stdout.contains("2 objects, 3 handle events, 1 leaked handles"), "{}", run.stdout);
    let again = shell.run(&["session.log", "-c", QUESTION]).ok();
    assert!(!again.stderr.contains("handle events"), "{}", again.stderr);
    let own = shell.run(&[&extract.to_string_lossy(), "-c", QUESTION]).ok();
    assert_eq!(events(&serde_json::from_str(&own.stdout).unwrap()), EVENTS);
    fs::write(shell.path("session.log"), SESSION.replace("x00000038", "x0000003c")).unwrap();
    let changed = shell.run(&["session.log", "-c", QUESTION]).ok();
    assert!(changed.stderr.contains("extracting the trace again"), "{}", changed.stderr);
    assert!(events(&serde_json::from_str(&changed.stdout).unwrap())[2].contains("0x3C"));
    let old = shell.run(&["extract", "session.log"]).ok();
    assert!(old.stdout.contains("2 objects"), "{}", old.stdout);
}

#[test]
fn a_trace_and_a_text_are_asked_together() {
    let shell = with(SESSION);
    let run = shell.run(&["leaky.etl", "session.log", "-c", ".dump ObjectRef -Leak -json"]).ok();
    let answer: Value = serde_json::from_str(&run.stdout).unwrap();
    let of_file = |file: u64| {
        let objects = answer["objects"].as_array().unwrap().iter();
        objects.filter(|object| object["file"] == file).count()
    };
    assert_eq!((of_file(0), of_file(1)), (1, 19));
}

/// A session that takes a snapshot between two opens, and compares.
fn session_with_snapshot() -> String {
    let open = |handle: u32, function: &str| {
        format!(
            "--------------------------------------\nHandle = 0x{handle:x} - OPEN\nThread ID = 0x17ec, \
             Process ID = 0x17e8\n\n0x77ca310c: ntdll!ZwCreateEvent+0xc\n0x00ab1234: my_app!{function}+0x4\n"
        )
    };
    let taken = "Handle tracing information snapshot successfully taken.\n";
    let behind = [open(0x44, "Leak"), open(0x40, "Leak")].concat();
    let before = [open(0x38, "Start"), open(0x34, "Leak")].concat();
    format!(
        "0:000> !htrace -enable\nHandle tracing enabled.\n{taken}0:000> g\n\
         0:000> !htrace\n{before}Dumped 0x2 stack traces.\n\
         0:000> !htrace -snapshot\n{taken}0:000> g\n\
         0:000> !htrace -diff\n{taken}0x2 new stack traces since the previous snapshot.\n\
         Ignoring handles that were already closed...\n\
         Outstanding handles opened since the previous snapshot:\n{behind}\
         Displayed 0x2 stack traces for outstanding handles opened since the previous snapshot.\n"
    )
}

#[test]
fn a_snapshot_of_the_debugger_is_where_a_diff_begins() {
    let shell = with(session_with_snapshot());
    let list = shell.run(&["session.log", "-c", ".snapshot"]).ok().stdout;
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["snapshot1", "behind", "2", "events", "session.log"], "{list}");
    let diff = |line: &str| -> Value {
        // Of the extract, too.
        let run = shell.run(&["session.log", "-c", &format!("{line} -json")]).ok();
        serde_json::from_str(&run.stdout).unwrap()
    };
    let found = |document: &Value| -> Vec<(Value, Value)> {
        let groups = document["groups"].as_array().unwrap().iter();
        groups.map(|own| (own["function"].clone(), own["still_open"].clone())).collect()
    };
    let since = [(json!("my_app!Leak"), json!(2))];
    let document = diff(".diff");
    assert_eq!((&document["a"], &document["b"]), (&json!("snapshot1"), &json!("end")));
    assert_eq!(found(&document), since);
    assert_eq!(found(&diff(".dump Diff -From SNAPSHOT1")), since);
    let before = [(json!("my_app!Leak"), json!(1)), (json!("my_app!Start"), json!(1))];
    let mut until = found(&diff(".diff -To snapshot1"));
    until.sort_by_key(|(function, _)| function.to_string());
    assert_eq!(until, before, "the start is another point");
    let text = shell.run(&["session.log", "-c", ".diff"]).ok().stdout;
    assert!(text.ends_with("Opened after snapshot1 and still open at end: 2\n"), "{text}");
    // A picture shows what grew since.
    let run = shell.run(&["session.log", "-c", ".diff -flame since.svg"]).ok();
    assert!(run.stdout.contains("SVG export was successful"), "{}", run.stdout);
    let svg = fs::read_to_string(shell.path("since.svg")).unwrap();
    assert!(svg.contains("(3 handles, 75.00%; +50.00%)"), "{svg}");
}

#[test]
fn a_name_of_a_snapshot_of_the_debugger_may_get_another_point() {
    let shell = with(session_with_snapshot());
    let run = shell.script(&["session.log"], ".snapshot snapshot1\n.snapshot\n.diff\n").ok();
    assert!(run.stdout.contains("end"), "{}", run.stdout);
    assert!(
        run.stdout.ends_with("Opened after start and still open at end: 4\n"),
        "{}",
        run.stdout
    );
}
