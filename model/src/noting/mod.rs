//! Errors of a file that is written through layers that report them in other words, or not at all.

mod polars_reason;
mod reason;

use std::io::{self, ErrorKind, Write};

pub use self::polars_reason::{PolarsReason, innermost, without_plan};
pub use self::reason::{Reason, remedy};

/// Passes bytes on, and remembers why the first write failed that did.
#[derive(Debug)]
pub struct Noting<W> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Noting<W> {
    pub fn new(out: W) -> Self {
        Self { out, failed: None }
    }

    /// Why a write failed, if one did.
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

/// What the operating system said, without the name of a temporary file.
pub(crate) fn plain(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => error.kind().into(),
    }
}

/// Whether an error says that there is no space left.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}

#[cfg(test)]
mod tests {
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
}
