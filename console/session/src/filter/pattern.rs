//! Code that both kinds of filter share: cutting a filter into parts, and parts into one regular
//! expression.

use handlescope_model::{Untrusted, is_harmful};
use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// The longest filter, bytes: some thousands of names. Compiling takes time in proportion to it.
const MAX_FILTER_LENGTH: usize = 64 << 10;

/// Number of characters of a filter that an error quotes.
const QUOTED: usize = 40;

/// A filter that cannot be used, with its beginning.
#[derive(Debug, Clone, Error)]
pub enum FilterError {
    #[error(
        "the filter '{filter}…' has {length} bytes, more than {MAX_FILTER_LENGTH}; shorten it or split the \
         query"
    )]
    TooLong { filter: String, length: usize },
    /// The regular expression made of it was refused.
    #[error("the filter '{}…' is too large; shorten it or split the query", Untrusted(.filter))]
    TooLarge { filter: String, source: regex::Error },
}

/// One wildcard pattern for a whole text, in any case: `*` any number of characters, `?` exactly
/// one, everything else (also `;` and `!`) literal. This is what file names on the command line
/// are matched with.
#[derive(Debug, Clone)]
pub struct Wildcard(Alternatives);

impl Wildcard {
    /// Compiles one pattern.
    pub fn new(pattern: &str) -> Result<Wildcard, FilterError> {
        Alternatives::new(&[pattern], |pattern| expression(pattern, ""), pattern).map(Wildcard)
    }

    /// Whether the pattern covers all of `text`.
    pub fn matches(&self, text: &str) -> bool {
        self.0.matches(text)
    }
}

/// A filter cut at its `;`, exclusions without their `!`.
#[derive(Debug, PartialEq)]
pub struct Parts<'a> {
    pub included: Vec<&'a str>,
    pub excluded: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    /// Cuts a filter; spaces belong to their part.
    pub fn of(filter: &'a str) -> Parts<'a> {
        let mut parts = Parts { included: Vec::new(), excluded: Vec::new() };
        for part in filter.split(';').filter(|part| !part.is_empty()) {
            match part.strip_prefix('!') {
                Some(excluded) => parts.excluded.push(excluded),
                None => parts.included.push(part),
            }
        }
        parts
    }
}

/// A text out of a trace as it can stand in a filter and on a terminal: `?` covers a character that
/// would end the part or talk to the terminal, and a `!` in front that would exclude.
pub fn literal(text: &str) -> String {
    let characters = text.chars().enumerate().map(|(index, character)| match character {
        ';' => '?',
        '!' if index == 0 => '?',
        _ if is_harmful(character) => '?',
        _ => character,
    });
    characters.collect()
}

/// Like [`literal`], for a command line, in which no quote can stand, and where a `-` in front begins an option. A `*`
/// becomes `?`, too: names of C++ have it.
pub fn word(text: &str) -> String {
    let word = literal(text).replace(['"', '*'], "?");
    if word.starts_with('-') { word.replacen('-', "?", 1) } else { word }
}

/// Several patterns of which one must match.
#[derive(Debug, Clone)]
pub enum Alternatives {
    /// No patterns, so nothing matches.
    Nothing,
    /// One of them is `*`.
    Everything,
    /// The rest, as one expression.
    Regex(Regex),
}

impl Alternatives {
    /// Compiles patterns into regular expressions. `filter` is only quoted in the error.
    pub fn new(
        patterns: &[&str],
        expression: fn(&str) -> String,
        filter: &str,
    ) -> Result<Alternatives, FilterError> {
        if patterns.is_empty() {
            return Ok(Alternatives::Nothing);
        }
        if patterns.contains(&"*") {
            return Ok(Alternatives::Everything);
        }
        let quoted = || filter.chars().take(QUOTED).collect();
        if filter.len() > MAX_FILTER_LENGTH {
            return Err(FilterError::TooLong { filter: quoted(), length: filter.len() });
        }
        let expressions: Vec<String> = patterns.iter().map(|pattern| expression(pattern)).collect();
        RegexBuilder::new(&expressions.join("|"))
            .case_insensitive(true)
            .dot_matches_new_line(true)
            .build()
            .map(Alternatives::Regex)
            .map_err(|source| FilterError::TooLarge { filter: quoted(), source })
    }

    /// Whether one of the patterns covers all of `text`.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Alternatives::Nothing => false,
            Alternatives::Everything => true,
            Alternatives::Regex(regex) => regex.is_match(text),
        }
    }
}

/// One pattern as a regular expression that covers a whole text up to a `suffix`, itself a regular
/// expression. A leading or trailing `*` becomes a missing anchor instead
/// of `.*`, because the regex crate finds a literal many times faster than it walks `.*`.
pub fn expression(pattern: &str, suffix: &str) -> String {
    let from_start = !pattern.starts_with('*');
    let to_end = !suffix.is_empty() || !pattern.ends_with('*');
    let mut middle = pattern.trim_start_matches('*');
    if !to_end {
        middle = middle.trim_end_matches('*');
    }
    let mut expression = String::with_capacity(pattern.len() + suffix.len() + 8);
    expression.push_str(if from_start { r"\A" } else { "" });
    let mut literal = String::new();
    for character in middle.chars() {
        let wildcard = match character {
            '*' => ".*",
            '?' => ".",
            _ => {
                literal.push(character);
                continue;
            }
        };
        expression.push_str(&regex::escape(&literal));
        literal.clear();
        expression.push_str(wildcard);
    }
    expression.push_str(&regex::escape(&literal));
    expression.push_str(suffix);
    expression.push_str(if to_end { r"\z" } else { "" });
    expression
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parts_are_ignored_and_spaces_kept() {
        let parts = Parts::of(";a ;;! b;!;");
        assert_eq!(parts, Parts { included: vec!["a "], excluded: vec![" b", ""] });
    }

    #[test]
    fn outer_stars_leave_the_anchor_out() {
        assert_eq!(expression("*a.b*", ""), r"a\.b");
        assert_eq!(expression("a*b", ""), r"\Aa.*b\z");
        assert_eq!(expression("a*", "(x)?"), r"\Aa.*(x)?\z");
    }

    #[test]
    fn a_wildcard_knows_neither_lists_nor_exclusions() -> Result<(), FilterError> {
        assert!(Wildcard::new("!a;?.etl")?.matches("!A;b.ETL"));
        assert!(!Wildcard::new("a*.etl")?.matches("ba.etl"));
        Ok(())
    }

    #[test]
    fn a_filter_beyond_all_measure_is_an_error_and_no_panic() {
        let error = |length| Wildcard::new(&"?".repeat(length)).expect_err("too large").to_string();
        assert!(error(60_000).contains("is too large"), "{}", error(60_000));
        let long = error(300_000);
        assert!(long.contains("has 300000 bytes, more than 65536;") && long.len() < 200, "{long}");
    }

    #[test]
    fn characters_special_in_filters_or_terminals_become_question_marks() {
        assert_eq!(literal("a;b!c"), "a?b!c");
        assert_eq!(literal("!x"), "?x");
        assert_eq!(word("-a \"b*\" -c"), "?a ?b?? -c");
        assert_eq!(literal("\u{1b}[2Jä"), "?[2Jä");
    }
}
