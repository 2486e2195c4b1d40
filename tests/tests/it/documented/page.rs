//! The commands of a page. What is run, and how it is judged, follows from the language of the code block:
//!
//! | Block | Commands |
//! |---|---|
//! | `console` | `$ ` before a line for a shell, `> ` before a line for the prompt of the trace opened above it, or of `leaky.etl`. The lines that follow are the output; `…` stands for any lines. |
//! | `sh` | each line that begins with `handlescope` |
//! | `bat` | each line that begins with `handlescope wprp` |
//! | `text` or none | none, but a line that begins with a command has to parse, like commands `in backticks` |
//! | `json`, `toml`, `sql`, `csharp` | none |
//!
//! Commands that are mentioned are not run if they have a placeholder in capitals or name a server. Explanations stand behind two blanks and `#`, in `text` behind two blanks. `cargo run -- ` means `handlescope`.

use std::path::Path;
use std::{fs, mem};

const PROGRAM: &str = "handlescope ";

/// Words in capitals that are no placeholders.
const SQL: [&str; 13] = [
    "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "BY", "AS", "DESC", "LIMIT", "JOIN", "ON", "AND",
    "ALL",
];

/// What pages call files by, not commands.
const EXTENSIONS: [&str; 13] = [
    ".cab",
    ".csv",
    ".diagsession",
    ".dmp",
    ".etl",
    ".exe",
    ".html",
    ".json",
    ".ndjson",
    ".parquet",
    ".svg",
    ".toml",
    ".zip",
];

/// A command, without the explanation behind it.
#[derive(Debug)]
pub(super) struct Command {
    /// Line in the page, from 1.
    pub(super) line: usize,
    pub(super) text: String,
    /// The output on the page, which has none if this is empty.
    pub(super) shown: Vec<String>,
}

impl Command {
    fn new(line: usize, text: &str) -> Self {
        let text = text.split("  #").next().unwrap_or_default().trim();
        let text = match text.strip_prefix("cargo run -- ") {
            Some(rest) => format!("{PROGRAM}{rest}"),
            None => text.to_owned(),
        };
        Self { line, text, shown: Vec::new() }
    }

    /// Returns the part before the first of some signs, such as ` | `, that is not in quotes.
    pub(super) fn before(&self, signs: &[&str]) -> &str {
        let places = signs.iter().flat_map(|sign| self.text.match_indices(sign));
        let first = places.map(|(at, _)| at).filter(|at| !self.is_quoted(*at)).min();
        &self.text[..first.unwrap_or(self.text.len())]
    }

    fn is_quoted(&self, at: usize) -> bool {
        self.text[..at].matches(['\'', '"']).count() % 2 == 1
    }
}

/// A run of the program, and the commands at its prompt.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) shell: Command,
    pub(super) prompt: Vec<Command>,
}

/// What a page says that can be run.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Path from the root of the repository.
    pub(super) name: String,
    pub(super) sessions: Vec<Session>,
    /// Commands that have to parse.
    pub(super) mentioned: Vec<Command>,
    /// What breaks the convention: `docs/why.md:5: …`.
    pub(super) faults: Vec<String>,
}

