//! Files that programs and people read later.

use std::{
    fs::File,
    io::{self, BufWriter, ErrorKind, Write},
    path::Path,
};

use handlescope_model::OutputFile;

/// Writes a file that takes the place of another one only when it is complete.
///
/// # Errors
/// When it cannot be written, or `content` fails. Then an existing file stays as it was.
pub(crate) fn write_whole<E: From<io::Error>>(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut file = OutputFile::beside(path)?;
    let mut out = BufWriter::new(&mut file);
    content(&mut out)?;
    out.flush()?;
    drop(out);
    Ok(file.persist(path)?)
}

/// Writes behind what a file holds, if there is one; otherwise as [`write_whole`].
///
/// # Errors
/// As [`write_whole`], and when the file cannot be read.
pub(crate) fn append_whole(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    write_whole(path, |out| {
        match File::open(path) {
            Ok(mut file) => io::copy(&mut file, out).map(drop)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        content(out)
    })
}
