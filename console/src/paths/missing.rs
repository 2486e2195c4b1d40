//! The nearest name to that of a file that does not exist.

use std::path::{Path, PathBuf};

use super::{
    error::ExpandError,
    walk::{Walk, folders_in},
};
use crate::suggest;

/// The error about a file that does not exist, with the nearest that does. Windows reads `"C:\My Traces\"` as
/// `C:\My Traces"`.
pub(crate) fn missing(path: PathBuf) -> ExpandError {
    if path.to_string_lossy().contains('"') {
        let hint = "; a \\ in front of a closing \" makes it a part of the name: leave that \\ out";
        return ExpandError::Missing { path, hint: hint.to_owned() };
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut walk = Walk { recursive: false, pattern: None, problems: &mut Vec::new() };
    let files = walk.files_in(folder).unwrap_or_default();
    let folders = folders_in(folder).unwrap_or_default();
    let name = |path: &PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
    let names: Vec<String> = files.iter().chain(&folders).filter_map(name).collect();
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let nearest = suggest::nearest(&wanted, names.iter().map(String::as_str))
        .map(|name| path.with_file_name(name).to_string_lossy().into_owned());
    let hint = nearest.as_deref().map_or_else(String::new, suggest::did_you_mean);
    ExpandError::Missing { path, hint }
}
