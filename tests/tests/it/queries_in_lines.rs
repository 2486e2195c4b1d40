//! Multi-line queries: in scripts, at the prompt, and pasted.

use handlescope_tests::binary::Shell;

#[cfg(unix)]
use handlescope_tests::terminal::{Terminal, TerminalKey};

const COUNTED: &str = "type,count\nEvent,13\nThread,6\n";

#[test]
fn a_query_of_a_script_ends_with_a_semicolon_an_empty_line_options_or_the_next_command() {
    let shell = Shell::new();
    let query = "\nSELECT type, count(*)\n  FROM leaks\nGROUP BY type\nORDER BY type";
    for script in [
        format!(".sql -csv{query};\n"),
        format!(".sql -csv{query}\n;\n"),
        format!(".sql -csv{query}\n\n"),
        format!(".sql -csv{query}"),
        format!(".sql{query}\n-csv\n"),
        format!(".sql{query} -csv\n"),
        format!(".sql -csv{query}\n# a note\n").replace('\n', "\r\n"),
    ] {
        let run = shell.script(&["leaky.etl"], &script).ok();
        assert_eq!(run.stdout, COUNTED, "{script}");
    }
    let run = shell.script(&["leaky.etl"], &format!(".sql -csv{query}\n.unload\n.list\n")).ok();
    assert_eq!(run.stdout, format!("{COUNTED}No traces are loaded.\n"));
    let wrong = shell.script(&["leaky.etl"], "\n.sql SELECT nothing\nFROM leaks;\n.list\n");
    assert_eq!(wrong.status, Some(1));
    assert!(wrong.stderr.contains("error: line 2: .sql SELECT nothing FROM leaks;: "), "{wrong:?}");
}

#[test]
fn a_query_of_the_command_line_may_have_several_lines() {
    let shell = Shell::new();
    let query = ".sql SELECT type, count(*)\nFROM leaks\nGROUP BY type ORDER BY type;\n-csv";
    assert_eq!(shell.run(&["leaky.etl", "-c", query]).ok().stdout, COUNTED);
}

#[test]
fn commands_are_echoed_on_standard_error_as_comments() {
    let shell = Shell::new();
    let script = "# first\n.dump Stats -json > a.json\n\n.sql SELECT 1 AS a,\n2 AS b;\n.list\n";
    let run = shell.script(&["--echo", "leaky.etl"], script).ok();
    let echoed: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("# ")).collect();
    let expected =
        ["# .dump Stats -json > a.json", "# .sql SELECT 1 AS a,", "# 2 AS b;", "# .list"];
    assert_eq!(echoed, expected);
    assert!(!run.stdout.contains("# ."), "{run:?}");
    let of_arguments = shell.run(&["leaky.etl", "--echo", "-c", ".list", "-c", ".nonsense"]);
    let expected = "# .list\n# .nonsense\nerror: command 2: .nonsense: unknown command";
    assert!(of_arguments.stderr.contains(expected), "{of_arguments:?}");
    let silent = shell.script(&["leaky.etl"], script).ok();
    assert!(!silent.stderr.contains("# "), "{silent:?}");
}

#[test]
fn a_join_that_is_too_large_is_refused_before_it_takes_memory() {
    let shell = Shell::new();
    let asked = |query: &str| shell.run(&["leaky.etl", "-c", &format!(".sql {query} -csv")]);
    let pairs = "SELECT a.time_ns AS t FROM events a CROSS JOIN events b";
    for query in [
        "SELECT count(*) FROM events a, events b, events c, events d",
        "SELECT count(*) FROM events a CROSS JOIN events b CROSS JOIN events c CROSS JOIN events d",
        "SELECT count(*) FROM events a JOIN events b ON a.kind = b.kind JOIN events c ON c.kind = b.kind \
         JOIN events d ON d.kind = c.kind JOIN events e ON e.kind = d.kind",
        &format!("WITH x AS ({pairs}), y AS ({pairs}) SELECT count(*) FROM x, y WHERE x.t < y.t"),
        &format!(
            "WITH x AS ({pairs}) SELECT x.t FROM x LEFT JOIN ({pairs}) y ON x.t = y.t LEFT JOIN x z ON z.t = y.t"
        ),
    ] {
        let run = asked(query);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{query}: {run:?}");
        assert!(run.stderr.contains("a join of this query would have "), "{query}: {run:?}");
        assert!(run.stderr.contains("join on more columns, or filter rows"), "{query}: {run:?}");
    }
    let few =
        asked("SELECT count(*) FROM events a, events b, events c WHERE a.row < 10 AND b.row < 10");
    assert_eq!(few.ok().stdout, "count\n18300\n");
    let limited = asked("SELECT a.row AS r FROM events a, events b, events c LIMIT 2");
    assert_eq!(limited.ok().stdout.lines().count(), 3);
}

