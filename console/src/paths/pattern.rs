//! Patterns for file names.

use std::path::{Path, PathBuf, absolute};

use super::error::ExpandError;
use crate::filter::{Filter, FilterError, LineMatch};

/// A filter on files, which sees what [`verdict`] says.
#[derive(Debug)]
pub(crate) struct Pattern(Filter);

impl Pattern {
    /// The folder of a path and the pattern in place of its file name; `None` when it has neither
    /// wildcards nor several parts.
    pub(crate) fn new(path: &Path) -> Result<Option<(PathBuf, Pattern)>, ExpandError> {
        let is_pattern = |text: &str| text.contains(['*', '?', ';']);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let folder = path.parent().unwrap_or(Path::new(""));
        if is_pattern(&folder.to_string_lossy()) {
            return Err(ExpandError::WildcardInFolder { pattern: path.to_path_buf() });
        }
        if !is_pattern(&name) {
            return Ok(None);
        }
        Ok(Some((folder.to_path_buf(), Pattern::parse(&name)?)))
    }

    /// Reads a filter for files.
    pub(crate) fn parse(text: &str) -> Result<Pattern, FilterError> {
        Filter::new(text).map(Pattern)
    }

    /// Whether a file fits.
    pub(crate) fn matches(&self, file: &Path) -> bool {
        self.0.accepts(verdict(&self.0, file))
    }
}

/// What a filter says about a file. It is compared with the file's name and with its whole path: what
/// fits one of them fits, and what excludes one of them excludes.
pub(crate) fn verdict(filter: &Filter, file: &Path) -> LineMatch {
    let path = absolute(file).unwrap_or_else(|_| file.to_path_buf());
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    filter.line(&path.to_string_lossy()).or(filter.line(&name))
}
