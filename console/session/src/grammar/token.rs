//! Splits a command line into tokens.

use std::ops::Range;

/// One word of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The text, without quotes.
    pub text: String,
    /// Byte range in the line, including quotes.
    pub span: Range<usize>,
    /// Whether and how it is quoted.
    pub quotes: Quotes,
}

/// Quotes around a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quotes {
    /// None.
    No,
    /// Both.
    Closed,
    /// Only an opening one, so the rest of the line is quoted.
    Open,
}

/// Dashes that word processors and web pages put in place of `-`: hyphens, figure, en and em dash, bar, minus, and the
/// small and full-width forms.
const DASHES: [char; 10] = [
    '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2015}', '\u{2212}', '\u{FE58}',
    '\u{FE63}', '\u{FF0D}',
];

/// Strips the dashes of a word that starts with typographic ones: `pn` for `–pn`.
fn behind_dashes(word: &str) -> Option<&str> {
    let name = word.trim_start_matches(|c| c == '-' || DASHES.contains(&c));
    let (dashes, _) = word.split_at(word.len() - name.len());
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '?');
    (is_name && dashes.contains(DASHES)).then_some(name)
}

/// Corrects typographic dashes at the start of a word if that gives an option that `is_known`. A value may follow the
/// name after `=`.
pub fn with_plain_dashes(word: &str, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let name = behind_dashes(word)?;
    let options = [format!("-{name}"), format!("--{name}")];
    let name_of = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    options.into_iter().find(|option| is_known(&name_of(option)))
}

/// Corrects an option written with two dashes out of shell habit: `--json`, `--pn=leaky`. `--top` becomes `-TopN`.
/// `None` if the option really has two.
pub fn with_one_dash(word: &str, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let option = word.strip_prefix('-').filter(|option| option.starts_with('-'))?;
    let name_of = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    if is_known(&name_of(word)) {
        return None;
    }
    if option.eq_ignore_ascii_case("-top") {
        return Some("-TopN".to_owned());
    }
    is_known(&name_of(option)).then(|| option.to_owned())
}

impl Token {
    /// Whether it looks like an option with a dash changed by a word processor. Quotes make it a word.
    pub fn has_typographic_dash(&self) -> bool {
        self.quotes == Quotes::No && behind_dashes(&self.text).is_some()
    }

    /// Whether the token is an option name rather than a value: it starts with `-` and is not a number. A lone `-` is a
    /// value, `-5` is a value, `-5ms` is not.
    pub fn is_switch(&self) -> bool {
        let Some(rest) = self.text.strip_prefix('-') else { return false };
        !rest.is_empty() && !rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',')
    }
}

