//! The formats of answers, and how JSON and text in CSV are laid out. Options, file names, messages, `.export` and
//! completion are all derived from one list.

use std::borrow::Cow;
use std::mem::discriminant;
use std::path::{Path, PathBuf};

use crate::paths::has_extension;

/// Layout of a JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonMode {
    /// `-json`: one line per element of a top-level array.
    Lines,
    /// `-json-pretty`: fully indented.
    Pretty,
}

/// How text is written in comma-separated values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CsvText {
    /// Text that no spreadsheet takes for a formula: if it looks like one, it gets a leading `'`.
    #[default]
    Harmless,
    /// `-csvraw`: text unchanged.
    Raw,
}

/// Characters that start a formula. A Japanese Excel also accepts full-width characters
/// (<https://owasp.org/www-community/attacks/CSV_Injection>).
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// Characters at which spreadsheets split a file. Which of the first three applies depends on the regional settings.
const DIVIDERS: [char; 5] = [',', ';', '\t', '\r', '\n'];

impl CsvText {
    /// Returns the text to write for a cell of a file with this separator. A number is not a formula, even with a sign.
    pub fn cell(self, text: &str, separator: u8) -> Cow<'_, str> {
        if self == CsvText::Raw || !text.contains(FORMULA) {
            return Cow::Borrowed(text);
        }
        // Quotes keep a cell together only at the file's own separator. At another one, the line is split before anyone
        // looks at quotes.
        let divides = |c: char| c != char::from(separator) && DIVIDERS.contains(&c);
        let mut cell = String::with_capacity(text.len() + 1);
        for piece in text.split_inclusive(divides) {
            let value = piece.trim_end_matches(divides);
            if value.trim_start_matches('"').starts_with(FORMULA)
                && !value.parse::<f64>().is_ok_and(f64::is_finite)
            {
                cell.push('\'');
            }
            cell.push_str(piece);
        }
        Cow::Owned(cell)
    }
}

/// Format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Text,
    /// One JSON document.
    Json(JsonMode),
    /// Comma-separated values with a header.
    Csv(CsvText),
    /// One JSON object a line.
    NdJson,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// Whether a file of this format is still valid after another answer is appended.
    pub fn can_grow(self) -> bool {
        match self {
            Format::Text | Format::Csv(_) | Format::NdJson => true,
            Format::Json(_) | Format::Parquet => false,
        }
    }
}

/// The columns of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ColumnChoice {
    /// All, except columns of groups that a narrow screen has no room for.
    #[default]
    Fitting,
    /// `-Columns all`
    All,
    /// `-Columns`: these, in this order.
    Named(Vec<String>),
}

impl ColumnChoice {
    /// The word for all columns.
    pub const ALL: &'static str = "all";

    /// Reads comma-separated names.
    pub fn parse(text: &str) -> ColumnChoice {
        if text.eq_ignore_ascii_case(ColumnChoice::ALL) {
            ColumnChoice::All
        } else {
            ColumnChoice::Named(text.split(',').map(str::to_owned).collect())
        }
    }
}

/// Whether a format's option takes a file to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamesFile {
    /// The answer goes wherever results go.
    Never,
    /// Without a file, the answer goes wherever results go.
    Maybe,
    Always,
}

/// A format other than text, with its texts for users.
#[derive(Debug, PartialEq, Eq)]
pub struct FormatSpec {
    pub format: Format,
    /// Name in messages.
    pub name: &'static str,
    /// Extension of files in this format, without a dot.
    pub extension: &'static str,
    /// The redirection that selects the format, as errors show it.
    pub redirect: &'static str,
    pub option: FormatOption,
    pub file: NamesFile,
}

