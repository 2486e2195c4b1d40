//! Checks which files an output may replace; every write goes through this. Also writes files whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Component, Path, PathBuf, Prefix, absolute};

use handlescope_model::output::existing_folder_of;
use handlescope_model::{Noting, OutputFile, Reason, Untrusted};
use thiserror::Error;

use super::{
    EXTRACT_EXTENSION, SameTrace, TRACE_EXTENSIONS, has_extension, is_plain_extract, is_same_file,
    written,
};
use crate::cancel::{Cancel, UntilCancelled};

/// Bytes at the start of a file that tell whether it is text.
const PREFIX_LENGTH: u64 = 1 << 16;

/// The device that discards output; on Windows, the full path of `nul`, which exists in any folder.
const NULL_DEVICE: &str = if cfg!(windows) { r"\\.\nul" } else { "/dev/null" };

/// Whether a path is the null device, which is written to and never replaced.
pub fn is_null_device(path: &Path) -> bool {
    absolute(path).is_ok_and(|full_path| full_path.as_os_str().eq_ignore_ascii_case(NULL_DEVICE))
}

/// Whether a full path is a Windows device such as `con`, which has no folder.
fn is_device(full_path: &Path) -> bool {
    match full_path.components().next() {
        Some(Component::Prefix(prefix)) => matches!(prefix.kind(), Prefix::DeviceNS(_)),
        _ => false,
    }
}

/// A file that no output may replace, or only with `-Force`.
#[derive(Debug, Error)]
pub enum OverwriteError {
    /// The file is loaded.
    #[error(
        "{}: is loaded, or the trace of a loaded extract, so it is never replaced; name another file",
        Untrusted(.path)
    )]
    Source { path: PathBuf },
    /// Another program wrote it, or it was changed.
    #[error(
        "{}: already exists and was not written by handlescope; use -Force to replace it, or name \
         another file",
        Untrusted(.path)
    )]
    Exists { path: PathBuf },
    /// A folder, a device, or a link to nothing.
    #[error("{}: is not a regular file; name another one", Untrusted(.path))]
    NotAFile { path: PathBuf },
    /// `>>` to something other than text.
    #[error("{}: is not a text file, so nothing is appended; name another one after >>", Untrusted(.path))]
    NotText { path: PathBuf },
    /// Cannot find out whether it exists.
    #[error("{}: cannot be checked: {}; name another file", Untrusted(.path), Reason(.source))]
    Unknown { path: PathBuf, source: io::Error },
}

/// Decides which files may be replaced: those this program wrote and nobody changed since. With `-Force`, any file
/// except the queried traces and extracts.
#[derive(Debug, Default)]
pub struct Overwrite {
    force: bool,
    sources: Vec<PathBuf>,
    traces: Vec<SameTrace>,
}

/// A file that may be written.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// Whether it will contain only what this program wrote.
    is_ours: bool,
}

impl Overwrite {
    /// Creates the check, with or without `-Force`.
    pub fn new(force: bool) -> Overwrite {
        Overwrite { force, ..Overwrite::default() }
    }

    /// Protects a trace or extract, and the files of the same name beside it.
    pub fn protect(&mut self, source: &Path) {
        self.sources.push(source.to_path_buf());
        self.traces.push(SameTrace::new(source));
    }

    pub fn protect_file(&mut self, file: &Path) {
        self.sources.push(file.to_path_buf());
    }

    /// Accepts a new file, or one that may be replaced.
    ///
    /// # Errors
    /// If it may not be replaced.
    pub fn replacing(&self, path: &Path) -> Result<Output, OverwriteError> {
        let (full_path, exists) = self.checked(path)?;
        if exists && !self.force && !written::is_unchanged(&full_path) {
            return Err(OverwriteError::Exists { path: path.to_path_buf() });
        }
        Ok(Output { path: full_path, is_ours: true })
    }

    /// Accepts a new file, a text file, or the null device.
    ///
    /// # Errors
    /// If it is a trace, an archive, an extract, or not text.
    pub fn appending(&self, path: &Path) -> Result<Output, OverwriteError> {
        if is_null_device(path) {
            return Ok(Output { path: path.to_path_buf(), is_ours: false });
        }
        let (full_path, exists) = self.checked(path)?;
        if exists && (is_plain_extract(&full_path) || !is_text(&full_path)) {
            return Err(OverwriteError::NotText { path: path.to_path_buf() });
        }
        Ok(Output { is_ours: !exists || written::is_unchanged(&full_path), path: full_path })
    }

