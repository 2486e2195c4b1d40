//! Ctrl-C while a long answer is written, in every format and to every destination.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{fs, thread};

use handlescope_tests::binary::{ProgramRun, Shell, ended};
use handlescope_tests::containers::trace_of_handles;
use handlescope_tests::terminal::{Terminal, TerminalKey};

/// Enough for megabytes of output in each format.
const HANDLES: u32 = 20_000;

/// Commands with answers as long as the trace.
const FORMS: [&str; 6] = [
    ".dump ObjectRef",
    ".dump ObjectRef -json",
    ".dump ObjectRef -json-pretty",
    ".dump ObjectRef -ndjson",
    ".sql SELECT * FROM handles",
    ".sql SELECT * FROM handles -csv",
];

/// Signals that end a one-shot program, with the exit statuses that shells give them.
const SIGNALS: [(&str, i32); 3] = [("-INT", 130), ("-TERM", 143), ("-HUP", 129)];

fn send(signal: &str, program: &Child) {
    let sent = Command::new("kill").args([signal, &program.id().to_string()]).status();
    assert!(sent.expect("there is a kill").success());
}

/// Makes a folder with `many.etl` and its extract.
fn shell() -> Shell {
    let shell = Shell::new();
    fs::write(shell.path("many.etl"), trace_of_handles(HANDLES)).unwrap();
    let _ = shell.run(&["extract", "many.etl"]).ok();
    shell
}

/// Starts a command, and returns when it is about to run.
fn started(shell: &Shell, command: &str) -> Child {
    let mut program = shell.command(&["many.etl", "-c", ".list", "-c", command]);
    let mut program =
        program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    program.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("a list");
    program
}

#[test]
fn one_signal_ends_a_program_whose_reader_has_stopped_reading() {
    let shell = shell();
    for (form, (signal, status)) in FORMS.iter().zip(SIGNALS.iter().cycle()) {
        for is_shared in [false, true] {
            let mut command = shell.command(&["many.etl", "-c", form]);
            let (mut reader, writer) = std::io::pipe().expect("a pipe");
            if is_shared {
                command.stderr(writer.try_clone().expect("a pipe"));
            } else {
                command.stderr(Stdio::piped());
            }
            let mut program = command.stdout(writer).spawn().expect("the program starts");
            reader.read_exact(&mut [0]).expect("an answer");
            send(signal, &program);
            assert_eq!(ended(&mut program).code(), Some(*status), "{signal} {form}");
            if !is_shared {
                let run = ProgramRun::from(program.wait_with_output().expect("what it left"));
                assert!(run.stderr.ends_with("\ncancelled\n"), "{signal} {form}: {run:?}");
            }
        }
    }
}

#[test]
fn a_cancelled_answer_gets_no_name_and_changes_no_file() {
    const BEFORE: &str = "before\n";
    let shell = shell();
    let (output, mut cut) = (shell.path("o.txt"), 0);
    for form in FORMS {
        let line = format!("{form} > o.txt -Force");
        let mut program = started(&shell, &line);
        let start = Instant::now();
        assert!(ended(&mut program).success(), "{line}");
        let whole = start.elapsed();
        for target in [">", ">>"] {
            // Early, in the middle, and late.
            for eighths in [0, 4, 7] {
                let before = (target == ">>").then_some(BEFORE);
                let _ = fs::remove_file(&output);
                if let Some(text) = before {
                    fs::write(&output, text).unwrap();
                }
                let line = format!("{form} {target} o.txt");
                let mut program = started(&shell, &line);
                thread::sleep(whole * eighths / 8);
                send("-INT", &program);
                match ended(&mut program).code() {
                    Some(130) => {
                        cut += 1;
                        let after = fs::read_to_string(&output).ok();
                        assert_eq!(after.as_deref(), before, "{eighths}/8 of {line}");
                    }
                    // It finished sooner than the time before.
                    status => assert_eq!(status, Some(0), "{eighths}/8 of {line}"),
                }
            }
        }
    }
    assert!(cut > FORMS.len(), "most come in time: {cut}");
}

#[test]
fn ctrl_c_ends_an_answer_on_the_screen() {
    let shell = shell();
    for form in FORMS {
        let mut command = shell.command(&["many.etl", "-c", form]);
        command.env("PAGER", "").stdin(Stdio::inherit());
        let mut terminal = Terminal::start(command, 80, 24);
        let is_full = |line: &str| !line.trim().is_empty();
        terminal
            .wait_until("an answer", |view| view.lines().filter(|line| is_full(line)).count() > 9);
        terminal.press(TerminalKey::Ctrl('c'));
        assert_eq!(terminal.wait_for_exit(), Some(130), "{form}");
    }
}
