//! The forms of the text, and what is read from it.

use std::fs;

use handlescope_tests::binary::examples;
use serde_json::{Value, json};

use super::{EVENTS, SESSION, answer, events, with};

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
            SESSION.lines().filter(|line| !line.is_empty() && !line.starts_with("---")).map(|line| format!("{line}\n")).collect()
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
    assert!(messages.contains("2 !htrace entries without thread and process, first in line 5"));
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
        let is_lossy = messages.contains("3 lines with invalid characters");
        assert_eq!(is_lossy, what.starts_with("code page"), "{what}: {messages}");
    }
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
fn entries_that_another_process_made_are_of_the_traced_one() {
    let text = "0:001> !htrace\n\
        --------------------------------------\n\
        Handle = 0x00000048 - OPEN\nThread ID = 0x00000065, Process ID = 0x00000064\n\n\
        0x77ca2e3c: ntdll!NtCreateEvent+0x0000000c\n\
        --------------------------------------\n\
        Handle = 0x00000044 - CLOSE\nThread ID = 0x00000065, Process ID = 0x00000064\n\n\
        0x77ca310c: ntdll!NtClose+0x0000000c\n\
        --------------------------------------\n\
        Handle = 0x00000044 - OPEN\nThread ID = 0x00000208, Process ID = 0x000001f4\n\n\
        0x77ca2e3c: ntdll!ZwDuplicateObject+0x0000000c\n\
        --------------------------------------\n\
        Parsed 0x3 stack traces.\nDumped 0x3 stack traces.\n";
    let shell = with(text);
    let ask = |question: &str| shell.run(&["session.log", "-c", question]).ok().stdout;
    let answer: Value = serde_json::from_str(&ask(".dump ObjectRef -json")).unwrap();
    let totals = &answer["totals"];
    let counts = ["handles_created", "handles_closed", "leaked_handles"].map(|name| &totals[name]);
    assert_eq!(counts, [2, 1, 1]);
    let pids = ask(".sql SELECT DISTINCT pid FROM handles -csv");
    assert_eq!(pids, "pid\n100\n");
}