    /// Returns the full path of a file, links resolved, and whether it exists.
    fn checked(&self, path: &Path) -> Result<(PathBuf, bool), OverwriteError> {
        let shown = || path.to_path_buf();
        let unknown = |source| OverwriteError::Unknown { path: shown(), source };
        let full_path = absolute(path).map_err(unknown)?;
        match fs::metadata(&full_path) {
            Ok(data) if data.is_file() => {
                let full_path = full_path.canonicalize().map_err(unknown)?;
                if self.is_source(&full_path) {
                    Err(OverwriteError::Source { path: shown() })
                } else {
                    Ok((full_path, true))
                }
            }
            Err(_) if fs::symlink_metadata(&full_path).is_err() && !is_device(&full_path) => {
                Ok((full_path, false))
            }
            _ => Err(OverwriteError::NotAFile { path: shown() }),
        }
    }

    fn is_source(&self, path: &Path) -> bool {
        let can_be_trace =
            has_extension(path, TRACE_EXTENSIONS) || has_extension(path, &[EXTRACT_EXTENSION]);
        self.sources.iter().any(|source| is_same_file(source, path))
            || (can_be_trace && self.traces.contains(&SameTrace::new(path)))
    }
}

impl Output {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Remembers that this program wrote the file, so that it may be replaced.
    pub fn remember(&self) {
        if self.is_ours {
            written::remember(&self.path);
        }
    }
}

/// Whether a file starts like text: UTF-8 without zeros, unlike any trace or archive.
fn is_text(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(PREFIX_LENGTH).read_to_end(&mut start));
    let is_utf8 = match std::str::from_utf8(&start) {
        Ok(_) => true,
        // The last character may be cut off.
        Err(error) => error.error_len().is_none() && start.len() as u64 == PREFIX_LENGTH,
    };
    read.is_ok() && is_utf8 && !start.contains(&0)
}

/// Writes a file that replaces an existing one only once it is complete.
///
/// # Errors
/// If it cannot be written, `content` fails, or `cancel` is set. Then an existing file stays as it was.
pub fn write_whole<E: From<io::Error>>(
    output: &Output,
    cancel: &Cancel,
    content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    Ok(write_aside(output, cancel, content)?.appear(output)?)
}

/// A complete file that is not yet renamed to its final name. Dropping it leaves nothing behind.
pub struct Aside(OutputFile);

/// Writes a file that will replace another one.
///
/// # Errors
/// If it cannot be written, `content` fails, or `cancel` is set.
pub fn write_aside<E: From<io::Error>>(
    output: &Output,
    cancel: &Cancel,
    content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<Aside, E> {
    let mut file = OutputFile::beside(output.path())?;
    let mut noting = Noting::new(&mut file);
    let mut out = BufWriter::new(UntilCancelled::new(&mut noting, cancel));
    let written = content(&mut out).and_then(|()| Ok(out.flush()?));
    drop(out);
    match written {
        Ok(()) => Ok(Aside(file)),
        // Encoders replace the error of a full disk by their own.
        Err(error) => Err(noting.failed().map_or(error, E::from)),
    }
}

impl Aside {
    /// Renames the file to its final name.
    ///
    /// # Errors
    /// If it cannot be renamed. Then an existing file stays as it was.
    pub fn appear(self, output: &Output) -> io::Result<()> {
        self.0.persist(output.path())?;
        output.remember();
        Ok(())
    }
}

/// Appends to a file in one write, so that nothing others write is lost or gets in between.
///
/// # Errors
/// If the file cannot be written, `content` fails, or `cancel` is set. In the last two cases the file stays as it was.
pub fn append_whole(
    output: &Output,
    cancel: &Cancel,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let open = |create| File::options().append(true).create(create).open(output.path());
    // A file that is not writable is refused before the work starts; a missing one is created after it.
    let existing = match open(false) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            existing_folder_of(output.path())?;
            None
        }
        opened => Some(opened?),
    };
    let mut bytes = Vec::new();
    let mut out = UntilCancelled::new(&mut bytes, cancel);
    content(&mut out).and_then(|()| out.flush())?;
    let mut file = existing.map_or_else(|| open(true), Ok)?;
    file.write_all(&bytes)?;
    output.remember();
    Ok(())
}
