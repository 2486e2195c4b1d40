//! Ctrl-C without a terminal, and the spinner of a long operation.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use handlescope_tests::binary::{ProgramRun, Shell, ended};
use handlescope_tests::containers::trace_of_handles;
use handlescope_tests::symbol_server::{ServerAnswer, SymbolServer};
use handlescope_tests::terminal::{Terminal, TerminalKey};
use handlescope_tests::thorough::one_of;

const PROMPT: &str = "leaky.etl> ";

/// The signals that end a program, with the exit statuses that shells give them. The first is Ctrl-C.
const SIGNALS: [(&str, i32); 4] = [("-INT", 130), ("-TERM", 143), ("-HUP", 129), ("-QUIT", 131)];

fn send(signal: &str, program: &Child) {
    let sent = Command::new("kill").args([signal, &program.id().to_string()]).status();
    assert!(sent.expect("there is a kill").success());
}

/// Runs a program that gets a signal while its output waits to be read.
fn interrupted(signal: &str, arguments: &[&str]) -> ProgramRun {
    let shell = Shell::new();
    let _ = shell.run(&["extract", "leaky.etl"]).ok();
    let mut command = shell.command(arguments);
    let mut program =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    // After the first byte, the query is running. The rest is more than a pipe holds, so it cannot finish.
    let stdout = program.stdout.as_mut().expect("a pipe");
    stdout.read_exact(&mut [0]).expect("output");
    send(signal, &program);
    program.wait_with_output().expect("the program ends").into()
}

#[test]
fn a_signal_ends_a_script_with_its_status_and_whole_lines() {
    let command = ".dump ObjectRef -ShowStack -json-pretty";
    let mut arguments = vec!["leaky.etl", "--keep-going"];
    for _ in 0..50 {
        arguments.extend(["-c", command]);
    }
    for (signal, status) in SIGNALS {
        let run = interrupted(signal, &arguments);
        assert_eq!(run.status, Some(status), "{}", run.stderr);
        assert!(run.stderr.ends_with("cancelled\n"), "{}", run.stderr);
        assert!(!run.stderr.contains("error"), "{}", run.stderr);
        assert!(run.stdout.ends_with('\n'), "the last line is whole");
    }
}

#[test]
fn a_signal_ends_a_script_that_waits_for_its_next_line() {
    for (signal, status) in SIGNALS {
        let shell = Shell::new();
        let mut command = shell.command(&[]);
        let mut program = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = program.stdin.take().expect("a pipe");
        stdin.write_all(b".list\n").expect("a command");
        // The command's output comes before the program waits.
        let stdout = program.stdout.as_mut().expect("a pipe");
        stdout.read_exact(&mut [0; 20]).expect("output");
        send(signal, &program);
        assert_eq!(ended(&mut program).code(), Some(status), "{signal}");
        let run = ProgramRun::from(program.wait_with_output().expect("what it left"));
        assert_eq!(run.stderr, "cancelled\n", "{signal}");
    }
}

#[test]
fn a_signal_ends_the_program_at_the_prompt_and_leaves_the_terminal_as_it_was() {
    // A query continues, and the prompt waits for its next line.
    assert_signals_end_what_waits("done", |terminal| {
        terminal.send(".sql SELECT");
        terminal.press(TerminalKey::Enter);
        terminal.send("1 AS one");
        terminal.wait_for_line("  1 AS one");
    });
}

#[test]
fn a_signal_ends_the_program_and_its_pager_and_leaves_the_terminal_as_it_was() {
    assert_signals_end_what_waits("pager ended", |terminal| {
        terminal.send(".help ObjectRef");
        terminal.press(TerminalKey::Enter);
        terminal.wait_for_line(":");
    });
}

/// Checks that every signal except Ctrl-C ends both the program and the wait that `start` leads to at the prompt.
///
/// The pager sleeps where others wait for a key, because a shell misses a signal that comes just before it waits in
/// `read`. The outer shell waits for a line at the end, because its exit would take the terminal from a pager that is
/// still about to write.
fn assert_signals_end_what_waits(last: &str, start: fn(&Terminal)) {
    for (signal, status) in &SIGNALS[1..] {
        let shell = Shell::new();
        let program = shell.command(&["leaky.etl"]);
        let mut command = Command::new("sh");
        command.current_dir(shell.path("")).args([
            "-c",
            "stty -a > before; sh -c 'echo $$ > pid; exec \"$@\"' sh \"$@\"; echo status $?; \
             stty -a > after; echo done; read line",
            "sh",
        ]);
        command.arg(program.get_program()).args(program.get_args());
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let pager = "trap 'echo pager ended > /dev/tty; exit' TERM; cat; printf :; \
                     while sleep 0.05; do :; done";
        fs::write(shell.path("pager.sh"), pager).unwrap();
        command.env("PAGER", "sh pager.sh");
        let terminal = Terminal::start(command, 80, 50);
        terminal.wait_for_line(PROMPT);
        start(&terminal);
        let pid = fs::read_to_string(shell.path("pid")).unwrap();
        let sent = Command::new("kill").args([signal, pid.trim()]).status();
        assert!(sent.expect("there is a kill").success());
        terminal.wait_for(&format!("status {status}"));
        terminal.wait_for("done");
        terminal.wait_for(last);
        let modes = ["before", "after"].map(|name| fs::read_to_string(shell.path(name)).unwrap());
        assert_eq!(modes[0], modes[1], "{signal}");
    }
}

