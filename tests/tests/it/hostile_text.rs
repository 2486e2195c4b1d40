//! Text from outside in the output: it does not control the terminal, break lines, reverse the writing direction, or
//! become a spreadsheet formula.

use std::fs;
use std::io::Write as _;

use handlescope_model::is_harmful;
use handlescope_tests::binary::{ProgramRun, Shell};
use handlescope_tests::scenario::TraceBuilder;
#[cfg(unix)]
use handlescope_tests::terminal::{Terminal, TerminalKey};

/// Sets a title, clears the screen with a one-byte control, reverses a name, hides characters, and forges a line.
const NAME: &str =
    "a\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}gpj\u{200b}\u{ad}\u{e0041}\u{2028}\nerror: forged";

/// [`NAME`] as printed.
const SHOWN: &str =
    r"a\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}gpj\u{200b}\u{ad}\u{e0041}\u{2028}\nerror: forged";

#[track_caller]
fn assert_harmless(run: &ProgramRun) {
    for text in [&run.stdout, &run.stderr] {
        let acts = text.chars().find(|c| is_harmful(*c) && !['\n', '\t'].contains(c));
        assert_eq!(acts, None, "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{text:?}");
    }
}

/// Builds a trace with this name for the process, command line, module and object.
fn hostile_trace() -> TraceBuilder {
    const OBJECT: u64 = 0xffff_8100_0000_1000;
    let mut trace = TraceBuilder::new();
    trace.process(700, NAME).command_line(NAME);
    trace.module(700, &format!(r"C:\{NAME}"), 0x40_0000, 0x2_0000);
    trace.object_type(16, "Event");
    trace.create_handle(1_000_000, (700, 8), OBJECT, 4, 16);
    trace.stack(&[], &[0x40_1000]);
    trace.close_handle(2_000_000, (700, 8), OBJECT, 4, 16, NAME);
    trace
}

