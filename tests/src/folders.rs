//! Reads and copies whole folders.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns every file below a folder with its content, sorted by name.
///
/// # Panics
/// If one cannot be read.
#[must_use]
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Copies a folder.
///
/// # Panics
/// If that fails.
pub fn copy_folder(from: &Path, to: &Path) {
    for (file, content) in files(from) {
        let copy = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, content).unwrap();
    }
}
