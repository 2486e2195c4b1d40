//! Files that programs and people read later.

use std::{
    fs::File,
    io::{self, BufWriter, ErrorKind, Write},
    path::Path,
};

use handlescope_model::Noting;
use tempfile::NamedTempFile;

use super::overwrite::Output;

/// Writes a file that takes the place of another one only when it is complete.
///
/// # Errors
/// When it cannot be written, or `content` fails. Then an existing file stays as it was.
pub(crate) fn write_whole<E: From<io::Error>>(
    output: &Output,
    content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let path = output.path();
    let mut file = temporary_beside(path)?;
    let mut noting = Noting::new(file.as_file_mut());
    let mut out = BufWriter::new(&mut noting);
    let written = content(&mut out).and_then(|()| Ok(out.flush()?));
    drop(out);
    if let Err(error) = written {
        // Encoders say of a full disk what they like.
        return Err(noting.failed().map_or(error, E::from));
    }
    file.persist(path).map_err(io::Error::from)?;
    output.is_written();
    Ok(())
}

/// Writes behind what a file holds, if there is one; otherwise as [`write_whole`].
///
/// # Errors
/// As [`write_whole`], and when the file cannot be read.
pub(crate) fn append_whole(
    output: &Output,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    write_whole(output, |out| {
        match File::open(output.path()) {
            Ok(mut file) => io::copy(&mut file, out).map(drop)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        content(out)
    })
}

/// A file in the same folder, so that it only needs a new name in the end.
fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".handlescope-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As readable as any other new file, instead of private.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(io::Error::new(ErrorKind::NotFound, "folder not found"));
    }
    builder.tempfile_in(folder)
}
