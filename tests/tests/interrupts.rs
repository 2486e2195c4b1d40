//! Ctrl-C without a terminal to type in, and the spinner of something that takes long.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use handlescope_tests::binary::{Run, Shell};
use handlescope_tests::containers::trace_of_handles;
use handlescope_tests::symbol_server::{Answer, SymbolServer};
use handlescope_tests::terminal::{Key, Terminal};

const PROMPT: &str = "leaky.etl> ";

/// Sends what Ctrl-C sends.
fn interrupt(program: &Child) {
    let sent = Command::new("kill").args(["-INT", &program.id().to_string()]).status();
    assert!(sent.expect("there is a kill").success());
}

/// What is left of a program that was interrupted while its output waited to be read.
fn interrupted(arguments: &[&str]) -> Run {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl"]).ok();
    let mut command = shell.command(arguments);
    let mut program =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    // With the first byte the query runs; the rest is more than a pipe holds, so it cannot end.
    let stdout = program.stdout.as_mut().expect("a pipe");
    stdout.read_exact(&mut [0]).expect("output");
    interrupt(&program);
    program.wait_with_output().expect("the program ends").into()
}

#[test]
fn ctrl_c_ends_a_script_with_status_130_and_whole_lines() {
    let command = ".dump ObjectRef -ShowStack -json-pretty";
    let mut arguments = vec!["leaky.etl", "--keep-going"];
    for _ in 0..50 {
        arguments.extend(["-c", command]);
    }
    let run = interrupted(&arguments);
    assert_eq!(run.status, Some(130), "{}", run.stderr);
    assert!(run.stderr.ends_with("cancelled\n"), "{}", run.stderr);
    assert!(!run.stderr.contains("error"), "{}", run.stderr);
    assert!(run.stdout.ends_with('\n'), "the last line is whole");
}

#[test]
fn a_spinner_shows_that_symbols_are_waited_for_and_leaves_no_trace() {
    // A server that takes the connection and says nothing.
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("an address");
    let shell = Shell::new();
    let path = format!("srv*{}*http://{address}/symbols", shell.path("cache").display());
    let terminal = Terminal::spawn(80, 50, &["leaky.etl", "--symbol-path", &path], &shell.path(""));
    terminal.wait_for_line(PROMPT);
    terminal.send(".dump ObjectRef -pn leaky -Leak -ShowStack");
    terminal.wait_for_line("leaky.etl> .dump ObjectRef -pn leaky -Leak -ShowStack");
    terminal.press(Key::Enter);
    terminal.wait_for(" downloading symbols, 0 of ");
    // Now the server is gone.
    drop(server);
    terminal.wait_for_line(PROMPT);
    let transcript = terminal.transcript();
    assert!(transcript.iter().any(|line| line.starts_with("Id: ")), "{transcript:#?}");
    assert!(!transcript.iter().any(|line| line.contains("downloading")), "{transcript:#?}");
}

#[test]
fn ctrl_c_ends_a_download_and_keeps_the_session() {
    let server = SymbolServer::start(|_| Answer::Silence);
    let shell = Shell::new();
    let arguments = ["leaky.etl", "-symserver", &server.url, "-symcache", "cache"];
    let terminal = Terminal::spawn(80, 50, &arguments, &shell.path(""));
    terminal.wait_for_line(PROMPT);
    terminal.send(".dump ObjectRef -pn leaky -Leak -ShowStack");
    terminal.wait_for_line("leaky.etl> .dump ObjectRef -pn leaky -Leak -ShowStack");
    terminal.press(Key::Enter);
    terminal.wait_for(" downloading symbols, 0 of ");
    terminal.press(Key::Ctrl('c'));
    terminal.wait_for_line(PROMPT);
    terminal.run(PROMPT, ".list");
    let transcript = terminal.transcript();
    assert!(transcript.iter().any(|line| line.trim() == "cancelled"), "{transcript:#?}");
    assert!(transcript.iter().any(|line| line.contains(" leaky.etl ")), "{transcript:#?}");
    assert!(!transcript.iter().any(|line| line.contains("downloading")), "{transcript:#?}");
}

#[test]
fn a_pipe_or_device_is_refused_with_the_reason_and_not_waited_for() {
    let shell = Shell::new();
    for name in ["pipe.etl", "pipe.zip", "pipe.7z", "pipe.json7z", "pipe.json"] {
        assert!(Command::new("mkfifo").arg(shell.path(name)).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", shell.path(&name.replace("pipe", "zero"))).unwrap();
    }
    let reason = |file: &str| {
        let what = if file.starts_with("pipe") { "a pipe" } else { "a device" };
        format!("{file}: cannot open: it is {what}, not a file")
    };
    for end in ["etl", "zip", "7z", "json7z", "json"] {
        for file in [format!("pipe.{end}"), format!("zero.{end}")] {
            let run = shell.run(&[&file, "-c", ".list"]);
            assert_eq!(run.status, Some(1), "{run:?}");
            assert!(run.stderr.contains(&reason(&file)), "{run:?}");
        }
    }
    for command in ["extract", "redact"] {
        let run = shell.run(&[command, "pipe.etl"]);
        assert!(run.status == Some(1) && run.stderr.contains(&reason("pipe.etl")), "{run:?}");
    }
    // Also as the extract of a trace, which is then made anew elsewhere or refused.
    fs::create_dir_all(shell.path("Extract")).unwrap();
    fs::rename(shell.path("pipe.json7z"), shell.path("Extract/leaky.json7z")).unwrap();
    let run = shell.run(&["leaky.etl", "-c", ".list"]).ok();
    assert!(run.stderr.contains("it is a pipe, not a file"), "{run:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_holes_of_a_sparse_file_are_counted_at_once() {
    let shell = Shell::new();
    let path = shell.path("sparse.etl");
    fs::write(&path, trace_of_handles(3)).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let size = file.metadata().unwrap().len();
    file.set_len(200 << 30).unwrap();
    let run = shell.run(&["extract", "sparse.etl"]).ok();
    // 3.3 million places, of which each takes microseconds to look at.
    let said = format!(" x empty buffer, first at offset 0x{size:X}");
    assert!(run.stderr.contains("sparse.etl: 3,276,"), "{run:?}");
    assert!(run.stderr.contains(&said), "{run:?}");
}