/// The option that selects a format.
#[derive(Debug, PartialEq, Eq)]
pub struct FormatOption {
    pub names: [&'static str; 1],
    /// One-line summary.
    pub help: &'static str,
    pub details: &'static str,
    /// The option with a value, as typed.
    pub example: &'static str,
}

/// Every format other than text.
pub static FORMATS: [&FormatSpec; 5] = [&JSON, &JSON_PRETTY, &CSV, &NDJSON, &PARQUET];

/// The formats tables can be written in, with their options of `.export`; the first is the default.
pub static TABLE_FORMATS: [(&FormatSpec, FormatOption); 3] = [
    (
        &PARQUET,
        FormatOption {
            names: ["-parquet"],
            help: "write Parquet files (default)",
            details: "Needed only beside other formats.",
            example: "tables -parquet",
        },
    ),
    (
        &CSV,
        FormatOption {
            names: ["-csv"],
            help: "write comma-separated values",
            details: "With a header; an unknown value is empty, a list is written as in JSON.",
            example: "tables -csv",
        },
    ),
    (
        &NDJSON,
        FormatOption {
            names: ["-ndjson"],
            help: "write one JSON object a line",
            details: "64-bit integers are plain numbers, also beyond 2^53.",
            example: "tables -ndjson",
        },
    ),
];

static JSON: FormatSpec = FormatSpec {
    format: Format::Json(JsonMode::Lines),
    name: "JSON",
    extension: "json",
    redirect: "> FILE.json",
    option: FormatOption {
        names: ["-json"],
        help: "print one JSON document, one line per element",
        details: "The fields are the stable interface for scripts, see docs/dump-json.md.",
        example: "-json",
    },
    file: NamesFile::Never,
};

static JSON_PRETTY: FormatSpec = FormatSpec {
    format: Format::Json(JsonMode::Pretty),
    name: "JSON",
    extension: "json",
    redirect: "> FILE.json",
    option: FormatOption {
        names: ["-json-pretty"],
        help: "print the same JSON document indented",
        details: "The content of -json, for people to read.",
        example: "-json-pretty",
    },
    file: NamesFile::Never,
};

pub static CSV: FormatSpec = FormatSpec {
    format: Format::Csv(CsvText::Harmless),
    name: "CSV",
    extension: "csv",
    redirect: "> FILE.csv",
    option: FormatOption {
        names: ["-csv"],
        help: "print comma-separated values, or write them into FILE",
        details: "With a header; an unknown value is empty, a list is written as in JSON.",
        example: "-csv rows.csv",
    },
    file: NamesFile::Maybe,
};

static NDJSON: FormatSpec = FormatSpec {
    format: Format::NdJson,
    name: "NDJSON",
    extension: "ndjson",
    redirect: "> FILE.ndjson",
    option: FormatOption {
        names: ["-ndjson"],
        help: "print the rows as JSON, one object per line",
        details: "For programs that read line by line. > FILE.ndjson at the end of the command \
                  writes them into a file.",
        example: "-ndjson",
    },
    file: NamesFile::Never,
};

static PARQUET: FormatSpec = FormatSpec {
    format: Format::Parquet,
    name: "Parquet",
    extension: "parquet",
    redirect: "> FILE.parquet",
    option: FormatOption {
        names: ["-parquet"],
        help: "write the rows into a Parquet file",
        details: "The columns of -ndjson with their types, for DuckDB, pandas, polars and the \
             like. The file appears when it is complete.",
        example: "-parquet rows.parquet",
    },
    file: NamesFile::Always,
};

/// A requested format, and the file after its option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedFormat {
    pub spec: &'static FormatSpec,
    pub file: Option<PathBuf>,
}

impl FormatSpec {
    /// Returns the format for a file's extension; `None` for text and unknown extensions.
    pub fn from_extension(file: &Path) -> Option<&'static FormatSpec> {
        FORMATS.into_iter().find(|spec| has_extension(file, &[spec.extension]))
    }

    /// Returns the format, with the chosen form of text in CSV.
    pub fn with_text(&self, text: CsvText) -> Format {
        match self.format {
            Format::Csv(_) => Format::Csv(text),
            format => format,
        }
    }

    /// The name of its option.
    pub fn option_name(&self) -> &'static str {
        let [name] = self.option.names;
        name
    }

    /// Whether two options select the same format, perhaps in two styles. The last of them counts.
    pub fn is_same_as(&self, other: &FormatSpec) -> bool {
        discriminant(&self.format) == discriminant(&other.format)
    }
}

impl RequestedFormat {
    /// Adds a format to the requested ones; of the same format, the last option counts.
    pub fn add_to(self, formats: &mut Vec<RequestedFormat>) {
        formats.retain(|format| !format.spec.is_same_as(self.spec));
        formats.push(self);
    }
}

impl RequestedFormat {
    /// Returns the format of an option; `None` if it is none of a format.
    pub fn new(option: &str, file: Option<PathBuf>) -> Option<RequestedFormat> {
        let spec = FORMATS.into_iter().find(|spec| spec.option_name() == option)?;
        Some(RequestedFormat { spec, file })
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
