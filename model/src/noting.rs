//! Recovers the operating system's error when a file is written through layers that reword or drop it, and puts errors
//! in plain words. Also shortens errors of polars to what users need.

use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind, Write};

use polars::prelude::PolarsError;

/// A writer that passes bytes on and remembers the error of the first failed write.
#[derive(Debug)]
pub struct Noting<W> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Noting<W> {
    pub fn new(out: W) -> Self {
        Self { out, failed: None }
    }

    /// Returns the error of the first failed write, if any.
    pub fn failed(self) -> Option<io::Error> {
        self.failed
    }

    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() != ErrorKind::Interrupted
            && self.failed.is_none()
        {
            self.failed = Some(plain(error));
        }
        result
    }
}

impl<W: Write> Write for Noting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.note(flushed)
    }
}

/// Returns the operating system's error without the name of a temporary file.
pub fn plain(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => error.kind().into(),
    }
}

/// Whether an error means that there is no space left.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}

/// Text that `tempfile` inserts before the name of a temporary file, which means nothing to users.
const AT_PATH: &str = " at path \"";

/// Text that the standard library appends to a message of the operating system.
const CODE: &str = " (os error ";

/// Why a file could not be opened, read or written: common errors in plain words, others in the words of the operating
/// system without its error number.
///
/// A message that a program itself wrote about a file stays as it is.
#[derive(Debug, Clone, Copy)]
pub struct Reason<'a>(pub &'a io::Error);

impl Display for Reason<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Reason(error) = *self;
        if error.get_ref().is_none() {
            return match words(error) {
                Some(words) => f.write_str(words),
                None => f.write_str(without_code(&error.to_string())),
            };
        }
        let text = error.to_string();
        match text.split_once(AT_PATH) {
            Some((text, _)) => f.write_str(words(error).unwrap_or_else(|| without_code(text))),
            None => write_without_codes(&text, f),
        }
    }
}

/// Returns a remedy for a file that cannot be written, to be put before other remedies.
pub fn remedy(error: &io::Error) -> &'static str {
    match error {
        error if is_full(error) => "free some space, or ",
        error if is_busy(error) => "close what has it open, or ",
        _ => "",
    }
}

/// Whether another program holds a file for itself.
fn is_busy(error: &io::Error) -> bool {
    // ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION and ERROR_USER_MAPPED_FILE.
    let is_locked = cfg!(windows) && matches!(error.raw_os_error(), Some(32 | 33 | 1224));
    is_locked || matches!(error.kind(), ErrorKind::ExecutableFileBusy | ErrorKind::ResourceBusy)
}

fn words(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        _ if is_busy(error) => "another program has it open",
        ErrorKind::NotFound => "file or folder not found",
        ErrorKind::PermissionDenied => "no permission",
        ErrorKind::StorageFull => "the disk is full",
        ErrorKind::QuotaExceeded => "the user's disk quota is used up",
        ErrorKind::FileTooLarge => "the file is too large for the file system",
        ErrorKind::ReadOnlyFilesystem => "the disk is read-only",
        ErrorKind::IsADirectory => "it is a folder",
        ErrorKind::NotADirectory => "a part of the path is not a folder",
        ErrorKind::AlreadyExists => "it already exists",
        ErrorKind::InvalidFilename => "the name is too long, or cannot be the name of a file",
        ErrorKind::UnexpectedEof => "it ends too early",
        _ => return None,
    })
}

/// Returns a message of the operating system without its number at the end.
fn without_code(text: &str) -> &str {
    text.split_once(CODE).map_or(text, |(message, _)| message)
}

/// Writes a message of a program without the error numbers in any system messages it quotes.
fn write_without_codes(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some((message, behind)) = rest.split_once(CODE) {
        f.write_str(message)?;
        rest = behind.split_once(')').map_or("", |(_, rest)| rest);
    }
    f.write_str(rest)
}

