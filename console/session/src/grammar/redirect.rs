//! `> FILE` and `>> FILE` at the end of a command line, optionally followed by `-Force`.

use std::path::Path;

use super::option::Arguments;
use super::token::{Quotes, Token};
use crate::paths::has_extension;
use crate::values::FormatSpec;

/// Extensions of text files.
const TEXT_EXTENSIONS: [&str; 2] = ["txt", "md"];

/// A command line without its `> FILE`, and the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect<'a> {
    pub line: &'a str,
    pub tokens: &'a [Token],
    pub file: Option<Target>,
}

/// Where an answer goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub file: String,
    /// `>>`: append to the file.
    pub append: bool,
    /// `-Force`: replace even a file this program did not write.
    pub force: bool,
}

impl<'a> Redirect<'a> {
    /// Finds the redirection of a command with these arguments.
    pub fn from_command(arguments: Arguments, line: &'a str, tokens: &'a [Token]) -> Redirect<'a> {
        match arguments {
            Arguments::Sql => Redirect::from_query(line, tokens),
            Arguments::Alias if definition_start(line, tokens).is_some() => {
                Redirect { line, tokens, file: None }
            }
            _ => Redirect::from_words(line, tokens),
        }
    }

    /// Finds the redirection in a line of options and words.
    fn from_words(line: &'a str, tokens: &'a [Token]) -> Redirect<'a> {
        Redirect::new(line, tokens, |_| true)
    }

    /// Finds the redirection of a query. There `>` is a comparison unless only a file can follow.
    fn from_query(line: &'a str, tokens: &'a [Token]) -> Redirect<'a> {
        Redirect::new(line, tokens, |file| {
            file.contains(['/', '\\']) || has_extension_of_a_format(file)
        })
    }

    /// Returns the `>` or `>>` at the end of a line without a file.
    pub fn without_file(tokens: &[Token]) -> Option<&str> {
        let last = tokens.last().filter(|last| last.quotes == Quotes::No)?;
        is_arrow(&last.text).then_some(last.text.as_str())
    }

    fn new(line: &'a str, tokens: &'a [Token], is_file: impl Fn(&str) -> bool) -> Redirect<'a> {
        let (rest, force) = forced(tokens);
        let target =
            |file: &str, append| Target { file: file.to_owned(), append, force: force.is_some() };
        let candidate = match rest {
            [rest @ .., arrow, file] if arrow.quotes == Quotes::No && is_arrow(&arrow.text) => {
                let target = target(&file.text, arrow.text == APPEND);
                Some((rest, arrow, target, file.span.end))
            }
            [rest @ .., word] => {
                joined(word).map(|(file, append)| (rest, word, target(file, append), word.span.end))
            }
            [] => None,
        };
        let end = force.map_or(line.len(), |force| force.span.start);
        match candidate.filter(|(_, _, target, start)| {
            is_file(&target.file) && line.get(*start..end).is_none_or(|l| l.trim().is_empty())
        }) {
            None => Redirect { line, tokens, file: None },
            Some((tokens, arrow, file, _)) => {
                let line = line.get(..arrow.span.start).unwrap_or(line).trim_end();
                Redirect { line, tokens, file: Some(file) }
            }
        }
    }
}

/// Splits `NAME = TEXT`.
pub fn definition(text: &str) -> Option<(&str, &str)> {
    let (name, text) = text.split_once('=')?;
    let name = name.trim();
    let is_word = !name.is_empty() && !name.starts_with('-') && !name.contains(char::is_whitespace);
    is_word.then(|| (name, text.trim()))
}

/// Returns where the text of a definition starts, if the line is one. `>` and options belong to that text.
pub fn definition_start(line: &str, tokens: &[Token]) -> Option<usize> {
    let start = tokens.first()?.span.start;
    let text = line.get(start..)?;
    definition(text)?;
    Some(start + text.find('=')? + 1)
}

/// Whether a word after a query names a file without a folder; `a > b` is a comparison.
fn has_extension_of_a_format(file: &str) -> bool {
    let file = Path::new(file);
    has_extension(file, &TEXT_EXTENSIONS) || FormatSpec::from_extension(file).is_some()
}

