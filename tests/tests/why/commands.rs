//! The command that shows what a suspect lost, and the command line.

use handlescope_tests::binary::{Shell, run_over, sample_symbols};
use serde_json::Value;

use super::{EVENT, MS, OBJECT, asked, assert_commands, suspects, trace};

#[test]
fn the_command_of_a_suspect_shows_its_handles_when_stacks_share_frames_or_are_missing() {
    const SYSTEM: u64 = 0x7ff8_0000_0000;
    const PROGRAM: u64 = 0x7ff6_0000_0000;
    let mut trace = trace();
    trace.module(700, r"C:\Windows\System32\ntdll.dll", SYSTEM, 0x1_0000);
    trace.module(700, "C:\\demo\\a;b \"c\" #1.exe", PROGRAM, 0x1_0000);
    let stacks: [&[u64]; 8] = [
        &[],
        &[SYSTEM + 0x10],
        &[SYSTEM + 0x10, SYSTEM + 0x20],
        &[SYSTEM + 0x10, SYSTEM + 0x30],
        &[SYSTEM + 0x10, PROGRAM + 0x100, PROGRAM + 0x500],
        &[SYSTEM + 0x10, PROGRAM + 0x100, PROGRAM + 0x600, PROGRAM + 0x700],
        &[SYSTEM + 0x10, PROGRAM + 0x100, PROGRAM + 0x500, PROGRAM + 0x700],
        &[SYSTEM + 0x10, PROGRAM + 0x800],
    ];
    let mut handle = 0;
    for (at, stack) in stacks.iter().enumerate() {
        for _ in 0..3 + at {
            handle += 4;
            let (ns, object) = (MS * i64::from(handle), OBJECT + 0x100 * u64::from(handle));
            trace.create_handle(ns, (700, 701), object, handle, EVENT);
            if !stack.is_empty() {
                trace.stack(&[], stack);
            }
        }
    }
    let document = asked(&trace, "");
    assert_eq!(suspects(&document).len(), stacks.len(), "{document}");
    assert_commands(&document, |script| run_over(&trace, &format!("{script}\n")).ok().stdout);
}

#[test]
fn the_sample_has_three_leaks_with_lines_and_causes() {
    let shell = Shell::new();
    let symbols = sample_symbols();
    let run = shell.run(&["why", "leaky.etl", "--symbol-path", symbols.to_str().unwrap()]).ok();
    insta::assert_snapshot!(run.stdout);
}

#[test]
fn the_command_line_takes_files_between_options() {
    let shell = Shell::new();
    let first = shell.run(&["why", "-pn", "leaky", "leaky.etl", "-json"]).ok().stdout;
    let second = shell.run(&["why", "leaky.etl", "-json", "-pn", "leaky"]).ok().stdout;
    assert_eq!(first, second);
    let document: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(document["kind"], "Why");
    assert_eq!(document["suspects"][0]["rank"], 1);
}
