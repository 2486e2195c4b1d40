//! Tests whole texts, also damaged ones.

use std::fmt::Write as _;

use super::*;
use crate::operations::Operation;
use handlescope_extract::NoObserver;
use handlescope_model::tables::End;

const SESSION: &str = "\
0:000> !htrace -enable
Handle tracing enabled.
Handle tracing information snapshot successfully taken.
0:000> g
(17e8.17ec): Break instruction exception - code 80000003 (first chance)
eax=00000000 ebx=00000000
0:001> !htrace
--------------------------------------
Handle = 0x00000038 - OPEN
Thread ID = 0x000017ec, Process ID = 0x000017e8

0x77ca2e3c: ntdll!ZwCreateFile+0x0000000c
*** WARNING: Unable to verify checksum for my_app.exe
0x00ab158f: my_app!Cache::Open+0x0000016f
--------------------------------------
Handle = 0x00000034 - CLOSE
Thread ID = 0x000017ec, Process ID = 0x000017e8

0x77ca2e4c: ntdll!ZwClose+0x0000000c
--------------------------------------
Handle = 0x00000034 - *** BAD REFERENCE ***
Thread ID = 0x000017ec, Process ID = 0x000017e8

0x77ca2e5c: ntdll!ZwSetEvent+0x0000000c
--------------------------------------
Handle = 0x00000034 - OPEN
Thread ID = 0x000017ec, Process ID = 0x000017e8

0x77ca310c: ntdll!ZwCreateEvent+0x0000000c
--------------------------------------
Parsed 0x4 stack traces.
Dumped 0x4 stack traces.
0:001> q
";

fn read_text(text: &[u8]) -> (Entries, Diagnostics) {
    let cancel = Cancel::default();
    parse(Lines::new(text), &ReadProgress::new(&NoObserver, &cancel)).unwrap()
}

fn events(entries: &Entries) -> Vec<(char, u64)> {
    let events = entries.history.events().map(|entry| match entry.operation {
        Operation::Open => ('o', entry.handle),
        Operation::Close => ('c', entry.handle),
        Operation::BadReference => ('x', entry.handle),
    });
    events.collect()
}

#[test]
fn a_session_becomes_a_history_in_the_order_of_time() {
    let (entries, mut findings) = read_text(SESSION.as_bytes());
    assert_eq!(events(&entries), [('o', 0x34), ('x', 0x34), ('c', 0x34), ('o', 0x38)]);
    assert_eq!(findings.warnings().len(), 1, "{findings:?}");
    let handles = super::handles(&entries, &mut findings);
    assert_eq!((handles.tables.objects.len(), handles.leaked, handles.events), (2, 1, 3));
    let acquisitions = &handles.tables.acquisitions;
    assert_eq!(acquisitions.end, [End::Closed, End::Open].map(End::code));
    assert_eq!(acquisitions.opened_tid, [Some(0x17ec); 2]);
    assert_eq!(acquisitions.ended_tid, [Some(0x17ec), None]);
    assert_eq!(entries.process_table().pid, [0x17e8]);
    assert_eq!(entries.module_table().name, ["ntdll", "my_app"]);
}

#[test]
fn a_value_that_is_opened_again_was_closed() {
    let open = "Handle = 0x4 - OPEN\nThread ID = 0x1, Process ID = 0x2\n0x1: a!f+0x1\n";
    let text = format!("{open}---------------------\n{open}Dumped 0x2 stack traces\n");
    let (entries, mut findings) = read_text(text.as_bytes());
    let handles = super::handles(&entries, &mut findings);
    assert_eq!(handles.tables.acquisitions.end, [End::Closed, End::Open].map(End::code));
    assert_eq!(findings.of(WarningKind::ReopenedHandle), 1);
}

#[test]
fn a_program_is_known_when_a_single_program_is_named_for_a_process() {
    let program = |path| format!(".  0\tid: 17e8\tattach\tname: {path}\n");
    let names = |front: String| {
        let (entries, _) = read_text(format!("{front}{SESSION}").as_bytes());
        (entries.process_table().name, entries.process_table().image_path)
    };
    let path = r"C:\demo\a.exe";
    let known = (vec!["a.exe".to_owned()], vec![Some(path.to_owned())]);
    assert_eq!(names(program(path)), known);
    assert_eq!(names(program(path) + &program(path)), known);
    assert_eq!(names(program(path) + &program("b.exe")), (vec![String::new()], vec![None]));
}

#[test]
fn the_end_of_a_process_is_recognized_by_its_functions() {
    let text = "Handle 0x7CC - CLOSE:\n0x8018FCB9: nt!ExSweepHandleTable+0x103\n\
                Handle 0x7CC - OPEN:\n0x8018F44A: nt!ObpCreateHandle+0x94\nDumped 0x2 stack traces.\n";
    let (entries, mut findings) = read_text(text.as_bytes());
    let handles = super::handles(&entries, &mut findings);
    assert_eq!((handles.leaked, handles.closed_at_exit), (0, 1));
    assert_eq!(findings.of(WarningKind::EntryWithoutIds), 2);
}

