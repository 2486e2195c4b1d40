//! Every command in README.md, CONTRIBUTING.md, SECURITY.md and `docs/*.md` is run, and prints what the page shows.
//!
//! Output that a page does not show is compared with a snapshot. Commands that a page only mentions have to parse.

mod page;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{fs, iter, thread};

use handlescope_tests::binary::{ProgramRun, Shell, examples};
use handlescope_tests::data::SharedTrace;
use handlescope_tests::folders::copy_folder;
use handlescope_tests::needs_data;
use handlescope_tests::scenario::TraceBuilder;

use page::{Command, Page, Session};

/// The page about published traces.
const HUNTS: &str = "docs/hunts.md";

/// Number of lines of an output in a snapshot.
const LINES: usize = 12;

/// Number of characters of such a line.
const WIDTH: usize = 160;

/// Messages of the program that does not understand a command.
const NOT_UNDERSTOOD: [&str; 12] = [
    "unknown command",
    "unknown option",
    "unexpected '",
    "unexpected argument",
    "unrecognized subcommand",
    "has no kind '",
    "is an option of ",
    "is not one of ",
    "is not a valid ",
    "invalid value",
    "no help on ",
    "needs a value",
];

/// Mentioned commands that are not run, and why.
const NOT_RUN: [(&str, &str); 2] = [
    (".dump VirtualAlloc", "ETWAnalyzer's; the page says what to use instead"),
    (".logopen", "a command of WinDbg"),
];

fn root() -> PathBuf {
    examples().join("..")
}

/// Reads all pages.
fn pages() -> Vec<Page> {
    let entries = fs::read_dir(root().join("docs")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    names.sort();
    let others = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned);
    others.iter().chain(&names).map(|name| Page::read(&root(), name)).collect()
}

/// Writes a trace of 100 seconds in which a program leaks some events.
fn write_leaking(path: &Path, events: u32) {
    let mut trace = TraceBuilder::new();
    trace.object_type(16, "Event");
    trace.process(700, "app.exe");
    trace.module(700, r"C:\app.exe", 0x1000_0000, 0x10000);
    for number in 1..=events {
        let ns = i64::from(number) * 95_000_000_000 / i64::from(events);
        let object = 0xFFFF_8000_0000_1000 + 0x100 * u64::from(number);
        trace.create_handle(ns, (700, 701), object, 4 * number, 16).stack(&[], &[0x1000_0010]);
    }
    trace.end(100_000_000_000);
    trace.write(path).unwrap();
}

/// The folder in which the commands of the pages work. Each page gets a copy.
static FOLDER: LazyLock<Shell> = LazyLock::new(|| {
    let shell = Shell::new();
    copy_folder(&examples(), &shell.path("examples"));
    copy_folder(&examples().join("symbols"), &shell.path("symbols"));
    for (from, to) in [("leaky", "leak"), ("leaky", "a"), ("server", "server")] {
        let from = examples().join(format!("{from}.etl"));
        fs::copy(from, shell.path(&format!("{to}.etl"))).unwrap();
    }
    write_leaking(&shell.path("before.etl"), 4);
    write_leaking(&shell.path("after.etl"), 90);
    for line in [
        "handlescope a.etl -c '.save a.json7z'",
        "handlescope dataset add fleet leaky.etl server.etl --symbol-path symbols",
    ] {
        let _ = shell.line(line, "").ok();
    }
    fs::remove_dir_all(shell.path("Extract")).unwrap();
    shell
});

/// Makes a folder for the commands of a page.
fn folder() -> Shell {
    let shell = Shell::new();
    copy_folder(&FOLDER.path(""), &shell.path(""));
    shell
}

/// Whether a text has the lines that a page shows, where `…` stands for any lines.
fn has_lines(text: &[&str], shown: &[&str]) -> bool {
    match (shown, text) {
        (["…", rest @ ..], _) => {
            (0..=text.len()).any(|skipped| has_lines(&text[skipped..], rest))
        }
        ([line, shown @ ..], [first, text @ ..]) => line == first && has_lines(text, shown),
        ([], []) => true,
        _ => false,
    }
}

