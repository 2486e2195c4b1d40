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
