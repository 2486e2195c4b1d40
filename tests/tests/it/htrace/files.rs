//! Text files: cut off, refused, extracted, beside others.

use std::fs;
use std::path::Path;

use handlescope_tests::binary::Shell;
use serde_json::Value;

use super::{EVENTS, QUESTION, SESSION, answer, events, with};

#[test]
fn a_cut_text_is_read_and_reported_with_its_line() {
    let at = |part: &str| &SESSION[..SESSION.find(part).unwrap() + part.len()];
    for (text, left, message) in [
        (
            at("Open+0x0000016f\n"),
            1,
            "!htrace output without its last line, perhaps cut off, first in line 7",
        ),
        (at("Handle = 0x00000034 - CLOSE\n"), 2, "!htrace entry without a stack, first in line 9"),
        (at("Handle = 0x00000034 - CL"), 1, "unreadable !htrace entry, skipped, first in line 9"),
        (
            at("Thread ID = 0x000017f0, Proc"),
            1,
            "line cut off at the end of the text, skipped, first in line 10",
        ),
        (
            at("0x77ca2e4c: ntdll!ZwCl"),
            2,
            "line cut off at the end of the text, skipped, first in line 12",
        ),
        (
            at("Parsed 0x3 stack traces.\n"),
            3,
            "!htrace output without its last line, perhaps cut off, first in line",
        ),
    ] {
        let (answer, messages) = answer(text);
        assert_eq!(events(&answer).len(), left, "{text}");
        assert!(messages.contains(&format!("1 {message}")), "{messages}");
        assert!(messages.contains("objects, closes and leaks may be wrong"), "{messages}");
    }
    let (_, messages) = answer(SESSION.replace("Dumped 0x3", "Dumped 0x5"));
    let message =
        "1 !htrace output with another number of entries than its last line says, first in line 20";
    assert!(messages.contains(message), "{messages}");
}

#[test]
fn a_text_is_known_by_its_content_and_other_files_are_refused() {
    let shell = Shell::new();
    for name in ["anything.txt", "no-extension", "not.etl"] {
        fs::write(shell.path(name), SESSION).unwrap();
        let run = shell.run(&[name, "-c", QUESTION]).ok();
        assert_eq!(events(&serde_json::from_str(&run.stdout).unwrap()), EVENTS, "{name}");
    }
    for (name, content, reason) in [
        (
            "notes.txt",
            "Handle 34 - what is it?\n".repeat(10_000).into_bytes(),
            "this text has neither output of !htrace, !handle",
        ),
        (
            "off.log",
            b"0:000> !htrace\nHandle tracing is not enabled for this process.\n".to_vec(),
            "its output of !htrace cannot be read, first in line 2: Handle tracing is not enabled",
        ),
        ("empty.log", Vec::new(), "not an extract (.json7z), a trace"),
        (
            "binary.bin",
            b"\x00\x01\x02Handle = 0x34 - OPEN\n".to_vec(),
            "not an extract (.json7z), a trace",
        ),
    ] {
        fs::write(shell.path(name), content).unwrap();
        let run = shell.run(&[name]);
        let expected = format!("error: {name}: {reason}");
        assert!(run.stderr.contains(&expected), "{}", run.stderr);
        assert_eq!(run.status, Some(1), "{name}");
        assert!(!shell.path("Extract").join(format!("{name}.json7z")).exists());
    }
}

#[test]
fn a_difference_without_outstanding_handles_is_an_answer_without_events() {
    let nothing = "No outstanding handles opened since the previous snapshot were detected.\n";
    let (answer, _) = answer(nothing);
    assert_eq!(events(&answer), [] as [String; 0]);
}

#[test]
fn an_extract_is_written_beside_the_text_and_used_as_long_as_it_is_the_same() {
    let shell = with(SESSION);
    let run = shell.run(&["extract", "session.log"]).ok();
    let extract = Path::new("Extract").join("session.log.json7z");
    assert!(run.stdout.starts_with(&extract.to_string_lossy().into_owned()), "{}", run.stdout);
    assert!(run.stdout.contains("2 objects, 3 handle events, 1 leaked handle,"), "{}", run.stdout);
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
        answer["objects"].as_array().unwrap().iter().filter(|object| object["file"] == file).count()
    };
    assert_eq!((of_file(0), of_file(1)), (1, 19));
}
