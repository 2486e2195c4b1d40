//! `> FILE` at the end of a command line.

use std::path::PathBuf;

use super::{Entered, ParseError, Quotes, Token};
use crate::{expand::with_home, render::OutputOptions};

/// What a file behind a query ends with, unless it lies in a folder; `a > b` is a comparison.
const EXTENSIONS: [&str; 6] = [".txt", ".csv", ".json", ".ndjson", ".parquet", ".md"];

/// The line without `> FILE`, and the file.
pub(super) fn of_words<'a>(entered: &Entered<'a>) -> (Entered<'a>, Option<PathBuf>) {
    split(entered, |_| true)
}

/// The same of a query, in which `>` compares unless what follows can only be a file.
pub(super) fn of_query<'a>(entered: &Entered<'a>) -> (Entered<'a>, Option<PathBuf>) {
    split(entered, |file| {
        let lower = file.to_lowercase();
        file.contains(['/', '\\']) || EXTENSIONS.iter().any(|end| lower.ends_with(end))
    })
}

/// Refuses options of which one makes the other useless.
pub(super) fn one_output(output: &OutputOptions) -> Result<(), ParseError> {
    match output.conflict() {
        None => Ok(()),
        Some((option, other)) => Err(ParseError::Conflict { option, other, reason: "choose one" }),
    }
}

fn split<'a>(
    entered: &Entered<'a>,
    is_file: impl Fn(&str) -> bool,
) -> (Entered<'a>, Option<PathBuf>) {
    let found = match entered.tokens {
        [rest @ .., arrow, file] if is_arrow(arrow) => Some((rest, arrow, file.text.as_str())),
        [rest @ .., word] => joined(word).map(|file| (rest, word, file)),
        [] => None,
    };
    match found.filter(|(_, _, file)| is_file(file)) {
        None => (*entered, None),
        Some((tokens, arrow, file)) => {
            let line = entered.line.get(..arrow.span.start).unwrap_or(entered.line).trim_end();
            (Entered { line, tokens, ..*entered }, Some(with_home(file)))
        }
    }
}

fn is_arrow(token: &Token) -> bool {
    token.quotes == Quotes::No && token.text == ">"
}

/// The file of `>FILE`; of `>"a file"` too, which is one token.
fn joined(token: &Token) -> Option<&str> {
    let file = token.text.strip_prefix('>').filter(|_| token.quotes == Quotes::No)?;
    let file = file.strip_prefix('"').and_then(|file| file.strip_suffix('"')).unwrap_or(file);
    (!file.is_empty() && !file.starts_with(['>', '='])).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::split as cut;

    fn read(line: &str, is_query: bool) -> (String, usize, Option<PathBuf>) {
        let tokens = cut(line);
        let entered = Entered { line, name: "", tokens: &tokens };
        let split = if is_query { of_query } else { of_words };
        let (rest, file) = split(&entered);
        (rest.line.to_owned(), rest.tokens.len(), file)
    }

    #[test]
    fn the_file_stands_at_the_end() {
        for line in ["Process -json > out", "Process -json >out", "Process -json > \"out\""] {
            assert_eq!(
                read(line, false),
                ("Process -json".into(), 2, Some("out".into())),
                "{line}"
            );
        }
        assert_eq!(read("Process > \"a b\"", false).2, Some("a b".into()));
        for line in ["Process", "Process >", "Process >> x", "Process >>x", "Process \">\" x", ""] {
            assert_eq!((read(line, false).0.as_str(), read(line, false).2), (line, None), "{line}");
        }
    }

    #[test]
    fn in_a_query_it_must_look_like_a_file() {
        for line in ["SELECT a > b", "SELECT a >b", "SELECT a >= b.csv", "SELECT a >=b.csv"] {
            assert_eq!(read(line, true).2, None, "{line}");
        }
        for file in ["out.csv", "./out", "a\\out", "OUT.TXT"] {
            let (query, _, found) = read(&format!("SELECT 1 > 0 -csv > {file}"), true);
            assert_eq!((query.as_str(), found), ("SELECT 1 > 0 -csv", Some(file.into())));
        }
    }
}
