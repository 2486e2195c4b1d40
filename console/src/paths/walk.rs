//! Traces and extracts in folders.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    error::ExpandError,
    names::{TRACE_EXTENSIONS, has_extension, is_extract, is_plain_extract},
    pattern::Pattern,
};

/// A search for traces and extracts.
pub(crate) struct Walk<'a> {
    /// Whether to look into folders below.
    pub(crate) recursive: bool,
    /// What they have to be called like.
    pub(crate) pattern: Option<&'a Pattern>,
    /// Folders below that cannot be read.
    pub(crate) problems: &'a mut Vec<ExpandError>,
}

impl Walk<'_> {
    /// The traces and extracts in a folder, in no order. Links to folders are not followed, so that
    /// no search runs in circles.
    pub(crate) fn files_in(&mut self, folder: &Path) -> Result<Vec<PathBuf>, ExpandError> {
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
            let is_wanted = has_extension(&path, TRACE_EXTENSIONS)
                || is_extract(&path)
                || is_plain_extract(&path);
            if is_wanted && self.pattern.is_none_or(|pattern| pattern.matches(&path)) {
                files.push(path);
            }
        }
        Ok(files)
    }
}

/// The folders in a folder, in no order.
pub(crate) fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, ExpandError> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

/// Everything in a folder; the empty path is the current one.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ExpandError> {
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(listed)?.map(|entry| Ok(folder.join(entry?.file_name()))).collect()
    };
    names().map_err(|source| ExpandError::Unreadable { folder: folder.to_path_buf(), source })
}