impl Page {
    pub(super) fn read(root: &Path, name: &str) -> Self {
        let text = fs::read_to_string(root.join(name)).unwrap();
        let mut page = Self { name: name.to_owned(), ..Self::default() };
        let mut paragraph = Vec::new();
        let mut lines = text.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            let Some(language) = line.trim_start().strip_prefix("```") else {
                if line.trim().is_empty() {
                    page.add_spans(number - paragraph.len(), &mem::take(&mut paragraph));
                } else {
                    paragraph.push(line);
                }
                continue;
            };
            page.add_spans(number - paragraph.len(), &mem::take(&mut paragraph));
            let block: Vec<(&str, usize)> =
                lines.by_ref().take_while(|(line, _)| line.trim() != "```").collect();
            match language {
                "console" => page.add_console(&block),
                "sh" => page.add_shell(&block),
                "bat" => page.add_batch(&block),
                "text" | "" => page.add_text(&block),
                "json" | "toml" | "sql" | "csharp" => {}
                _ => page.fault(
                    number,
                    &format!("a block of '{language}'; use console, sh, bat, text, json, toml, sql or csharp"),
                ),
            }
        }
        page.add_spans(text.lines().count() + 1 - paragraph.len(), &paragraph);
        page
    }

    fn fault(&mut self, line: usize, fault: &str) {
        self.faults.push(format!("{}:{line}: {fault}", self.name));
    }

    fn add_console(&mut self, block: &[(&str, usize)]) {
        let first = self.sessions.len();
        // Output of other programs is not compared.
        let mut is_known = true;
        for &(line, number) in block {
            if let Some(text) = line.strip_prefix("$ ") {
                is_known = self.add_session(number, text);
            } else if let Some(text) = line.strip_prefix("> ") {
                let Some(command) = self.command(number, text) else { continue };
                is_known = true;
                if self.sessions.len() == first {
                    let shell = Command::new(number, "handlescope leaky.etl");
                    self.sessions.push(Session { shell, prompt: Vec::new() });
                }
                self.sessions.last_mut().unwrap().prompt.push(command);
            } else if let Some(session) = self.sessions[first..].last_mut() {
                let command = session.prompt.last_mut().unwrap_or(&mut session.shell);
                if is_known {
                    command.shown.push(line.to_owned());
                }
            } else if is_known {
                self.fault(number, "output without a command; begin the block with `$ ` or `> `");
            }
        }
    }

    fn add_shell(&mut self, block: &[(&str, usize)]) {
        for &(line, number) in block {
            if ["$ ", "> ", "."].iter().any(|sign| line.starts_with(sign)) {
                self.fault(number, "a prompt in a block of sh; make it a block of console");
            } else {
                self.add_session(number, line);
            }
        }
    }

    fn add_batch(&mut self, block: &[(&str, usize)]) {
        for &(line, number) in block {
            if line.starts_with("handlescope wprp") {
                self.add_session(number, line);
            }
        }
    }

    fn add_text(&mut self, block: &[(&str, usize)]) {
        for &(line, number) in block {
            if line.starts_with("$ ") || line.starts_with("> .") {
                self.fault(
                    number,
                    "a prompt in a block that is not run; make it a block of console",
                );
            }
            self.mention(number, line.split("  ").next().unwrap_or_default());
        }
    }

    /// Adds a line for a shell if it runs the program, and returns whether it does.
    fn add_session(&mut self, number: usize, line: &str) -> bool {
        let shell = self.command(number, line).filter(|command| command.text.starts_with(PROGRAM));
        let session = shell.map(|shell| Session { shell, prompt: Vec::new() });
        let runs = session.is_some();
        self.sessions.extend(session);
        runs
    }

    /// Makes a command of a line to run.
    fn command(&mut self, number: usize, line: &str) -> Option<Command> {
        let command = Command::new(number, line);
        if command.before(&["  "]) != command.text {
            self.fault(number, "an explanation in a command; write it behind `  # `");
            return None;
        }
        if command.text.ends_with('\\') {
            self.fault(number, "half a command; write it on one line");
            return None;
        }
        if asks_server(&command.text) {
            self.fault(
                number,
                "a server, which no test asks; name files here, or use a block of text",
            );
            return None;
        }
        Some(command)
    }

    /// Adds the code spans of a paragraph.
    fn add_spans(&mut self, first: usize, paragraph: &[&str]) {
        let text = paragraph.join("\n");
        let mut rest = text.as_str();
        let mut number = first;
        while let Some((before, from)) = rest.split_once('`') {
            number += before.matches('\n').count();
            let Some((span, after)) = from.split_once('`') else { return };
            // In a table, `|` is written as `\|`.
            self.mention(number, &span.replace('\n', " ").replace("\\|", "|"));
            number += span.matches('\n').count();
            rest = after;
        }
    }

    fn mention(&mut self, line: usize, text: &str) {
        let command = Command::new(line, text);
        let word = command.text.split(' ').next().unwrap_or_default();
        let is_at_prompt = word.strip_prefix('.').is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '+')
        });
        let is_command = is_at_prompt && !EXTENSIONS.contains(&command.text.as_str())
            || command.text.starts_with(PROGRAM);
        if is_command && !asks_server(&command.text) && !has_placeholder(&command.text) {
            self.mentioned.push(command);
        }
    }
}

/// Whether a command has a word to replace, in capitals.
fn has_placeholder(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let is_placeholder = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            && !SQL.contains(&word)
    };
    text.contains('…') || words.any(is_placeholder)
}

fn asks_server(text: &str) -> bool {
    text.starts_with(PROGRAM) && ["://", "symserver"].iter().any(|part| text.contains(part))
        || text.starts_with(".sympath srv")
}