#[cfg(unix)]
mod at_the_prompt {
    use super::*;

    const PROMPT: &str = "leaky.etl> ";

    fn open(shell: &Shell) -> Terminal {
        let terminal = Terminal::spawn(80, 40, &["leaky.etl"], &shell.path(""));
        terminal.wait_for_line(PROMPT);
        terminal
    }

    fn wait_for_counts(terminal: &Terminal) {
        terminal.wait_until("two counts and a prompt", |view| {
            let lines: Vec<String> = view.lines().collect();
            let has = |start: &str, end: &str| {
                lines.iter().any(|line| line.trim().starts_with(start) && line.ends_with(end))
            };
            has("Event", "13") && has("Thread", "6") && view.before_cursor() == PROMPT
        });
    }

    #[test]
    fn enter_starts_a_line_until_the_query_is_complete_or_ended() {
        for end in ["\r", ";\r", " ORDER BY\r1\r"] {
            let shell = Shell::new();
            let terminal = open(&shell);
            terminal.send(".sql SELECT type, count(*)\r");
            terminal.wait_for("; or an empty line ends the query");
            terminal.send("FROM leaks\r");
            terminal.wait_for("  FROM leaks");
            terminal.send(&format!("GROUP BY type{end}"));
            wait_for_counts(&terminal);
            terminal.run(PROMPT, ".list");
        }
    }

    #[test]
    fn schema_queries_and_queries_with_options_run_at_once() {
        let shell = Shell::new();
        let terminal = open(&shell);
        terminal.run(PROMPT, ".sql SHOW TABLES");
        terminal.run(PROMPT, ".sql DESCRIBE leaks");
        terminal.run(PROMPT, ".sql SELECT 1 AS one -csv");
        terminal.wait_for("one");
        terminal.run(PROMPT, ".sql leaks");
        terminal.wait_for("a query starts with SELECT");
    }

    #[test]
    fn several_lines_can_be_pasted() {
        let shell = Shell::new();
        let terminal = open(&shell);
        let paste = |text: &str| terminal.send(&format!("\x1b[200~{text}\x1b[201~"));
        paste(".sql SELECT type,\n\tcount(*)\nFROM leaks\nGROUP BY type;");
        terminal.wait_for("GROUP BY type;");
        terminal.press(TerminalKey::Enter);
        wait_for_counts(&terminal);
        paste(".unload\n.list\n.sql SELECT type,\n1\n");
        terminal.wait_for("; or an empty line");
        terminal.press(TerminalKey::Enter);
        terminal.wait_for("No traces are loaded.");
        terminal.wait_for("no trace is loaded");
        terminal.wait_for_line("handlescope> ");
    }

    #[test]
    fn completion_without_candidates_shows_nothing() {
        let shell = Shell::new();
        let terminal = open(&shell);
        for typed in [".dump ObjectRef -Laek", ".quit ", ".load nowhere", ".dump ObjectRef -pn zzz"]
        {
            terminal.send(typed);
            terminal.wait_for_line(&format!("{PROMPT}{typed}"));
            terminal.press(TerminalKey::Tab);
            // The next typed character only appears after the menu.
            terminal.send("x");
            terminal.wait_for_line(&format!("{PROMPT}{typed}x"));
            terminal.press_for_prompt(TerminalKey::Ctrl('c'), PROMPT);
        }
        // A menu closes when typing leaves it without candidates.
        terminal.send(".dump ObjectRef -Show");
        terminal.press(TerminalKey::Tab);
        terminal.wait_for("-ShowTotal");
        terminal.send("q");
        terminal.wait_for_line(&format!("{PROMPT}.dump ObjectRef -Showq"));
        terminal.press_for_prompt(TerminalKey::Ctrl('c'), PROMPT);
        let transcript = terminal.transcript();
        assert!(!transcript.iter().any(|line| line.contains("NO RECORDS")), "{transcript:#?}");
    }
}
