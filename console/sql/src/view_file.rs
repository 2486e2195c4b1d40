//! The file of a view: comments that describe the view and its columns, then one `SELECT`.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use handlescope_model::{Cancelled, Reason, Untrusted, open_file};

use super::relations::queried_by_name;
use polars::{prelude::PolarsError, sql::extract_table_identifiers};
use thiserror::Error;

use super::planner::{MAX_BYTES, too_long};
use handlescope_query::{QueryNames, polars_reason};

/// A view that cannot be read or planned.
#[derive(Debug, Error)]
pub enum ViewError {
    #[error("{}: the views cannot be read: {}", Untrusted(.path), Reason(.source))]
    Unread { path: PathBuf, source: io::Error },
    #[error("{}: line {line}: {problem}", Untrusted(.path))]
    Content { path: PathBuf, line: usize, problem: String },
    /// The user cancelled it.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// The description of a column in a file: `-- opened_ns? [ns]: When it was opened.`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDoc {
    pub line: usize,
    pub name: String,
    /// Marked by `?`: some values are unknown or do not apply.
    pub nullable: bool,
    pub unit: String,
    pub meaning: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewFile {
    pub path: PathBuf,
    /// The name of the file without `.sql`.
    pub name: String,
    /// The first paragraph of the comments before the query.
    pub doc: String,
    /// The columns described by the other comments.
    pub docs: Vec<ColumnDoc>,
    /// The whole text including comments, so that errors have the right line.
    pub text: String,
    /// Names of the relations it selects from.
    pub uses: Vec<String>,
    /// Whether it is one of the user's views.
    pub is_of_user: bool,
}

impl ViewFile {
    pub fn read(path: &Path) -> Result<ViewFile, ViewError> {
        let mut text = String::new();
        let read = open_file(path)
            .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_string(&mut text));
        read.map_err(|source| ViewError::Unread { path: path.to_path_buf(), source })?;
        let file = ViewFile::parse(path, text.trim_start_matches('\u{feff}'))?;
        let is_table = queried_by_name().any(|table| table.name() == file.name);
        let problem = match () {
            () if is_table => format!("{} is a table; give the view another name", file.name),
            () if !is_name(&file.name) => "the file name is not a valid view name".to_owned(),
            () => return Ok(ViewFile { is_of_user: true, ..file }),
        };
        Err(file.wrong_in(1, problem))
    }

    pub fn parse(path: &Path, text: &str) -> Result<ViewFile, ViewError> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
        let comments: Vec<&str> =
            text.lines().map_while(|line| line.strip_prefix("--").map(str::trim)).collect();
        let about: Vec<&str> =
            comments.iter().take_while(|line| !line.is_empty()).copied().collect();
        let docs = (1..)
            .zip(&comments)
            .skip(about.len())
            .filter_map(|(line, text)| ColumnDoc::parse(line, text))
            .collect();
        let file = ViewFile {
            path: path.to_path_buf(),
            name,
            doc: about.join(" "),
            docs,
            text: text.to_owned(),
            uses: Vec::new(),
            is_of_user: false,
        };
        if let Some(problem) = too_long(text) {
            return Err(file.wrong_in(1, problem));
        }
        match extract_table_identifiers(text, false, true) {
            Ok(uses) => Ok(ViewFile { uses, ..file }),
            Err(error) => Err(file.wrong(&error, &QueryNames::default())),
        }
    }

    /// Converts an error of polars about the query.
    pub fn wrong(&self, error: &PolarsError, names: &QueryNames<'_>) -> ViewError {
        let reason = polars_reason(error, names);
        let problem = reason.split(" at line ").next().unwrap_or_default().to_owned();
        self.wrong_in(line_of(&reason, &self.text), problem)
    }

    /// Returns an error about this name in the query.
    pub fn wrong_name(&self, name: &str, problem: String) -> ViewError {
        self.wrong_in(line_with(name, &self.text).unwrap_or(1), problem)
    }

    pub fn wrong_in(&self, line: usize, problem: String) -> ViewError {
        ViewError::Content { path: self.path.clone(), line, problem }
    }
}

impl ColumnDoc {
    fn parse(line: usize, text: &str) -> Option<ColumnDoc> {
        let (head, meaning) = text.split_once(": ")?;
        let (head, unit) = match head.split_once(" [") {
            Some((head, unit)) => (head, unit.strip_suffix(']')?),
            None => (head, ""),
        };
        let name = head.strip_suffix('?').unwrap_or(head);
        is_name(name).then(|| ColumnDoc {
            line,
            name: name.to_owned(),
            nullable: head.len() > name.len(),
            unit: unit.to_owned(),
            meaning: meaning.to_owned(),
        })
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns the line a reason is about. That is the line it states, or the first one with the name it quotes. Otherwise
/// it is the last if the query ends too early, or the first of the query.
fn line_of(reason: &str, text: &str) -> usize {
    let line = reason
        .split_once(" at line ")
        .and_then(|(_, behind)| behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    line.or_else(|| line_with(reason.split('\'').nth(1)?, text))
        .or_else(|| reason.ends_with("the end of the query").then(|| text.lines().count()))
        .or_else(|| code(text).next().map(|(line, _)| line))
        .unwrap_or(1)
}

/// Returns the first line of the query that contains a word.
fn line_with(word: &str, text: &str) -> Option<usize> {
    let line = code(text).find(|(_, line)| {
        line.split(|c: char| !is_name(c.encode_utf8(&mut [0; 4]))).any(|known| known == word)
    });
    line.map(|(number, _)| number)
}

/// Returns the lines that are neither empty nor comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with("--"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "-- Handles\n-- by type.\n--\n-- type: Their type.\n-- n? [handles]: How many: all.\n-- see leaks\nSELECT type,\n count(*) AS n\nFROM handles GROUP BY type\n";

    #[test]
    fn comments_in_front_have_the_meanings() {
        let file = ViewFile::parse(Path::new("a/By_Type.sql"), TEXT).expect("a view");
        assert_eq!((file.name.as_str(), file.doc.as_str()), ("by_type", "Handles by type."));
        assert_eq!(file.uses, ["handles"]);
        let column = |line, name: &str, nullable, unit: &str, meaning: &str| ColumnDoc {
            line,
            name: name.to_owned(),
            nullable,
            unit: unit.to_owned(),
            meaning: meaning.to_owned(),
        };
        let columns = [
            column(4, "type", false, "", "Their type."),
            column(5, "n", true, "handles", "How many: all."),
        ];
        assert_eq!(file.docs, columns);
    }

    #[test]
    fn an_error_names_file_and_line() {
        for (text, expected) in [
            ("-- a\n\nSELECT (type\nFROM handles", "x.sql: line 4: expected "),
            ("-- a\nSELECT (", "x.sql: line 2: expected "),
            ("SELECT 1;\nSELECT 'x", "x.sql: line 2: unterminated string literal"),
        ] {
            let error = ViewFile::parse(Path::new("x.sql"), text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let line = |reason: &str| line_of(reason, TEXT);
        assert_eq!(line("column 'type' not found; it is in 'x'"), 7);
        assert_eq!(line("table 'handles' not found"), 9);
        assert_eq!(line("expected ), found the end of the query"), 9);
        assert_eq!(line("anything"), 7);
    }
}