#[test]
fn every_cut_text_is_read_and_says_so() {
    for end in 0..SESSION.len() {
        let (mut entries, findings) = read_text(&SESSION.as_bytes()[..end]);
        let text = &SESSION[..end];
        let is_cut = text.contains("0x00000038 -") && !text.contains("Dumped 0x4 stack trace");
        if is_cut || !text.contains("Handle =") || text.contains("Dumped 0x4 stack trace") {
            assert_eq!(findings.of(WarningKind::CutListing), u64::from(is_cut), "{end}");
        }
        // No value that was cut in the middle is used.
        assert!(entries.process_table().pid.iter().all(|pid| *pid == 0x17e8 || *pid == 0), "{end}");
        for function in &entries.take_frames().1.function {
            assert!(SESSION.contains(&format!("!{function}+0x")), "{end}: {function}");
        }
    }
}

#[test]
fn damaged_lines_do_no_harm() {
    let lines: Vec<&str> = SESSION.lines().collect();
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..2_000 {
        let mut bytes = Vec::new();
        for _ in 0..lines.len() {
            bytes.extend_from_slice(lines[random(lines.len())].as_bytes());
            bytes.push(b'\n');
        }
        for _ in 0..random(20) {
            let (at, byte) = (random(bytes.len()), random(256) as u8);
            bytes[at] = byte;
        }
        let (entries, mut findings) = read_text(&bytes);
        let handles = super::handles(&entries, &mut findings);
        assert!(handles.events <= entries.history.len() as u64);
    }
}

#[test]
fn a_deep_stack_is_cut() {
    let mut text = "Handle = 0x4 - OPEN\nThread ID = 0x1, Process ID = 0x2\n".to_owned();
    for address in 0..5_000 {
        writeln!(text, "0x{address:08x}: +0x{address:08x}").unwrap();
    }
    let (entries, findings) = read_text(text.as_bytes());
    assert_eq!(entries.stack_table().frames[0].len(), 1 << 10);
    assert_eq!(findings.of(WarningKind::DeepStack), 5_000 - (1 << 10));
}

/// Returns the output of a command, with events written `o34`, `c34` and the like, newest first. A difference starts
/// with the number of new ones: `3 o34`.
fn output(command: &str, events: &str) -> String {
    let taken = "Handle tracing information snapshot successfully taken.\n";
    let (new, events) =
        events.split_once(' ').filter(|_| command.ends_with("-diff")).unwrap_or(("", events));
    let before = match command {
        "!htrace -enable" => format!("Handle tracing enabled.\n{taken}"),
        "!htrace -snapshot" => taken.to_owned(),
        "!htrace -diff" => format!(
            "{taken}0x{new} new stack traces since the previous snapshot.\nIgnoring handles that were \
             already closed...\nOutstanding handles opened since the previous snapshot:\n"
        ),
        _ => String::new(),
    };
    let mut text = format!("0:000> {command}\n{before}");
    for event in events.split_whitespace() {
        let (operation, handle) = event.split_at(1);
        let operation = match operation {
            "o" => "OPEN",
            "c" => "CLOSE",
            _ => "BAD REF",
        };
        let (handle, stack) = handle.split_once('@').unwrap_or((handle, "7"));
        let _ = write!(
            text,
            "-----------\nHandle = 0x{handle} - {operation}\nThread ID = 0x1, Process ID = 0x2\n\n\
             0x{stack}{handle}: a!f+0x1\n"
        );
    }
    text
}

/// Returns the history of a session and the positions of its snapshots.
fn history(session: &[(&str, &str)]) -> (String, Vec<u32>) {
    let text: String = session.iter().map(|(command, events)| output(command, events)).collect();
    let (entries, _) = read_text(text.as_bytes());
    let events: Vec<String> =
        events(&entries).into_iter().map(|(kind, handle)| format!("{kind}{handle:x}")).collect();
    (events.join(" "), entries.history.snapshots().to_vec())
}

const ALL: &str = "!htrace";
const SNAPSHOT: &str = "!htrace -snapshot";
const DIFF: &str = "!htrace -diff";
const RUN: (&str, &str) = ("g", "");

