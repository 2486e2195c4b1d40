//! The published traces with known answers; they are not part of this repository.
//!
//! The variable `HANDLESCOPE_DATA` names their folder. Without it, tests marked `#[needs_data]` are ignored; with it, a
//! missing file is a failure.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zip::ZipArchive;

/// Returns the folder of the published traces.
///
/// # Panics
/// If it is missing.
#[must_use]
pub fn shared_data() -> PathBuf {
    let folder = env::var_os("HANDLESCOPE_DATA").map(PathBuf::from);
    let folder = folder.expect("HANDLESCOPE_DATA is not set");
    assert!(folder.is_dir(), "HANDLESCOPE_DATA names {}, not a folder", folder.display());
    folder
}

/// Returns the folder of the synthetic traces.
///
/// # Panics
/// If it is missing.
#[must_use]
pub fn synthetic() -> PathBuf {
    let folder = shared_data().join("synthetic");
    assert!(folder.is_dir(), "HANDLESCOPE_DATA has no folder {}", folder.display());
    folder
}

/// Returns the folder of files that did harm.
///
/// # Panics
/// If it is missing.
#[must_use]
pub fn hostile() -> PathBuf {
    let folder = shared_data().join("hostile");
    assert!(folder.is_dir(), "HANDLESCOPE_DATA has no folder {}", folder.display());
    folder
}

/// Returns the folder of small inputs for known faults.
///
/// # Panics
/// If it is missing.
#[must_use]
pub fn faults() -> PathBuf {
    let folder = shared_data().join("faults");
    assert!(folder.is_dir(), "HANDLESCOPE_DATA has no folder {}", folder.display());
    folder
}

/// A published trace, unpacked if it is in an archive.
#[derive(Debug)]
pub struct SharedTrace {
    /// Folder and name without extension.
    stem: PathBuf,
    etl: PathBuf,
    /// Keeps the unpacked file.
    _unpacked: Option<TempDir>,
}

impl SharedTrace {
    /// Opens the trace with this folder and name, e.g. `synthetic/eventleak`.
    ///
    /// # Panics
    /// If it is missing or cannot be unpacked.
    #[must_use]
    pub fn open(name: &str) -> Self {
        let stem = shared_data().join(name);
        let etl = beside(&stem, ".etl");
        if etl.is_file() {
            return Self { stem, etl, _unpacked: None };
        }
        let endings = [".etl.7z", ".etl.zip", ".7z", ".zip"];
        let archive =
            endings.iter().map(|ending| beside(&stem, ending)).find(|path| path.is_file());
        let Some(archive) = archive else {
            panic!("HANDLESCOPE_DATA has no trace {}.etl, .7z or .zip", stem.display());
        };
        let folder = unpack(&archive);
        let etl = only_etl(folder.path());
        Self { stem, etl, _unpacked: Some(folder) }
    }

    /// Returns the path of the `.etl` file.
    #[must_use]
    pub fn etl(&self) -> &Path {
        &self.etl
    }

    /// Returns the path of the expected results.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn expected(&self) -> PathBuf {
        self.file(".expected.json")
    }

    /// Returns the path of another file of the trace, e.g. `.symbols.json`. Prefers the file in the folder `next`,
    /// which has the answers of the current rules.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn file(&self, ending: &str) -> PathBuf {
        let path = beside(&self.stem, ending);
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
            let next = folder.join("next").join(name);
            if next.is_file() {
                return next;
            }
        }
        assert!(path.is_file(), "HANDLESCOPE_DATA has no file {}", path.display());
        path
    }

    /// Unpacks the PDBs into a folder laid out like a symbol server, removed when dropped.
    ///
    /// # Panics
    /// If there are none, or they cannot be unpacked.
    #[must_use]
    pub fn pdbs(&self) -> TempDir {
        unpack(&self.file(".pdbs.7z"))
    }
}

/// Unpacks a `.7z` or `.zip` archive into a folder that is removed when dropped.
///
/// # Panics
/// If the archive cannot be read or the folder cannot be written.
#[must_use]
pub fn unpack(archive: &Path) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let result = if archive.extension().is_some_and(|ending| ending == "7z") {
        sevenz_rust::decompress_file(archive, folder.path()).map_err(|error| error.to_string())
    } else {
        unpack_zip(archive, folder.path()).map_err(|error| error.to_string())
    };
    if let Err(error) = result {
        panic!("{} cannot be unpacked: {error}", archive.display());
    }
    folder
}

fn unpack_zip(archive: &Path, folder: &Path) -> zip::result::ZipResult<()> {
    ZipArchive::new(File::open(archive)?)?.extract(folder)
}

fn only_etl(folder: &Path) -> PathBuf {
    let entries = fs::read_dir(folder).expect("the unpacked folder can be read");
    let mut traces = entries
        .map(|entry| entry.expect("the unpacked folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "etl"));
    match (traces.next(), traces.next()) {
        (Some(etl), None) => etl,
        _ => panic!("{} does not hold exactly one .etl file", folder.display()),
    }
}

/// Appends `ending` to the whole of `path`, which may contain dots of its own.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use handlescope_needs::needs_data;

    use super::*;

    #[needs_data]
    #[test]
    fn traces_are_unpacked_from_both_kinds_of_archives() {
        for name in ["synthetic/eventleak", "real/ShutdownPerfDiagLogger"] {
            let trace = SharedTrace::open(name);
            assert!(fs::metadata(trace.etl()).unwrap().len() > 100_000);
            assert!(trace.expected().is_file());
        }
    }

    #[needs_data]
    #[test]
    fn pdbs_are_unpacked_in_symbol_server_layout() {
        let trace = SharedTrace::open("synthetic/eventleak");
        assert!(trace.pdbs().path().join("ntdll.pdb").is_dir());
    }

    #[needs_data]
    #[test]
    #[should_panic(expected = "has no trace")]
    fn a_missing_trace_is_a_failure() {
        let _ = SharedTrace::open("synthetic/none.such");
    }

    #[needs_data]
    #[test]
    #[should_panic(expected = "has no file")]
    fn a_missing_file_is_a_failure() {
        let _ = SharedTrace::open("synthetic/eventleak").file(".none");
    }
}