/// Returns a line for a snapshot: shortened, and without what differs between runs.
fn stable(line: &str, shell: &Shell) -> String {
    let folder = fs::canonicalize(shell.path("")).unwrap().display().to_string();
    let line = line.replace(&folder, "[folder]").replace(env!("CARGO_PKG_VERSION"), "[version]");
    // `…, 0 lost events, 37.37 KiB in 0.02 s, 12.40 MiB/s`
    let line = match line.split_once(" lost events, ") {
        Some((counts, _)) => format!("{counts} lost events, [size and time]"),
        None => line,
    };
    let words: Vec<&str> = line.split(' ').collect();
    let is_size = |n: usize| words.get(n + 1).is_some_and(|unit| unit.starts_with("KiB"));
    let words: Vec<&str> =
        words.iter().enumerate().map(|(n, word)| if is_size(n) { "#" } else { word }).collect();
    words.join(" ").chars().take(WIDTH).collect()
}

/// The commands of a page when they were run.
#[derive(Debug, Default, Clone)]
struct Checked {
    page: String,
    /// Commands with the output that the page does not show.
    transcript: String,
    /// What to do: `docs/why.md:5: …`.
    faults: Vec<String>,
}

impl Checked {
    /// Runs a page in a folder of its own.
    fn run(page: &Page) -> Self {
        let mut checked =
            Self { page: page.name.clone(), faults: page.faults.clone(), ..Self::default() };
        let shell = folder();
        if page.name != HUNTS {
            page.sessions.iter().for_each(|session| checked.run_session(session, &shell));
        }
        checked.parse_mentioned(page, &shell);
        checked
    }

    fn fault(&mut self, command: &Command, fault: &str) {
        let Command { line, text, .. } = command;
        self.faults.push(format!("{}:{line}: `{text}` {fault}", self.page));
    }

    /// Runs the program once for each command of the session, with all commands up to it, and judges what that adds to
    /// the output.
    fn run_session(&mut self, session: &Session, shell: &Shell) {
        let shell_line = (&session.shell, String::new());
        let prompt = session.prompt.iter().map(|command| (command, format!("{}\n", command.text)));
        // Without output, the line for the shell only opens the prompt.
        let opens = !session.prompt.is_empty() && session.shell.shown.is_empty();
        let mut script = String::new();
        let mut before = String::new();
        for (command, input) in iter::once(shell_line).chain(prompt).skip(usize::from(opens)) {
            script += &input;
            // No other program is needed.
            let run = shell.line(session.shell.before(&[" | "]), &script);
            let added = run.stdout.strip_prefix(&before).unwrap_or(&run.stdout).to_owned();
            before.clone_from(&run.stdout);
            self.judge(command, &ProgramRun { stdout: added, ..run }, shell);
        }
    }

    fn judge(&mut self, command: &Command, run: &ProgramRun, shell: &Shell) {
        let has_result =
            ["diff", "--fail-on", "-FailOn"].iter().any(|word| command.text.contains(word));
        if run.status != Some(0) && !(has_result && run.status == Some(1)) {
            self.fault(
                command,
                &format!(
                    "fails; correct it, or make it a block of text if it cannot work here:\n{}",
                    run.stderr
                ),
            );
            return;
        }
        let output: Vec<&str> = run.stdout.trim_end().lines().collect();
        let shown = command.shown.join("\n");
        let shown: Vec<&str> = shown.trim_end().lines().collect();
        if shown.is_empty() {
            writeln!(self.transcript, "{}", command.text).unwrap();
            for line in output.iter().take(LINES) {
                writeln!(self.transcript, "    {}", stable(line, shell)).unwrap();
            }
            if output.len() > LINES {
                writeln!(self.transcript, "    …").unwrap();
            }
        } else if !has_lines(&output, &shown) {
            self.fault(
                command,
                &format!("prints something else; show this, or `…` for lines:\n{}", run.stdout),
            );
        }
    }

