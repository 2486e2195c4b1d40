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

impl CsvText {
    /// What is written for a cell. A number is not a formula, also after a sign.
    pub(crate) fn cell(self, text: &str) -> Cow<'_, str> {
        // https://owasp.org/www-community/attacks/CSV_Injection
        let is_formula = || text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
        let is_number = || text.parse::<f64>().is_ok_and(f64::is_finite);
        match self == CsvText::Harmless && is_formula() && !is_number() {
            true => Cow::Owned(format!("'{text}")),
            false => Cow::Borrowed(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_is_text_and_a_number_a_number() {
        for text in
            ["=1+1", "+cmd|' /C calc'!A0", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-", "-inf"]
        {
            assert_eq!(CsvText::Harmless.cell(text), format!("'{text}"));
            assert_eq!(CsvText::Raw.cell(text), text);
        }
        for text in ["-1", "+0.5", "-1e-9", "a=b", "'=1", "", r"\Base\=1", " =1", "0x1"] {
            assert_eq!(CsvText::Harmless.cell(text), text);
        }
    }
}
