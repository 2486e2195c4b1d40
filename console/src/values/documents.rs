//! Documents that answers are written as, and where they go.

use std::path::PathBuf;

/// Whether and how a `.dump` writes JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JsonMode {
    /// Text for people.
    #[default]
    Off,
    /// `-json`: one line per element of a top-level array.
    Lines,
    /// `-json-pretty`: fully indented.
    Pretty,
}

/// Where comma-separated values go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CsvTarget {
    /// Where all results go.
    Output,
    File(PathBuf),
}

/// What a table is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object a line.
    NdJson,
}

impl ExportFormat {
    /// The file name extension.
    pub fn extension(self) -> &'static str {
        match self {
            ExportFormat::Parquet => "parquet",
            ExportFormat::Csv => "csv",
            ExportFormat::NdJson => "ndjson",
        }
    }
}
