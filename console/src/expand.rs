//! File names with wildcards, for shells that do not expand them and for the console's own prompt.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::filter::{FilterError, Wildcard};

/// Extensions of files that hold a trace.
pub(crate) const TRACE_EXTENSIONS: &[&str] = &["etl", "zip", "7z"];

/// Extension of an extract.
pub(crate) const EXTRACT_EXTENSION: &str = "json7z";

/// Why a name stands for no file.
#[derive(Debug, Error)]
pub enum ExpandError {
    /// There is no such file.
    #[error("{}: there is no such file", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A folder where a file is wanted.
    #[error("{0} is a folder; write {0}/*.etl or {0}/*.json7z for the traces in it", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// The wildcards match nothing.
    #[error("{}: no trace or extract has such a name", .pattern.display())]
    NothingMatches {
        /// The pattern.
        pattern: PathBuf,
    },
    /// A wildcard in the folder part.
    #[error("{}: wildcards stand only in the file name, not in the folder", .pattern.display())]
    WildcardInFolder {
        /// The pattern.
        pattern: PathBuf,
    },
    /// A folder that cannot be read.
    #[error("{}: cannot list the folder: {source}", .folder.display())]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A pattern that cannot be used.
    #[error(transparent)]
    Pattern(#[from] FilterError),
}

/// The files a name stands for: itself, or with `*` and `?` in the file name all traces and
/// extracts it matches, in alphabetic order. A leading `~/` is the home folder.
///
/// # Errors
/// When it stands for no file.
pub fn expand(name: &str) -> Result<Vec<PathBuf>, ExpandError> {
    let path = with_home(name);
    if path.is_dir() {
        return Err(ExpandError::Folder { path });
    }
    if path.exists() {
        return Ok(vec![path]);
    }
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    if Wildcard::is_pattern(&folder.to_string_lossy()) {
        return Err(ExpandError::WildcardInFolder { pattern: path });
    }
    if !Wildcard::is_pattern(&file_name) {
        return Err(ExpandError::Missing { path });
    }
    let matching = files_in(folder, &Wildcard::new(&file_name)?)?;
    if matching.is_empty() {
        Err(ExpandError::NothingMatches { pattern: path })
    } else {
        Ok(matching)
    }
}

/// The traces and extracts in a folder whose names match.
fn files_in(folder: &Path, wildcard: &Wildcard) -> Result<Vec<PathBuf>, ExpandError> {
    let unreadable = |source| ExpandError::Unreadable { folder: folder.to_path_buf(), source };
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut files = Vec::new();
    for entry in fs::read_dir(listed).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let path = folder.join(&name);
        let is_wanted = has_extension(&path, TRACE_EXTENSIONS) || is_extract(&path);
        if is_wanted && wildcard.matches(&name.to_string_lossy()) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a path has the name of an extract.
pub(crate) fn is_extract(path: &Path) -> bool {
    has_extension(path, &[EXTRACT_EXTENSION])
}

/// Whether a path has one of these extensions, in any case.
pub(crate) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let own = path.extension().unwrap_or_default();
    extensions.iter().any(|extension| own.eq_ignore_ascii_case(extension))
}

/// A path with its `~/` replaced.
pub(crate) fn with_home(name: &str) -> PathBuf {
    let rest = name.strip_prefix("~/").or_else(|| name.strip_prefix("~\\"));
    match rest.zip(dirs::home_dir()) {
        Some((rest, home)) => home.join(rest),
        None => PathBuf::from(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in names {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        folder
    }

    fn expanded(folder: &Path, pattern: &str) -> Vec<String> {
        let paths = expand(&folder.join(pattern).to_string_lossy()).expect(pattern);
        paths
            .iter()
            .map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn wildcards_find_traces_and_extracts_in_order() {
        let folder = folder(&["b.etl", "a.ETL", "a.json7z", "ab.zip", "a.txt", "c.etl"]);
        fs::create_dir(folder.path().join("d.etl")).expect("a folder");
        for (pattern, expected) in [
            ("*.etl", vec!["a.ETL", "b.etl", "c.etl"]),
            ("?.etl", vec!["a.ETL", "b.etl", "c.etl"]),
            ("A*", vec!["a.ETL", "a.json7z", "ab.zip"]),
            ("a.etl", vec!["a.ETL"]),
        ] {
            if Wildcard::is_pattern(pattern) {
                assert_eq!(expanded(folder.path(), pattern), expected, "{pattern}");
            }
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_is_really_called_so_is_no_pattern() {
        let folder = folder(&["a*.etl", "ab.etl"]);
        assert_eq!(expanded(folder.path(), "a*.etl"), ["a*.etl"]);
    }

    #[test]
    fn what_stands_for_no_file_says_why() {
        let folder = folder(&["a.etl"]);
        let error = |pattern: &str| {
            expand(&folder.path().join(pattern).to_string_lossy()).expect_err(pattern)
        };
        assert!(matches!(error("b.etl"), ExpandError::Missing { .. }));
        assert!(matches!(error("b*.etl"), ExpandError::NothingMatches { .. }));
        assert!(matches!(error("*/a.etl"), ExpandError::WildcardInFolder { .. }));
        assert!(matches!(error("."), ExpandError::Folder { .. }));
        assert!(matches!(error("no/*.etl"), ExpandError::Unreadable { .. }));
    }
}
