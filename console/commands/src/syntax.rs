//! Where a page is read: command lines are written differently at the prompt and in a shell.

use crate::sql::SqlWords;
use handlescope_session::grammar::{Quotes, Token, split};

/// Names of console commands in a shell, and which files they load first.
const IN_SHELL: &[(&str, &str, FilesToLoad)] = &[
    (".dump", "dump", FilesToLoad::Behind),
    (".why", "why", FilesToLoad::First),
    (".diff", "diff", FilesToLoad::Two),
    (".report", "report", FilesToLoad::First),
    (".sql", "sql", FilesToLoad::First),
    (".plot", "plot", FilesToLoad::First),
    (".flame", "flame", FilesToLoad::First),
    (".redact", "redact", FilesToLoad::None),
    (".extract", "extract", FilesToLoad::None),
    (".converttime", "convert-time", FilesToLoad::Behind),
    (".symbolize", "-LoadSymbol", FilesToLoad::Behind),
    (".load", "-console", FilesToLoad::None),
    (".schema", "schema", FilesToLoad::None),
    (".help", "help", FilesToLoad::None),
];

/// The files that a shell command loads first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilesToLoad {
    None,
    /// The files after `-fd`.
    Behind,
    /// The first words.
    First,
    /// The first two words. At the prompt other words are points in one trace, which the shell command does not have.
    Two,
}

/// Placeholder for the options in a usage.
const OPTIONS: &str = "[OPTION…]";

/// The trace in the examples.
const SAMPLE: &str = "examples/leaky.etl";

/// The syntax of a page's command lines: the prompt's, or a shell's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Prompt,
    Shell,
}

impl Syntax {
    /// Returns a command line of the console as typed here.
    pub fn line(self, line: &str) -> String {
        match self {
            Syntax::Prompt => line.to_owned(),
            Syntax::Shell => shell_line(line, [SAMPLE; 4], quoted),
        }
    }

    /// Returns a command as typed here.
    pub fn command(self, command: &str) -> String {
        let name = IN_SHELL.iter().find(|(name, ..)| *name == command).map(|(_, name, _)| *name);
        match (self, name) {
            (Syntax::Shell, Some(name)) => format!("handlescope {name}"),
            _ => command.to_owned(),
        }
    }

    /// Returns the line that shows the page of a command, or of its kind of `.dump`.
    pub fn page(self, command: &str, kind: Option<&str>) -> String {
        let name = IN_SHELL.iter().find(|(name, ..)| *name == command).map(|(_, name, _)| *name);
        match (self, name, kind) {
            (Syntax::Prompt, _, kind) => format!(".help {}", kind.unwrap_or(command)),
            (Syntax::Shell, Some("dump"), Some(kind)) => format!("handlescope dump {kind} --help"),
            (Syntax::Shell, Some(name), _) => format!("handlescope {name} --help"),
            (Syntax::Shell, None, _) => format!("handlescope help {command}"),
        }
    }

    /// Returns a command and its possible arguments.
    pub fn usage(self, usage: &str) -> String {
        match self {
            Syntax::Prompt => usage.to_owned(),
            Syntax::Shell => {
                let files = ["QUERY", "TRACE…", "BEFORE", "AFTER"];
                shell_line(usage, files, |token| token.text.clone())
            }
        }
    }
}

