//! Shared by both kinds of filter: splits a filter into parts, and turns parts into one regular expression.

use handlescope_model::{Untrusted, is_harmful};
use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// Longest filter in bytes, enough for some thousands of names. Compile time grows with its length.
const MAX_FILTER_LENGTH: usize = 64 << 10;

/// Number of characters of a filter quoted in an error.
const QUOTED: usize = 40;

/// A filter that cannot be used, with how it begins.
#[derive(Debug, Clone, Error)]
pub enum FilterError {
    #[error(
        "the filter '{filter}…' has {length} bytes, more than {MAX_FILTER_LENGTH}; shorten it or split the \
         query"
    )]
    TooLong { filter: String, length: usize },
    /// The regular expression built from it was refused.
    #[error("the filter '{}…' is too large; shorten it or split the query", Untrusted(.filter))]
    TooLarge { filter: String, source: regex::Error },
}

/// A single wildcard pattern that must match the whole text, ignoring case. `*` is any number of characters, `?`
/// exactly one; everything else is literal, even `;` and `!`. File names on the command line are matched with it.
#[derive(Debug, Clone)]
pub struct Wildcard(Alternatives);

impl Wildcard {
    /// Compiles one pattern.
    pub fn new(pattern: &str) -> Result<Wildcard, FilterError> {
        Alternatives::new(&[pattern], |pattern| expression(pattern, ""), pattern).map(Wildcard)
    }

    /// Whether the pattern matches all of `text`.
    pub fn matches(&self, text: &str) -> bool {
        self.0.matches(text)
    }
}

/// A filter split at `;`, exclusions without their `!`.
#[derive(Debug, PartialEq)]
pub struct PatternParts<'a> {
    pub included: Vec<&'a str>,
    pub excluded: Vec<&'a str>,
}

impl<'a> PatternParts<'a> {
    /// Splits a filter; spaces belong to their part.
    pub fn new(filter: &'a str) -> PatternParts<'a> {
        let mut parts = PatternParts { included: Vec::new(), excluded: Vec::new() };
        for part in filter.split(';').filter(|part| !part.is_empty()) {
            match part.strip_prefix('!') {
                Some(excluded) => parts.excluded.push(excluded),
                None => parts.included.push(part),
            }
        }
        parts
    }
}

/// Makes text from a trace safe for a filter and a terminal. `?` replaces characters that would end the part or control
/// the terminal, and a leading `!`, which would exclude.
pub fn literal(text: &str) -> String {
    text.chars()
        .enumerate()
        .map(|(index, character)| match character {
            ';' => '?',
            '!' if index == 0 => '?',
            _ if is_harmful(character) => '?',
            _ => character,
        })
        .collect()
}

/// Like [`literal`], for a command line, which cannot hold a quote and where a leading `-` starts an option. Also
/// replaces `*`, which C++ names contain, by `?`.
pub fn word(text: &str) -> String {
    let word = literal(text).replace(['"', '*'], "?");
    if word.starts_with('-') { word.replacen('-', "?", 1) } else { word }
}

/// Several patterns; one must match.
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
    /// Compiles patterns into one regular expression. `filter` is only quoted in the error.
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

    /// Whether one of the patterns matches all of `text`.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Alternatives::Nothing => false,
            Alternatives::Everything => true,
            Alternatives::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Turns a pattern into a regular expression that matches a whole text up to `suffix`, itself a regular expression. For
/// a leading or trailing `*`, the anchor is left out: the regex crate finds a literal many times faster than it walks
/// `.*`.
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
        let parts = PatternParts::new(";a ;;! b;!;");
        assert_eq!(parts, PatternParts { included: vec!["a "], excluded: vec![" b", ""] });
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
