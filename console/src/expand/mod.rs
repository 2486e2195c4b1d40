//! From what was typed to files: names, folders, and patterns, for shells that do not expand them
//! and for the console's own prompt.

mod pattern;
mod same;
#[cfg(test)]
mod tests;
mod walk;

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::{filter::FilterError, registry::suggest};
pub(crate) use pattern::{Pattern, verdict};
pub(crate) use same::{SameTrace, once_each, stem};
pub(crate) use walk::{Walk, folders_in};

/// Extensions of files that hold a trace.
pub(crate) const TRACE_EXTENSIONS: &[&str] = &["etl", "zip", "7z"];

/// Extension of an extract.
pub(crate) const EXTRACT_EXTENSION: &str = "json7z";

/// Extension of ETWAnalyzer's uncompressed extracts, which have several files.
pub(crate) const PLAIN_EXTENSION: &str = "json";

/// Folder of extracts beside their traces, as ETWAnalyzer names it.
pub(crate) const EXTRACT_FOLDER: &str = "Extract";

/// Why a name stands for no file.
#[derive(Debug, Error)]
pub enum ExpandError {
    /// There is no such file.
    #[error("{}: there is no such file{hint}", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The nearest name that exists, or nothing.
        hint: String,
    },
    /// A folder without traces.
    #[error("{}: no trace or extract lies in this folder{hint}", .folder.display())]
    NothingIn {
        /// The folder.
        folder: PathBuf,
        /// How to look below it, unless that was done.
        hint: &'static str,
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

/// The files that something stands for, and whether they were only found there.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    /// The files in the order of their names.
    pub(crate) files: Vec<PathBuf>,
    /// They lie in a folder or match a pattern; nobody named them.
    pub(crate) is_found: bool,
}

/// The files a query stands for. A leading `~/` is the home folder.
///
/// * A file stands for itself. An extract may be named without its `.json7z`, or as `NAME.json`, which
///   is what ETWAnalyzer calls it, and may lie in the `Extract` folder.
/// * A folder stands for all traces and extracts in it and in its `Extract` folder, `recursive` also
///   for those in all folders below.
/// * A pattern stands for all traces and extracts whose name or path it matches.
///
/// Whatever does not work is added to `problems`; a folder below that cannot be read does not keep
/// the others from being found.
pub(crate) fn expand(query: &str, recursive: bool, problems: &mut Vec<ExpandError>) -> Expanded {
    match expanded(query, recursive, problems) {
        Ok(expanded) => expanded,
        Err(error) => {
            problems.push(error);
            Expanded::default()
        }
    }
}

fn expanded(
    query: &str,
    recursive: bool,
    problems: &mut Vec<ExpandError>,
) -> Result<Expanded, ExpandError> {
    let path = with_home(query);
    if path.is_dir() {
        let folder = if path.as_os_str() == "." { Path::new("") } else { &path };
        let mut walk = Walk { recursive, pattern: None, problems };
        let mut files = walk.files_in(folder)?;
        let extracts = folder.join(EXTRACT_FOLDER);
        if !recursive && extracts.is_dir() {
            match walk.files_in(&extracts) {
                Ok(mut extracts) => files.append(&mut extracts),
                Err(error) => problems.push(error),
            }
        }
        let hint = if recursive { "" } else { "; -r looks into the folders below, too" };
        return found(files).ok_or(ExpandError::NothingIn { folder: path, hint });
    }
    if let Some(file) = existing(&path) {
        return Ok(Expanded { files: vec![file], is_found: false });
    }
    match Pattern::new(&path)? {
        Some((folder, pattern)) => {
            let mut walk = Walk { recursive, pattern: Some(&pattern), problems };
            let files = walk.files_in(&folder)?;
            found(files).ok_or(ExpandError::NothingMatches { pattern: path })
        }
        None => Err(ExpandError::missing(path)),
    }
}

/// Each trace once; `None` when there is none.
fn found(files: Vec<PathBuf>) -> Option<Expanded> {
    let files = once_each(files);
    (!files.is_empty()).then_some(Expanded { files, is_found: true })
}

/// The file of this name, or the extract that is called so by somebody who leaves the extension out
/// or is used to ETWAnalyzer's.
fn existing(path: &Path) -> Option<PathBuf> {
    if path.exists() {
        return Some(path.to_path_buf());
    }
    let name = path.file_name()?.to_string_lossy();
    let stem = [".json7z", ".json"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let extract = format!("{stem}.{EXTRACT_EXTENSION}");
    let beside = path.with_file_name(&extract);
    let in_folder = path.with_file_name(EXTRACT_FOLDER).join(&extract);
    [beside, in_folder].into_iter().find(|path| path.is_file())
}

impl ExpandError {
    /// The error about a file that does not exist, with the nearest that does.
    pub(crate) fn missing(path: PathBuf) -> ExpandError {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut walk = Walk { recursive: false, pattern: None, problems: &mut Vec::new() };
        let files = walk.files_in(folder).unwrap_or_default();
        let folders = folders_in(folder).unwrap_or_default();
        let name = |path: &PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
        let names: Vec<String> = files.iter().chain(&folders).filter_map(name).collect();
        let wanted = path.file_name().unwrap_or_default().to_string_lossy();
        let nearest = suggest::nearest(&wanted, names.iter().map(String::as_str))
            .map(|name| path.with_file_name(name).display().to_string());
        let hint = nearest.as_deref().map_or_else(String::new, suggest::did_you_mean);
        ExpandError::Missing { path, hint }
    }
}

/// Whether a path has the name of an extract.
pub(crate) fn is_extract(path: &Path) -> bool {
    has_extension(path, &[EXTRACT_EXTENSION])
}

/// Whether a path is the main file of an uncompressed extract of ETWAnalyzer that has handles. Folders
/// have JSON of all sorts.
pub(crate) fn is_plain_extract(path: &Path) -> bool {
    let companion = || {
        let stem = path.file_stem()?.to_str()?;
        Some(path.with_file_name(format!("{stem}_Derived_Handle.{PLAIN_EXTENSION}")))
    };
    has_extension(path, &[PLAIN_EXTENSION]) && companion().is_some_and(|path| path.is_file())
}

/// Whether a path has one of these extensions, in any case.
pub(crate) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let own = path.extension().unwrap_or_default();
    extensions.iter().any(|extension| own.eq_ignore_ascii_case(extension))
}

/// A path with its `~` replaced.
pub(crate) fn with_home(name: &str) -> PathBuf {
    let rest = name.strip_prefix("~/").or_else(|| name.strip_prefix("~\\"));
    match rest.or((name == "~").then_some("")).zip(dirs::home_dir()) {
        Some(("", home)) => home,
        Some((rest, home)) => home.join(rest),
        None => PathBuf::from(name),
    }
}