/// Splits off a trailing `-Force`.
fn forced(tokens: &[Token]) -> (&[Token], Option<&Token>) {
    match tokens {
        [rest @ .., last] if last.quotes == Quotes::No && last.text.eq_ignore_ascii_case(FORCE) => {
            (rest, Some(last))
        }
        _ => (tokens, None),
    }
}

/// Option of commands that write files; also accepted after the file name.
const FORCE: &str = "-Force";
const REPLACE: &str = ">";
const APPEND: &str = ">>";

fn is_arrow(text: &str) -> bool {
    [REPLACE, APPEND].contains(&text)
}

/// Returns the file of `>FILE` or `>>FILE`, and whether to append.
fn joined(token: &Token) -> Option<(&str, bool)> {
    let text = Some(token.text.as_str()).filter(|_| token.quotes == Quotes::No)?;
    let appended = text.strip_prefix(APPEND);
    let file = appended.or_else(|| text.strip_prefix(REPLACE))?;
    let is_file = !file.is_empty() && !file.starts_with(['>', '=', '"']);
    is_file.then_some((file, appended.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::split;

    /// Returns the remaining line, its number of tokens, and the file: prefixed with `+` to append, followed by `!` to
    /// force.
    fn read(line: &str, is_query: bool) -> (String, usize, Option<String>) {
        let tokens = split(line);
        let Redirect { line, tokens, file } = if is_query {
            Redirect::from_query(line, &tokens)
        } else {
            Redirect::from_words(line, &tokens)
        };
        let file = file.map(|Target { file, append, force }| {
            let (append, force) = (if append { "+" } else { "" }, if force { "!" } else { "" });
            format!("{append}{file}{force}")
        });
        (line.to_owned(), tokens.len(), file)
    }

    #[test]
    fn the_file_stands_at_the_end() {
        let expected = ("Process -json".to_owned(), 2, Some("out".to_owned()));
        for line in ["Process -json > out", "Process -json >out", "Process -json > \"out\" "] {
            assert_eq!(read(line, false), expected, "{line}");
        }
        assert_eq!(read("Process > \"a b\"", false).2.as_deref(), Some("a b"));
        for line in ["Process >> x", "Process >>x"] {
            assert_eq!(
                read(line, false),
                ("Process".to_owned(), 1, Some("+x".to_owned())),
                "{line}"
            );
        }
        for line in ["Process", "Process >", "Process >>", "Process >>> x", "Process \">\" x", ""] {
            let (rest, _, file) = read(line, false);
            assert_eq!((rest.as_str(), file), (line, None), "{line}");
        }
    }

    #[test]
    fn force_behind_the_file_belongs_to_it() {
        for (line, file) in [
            ("Process > x -Force", Some("x!")),
            ("Process >x -FORCE ", Some("x!")),
            ("Process > \"a b\" -force", Some("a b!")),
            ("Process >> x -Force", Some("+x!")),
            ("Process -Force > x", Some("x")),
            ("Process -Force", None),
            ("Process > -Force", None),
        ] {
            assert_eq!(read(line, false).2.as_deref(), file, "{line}");
        }
        assert_eq!(read("SELECT 1 > x.csv -Force", true).0, "SELECT 1");
    }

    #[test]
    fn a_file_in_the_middle_of_the_line_is_a_word() {
        let (line, tokens) = (".dump > x Process", split("> x"));
        assert_eq!(Redirect::from_words(line, &tokens).file, None);
    }

    #[test]
    fn in_a_query_it_must_look_like_a_file() {
        for line in ["SELECT a > b", "SELECT a >b", "SELECT a >= b.csv", "SELECT a >=b.csv"] {
            assert_eq!(read(line, true).2, None, "{line}");
        }
        for file in ["out.csv", "./out", "a\\out", "OUT.TXT"] {
            let (query, _, target) = read(&format!("SELECT 1 > 0 -csv > {file}"), true);
            assert_eq!((query.as_str(), target.as_deref()), ("SELECT 1 > 0 -csv", Some(file)));
        }
    }
}