/// Returns the temporary files below a folder.
fn temporary(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(temporary(&entry.path()));
        } else if entry.file_name().to_string_lossy().starts_with(".handlescope-") {
            found.push(entry.path());
        }
    }
    found
}

/// Commands that write files of every kind. They need `-Force`, because a file that a killed run left unfinished is not
/// known to be handlescope's.
const WORK: [&str; 11] = [
    "leaky.etl",
    "-c",
    ".save saved.json7z -Force",
    "-c",
    ".save other.json7z -etwanalyzer -Force",
    "-c",
    ".export tables -csv -Force",
    "-c",
    ".dump ObjectRef -parquet o.parquet -Force",
    "-c",
    ".redact leaky.etl -Force",
];

/// Number of points at which the program is killed, spread over one and a half times its running time.
const KILL_POINTS: u64 = 300;

/// Number of killed runs before one that is not killed.
const ROUND: u64 = 10;

#[test]
fn nothing_is_left_behind_by_programs_that_are_killed_after_the_next_run() {
    let shell = Shell::new();
    let begin = Instant::now();
    let _ = shell.run(&WORK).ok();
    let point = begin.elapsed() * 3 / 2 / KILL_POINTS as u32;
    let mut cut = 0;
    for round in (0..KILL_POINTS / ROUND).step_by(one_of(10)) {
        for at in 0..ROUND {
            let _ = fs::remove_file(shell.path("Extract/leaky.json7z"));
            let mut command = shell.command(&WORK);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut program = command.spawn().expect("the program starts");
            thread::sleep(point * (at * (KILL_POINTS / ROUND) + round) as u32);
            send(["-KILL", "-TERM", "-HUP", "-QUIT"][(at % 4) as usize], &program);
            cut += u64::from(!ended(&mut program).success());
            for output in ["Extract/leaky.json7z", "saved.json7z", "other.json7z"] {
                if shell.path(output).exists() {
                    let _ = shell.run(&[output, "-c", ".list"]).ok();
                }
            }
        }
        let _ = shell.run(&WORK).ok();
        let left = temporary(&shell.path(""));
        assert!(left.is_empty(), "round {round}: {left:?}");
    }
    assert!(cut > ROUND, "the work takes longer than most of these times");
}

#[test]
fn a_spinner_shows_that_symbols_are_waited_for_and_leaves_no_trace() {
    // A server that accepts the connection and never answers.
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("an address");
    let shell = Shell::new();
    let path = format!("srv*{}*http://{address}/symbols", shell.path("cache").display());
    let terminal = Terminal::spawn(80, 50, &["leaky.etl", "--symbol-path", &path], &shell.path(""));
    terminal.wait_for_line(PROMPT);
    terminal.send(".dump ObjectRef -pn leaky -Leak -ShowStack");
    terminal.wait_for_line("leaky.etl> .dump ObjectRef -pn leaky -Leak -ShowStack");
    terminal.press(TerminalKey::Enter);
    terminal.wait_for(" downloading symbols, 0 of ");
    // Now the server goes away.
    drop(server);
    terminal.wait_for_line(PROMPT);
    let transcript = terminal.transcript();
    assert!(transcript.iter().any(|line| line.starts_with("Id: ")), "{transcript:#?}");
    assert!(!transcript.iter().any(|line| line.contains("downloading")), "{transcript:#?}");
}

#[test]
fn ctrl_c_ends_a_download_and_keeps_the_session() {
    let server = SymbolServer::start(|_| ServerAnswer::Silence);
    let shell = Shell::new();
    let arguments = ["leaky.etl", "-symserver", &server.url, "-symcache", "cache"];
    let terminal = Terminal::spawn(80, 50, &arguments, &shell.path(""));
    terminal.wait_for_line(PROMPT);
    terminal.send(".dump ObjectRef -pn leaky -Leak -ShowStack");
    terminal.wait_for_line("leaky.etl> .dump ObjectRef -pn leaky -Leak -ShowStack");
    terminal.press(TerminalKey::Enter);
    terminal.wait_for(" downloading symbols, 0 of ");
    terminal.press(TerminalKey::Ctrl('c'));
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
    // The same in place of a trace's extract, which is then written elsewhere or refused.
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
    // There are 3.3 million buffers, each of which takes microseconds to look at.
    let said = format!(" buffers of zeros, first at offset 0x{size:X}");
    assert!(run.stderr.contains("sparse.etl: 3,276,"), "{run:?}");
    assert!(run.stderr.contains(&said), "{run:?}");
}
