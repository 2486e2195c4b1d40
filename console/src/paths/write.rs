//! Files that programs and people read later.

use std::{
    fs::File,
    io::{self, BufWriter, ErrorKind, Write},
};

use handlescope_model::{Noting, OutputFile, output::existing_folder_of};

use super::overwrite::Output;
use crate::cancel::{Cancel, UntilCancelled};

/// Writes a file that takes the place of another one only when it is complete.
///
/// # Errors
/// When it cannot be written, `content` fails, or `cancel` asks to stop. Then an existing file stays as it was.
pub(crate) fn write_whole<E: From<io::Error>>(
    output: &Output,
    cancel: &Cancel,
    content: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    Ok(write_aside(output, cancel, content)?.appear(output)?)
}

/// A complete file that does not have its name yet. Dropping it leaves nothing.
pub(crate) struct Aside(OutputFile);

/// Writes a file that will take the place of another one.
///
/// # Errors
/// When it cannot be written, `content` fails, or `cancel` asks to stop.
pub(crate) fn write_aside<E: From<io::Error>>(
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
        // Encoders say of a full disk what they like.
        Err(error) => Err(noting.failed().map_or(error, E::from)),
    }
}

impl Aside {
    /// Gives the file its name.
    ///
    /// # Errors
    /// When it cannot be renamed. Then an existing file stays as it was.
    pub(crate) fn appear(self, output: &Output) -> io::Result<()> {
        self.0.persist(output.path())?;
        output.is_written();
        Ok(())
    }
}

/// Writes after what a file holds, by one write, so that nothing of others is lost or comes between.
///
/// # Errors
/// When the file cannot be written, `content` fails, or `cancel` asks to stop. In the last two cases the file stays as
/// it was.
pub(crate) fn append_whole(
    output: &Output,
    cancel: &Cancel,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let open = |create| File::options().append(true).create(create).open(output.path());
    // A file that may not be written is refused before the work; one that is not there is made after it.
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
    output.is_written();
    Ok(())
}