#[test]
fn snapshots_lie_between_the_events_that_the_text_puts_around_them() {
    for (session, events, expected) in [
        // What was listed before comes before; what was opened since comes after.
        (
            &[(ALL, "o14 o10"), (SNAPSHOT, ""), RUN, (DIFF, "2 o1c o18")][..],
            "o10 o14 o18 o1c",
            &[2][..],
        ),
        // A listing after it may contain both.
        (&[(SNAPSHOT, ""), RUN, (ALL, "o18 o14 o10"), (DIFF, "1 o18")], "o10 o14 o18", &[2]),
        (&[(SNAPSHOT, ""), RUN, (DIFF, "1 o18"), (ALL, "o18 o14 o10")], "o10 o14 o18", &[2]),
        (&[(ALL, "o10"), (SNAPSHOT, ""), RUN, (ALL, "o14 c10 o10")], "o10 c10 o14", &[1]),
        (&[(ALL, "o10"), RUN, (SNAPSHOT, ""), (ALL, "o14 c10 o10")], "o10 c10 o14", &[3]),
        // Opened, closed and opened again: the last position that fits, not the first.
        (&[(SNAPSHOT, ""), RUN, (DIFF, "1 o10"), RUN, (ALL, "o10 c10 o10")], "o10 c10 o10", &[2]),
        // A difference starts where the previous one ended.
        (
            &[(ALL, "o10"), (SNAPSHOT, ""), RUN, (DIFF, "1 o14"), RUN, (DIFF, "1 o18")],
            "o10 o14 o18",
            &[1],
        ),
        (
            &[(ALL, "o10"), (SNAPSHOT, ""), RUN, (ALL, "o14 o10"), (SNAPSHOT, "")],
            "o10 o14",
            &[1, 2],
        ),
        // Neither the start of tracing nor a difference is a snapshot.
        (&[("!htrace -enable", ""), (ALL, "o10"), (DIFF, "1 o10")], "o10", &[]),
        (&[(SNAPSHOT, "")], "", &[0]),
        // Nothing is new since then, so what was listed in between came before.
        (&[(SNAPSHOT, ""), RUN, ("!htrace ac", "oac"), (DIFF, "0 ")], "oac", &[1]),
    ] {
        assert_eq!(history(session), (events.to_owned(), expected.to_vec()), "{session:?}");
    }
}

#[test]
fn entries_that_listings_have_in_common_count_once() {
    for (session, expected) in [
        (&[(ALL, "o8 c4 o4"), RUN, (ALL, "oc c8 o8 c4 o4")][..], "o4 c4 o8 c8 oc"),
        (&[(ALL, "o8 o4"), RUN, (ALL, "o8 o4")], "o4 o8"),
        // Tracing has forgotten the first two.
        (&[(ALL, "o4 c4 o8 o4"), RUN, (ALL, "c8 o4 c4")], "o4 o8 c4 o4 c8"),
        // The last open from `-diff`, then a full listing.
        (&[(DIFF, "3 o8"), RUN, (ALL, "oc c8 o8 c4 o4")], "o4 c4 o8 c8 oc"),
        // One handle after the other, then a full listing.
        (&[("!htrace 2", "c8 o8"), ("!htrace 1", "o4"), RUN, (ALL, "oc c8 o8 o4")], "o4 o8 c8 oc"),
        (&[(ALL, "c8 o8"), RUN, ("!htrace 2", "o8 c8 o8")], "o8 c8 o8"),
        // Closed before or after the snapshot and opened again, unless there are too few events for that. One of them
        // is the close of what the difference does not list.
        (&[(ALL, "o4"), RUN, (SNAPSHOT, ""), RUN, (DIFF, "1 o4")], "o4 o4"),
        (&[(ALL, "o4"), (SNAPSHOT, ""), RUN, (DIFF, "1 o4")], "o4"),
        (&[(ALL, "o4"), (SNAPSHOT, ""), RUN, ("!htrace 2", "o8"), RUN, (DIFF, "3 o4")], "o4 o8"),
        (&[(ALL, "o4"), (SNAPSHOT, ""), RUN, ("!htrace 2", "o8"), RUN, (DIFF, "4 o4")], "o4 o8 o4"),
        // Opened again by other code, and by the same code.
        (&[("!htrace 1", "c4 o4"), RUN, (DIFF, "1 o4@8")], "o4 c4 o4"),
        (&[(ALL, "c4 o4"), RUN, (DIFF, "1 o4")], "o4 c4 o4"),
        (&[(ALL, "o4 c4 o4"), RUN, (ALL, "o4 c4 o4 c4 o4")], "o4 c4 o4 c4 o4"),
        (&[(DIFF, "1 o4"), RUN, (DIFF, "2 o4@8"), RUN, (ALL, "o4@8 c4 o4")], "o4 c4 o4"),
        (&[(ALL, "x4 o4"), RUN, (ALL, "x4 x4 o4")], "o4 x4 x4"),
        // Nothing in common. A handle value is not opened twice in a row, so something is missing.
        (&[(ALL, "o8 o4"), RUN, (ALL, "o8 o4@8")], "o4 o8 o4 o8"),
        // Enabling again starts over.
        (&[(ALL, "c4 o4"), ("!htrace -enable", ""), RUN, (ALL, "c4 o4")], "o4 c4 o4 c4"),
    ] {
        assert_eq!(history(session).0, expected, "{session:?}");
    }
}

#[test]
fn many_listings_take_no_quadratic_time() {
    let session = [(ALL, "o2@8 c1 o1"), RUN, (DIFF, "2 o2"), RUN, ("!htrace 1", "c1 o1")];
    let text: String = session.map(|(command, events)| output(command, events)).concat();
    let text = text.repeat(10_000);
    let (entries, _) = read_text(text.as_bytes());
    assert!(entries.history.len() > 10_000);
}
