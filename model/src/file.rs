//! Opening what is to be read.

use std::fs::{self, File, FileType};
use std::io;
use std::path::Path;

/// Opens a file to read it. A pipe or device is refused before it is opened: opening it may wait for
/// ever, it has no size, and it cannot be read again.
///
/// # Errors
/// When it cannot be opened, or is none.
pub fn open_file(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    // A folder has its own message of the system.
    if kind.is_file() || kind.is_dir() {
        return File::open(path);
    }
    let reason = format!("it is {}, not a file; copy what it gives into a file", name(kind));
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

#[cfg(unix)]
fn name(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn name(_: FileType) -> &'static str {
    "a pipe or device"
}
