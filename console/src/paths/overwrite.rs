//! Which files an output may take the place of: the one check that everything goes through that writes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf, Prefix, absolute};

use handlescope_model::{Reason, Untrusted};
use thiserror::Error;

use super::{
    names::{EXTRACT_EXTENSION, TRACE_EXTENSIONS, has_extension, is_plain_extract},
    same::{SameTrace, is_same_file},
    written,
};

/// Bytes at the start of a file that show whether it is text.
const LOOKED_AT: u64 = 1 << 16;

/// The device that drops what is written to it; on Windows the whole path of `nul`, in any folder.
const NULL_DEVICE: &str = if cfg!(windows) { r"\\.\nul" } else { "/dev/null" };

/// Whether a path is that of the null device, which is written to and never replaced.
pub(crate) fn is_null_device(path: &Path) -> bool {
    absolute(path).is_ok_and(|whole| whole.as_os_str().eq_ignore_ascii_case(NULL_DEVICE))
}

/// Whether a whole path is that of a device of Windows, as `con`, which has no folder.
fn is_device(whole: &Path) -> bool {
    match whole.components().next() {
        Some(Component::Prefix(prefix)) => matches!(prefix.kind(), Prefix::DeviceNS(_)),
        _ => false,
    }
}

/// A file that no output may replace, or not without `-Force`.
#[derive(Debug, Error)]
pub enum OverwriteError {
    /// It is loaded.
    #[error(
        "{}: is the trace or extract that is queried, or the trace of it, and is never replaced; name \
         another file",
        Untrusted(.path)
    )]
    Source { path: PathBuf },
    /// Another program wrote it, or it was changed.
    #[error(
        "{}: exists and is not as handlescope wrote it; -Force replaces it, or name another file",
        Untrusted(.path)
    )]
    Exists { path: PathBuf },
    /// A folder, a device, or a link to nothing.
    #[error("{}: is not a regular file; name another one", Untrusted(.path))]
    NotAFile { path: PathBuf },
    /// `>>` after something else than text.
    #[error("{}: is not a text file, so nothing is appended; name another one after >>", Untrusted(.path))]
    NotText { path: PathBuf },
    /// Whether it exists cannot be found out.
    #[error("{}: cannot be checked: {}; name another file", Untrusted(.path), Reason(.source))]
    Unknown { path: PathBuf, source: io::Error },
}

/// What may be replaced: what this program wrote and what was not changed since; with `-Force` anything but the
/// traces and extracts that are asked.
#[derive(Debug, Default)]
pub struct Overwrite {
    force: bool,
    sources: Vec<PathBuf>,
    traces: Vec<SameTrace>,
}

/// A file that may be written.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    /// Whether no other program's content is in it when it is written.
    is_own: bool,
}

impl Overwrite {
    /// With or without `-Force`.
    pub(crate) fn new(force: bool) -> Overwrite {
        Overwrite { force, ..Overwrite::default() }
    }

    /// Protects a trace or extract, and what has its name beside it.
    pub(crate) fn protect(&mut self, source: &Path) {
        self.sources.push(source.to_path_buf());
        self.traces.push(SameTrace::of(source));
    }

    pub(crate) fn protect_file(&mut self, file: &Path) {
        self.sources.push(file.to_path_buf());
    }

    /// A file that is new, or may be replaced.
    ///
    /// # Errors
    /// When it may not.
    pub(crate) fn replacing(&self, path: &Path) -> Result<Output, OverwriteError> {
        let (whole, exists) = self.checked(path)?;
        if exists && !self.force && !written::is_unchanged(&whole) {
            return Err(OverwriteError::Exists { path: path.to_path_buf() });
        }
        Ok(Output { path: whole, is_own: true })
    }

    /// A file that is new, or text, or the null device.
    ///
    /// # Errors
    /// When it is a trace, an archive, an extract or no text at all.
    pub(crate) fn appending(&self, path: &Path) -> Result<Output, OverwriteError> {
        if is_null_device(path) {
            return Ok(Output { path: path.to_path_buf(), is_own: false });
        }
        let (whole, exists) = self.checked(path)?;
        if exists && (is_plain_extract(&whole) || !is_text(&whole)) {
            return Err(OverwriteError::NotText { path: path.to_path_buf() });
        }
        Ok(Output { is_own: !exists || written::is_unchanged(&whole), path: whole })
    }

    /// The whole path of a file, links resolved, and whether it exists.
    fn checked(&self, path: &Path) -> Result<(PathBuf, bool), OverwriteError> {
        let shown = || path.to_path_buf();
        let unknown = |source| OverwriteError::Unknown { path: shown(), source };
        let whole = absolute(path).map_err(unknown)?;
        match fs::metadata(&whole) {
            Ok(data) if data.is_file() => {
                let whole = whole.canonicalize().map_err(unknown)?;
                match self.is_source(&whole) {
                    true => Err(OverwriteError::Source { path: shown() }),
                    false => Ok((whole, true)),
                }
            }
            Err(_) if fs::symlink_metadata(&whole).is_err() && !is_device(&whole) => {
                Ok((whole, false))
            }
            _ => Err(OverwriteError::NotAFile { path: shown() }),
        }
    }

    fn is_source(&self, path: &Path) -> bool {
        let can_be_trace =
            has_extension(path, TRACE_EXTENSIONS) || has_extension(path, &[EXTRACT_EXTENSION]);
        self.sources.iter().any(|source| is_same_file(source, path))
            || (can_be_trace && self.traces.contains(&SameTrace::of(path)))
    }
}

impl Output {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Remembers what was written, so that it may be replaced.
    pub(crate) fn is_written(&self) {
        if self.is_own {
            written::remember(&self.path);
        }
    }
}

/// Whether a file starts like text: UTF-8 without zeros, as no trace and no archive does.
fn is_text(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut start));
    let is_utf8 = match std::str::from_utf8(&start) {
        Ok(_) => true,
        // The last character may be cut.
        Err(error) => error.error_len().is_none() && start.len() as u64 == LOOKED_AT,
    };
    read.is_ok() && is_utf8 && !start.contains(&0)
}