/// Returns the shell command line that does the same as a line. Unless it already names files, it loads `files`: the
/// first with `-fd`, the second directly, or the other two for a comparison.
fn shell_line(line: &str, files: [&str; 4], word: impl Fn(&Token) -> String) -> String {
    let tokens = split(line);
    let command = tokens.split_first().and_then(|(first, rest)| {
        let (_, name, loads) = IN_SHELL.iter().find(|(name, ..)| *name == first.text)?;
        Some((*name, *loads, rest))
    });
    let Some((name, loads, rest)) = command else {
        return format!("handlescope -c {}", single_quoted(line));
    };
    let [file, traces, before, after] = files.map(str::to_owned);
    // A shell takes a query as one word.
    let query = SqlWords::new(line, rest).filter(|_| name == "sql");
    let mut words: Vec<String> = match query {
        Some(query) => {
            let (before, behind) = (query.before.iter().map(&word), query.behind.iter().map(&word));
            before.chain([single_quoted(&query.text(line))]).chain(behind).collect()
        }
        None => rest.iter().map(&word).collect(),
    };
    let has_files = rest.iter().any(|token| token.text.eq_ignore_ascii_case("-fd"));
    match loads {
        FilesToLoad::Behind if !has_files => {
            // The kind of a dump stays before its options.
            let kind = rest.iter().take_while(|token| !token.is_switch()).take(1).count();
            words.splice(kind..kind, ["-fd".to_owned(), file]);
        }
        FilesToLoad::First if !has_files => words.insert(0, traces),
        FilesToLoad::Two => {
            let points =
                rest.iter().take_while(|token| !token.is_switch() && token.text != OPTIONS).count();
            words.splice(0..points, [before, after]);
        }
        FilesToLoad::Behind | FilesToLoad::First | FilesToLoad::None => {}
    }
    [&["handlescope".to_owned(), name.to_owned()], &words[..]].concat().join(" ")
}

/// Quotes a word if shells would change it. The `>` before a file is left to the shell.
fn quoted(token: &Token) -> String {
    let is_arrow = token.quotes == Quotes::No && token.text == ">";
    let mut characters = token.text.chars();
    if is_arrow || characters.all(|c| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c)) {
        token.text.clone()
    } else {
        single_quoted(&token.text)
    }
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_console_becomes_one_of_a_shell() {
        for (line, expected) in [
            (".dump Process", "handlescope dump Process -fd examples/leaky.etl"),
            (
                ".dump ObjectRef -pn leaky;!4 -csv a.csv",
                "handlescope dump ObjectRef -fd examples/leaky.etl -pn 'leaky;!4' -csv a.csv",
            ),
            (".dump Stats -fd *x* > a.txt", "handlescope dump Stats -fd '*x*' > a.txt"),
            (".converttime -time 1s", "handlescope convert-time -fd examples/leaky.etl -time 1s"),
            (".extract \"a b.etl\" it's", r"handlescope extract 'a b.etl' 'it'\''s'"),
            (".diff 1s 2s -json", "handlescope diff examples/leaky.etl examples/leaky.etl -json"),
            (".why -json", "handlescope why examples/leaky.etl -json"),
            (".why -fd a.etl", "handlescope why -fd a.etl"),
            (".report a.html -pn x", "handlescope report examples/leaky.etl a.html -pn x"),
            (".redact a.etl -o b.etl", "handlescope redact a.etl -o b.etl"),
            (".help ObjectRef -Leak", "handlescope help ObjectRef -Leak"),
            (".list -x", "handlescope -c '.list -x'"),
            (
                ".sql SELECT 'a' FROM leaks -json",
                r"handlescope sql examples/leaky.etl 'SELECT '\''a'\'' FROM leaks' -json",
            ),
            (".flame a.svg -pn x", "handlescope flame examples/leaky.etl a.svg -pn x"),
        ] {
            assert_eq!(Syntax::Shell.line(line), expected);
            assert_eq!(Syntax::Prompt.line(line), line);
        }
        let usage = Syntax::Shell.usage(".dump Process [OPTION…]");
        assert_eq!(usage, "handlescope dump Process -fd QUERY [OPTION…]");
        let usage = Syntax::Shell.usage(".report FILE [OPTION…]");
        assert_eq!(usage, "handlescope report TRACE… FILE [OPTION…]");
        let usage = Syntax::Shell.usage(".diff [A [B]] [OPTION…]");
        assert_eq!(usage, "handlescope diff BEFORE AFTER [OPTION…]");
    }
}
