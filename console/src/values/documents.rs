//! How JSON documents are laid out, and text in comma-separated values.

use std::borrow::Cow;

/// How a JSON document is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonMode {
    /// `-json`: one line per element of a top-level array.
    Lines,
    /// `-json-pretty`: fully indented.
    Pretty,
}

/// How text stands in comma-separated values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CsvText {
    /// A spreadsheet takes no text for a formula: `'` stands in front of one that starts like it.
    #[default]
    Harmless,
    /// `-csvraw`: as it is.
    Raw,
}

/// What a formula starts with. A Japanese Excel takes full-width characters, too
/// (<https://owasp.org/www-community/attacks/CSV_Injection>).
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// What spreadsheets divide a file at: which of the first three depends on the settings of the country.
const DIVIDERS: [char; 5] = [',', ';', '\t', '\r', '\n'];

impl CsvText {
    /// What is written for a cell of a file with this separator. A number is not a formula, also after a sign.
    pub(crate) fn cell(self, text: &str, separator: u8) -> Cow<'_, str> {
        if self == CsvText::Raw || !text.contains(FORMULA) {
            return Cow::Borrowed(text);
        }
        // Quotes keep a cell together at the separator of the file only: at another one, the line is divided
        // before they are seen.
        let divides = |c: char| c != char::from(separator) && DIVIDERS.contains(&c);
        let mut cell = String::with_capacity(text.len() + 1);
        for part in text.split_inclusive(divides) {
            let value = part.trim_end_matches(divides);
            let is_number = || value.parse::<f64>().is_ok_and(f64::is_finite);
            if value.trim_start_matches('"').starts_with(FORMULA) && !is_number() {
                cell.push('\'');
            }
            cell.push_str(part);
        }
        Cow::Owned(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_is_text_and_a_number_a_number() {
        let formulas = ["=1+1", "+cmd|' /C calc'!A0", "-1+1", "@SUM(A1)", "-", "-inf"];
        for text in formulas.into_iter().chain(["＝1", "＋1+1", "－A1", "＠SUM(A1)"]) {
            assert_eq!(CsvText::Harmless.cell(text, b','), format!("'{text}"));
            assert_eq!(CsvText::Raw.cell(text, b','), text);
        }
        for text in ["-1", "+0.5", "-1e-9", "a=b", "'=1", "", r"\Base\=1", " =1", "0x1", "[1,-2]"] {
            assert_eq!(CsvText::Harmless.cell(text, b','), text);
        }
    }

    #[test]
    fn a_formula_is_text_also_where_another_separator_divides_the_line() {
        for (text, separator, expected) in [
            (r"\b;=cmd|calc", b',', r"\b;'=cmd|calc"),
            (r"\b;=cmd|calc", b';', r"\b;=cmd|calc"),
            (r"\b,@x;=y", b';', r"\b,'@x;=y"),
            ("a\t=1\n+b\r\n-c", b',', "a\t'=1\n'+b\r\n'-c"),
            ("\t=1", b';', "\t'=1"),
            (r#"a;""=b"#, b',', r#"a;'""=b"#),
            ("=a;=b;c", b',', "'=a;'=b;c"),
            ("a;-1;+2;b", b',', "a;-1;+2;b"),
        ] {
            assert_eq!(CsvText::Harmless.cell(text, separator), expected);
            assert_eq!(CsvText::Raw.cell(text, separator), text);
        }
    }
}