/// Splits a line at spaces, tabs and line ends.
///
/// A `"` opens a quoted run only at the start of a token, and closes it only before a space or at the end of the line;
/// any other `"` is literal. There is no escape character, so `"C:\a b\"` is `C:\a b\`. An empty `""` disappears. A
/// quote that is never closed takes the rest of the line.
pub fn split(line: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(is_space);
        if rest.is_empty() {
            return tokens;
        }
        let start = line.len() - rest.len();
        let (text, quotes, length) = first_token(rest);
        if !text.is_empty() || quotes == Quotes::Open {
            tokens.push(Token { text: text.to_owned(), span: start..start + length, quotes });
        }
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// Returns the first token of `rest`: its text, its quotes, and its length in bytes with quotes.
fn first_token(rest: &str) -> (&str, Quotes, usize) {
    let Some(quoted) = rest.strip_prefix('"') else {
        let length = rest.find(is_space).unwrap_or(rest.len());
        return (rest.split_at(length).0, Quotes::No, length);
    };
    let closing = quoted.match_indices('"').map(|(index, _)| index).find(|index| {
        let behind = quoted.get(index + 1..).unwrap_or_default();
        behind.is_empty() || behind.starts_with(is_space)
    });
    match closing {
        Some(index) => (quoted.split_at(index).0, Quotes::Closed, index + 2),
        None => (quoted, Quotes::Open, rest.len()),
    }
}

/// Builds the line that splits into these words, and its tokens; empty words disappear. A word that quotes cannot hold
/// together is still one token.
pub fn join(words: &[String]) -> (String, Vec<Token>) {
    let (mut line, mut tokens) = (String::new(), Vec::new());
    for word in words.iter().filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        let start = line.len();
        let quotes = if word.contains(is_space) || word.starts_with('"') {
            line.extend(["\"", word, "\""]);
            Quotes::Closed
        } else {
            line.push_str(word);
            Quotes::No
        };
        tokens.push(Token { text: word.clone(), span: start..line.len(), quotes });
    }
    (line, tokens)
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_with_two_dashes_is_the_one_with_one() {
        let is_known =
            |name: &str| ["-json", "-pn", "-TopN", "--fail-on", "-format"].contains(&name);
        for (word, expected) in [
            ("--json", Some("-json")),
            ("--pn=leaky", Some("-pn=leaky")),
            ("--top", Some("-TopN")),
            ("--fail-on", None),
            ("-json", None),
            ("--other", None),
            ("--", None),
        ] {
            assert_eq!(with_one_dash(word, is_known).as_deref(), expected, "{word}");
        }
    }

    #[test]
    fn only_spaces_and_tabs_separate_and_quotes_count_only_at_the_ends_of_a_token() {
        for (line, expected) in [
            ("", vec![]),
            ("  \t ", vec![]),
            (".sql SELECT 1,\r\n2\n-json", vec![".sql", "SELECT", "1,", "2", "-json"]),
            (".dump  ObjectRef\t-Leak ", vec![".dump", "ObjectRef", "-Leak"]),
            (r#"-fd"a b""#, vec![r#"-fd"a"#, r#"b""#]),
            (r#""a b" c"#, vec!["a b", "c"]),
            (r#""a" b" c"#, vec!["a", r#"b""#, "c"]),
            (r#""a"b c" d"#, vec![r#"a"b c"#, "d"]),
            (r#".load "C:\a b\" x"#, vec![".load", r"C:\a b\", "x"]),
            (r#"a "" b"#, vec!["a", "b"]),
            (r#".load "a b  "#, vec![".load", "a b  "]),
            (r#"""""#, vec!["\""]),
            ("a\u{a0}b", vec!["a\u{a0}b"]),
            ("\"ä ö\" ü", vec!["ä ö", "ü"]),
        ] {
            let texts: Vec<String> = split(line).into_iter().map(|token| token.text).collect();
            assert_eq!(texts, expected, "{line}");
        }
    }

    #[test]
    fn a_token_knows_its_place_and_its_quotes() {
        let spans = |line: &str| -> Vec<(Range<usize>, Quotes)> {
            split(line).into_iter().map(|token| (token.span, token.quotes)).collect()
        };
        assert_eq!(spans("a  \"b c\" "), [(0..1, Quotes::No), (3..8, Quotes::Closed)]);
        assert_eq!(spans("a \"b c"), [(0..1, Quotes::No), (2..6, Quotes::Open)]);
        assert_eq!(spans("a \""), [(0..1, Quotes::No), (2..3, Quotes::Open)]);
    }

    #[test]
    fn words_become_a_line_that_is_cut_into_them_again() {
        for words in [
            vec![".dump", "ObjectRef"],
            vec![".load", r"C:\a b\", "x\ty", "\"", "a\"b"],
            vec!["a", "\"b"],
        ] {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            let (line, tokens) = join(&words);
            assert_eq!(split(&line), tokens, "{line}");
            assert_eq!(tokens.into_iter().map(|token| token.text).collect::<Vec<_>>(), words);
        }
        assert_eq!(join(&["a".to_owned(), String::new()]).0, "a");
    }

    #[test]
    fn typographic_dashes_in_front_of_a_known_option_are_plain_ones() {
        let is_known = |name: &str| ["-pn", "--symbol-path"].contains(&name);
        for (word, expected) in [
            ("–pn", Some("-pn")),
            ("—pn", Some("-pn")),
            ("−pn", Some("-pn")),
            ("–-pn", Some("-pn")),
            ("——symbol-path", Some("--symbol-path")),
            ("—symbol-path=x=y", Some("--symbol-path=x=y")),
            ("-pn", None),
            ("–pnn", None),
            ("–", None),
            ("– pn", None),
            ("–5", None),
            ("p–n", None),
        ] {
            let plain = with_plain_dashes(word, is_known);
            assert_eq!(plain.as_deref(), expected, "{word}");
        }
    }

    #[test]
    fn a_value_may_start_with_a_minus_only_as_a_number() {
        for (text, expected) in [
            ("-Leak", true),
            ("--leak", true),
            ("-5ms", true),
            ("-5", false),
            ("-0.5", false),
            ("-", false),
            ("x", false),
        ] {
            let token = Token { text: text.to_owned(), span: 0..0, quotes: Quotes::No };
            assert_eq!(token.is_switch(), expected, "{text}");
        }
    }
}
