//! Opening files for reading.

use std::fs::{self, File, FileType, ReadDir};
use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// Inspects a file that was opened, and the path used to open it.
type Inspection = Box<dyn Fn(&Path, &File) -> io::Result<()> + Send + Sync>;

static INSPECTION: OnceLock<Inspection> = OnceLock::new();

/// Has every file inspected from now on once it is open, because a name may come to lead elsewhere between its check
/// and its opening. Only the first call in a program counts.
pub fn inspect_opened(inspection: Inspection) {
    let _ = INSPECTION.set(inspection);
}

/// Opens a file for reading. Refuses a pipe or device before opening it: opening it may wait forever, it has no size,
/// and it cannot be read twice.
///
/// # Errors
/// If it cannot be opened, is not a file, or does not pass [`inspect_opened`].
pub fn open_file(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    // For a folder the system has its own message.
    if kind.is_file() || kind.is_dir() {
        let file = File::open(path)?;
        return INSPECTION.get().map_or(Ok(()), |inspect| inspect(path, &file)).map(|()| file);
    }
    let reason = format!("it is {}, not a file; copy its content into a file", name(kind));
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

/// Lists what is in a folder.
///
/// # Errors
/// When it cannot be listed, or does not pass [`inspect_opened`].
pub fn read_folder(path: &Path) -> io::Result<ReadDir> {
    if let Some(inspect) = INSPECTION.get() {
        inspect(path, &open_folder(path)?)?;
    }
    fs::read_dir(path)
}

#[cfg(not(windows))]
fn open_folder(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(windows)]
fn open_folder(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    /// Without it, Windows opens no folder.
    const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
    File::options().read(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)
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
