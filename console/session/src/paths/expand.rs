//! Expands typed names, folders and patterns to files, for the console's prompt and for shells that do not expand them.

use std::path::{Path, PathBuf, absolute};
use std::{fs, io};

use handlescope_model::{Reason, Untrusted};
use thiserror::Error;

use super::{
    EXTRACT_EXTENSION, EXTRACT_FOLDER, TRACE_EXTENSIONS, has_extension, is_extract,
    is_plain_extract, once_each, with_home,
};
use crate::filter::{Filter, FilterError, LineMatch};
use crate::suggest;

/// Why a name stands for no file.
#[derive(Debug, Error)]
pub enum ExpandError {
    /// No such file exists.
    #[error("{}: file not found{hint}", Untrusted(.path))]
    Missing {
        path: PathBuf,
        /// The nearest existing name; may be empty.
        hint: String,
    },
    /// A folder without traces.
    #[error("{}: no trace or extract in this folder{hint}", Untrusted(.folder))]
    NothingIn {
        folder: PathBuf,
        /// How to search subfolders, unless that was done.
        hint: &'static str,
    },
    /// The wildcards match nothing.
    #[error("no trace matches `{}`; .dir lists the files here", Untrusted(.pattern))]
    NothingMatches { pattern: PathBuf },
    /// A wildcard in the folder part.
    #[error("{}: wildcards are allowed only in the file name, not in the folder", Untrusted(.pattern))]
    WildcardInFolder { pattern: PathBuf },
    /// A folder that cannot be read.
    #[error("{}: cannot list the folder: {}", Untrusted(.folder), Reason(.source))]
    Unreadable { folder: PathBuf, source: io::Error },
    /// A pattern that cannot be used.
    #[error(transparent)]
    Pattern(#[from] FilterError),
}

/// The files a query expands to, and how they were found.
#[derive(Debug, Default)]
pub struct PathExpansion {
    /// The files, sorted by name.
    pub files: Vec<PathBuf>,
    /// Whether they were found in a folder or by a pattern rather than named.
    pub is_found: bool,
}

/// Expands a query to files. A leading `~/` is the home folder.
///
/// * A file stands for itself. An extract may be named without its `.json7z`, or as `NAME.json`, as ETWAnalyzer calls
///   it. It may be in the `Extract` folder.
/// * A folder stands for all traces and extracts in it and in its `Extract` folder; with `recursive`, also in all
///   folders below.
/// * A pattern stands for all traces and extracts with a matching name or path.
///
/// Adds all problems to `problems`. A subfolder that cannot be read does not stop the search.
pub fn expand(query: &str, recursive: bool, problems: &mut Vec<ExpandError>) -> PathExpansion {
    match expanded(query, recursive, problems) {
        Ok(expanded) => expanded,
        Err(error) => {
            problems.push(error);
            PathExpansion::default()
        }
    }
}

fn expanded(
    query: &str,
    recursive: bool,
    problems: &mut Vec<ExpandError>,
) -> Result<PathExpansion, ExpandError> {
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
        let hint = if recursive { "" } else { "; -recursive searches subfolders, too" };
        return found_files(files).ok_or(ExpandError::NothingIn { folder: path, hint });
    }
    if let Some(file) = existing(&path) {
        return Ok(PathExpansion { files: vec![file], is_found: false });
    }
    match Pattern::new(&path)? {
        Some((folder, pattern)) => {
            let mut walk = Walk { recursive, pattern: Some(&pattern), problems };
            let files = walk.files_in(&folder)?;
            found_files(files).ok_or(ExpandError::NothingMatches { pattern: path })
        }
        None => Err(missing(path)),
    }
}

/// Keeps each trace once; `None` if there are none.
fn found_files(files: Vec<PathBuf>) -> Option<PathExpansion> {
    let files = once_each(files);
    (!files.is_empty()).then_some(PathExpansion { files, is_found: true })
}

/// Returns the file of this name, or the extract if the name lacks its extension or has ETWAnalyzer's.
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

/// Returns the error for a file that does not exist, with the nearest one that does. Windows reads `"C:\My Traces\"` as
/// `C:\My Traces"`.
pub fn missing(path: PathBuf) -> ExpandError {
    if path.to_string_lossy().contains('"') {
        let hint = "; a \\ before a closing \" makes it part of the name: leave the \\ out";
        return ExpandError::Missing { path, hint: hint.to_owned() };
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut walk = Walk { recursive: false, pattern: None, problems: &mut Vec::new() };
    let files = walk.files_in(folder).unwrap_or_default();
    let folders = folders_in(folder).unwrap_or_default();
    let name = |path: &PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
    let names: Vec<String> = files.iter().chain(&folders).filter_map(name).collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let nearest = suggest::nearest(&name, names.iter().map(String::as_str))
        .map(|name| path.with_file_name(name).to_string_lossy().into_owned());
    let hint = nearest.as_deref().map_or_else(String::new, suggest::did_you_mean);
    ExpandError::Missing { path, hint }
}

/// A filter on files; see [`verdict`] for what it matches.
#[derive(Debug)]
pub struct Pattern(Filter);

impl Pattern {
    /// Splits a path into its folder and the pattern in place of its file name; `None` if it has neither wildcards nor
    /// several parts.
    pub fn new(path: &Path) -> Result<Option<(PathBuf, Pattern)>, ExpandError> {
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

    /// Reads a filter on files.
    pub fn parse(text: &str) -> Result<Pattern, FilterError> {
        Filter::new(text).map(Pattern)
    }

    /// Whether a file matches.
    pub fn matches(&self, file: &Path) -> bool {
        self.0.accepts(verdict(&self.0, file))
    }
}

/// Returns the verdict of a filter on a file. The filter sees the file's name and its whole path: if either matches,
/// the file is included; if either is excluded, the file is excluded.
pub fn verdict(filter: &Filter, file: &Path) -> LineMatch {
    let path = absolute(file).unwrap_or_else(|_| file.to_path_buf());
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    filter.line(&path.to_string_lossy()).or(filter.line(&name))
}

/// A search for traces and extracts.
pub struct Walk<'a> {
    /// Whether to search subfolders.
    pub recursive: bool,
    /// Pattern that file names must match.
    pub pattern: Option<&'a Pattern>,
    /// Collects subfolders that cannot be read.
    pub problems: &'a mut Vec<ExpandError>,
}

impl Walk<'_> {
    /// Returns the traces and extracts in a folder, unsorted. Links to folders are not followed, so that no search goes
    /// in circles.
    pub fn files_in(&mut self, folder: &Path) -> Result<Vec<PathBuf>, ExpandError> {
        let mut files = Vec::new();
        for path in entries(folder)? {
            if path.is_dir() {
                if self.recursive && !path.is_symlink() {
                    match self.files_in(&path) {
                        Ok(mut below) => files.append(&mut below),
                        Err(error) => self.problems.push(error),
                    }
                }
                continue;
            }
            let is_trace = has_extension(&path, TRACE_EXTENSIONS)
                || is_extract(&path)
                || is_plain_extract(&path);
            if is_trace && self.pattern.is_none_or(|pattern| pattern.matches(&path)) {
                files.push(path);
            }
        }
        Ok(files)
    }
}

/// Returns the subfolders of a folder, unsorted.
pub fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, ExpandError> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

/// Lists a folder; the empty path is the current one.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ExpandError> {
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::read_dir(listed)
        .and_then(|entries| entries.map(|entry| Ok(folder.join(entry?.file_name()))).collect())
        .map_err(|source| ExpandError::Unreadable { folder: folder.to_path_buf(), source })
}
