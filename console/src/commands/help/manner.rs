//! Where a page is read: command lines are written in one way at the prompt and in another one in a shell.

use crate::grammar::{Quotes, Token, split};

/// What a shell calls some commands of the console, and whether they load the files behind `-fd` first.
const IN_SHELL: &[(&str, &str, bool)] = &[
    (".dump", "dump", true),
    (".extract", "extract", false),
    (".converttime", "convert-time", true),
    (".symbolize", "-LoadSymbol", true),
    (".load", "-console", false),
    (".schema", "schema", false),
];

/// What the examples ask.
const SAMPLE: &str = "examples/leaky.etl";

/// Where a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Prompt,
    Shell,
}

impl Manner {
    /// A command line of the console as it is typed here.
    pub(super) fn line(self, line: &str) -> String {
        match self {
            Manner::Prompt => line.to_owned(),
            Manner::Shell => shell_line(line, SAMPLE, quoted),
        }
    }

    /// A command with what may follow.
    pub(super) fn usage(self, usage: &str) -> String {
        match self {
            Manner::Prompt => usage.to_owned(),
            Manner::Shell => shell_line(usage, "QUERY", |token| token.text.clone()),
        }
    }
}

/// The command line of a shell that loads a file, unless one is named, and does what a line does.
fn shell_line(line: &str, file: &str, word: impl Fn(&Token) -> String) -> String {
    let tokens = split(line);
    let found = tokens.split_first().and_then(|(first, rest)| {
        let (_, name, loads) = IN_SHELL.iter().find(|(own, ..)| *own == first.text)?;
        Some((*name, *loads, rest))
    });
    let Some((name, loads, rest)) = found else {
        return format!("handlescope -c {}", single_quoted(line));
    };
    // The kind of a dump stays in front of its options.
    let kind = rest.iter().take_while(|token| loads && !token.is_switch()).take(1).count();
    let mut words: Vec<String> = rest.iter().map(word).collect();
    if loads && !rest.iter().any(|token| token.text.eq_ignore_ascii_case("-fd")) {
        words.splice(kind..kind, ["-fd".to_owned(), file.to_owned()]);
    }
    [&["handlescope".to_owned(), name.to_owned()], &words[..]].concat().join(" ")
}

/// A word that shells leave as it is. The `>` in front of a file is theirs.
fn quoted(token: &Token) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
    let is_arrow = token.quotes == Quotes::No && token.text == ">";
    if is_arrow || token.text.chars().all(is_plain) {
        return token.text.clone();
    }
    single_quoted(&token.text)
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
            (".help ObjectRef -Leak", "handlescope -c '.help ObjectRef -Leak'"),
        ] {
            assert_eq!(Manner::Shell.line(line), expected);
            assert_eq!(Manner::Prompt.line(line), line);
        }
        let usage = Manner::Shell.usage(".dump Process [OPTION…]");
        assert_eq!(usage, "handlescope dump Process -fd QUERY [OPTION…]");
    }
}
