//! `| PROGRAM` pipes an answer into a program of the system.

use handlescope_tests::binary::Shell;
use handlescope_tests::terminal::{Terminal, TerminalKey};

const TYPES: &str = ".sql SELECT type, count(*) FROM leaks GROUP BY type ORDER BY type -csv";

#[test]
fn a_script_runs_programs_only_if_it_is_allowed_to() {
    let shell = Shell::new();
    let piped = format!("{TYPES} | sort -r > sorted.txt");
    for run in [
        shell.run(&["leaky.etl", "-c", &piped]),
        shell.script(&["leaky.etl"], &piped),
        shell.script(&["leaky.etl"], &format!(".alias x = {piped}\n.x\n")),
    ] {
        assert_eq!((run.status, run.stdout.lines().count()), (Some(1), 0), "{run:?}");
        assert!(run.stderr.contains("a script runs programs only with --pipes"), "{run:?}");
    }
    assert!(!shell.path("sorted.txt").exists());
    let run = shell.run(&["leaky.etl", "--pipes", "-c", &piped]).ok();
    assert_eq!(run.stdout, "");
    let sorted = std::fs::read_to_string(shell.path("sorted.txt")).unwrap();
    assert_eq!(sorted, "type,count\nThread,6\nEvent,13\n");
}

#[test]
fn what_a_program_prints_stands_in_its_place_among_the_answers() {
    let shell = Shell::new();
    let script = format!(
        ".sql SELECT 1 AS one -csv\n{TYPES} | grep Event | sed s/E/e/\n.sql SELECT 'a | b' AS x -csv\n"
    );
    let run = shell.script(&["--pipes", "leaky.etl"], &script).ok();
    assert_eq!(run.stdout, "one\n1\nevent,13\nx\na | b\n");
}

#[test]
fn a_program_that_reads_enough_is_no_failure_and_one_that_fails_is() {
    let shell = Shell::new();
    let piped = |line: &str| shell.run(&["leaky.etl", "--pipes", "-c", line, "-c", ".list"]);
    let run = piped(".dump ObjectRef -ShowStack -json-pretty | head -n 1").ok();
    assert_eq!(run.stdout.lines().next(), Some("{"));
    for (line, end) in [
        (".dump Process | grep nothing-is-called-so", "exit status: 1"),
        (".dump Process | cat > /dev/null; exit 7", "exit status: 7"),
        (".dump Process | kill -9 $$", "signal: 9 (SIGKILL)"),
    ] {
        let run = piped(line);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{run:?}");
        let (_, program) = line.split_once('|').unwrap();
        assert!(run.stderr.contains(&format!("|{program}: ended with {end}\n")), "{run:?}");
    }
    let run = piped(".dump Process -Laek | cat");
    assert!(run.stderr.contains("unknown option -Laek"), "{run:?}");
}

mod at_the_prompt {
    use std::time::Duration;

    use super::*;

    const PROMPT: &str = "leaky.etl> ";

    /// Time in which a shell starts its next command. dash loses a signal that comes during that time.
    const SETTLED: Duration = Duration::from_millis(300);

    fn open(shell: &Shell) -> Terminal {
        let terminal = Terminal::spawn(80, 40, &["leaky.etl"], &shell.path(""));
        terminal.wait_for_line(PROMPT);
        terminal
    }

    #[test]
    fn a_program_gets_plain_whole_lines_without_a_pager() {
        let shell = Shell::new();
        let terminal = open(&shell);
        terminal.run(PROMPT, ".why | cat -v > plain.txt");
        terminal.run(PROMPT, ".dump ObjectRef -ShowStack | wc -l");
        terminal.run(PROMPT, ".dump ObjectRef -ShowStack -TopN 1 | grep -c 'Id: '");
        let plain = std::fs::read_to_string(shell.path("plain.txt")).unwrap();
        assert!(plain.contains("leaky.exe") && !plain.contains("^["), "{plain}");
        let lines: Vec<String> = terminal.transcript();
        let after = |line: &str| {
            let typed = lines.iter().position(|shown| shown.contains(line)).unwrap();
            lines[typed + 1].clone()
        };
        assert!(after("| wc -l").trim().parse::<u32>().unwrap() > 100, "{lines:#?}");
        assert_eq!(after("| grep -c").trim(), "1");
    }

    #[test]
    fn a_failure_is_reported_and_ctrl_c_ends_the_program_and_not_the_session() {
        let shell = Shell::new();
        let terminal = open(&shell);
        terminal.run(PROMPT, ".dump Process | grep nothing-is-called-so");
        terminal.wait_for("| grep nothing-is-called-so: ended with exit status: 1");
        // The program's output differs from the text of the line that starts it.
        terminal.send(".dump Process | echo wait$((20 + 3)); sleep 100");
        terminal.press(TerminalKey::Enter);
        terminal.wait_for("wait23");
        std::thread::sleep(SETTLED);
        terminal.press(TerminalKey::Ctrl('c'));
        terminal.wait_for("cancelled");
        terminal.run(PROMPT, ".list");
        // A program may survive Ctrl-C, however often it is pressed.
        terminal.send(".dump Process | trap 'echo stay$((20 + 3))' INT; echo start$((20 + 3)); sleep 1; sleep 1; cat > all.txt");
        terminal.press(TerminalKey::Enter);
        terminal.wait_for("start23");
        std::thread::sleep(SETTLED);
        terminal.press(TerminalKey::Ctrl('c'));
        terminal.wait_for("stay23");
        std::thread::sleep(SETTLED);
        terminal.press(TerminalKey::Ctrl('c'));
        terminal.run(PROMPT, ".list");
    }
}
