//! From what was typed to files: names, folders, and patterns, for shells that do not expand them
//! and for the console's own prompt.

use std::path::{Path, PathBuf};

use super::{
    error::ExpandError,
    missing::missing,
    names::{EXTRACT_EXTENSION, EXTRACT_FOLDER, with_home},
    pattern::Pattern,
    same::once_each,
    walk::Walk,
};

/// The files that something stands for, and whether they were only found there.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    /// The files in the order of their names.
    pub(crate) files: Vec<PathBuf>,
    /// They lie in a folder or match a pattern; they were not named.
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
        None => Err(missing(path)),
    }
}

/// Each trace once; `None` when there is none.
fn found(files: Vec<PathBuf>) -> Option<Expanded> {
    let files = once_each(files);
    (!files.is_empty()).then_some(Expanded { files, is_found: true })
}

/// The file of this name, or the extract that is called so without its extension
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
