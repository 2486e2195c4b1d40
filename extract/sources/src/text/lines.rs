//! Reads a text line by line in limited memory, and reports progress and cancellation.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};

use handlescope_extract::ExtractObserver;
use handlescope_model::Cancel;

/// Longest line that is read, in bytes; the rest of a longer one is skipped.
const LINE_BYTES: usize = 64 << 10;

/// A line of a text.
pub struct TextLine<'a> {
    /// The text without its line end. Invalid UTF-8 is U+FFFD.
    pub text: Cow<'a, str>,
    /// Line number, from 1.
    pub number: u64,
    /// Whether it has a line end. Otherwise the text may be cut off there.
    pub is_ended: bool,
    /// Whether the rest of it was skipped because it is too long.
    pub is_long: bool,
}

/// Reads lines ending in LF or CR LF.
pub struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

impl<R: Read> Lines<R> {
    pub fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new(), number: 0 }
    }

    /// Returns the next line and its size in bytes with the line end; `None` at the end.
    ///
    /// # Errors
    /// If the text cannot be read.
    pub fn next(&mut self) -> io::Result<Option<(TextLine<'_>, u64)>> {
        let Self { reader, line, number } = self;
        line.clear();
        let mut bytes = reader.by_ref().take(LINE_BYTES as u64).read_until(b'\n', line)? as u64;
        if bytes == 0 {
            return Ok(None);
        }
        *number += 1;
        let mut is_ended = line.last() == Some(&b'\n');
        let is_long = !is_ended && line.len() == LINE_BYTES;
        if is_long {
            let rest;
            (rest, is_ended) = skip_line(reader)?;
            bytes += rest;
        }
        while line.last().is_some_and(|byte| b"\r\n".contains(byte)) {
            line.pop();
        }
        let text = String::from_utf8_lossy(line);
        Ok(Some((TextLine { text, number: *number, is_ended, is_long }, bytes)))
    }
}

/// Skips the rest of a line; returns its size in bytes, and whether it has a line end.
fn skip_line(reader: &mut impl BufRead) -> io::Result<(u64, bool)> {
    let mut skipped = 0;
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok((skipped, false));
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(bytes.len(), |end| end + 1);
        reader.consume(used);
        skipped += used as u64;
        if end.is_some() {
            return Ok((skipped, true));
        }
    }
}

/// Reports to the observer how many bytes were read.
pub struct ReadProgress<'a> {
    observer: &'a dyn ExtractObserver,
    pub cancel: &'a Cancel,
    passed: Cell<u64>,
    /// Number of invalid characters replaced by U+FFFD.
    pub replaced: Cell<u64>,
}

impl<'a> ReadProgress<'a> {
    pub fn new(observer: &'a dyn ExtractObserver, cancel: &'a Cancel) -> Self {
        Self { observer, cancel, passed: Cell::new(0), replaced: Cell::new(0) }
    }

    pub fn add(&self, bytes: u64) {
        let passed = self.passed.get() + bytes;
        self.passed.set(passed);
        self.observer.on_progress(passed);
    }

    pub fn check(&self) -> io::Result<()> {
        self.cancel.check().map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns text, number, whether it has a line end and whether it is too long, for each line.
    fn read(bytes: &[u8]) -> Vec<(String, u64, bool, bool)> {
        let mut lines = Lines::new(bytes);
        let (mut rows, mut total) = (Vec::new(), 0);
        while let Some((line, bytes)) = lines.next().unwrap() {
            rows.push((line.text.into_owned(), line.number, line.is_ended, line.is_long));
            total += bytes;
        }
        assert_eq!(total, bytes.len() as u64);
        rows
    }

    #[test]
    fn lines_end_in_lf_or_cr_lf_or_at_the_end_of_the_text() {
        let line = |text: &str, number, is_ended| (text.to_owned(), number, is_ended, false);
        assert_eq!(
            read(b"a\r\n\nb\xFF\nc"),
            [
                line("a", 1, true),
                line("", 2, true),
                line("b\u{FFFD}", 3, true),
                line("c", 4, false)
            ]
        );
        assert!(read(b"").is_empty());
    }

    #[test]
    fn the_rest_of_a_long_line_is_passed_over() {
        let text = format!("{}\nb", "a".repeat(3 * LINE_BYTES));
        let lines = read(text.as_bytes());
        assert_eq!(lines[0].0.len(), LINE_BYTES);
        assert_eq!((lines[0].2, lines[0].3), (true, true));
        assert_eq!(lines[1], ("b".to_owned(), 2, false, false));
        assert!(!read("a".repeat(3 * LINE_BYTES).as_bytes())[0].2, "cut");
    }
}
