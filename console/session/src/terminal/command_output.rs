//! Output of the results of one command.

use std::io::{self, Write};

use crate::cancel::{Cancel, Cancelled};
use crate::terminal::Spinner;

/// Standard output during one command. The spinner disappears before the first result. After Ctrl-C only the rest of
/// the current line is written, and not even that if it is long.
pub struct CommandOutput<'a> {
    out: &'a mut dyn Write,
    cancel: &'a Cancel,
    spinner: Spinner,
    is_inside_line: bool,
    /// Bytes that may still be written after Ctrl-C.
    rest: usize,
}

/// The most that is written of a line after Ctrl-C; a document may be a single line of megabytes.
const MAX_REST_LENGTH: usize = 1 << 16;

impl<'a> CommandOutput<'a> {
    /// Writes to `out` until `cancel` is set.
    pub fn new(out: &'a mut dyn Write, cancel: &'a Cancel, spinner: Spinner) -> CommandOutput<'a> {
        CommandOutput { out, cancel, spinner, is_inside_line: false, rest: MAX_REST_LENGTH }
    }

    /// Returns the part of `bytes` that may still be written.
    fn allowed<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Cancelled> {
        if !self.cancel.is_cancelled() {
            return Ok(bytes);
        }
        if !self.is_inside_line || self.rest == 0 {
            return Err(Cancelled);
        }
        let line = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.get(..self.rest).unwrap_or(line);
        self.rest -= line.len();
        Ok(line)
    }
}

impl Write for CommandOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.spinner.stop();
        // Not ErrorKind::Interrupted, because writers retry that.
        let allowed = self.allowed(bytes).map_err(io::Error::other)?;
        let written = self.out.write(allowed)?;
        if let Some(last) = allowed.get(..written).and_then(<[u8]>::last) {
            self.is_inside_line = *last != b'\n';
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.spinner.stop();
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_output_ends_with_the_line() {
        let (mut out, cancel) = (Vec::new(), Cancel::default());
        let mut output = CommandOutput::new(&mut out, &cancel, Spinner::default());
        output.write_all(b"one\ntw").expect("not cancelled yet");
        cancel.cancel();
        let error = output.write_all(b"o\nthree\n").expect_err("cancelled");
        assert_ne!(error.kind(), io::ErrorKind::Interrupted);
        assert!(output.write_all(b"four").is_err());
        assert_eq!(String::from_utf8_lossy(&out), "one\ntwo\n");
    }

    #[test]
    fn a_cancelled_document_of_one_long_line_is_cut() {
        let (mut out, cancel) = (Vec::new(), Cancel::default());
        let mut output = CommandOutput::new(&mut out, &cancel, Spinner::default());
        output.write_all(b"[").expect("not cancelled yet");
        cancel.cancel();
        assert!((0..MAX_REST_LENGTH).any(|_| output.write_all(b"1234,").is_err()));
    }
}