    /// Runs the mentioned commands. They may fail, if only the program understands them.
    fn parse_mentioned(&mut self, page: &Page, shell: &Shell) {
        let is_run = |command: &&Command| NOT_RUN.iter().all(|(text, _)| command.text != *text);
        let (prompt, lines): (Vec<&Command>, Vec<&Command>) =
            page.mentioned.iter().filter(is_run).partition(|command| command.text.starts_with('.'));
        for command in lines {
            // Nothing is written, and no other program is needed.
            let line = command.before(&[" | ", " > "]);
            self.judge_parsing(command, &shell.line(line, "").stderr);
        }
        // The last line shows that all others were run.
        let mut script: String =
            prompt.iter().map(|command| format!("{}\n", command.text)).collect();
        script += ".end-of-the-page\n";
        let run = shell.line("handlescope --keep-going --pipes leak.etl", &script);
        let messages = |number: usize| {
            let start = format!("error: line {number}: ");
            let from = run.stderr.split_once(&start).map_or("", |(_, rest)| rest);
            let end = ["\nerror: ", "\nwarning: "].iter().filter_map(|next| from.find(next)).min();
            &from[..end.unwrap_or(from.len())]
        };
        for (command, number) in prompt.iter().zip(1..) {
            self.judge_parsing(command, messages(number));
        }
        if !messages(prompt.len() + 1).contains("unknown command .end-of-the-page") {
            self.faults.push(format!(
                "{}: a mentioned command ends the program; add it to NOT_RUN",
                self.page
            ));
        }
    }

    fn judge_parsing(&mut self, command: &Command, message: &str) {
        let word = command.text.split(' ').nth(1).unwrap_or_default();
        let is_no_subcommand = word.chars().all(|c| c.is_ascii_lowercase())
            && message.contains(&format!("error: {word}: file not found"));
        if is_no_subcommand || NOT_UNDERSTOOD.iter().any(|part| message.contains(part)) {
            self.fault(command, &format!("is not understood; correct it:\n{message}"));
        }
    }
}

#[test]
fn every_command_on_a_page_prints_what_the_page_shows() {
    let pages = pages();
    let runs: usize = pages.iter().map(|page| page.sessions.len()).sum();
    let mentioned: usize = pages.iter().map(|page| page.mentioned.len()).sum();
    assert!(runs >= 25 && mentioned >= 100, "{runs} {mentioned}");
    // Two at a time: each program uses several threads itself.
    let (first, second) = pages.split_at(pages.len() / 2);
    let check = |pages: &[Page]| pages.iter().map(Checked::run).collect::<Vec<Checked>>();
    let checked = thread::scope(|scope| {
        let second = scope.spawn(|| check(second));
        [check(first), second.join().unwrap()].concat()
    });
    let faults: Vec<&str> =
        checked.iter().flat_map(|page| &page.faults).map(String::as_str).collect();
    assert!(faults.is_empty(), "{} faults\n\n{}", faults.len(), faults.join("\n"));
    for Checked { page, transcript, .. } in &checked {
        if !transcript.is_empty() {
            insta::assert_snapshot!(page.trim_end_matches(".md").replace('/', "_"), transcript);
        }
    }
}

#[needs_data]
#[test]
fn every_hunt_ends_at_the_leaking_function_in_one_command() {
    let hunts = Page::read(&root(), HUNTS);
    assert_eq!(hunts.sessions.len(), 5);
    let mut checked = Checked { page: hunts.name, ..Checked::default() };
    for session in &hunts.sessions {
        let words = session.shell.text.split(' ');
        let trace = words.filter_map(|word| word.strip_suffix(".etl")).next().unwrap();
        let published = SharedTrace::open(&format!("synthetic/{trace}"));
        let (shell, pdbs) = (Shell::new(), published.pdbs());
        fs::copy(published.etl(), shell.path(&format!("{trace}.etl"))).unwrap();
        copy_folder(pdbs.path(), &shell.path("pdbs"));
        assert_eq!(session.prompt.len(), 1, "{trace}");
        checked.run_session(session, &shell);
    }
    assert!(checked.faults.is_empty(), "{}", checked.faults.join("\n"));
    assert_eq!(checked.transcript, "", "every hunt shows its output");
}