#[test]
fn messages_about_modules_and_members_are_harmless() {
    let shell = Shell::new();
    hostile_trace().write(shell.path("hostile.etl")).unwrap();
    fs::create_dir(shell.path("symbols")).unwrap();
    let ask = ".dump ObjectRef -ShowStack";
    let run = shell.run(&["--symbol-path", "symbols", "hostile.etl", "-c", ask]).ok();
    assert!(run.stderr.contains("no symbols for a\\u{1b}]0;owned"), "{}", run.stderr);
    assert_harmless(&run);

    let mut zip = zip::ZipWriter::new(fs::File::create(shell.path("bad.zip")).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file(format!("{NAME}.txt"), options).unwrap();
    zip.write_all(b"no trace").unwrap();
    zip.finish().unwrap();
    let run = shell.run(&["extract", "bad.zip"]);
    assert_eq!(run.status, Some(1));
    assert!(
        run.stderr.contains("holds no trace (.etl or .dmp), only a\\u{1b}]0;owned"),
        "{}",
        run.stderr
    );
    assert_harmless(&run);
}

#[test]
fn names_of_files_and_words_of_the_command_line_are_harmless() {
    let shell = Shell::new();
    let run = shell.run(&[NAME]);
    assert_eq!(run.status, Some(1));
    assert!(run.stderr.contains(SHOWN), "{}", run.stderr);
    assert_harmless(&run);
    for arguments in [
        &["--no-such", NAME][..],
        &[&format!("--{NAME}")],
        &["leaky.etl", "--color", NAME],
        &["leaky.etl", &format!("--color={NAME}")],
        &["completions", NAME],
        &["dump", NAME],
        &["leaky.etl", "-c", NAME],
        &["leaky.etl", "-c", &format!(".dump ObjectRef -{NAME}")],
        &["leaky.etl", "-c", &format!(".sql SELECT \"{NAME}\" FROM events")],
        &["leaky.etl", "-c", &format!(".list > \"no/{NAME}\"")],
        &["complete", "--", "dump", "ObjectRef", NAME],
    ] {
        let run = shell.run(arguments);
        assert_ne!(run.status, None, "{arguments:?}");
        assert_harmless(&run);
    }
}

#[cfg(unix)]
#[test]
fn a_file_of_such_a_name_is_loaded_listed_and_completed_harmlessly() {
    let shell = Shell::new();
    let file = "a\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}.etl";
    fs::rename(shell.path("leaky.etl"), shell.path(file)).unwrap();
    for arguments in
        [&["extract", file][..], &[file, "-c", ".list", "-c", ".dir"], &["redact", file]]
    {
        let run = shell.run(arguments).ok();
        assert_harmless(&run);
    }
    /// The name is shortened.
    const PROMPT: &str = r"a\u{1b}]0;owne…2J\u{202e}.etl> ";
    let home = shell.path("");
    let terminal = Terminal::spawn(100, 24, &[file], &home);
    terminal.wait_for_line(PROMPT);
    terminal.send(".load a");
    terminal.press(TerminalKey::Tab);
    terminal.wait_for(".load a?]0;owned?·2J");
    terminal.press_for_prompt(TerminalKey::Ctrl('c'), PROMPT);
    terminal.press(TerminalKey::Ctrl('d'));
    assert_nothing_acted(terminal);
}

/// A pipe gets the text unchanged because programs read it; a terminal does not.
#[cfg(unix)]
#[test]
fn comma_separated_values_on_a_terminal_are_harmless() {
    let shell = Shell::new();
    let question = ".sql SELECT 'a\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}b' AS x -csv";
    let piped = shell.run(&["leaky.etl", "-c", question]).ok();
    assert_eq!(piped.stdout, "x\na\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}b\n");
    let terminal = Terminal::spawn(100, 24, &["leaky.etl", "-c", question], &shell.path(""));
    terminal.wait_for(r"a\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}b");
    assert_nothing_acted(terminal);
}

/// Nothing guards a table after its cells are made: its own colours pass, but those in a name must not.
#[cfg(unix)]
#[test]
fn a_name_in_a_cell_on_a_terminal_is_harmless() {
    let shell = Shell::new();
    let name = "a\u{1b}[38;5;14mb\u{1b}[2J\u{202e}c";
    let question = format!(".sql SELECT '{name}' AS \"x\u{1b}[31m\"");
    let terminal = Terminal::spawn(
        100,
        24,
        &["leaky.etl", "-c", &question, "-c", ".help .cls"],
        &shell.path(""),
    );
    terminal.wait_for(r"x\u{1b}[31m");
    terminal.wait_for(r"a\u{1b}[38;5;14mb\u{1b}[2J\u{202e}c");
    assert_nothing_acted(terminal);
}

#[cfg(unix)]
#[track_caller]
fn assert_nothing_acted(mut terminal: Terminal) {
    assert_eq!(terminal.wait_for_exit(), Some(0));
    assert_eq!(terminal.not_understood(), Vec::<String>::new());
    let transcript = terminal.transcript();
    assert!(!transcript.iter().any(|line| line.contains(is_harmful)), "{transcript:?}");
}

#[test]
fn a_formula_is_text_for_a_spreadsheet_unless_raw_values_are_asked_for() {
    let shell = Shell::new();
    let query = ".sql SELECT '=1+1' AS a, '@x' AS b, '-cmd' AS c, -5 AS n, -0.5 AS f, '\t=1' AS t";
    let csv =
        |options: &str| shell.run(&["leaky.etl", "-c", &format!("{query} {options}")]).ok().stdout;
    assert_eq!(csv("-csv"), "a,b,c,n,f,t\n'=1+1,'@x,'-cmd,-5,-0.5,\t'=1\n");
    assert_eq!(csv("-csv -csvraw"), "a,b,c,n,f,t\n=1+1,@x,-cmd,-5,-0.5,\t=1\n");

    const OBJECT: u64 = 0xffff_8100_0000_1000;
    let mut trace = TraceBuilder::new();
    trace.process(700, "@evil.exe").command_line("evil.exe a,=cmd|' /C calc'!A0;=b");
    trace.object_type(16, "Event");
    trace.create_object(900_000, (700, 8), OBJECT, 16);
    trace.create_handle(1_000_000, (700, 8), OBJECT, 4, 16);
    trace.reference(1_100_000, (700, 8), OBJECT, b"Evnt", 1);
    trace.dereference(1_200_000, (700, 8), OBJECT, b"Evnt", 1);
    trace.close_handle(2_000_000, (700, 8), OBJECT, 4, 16, "=HYPERLINK(0)");
    trace.write(shell.path("formula.etl")).unwrap();
    for (options, name, process, delta, arguments) in [
        ("", ";'=HYPERLINK(0);", ";'@evil.exe;", ";-1;", "\" a,'=cmd|' /C calc'!A0;=b\""),
        ("-csvraw", ";=HYPERLINK(0);", ";@evil.exe;", ";-1;", "\" a,=cmd|' /C calc'!A0;=b\""),
    ] {
        let ask = format!(".dump ObjectRef -ShowRef -csv {options}");
        let csv = shell.run(&["formula.etl", "-c", &ask]).ok().stdout;
        for text in [name, process, delta, arguments] {
            assert!(csv.contains(text), "{text} in {csv}");
        }
    }
    for kind in shell.kinds() {
        let has =
            |name: &str| kind.options.iter().any(|usage| usage.split(' ').next() == Some(name));
        assert_eq!(has("-csv"), has("-csvraw"), "{}", kind.name);
    }
    let _ = shell
        .run(&["formula.etl", "-c", ".export guarded -csv", "-c", ".export raw -csv -csvraw"])
        .ok();
    let processes =
        |folder: &str| fs::read_to_string(shell.path(&format!("{folder}/processes.csv"))).unwrap();
    assert!(processes("guarded").contains(",'@evil.exe,"), "{}", processes("guarded"));
    assert!(
        processes("guarded").contains("a,=cmd|' /C calc'!A0;'=b\""),
        "{}",
        processes("guarded")
    );
    assert!(processes("raw").contains(",@evil.exe,"), "{}", processes("raw"));
}