/// Why polars failed: a file error as in [`Reason`], any other error without the query plan.
#[derive(Debug, Clone, Copy)]
pub struct PolarsReason<'a>(pub &'a PolarsError);

impl Display for PolarsReason<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match innermost(self.0) {
            PolarsError::IO { error, msg: None } => Reason(error).fmt(f),
            _ => Reason(&io::Error::other(without_plan(&self.0.to_string()))).fmt(f),
        }
    }
}

/// Returns the error without the context that polars wraps around it.
#[must_use]
pub fn innermost(mut error: &PolarsError) -> &PolarsError {
    while let PolarsError::Context { error: inner, .. }
    | PolarsError::ExprContext { error: inner, .. } = error
    {
        error = inner;
    }
    error
}

/// Returns a message without the plan that polars appends, because its names are not those of the query.
#[must_use]
pub fn without_plan(message: &str) -> &str {
    message.split("\n\nResolved plan").next().unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::new(ErrorKind::StorageFull, "at path /tmp/x"))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_reason_is_known_whatever_is_said_about_it() {
        let mut out = Noting::new(Full);
        assert!(out.write_all(b"x").is_err());
        assert!(is_full(&out.failed().expect("noted")));
        assert!(Noting::new(Vec::new()).failed().is_none());
    }

    fn text(error: &io::Error) -> String {
        Reason(error).to_string()
    }

    #[test]
    fn common_errors_have_plain_words_and_never_a_number() {
        for (kind, expected) in [
            (ErrorKind::NotFound, "file or folder not found"),
            (ErrorKind::PermissionDenied, "no permission"),
            (ErrorKind::StorageFull, "the disk is full"),
            (ErrorKind::IsADirectory, "it is a folder"),
            (ErrorKind::ResourceBusy, "another program has it open"),
        ] {
            assert_eq!(text(&kind.into()), expected);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let missing = fs::File::open(folder.path().join("none")).expect_err("no file");
        assert_eq!(text(&missing), "file or folder not found");
        for code in 1..=150 {
            let text = text(&io::Error::from_raw_os_error(code));
            assert!(!text.contains("os error") && !text.is_empty(), "{code}: {text}");
        }
    }

    #[test]
    fn the_name_of_a_temporary_file_is_not_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = tempfile::tempfile_in(folder.path().join("none")).expect_err("no folder");
        assert_eq!(text(&error), "file or folder not found");
        let odd = io::Error::other(r#"Odd thing (os error 7) at path "/tmp/.tmpAbc""#);
        assert_eq!(text(&odd), "Odd thing");
    }

    #[test]
    fn the_words_of_a_program_about_a_file_stay() {
        let error = io::Error::new(ErrorKind::NotFound, "folder not found");
        assert_eq!(text(&error), "folder not found");
        let quoted =
            io::Error::other("no temporary file: Odd thing (os error 7), so it is given up");
        assert_eq!(text(&quoted), "no temporary file: Odd thing, so it is given up");
    }

    #[test]
    fn only_a_file_in_use_is_to_be_closed() {
        assert_eq!(remedy(&ErrorKind::StorageFull.into()), "free some space, or ");
        assert_eq!(remedy(&ErrorKind::ExecutableFileBusy.into()), "close what has it open, or ");
        assert_eq!(remedy(&ErrorKind::PermissionDenied.into()), "");
    }

    #[test]
    fn errors_of_files_have_plain_words_and_no_number() {
        let full = Arc::new(io::Error::from_raw_os_error(28));
        let inner = PolarsError::IO { error: full, msg: None };
        let error = PolarsError::Context { error: Box::new(inner), msg: "parquet".into() };
        assert_eq!(PolarsReason(&error).to_string(), "the disk is full");
        let quoted = PolarsError::ComputeError("no place (os error 28)\n\nResolved plan: x".into());
        assert_eq!(PolarsReason(&quoted).to_string(), "no place");
    }
}
