//! Reads texts of other programs as UTF-8, from UTF-8 or UTF-16 with or without byte order mark, and reports progress.

mod lines;
mod page;
mod tidy;

use std::fs::File;
use std::io;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use handlescope_extract::etl::Diagnostics;
use handlescope_extract::{ExtractError, ExtractObserver, ExtractSummary, SourceIdentity};
use handlescope_model::tables::{TraceInfo, Warning};
use handlescope_model::{Cancel, open_file};

pub use self::lines::{Lines, ReadProgress, TextLine};
pub use self::tidy::{tidy, without_marks};
use crate::operations::OperationTables;

/// Bytes of UTF-16 translated at once.
const CHUNK: usize = 32 << 10;

/// Number of bytes examined to recognize UTF-16 without byte order mark.
const START: u64 = 64;

/// Lines between two checks for cancellation.
const LINES_PER_CHECK: u64 = 1 << 10;

/// Tags of a web page are looked for in this many bytes at the start of a text.
const PAGE_START: u64 = 4 << 10;

/// Whether a file that starts like this may be a text that [`utf8`] reads, or one in a single-byte code page: no
/// control characters except line breaks and terminal codes.
pub fn may_be_text(start: &[u8]) -> bool {
    start.starts_with(b"\xFF\xFE")
        || start.starts_with(b"\xFE\xFF")
        || utf16_order(start).is_some()
        || !start
            .iter()
            .any(|byte| byte.is_ascii_control() && !b"\t\r\n\x0C\x07\x08\x1B".contains(byte))
}

/// Whether a text is big-endian UTF-16 without byte order mark, or little-endian; `None` for other encodings. Only
/// texts that start with ASCII are recognized.
fn utf16_order(start: &[u8]) -> Option<bool> {
    let units = start.get(..start.len().min(START as usize))?.chunks_exact(2);
    let is = |high: usize| {
        units.len() > 1
            && units
                .clone()
                .all(|unit| unit.get(high) == Some(&0) && unit.get(1 - high) != Some(&0))
    };
    if is(1) { Some(false) } else { is(0).then_some(true) }
}

/// Returns the content of a file as UTF-8 without byte order mark.
pub fn utf8<'a>(mut file: File, progress: Rc<ReadProgress<'a>>) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    (&mut file).take(START).read_to_end(&mut start)?;
    let (mark, big_endian) = match start.as_slice() {
        [0xEF, 0xBB, 0xBF, ..] => (3, None),
        [0xFF, 0xFE, ..] => (2, Some(false)),
        [0xFE, 0xFF, ..] => (2, Some(true)),
        _ => (0, utf16_order(&start)),
    };
    file.seek(SeekFrom::Start(mark))?;
    Ok(match big_endian {
        None => Box::new(file),
        Some(big_endian) => Box::new(Utf16 {
            inner: file,
            progress,
            big_endian,
            rest: Vec::new(),
            text: Vec::new(),
            position: 0,
        }),
    })
}

/// Returns the lines of a file, or of its text if it is a web page.
pub fn lines<'a>(
    file: File,
    progress: &Rc<ReadProgress<'a>>,
) -> io::Result<Lines<Box<dyn Read + 'a>>> {
    let mut text = utf8(file, Rc::clone(progress))?;
    let mut start = Vec::new();
    text.by_ref().take(PAGE_START).read_to_end(&mut start)?;
    let is_page = page::is_page(&start);
    let text = io::Cursor::new(start).chain(text);
    Ok(Lines::new(if is_page { Box::new(page::PageText::new(text)) } else { Box::new(text) }))
}

/// A text to extract.
pub struct TextFile<'f> {
    pub path: &'f Path,
    pub observer: &'f dyn ExtractObserver,
    pub cancel: &'f Cancel,
}

impl<'f> TextFile<'f> {
    /// Writes the archive `output`, whose folder must exist. `read` reads the lines, and `tables` makes tables from its
    /// result and the information about the source.
    ///
    /// # Errors
    /// If the text cannot be read or changed meanwhile, the archive cannot be written, or cancellation was requested.
    pub fn extract<T>(
        self,
        output: &Path,
        read: impl FnOnce(Lines<Box<dyn Read + 'f>>, &ReadProgress<'f>) -> io::Result<T>,
        tables: impl FnOnce(T, TraceInfo) -> Result<OperationTables, ExtractError>,
    ) -> Result<ExtractSummary, ExtractError> {
        let begin = Instant::now();
        let TextFile { path, observer, cancel } = self;
        let identity = SourceIdentity::new(path).map_err(|source| opened(path, source))?;
        observer.on_started(identity.size);
        let progress = Rc::new(ReadProgress::new(observer, cancel));
        let file = open_file(path).map_err(|source| opened(path, source))?;
        let found = lines(file, &progress).and_then(|lines| read(lines, &progress));
        let found = found.map_err(|source| unreadable(path, source, cancel))?;
        if SourceIdentity::new(path).map_err(|source| opened(path, source))? != identity {
            return Err(ExtractError::Changed { path: path.to_path_buf() });
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let tables = tables(found, identity.trace_info(path, &name))?;
        let summary = tables.save(output, observer, cancel)?;
        Ok(ExtractSummary { elapsed: begin.elapsed(), ..summary })
    }
}

/// Reads all lines, and reports progress.
pub fn each_line(
    mut lines: Lines<impl Read>,
    progress: &ReadProgress<'_>,
    mut read: impl FnMut(&TextLine<'_>),
) -> io::Result<()> {
    let mut bytes = 0;
    while let Some((line, length)) = lines.next()? {
        read(&line);
        bytes += length;
        if line.number.is_multiple_of(LINES_PER_CHECK) {
            progress.check()?;
            progress.add(std::mem::take(&mut bytes));
        }
    }
    progress.add(bytes);
    Ok(())
}

/// Returns the error for a text that cannot be opened.
pub fn opened(path: &Path, source: io::Error) -> ExtractError {
    ExtractError::Open { path: path.to_path_buf(), source }
}

/// Returns the error for a text that could not be read completely.
pub fn unreadable(path: &Path, source: io::Error, cancel: &Cancel) -> ExtractError {
    match cancel.check() {
        Err(cancelled) => ExtractError::Cancelled(cancelled),
        Ok(()) => ExtractError::Read { path: path.to_path_buf(), source },
    }
}

/// Returns the findings with line numbers, which they have in place of offsets.
pub fn line_warnings(findings: &Diagnostics) -> Vec<Warning> {
    findings
        .warnings()
        .into_iter()
        .map(|warning| Warning { first_line: warning.first_offset, first_offset: None, ..warning })
        .collect()
}

/// Translates UTF-16. Invalid characters become U+FFFD, and are counted.
struct Utf16<'a, R> {
    inner: R,
    progress: Rc<ReadProgress<'a>>,
    big_endian: bool,
    /// Bytes read that do not make a complete character yet.
    rest: Vec<u8>,
    /// Translated text, and how many of its bytes were handed out.
    text: Vec<u8>,
    position: usize,
}

impl<R: Read> Read for Utf16<'_, R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        while self.position == self.text.len() {
            if !self.translate()? {
                return Ok(0);
            }
        }
        let source = self.text.get(self.position..).unwrap_or_default();
        let count = source.len().min(target.len());
        if let (Some(target), Some(source)) = (target.get_mut(..count), source.get(..count)) {
            target.copy_from_slice(source);
        }
        self.position += count;
        Ok(count)
    }
}

impl<R: Read> Utf16<'_, R> {
    /// Translates the next bytes; false at the end.
    fn translate(&mut self) -> io::Result<bool> {
        let before = self.rest.len();
        (&mut self.inner).take(CHUNK as u64).read_to_end(&mut self.rest)?;
        if self.rest.is_empty() {
            return Ok(false);
        }
        let is_end = self.rest.len() == before;
        let unit = |pair: &[u8]| match *pair {
            [a, b] if self.big_endian => u16::from_be_bytes([a, b]),
            [a, b] => u16::from_le_bytes([a, b]),
            _ => 0,
        };
        let mut units: Vec<u16> = self.rest.chunks_exact(2).map(unit).collect();
        let mut used = units.len() * 2;
        // The first half of a pair waits for the second.
        if !is_end && units.last().is_some_and(|unit| (0xD800..0xDC00).contains(unit)) {
            units.pop();
            used -= 2;
        }
        let text: String = char::decode_utf16(units)
            .map(|unit| {
                unit.unwrap_or_else(|_| {
                    self.progress.replaced.set(self.progress.replaced.get() + 1);
                    char::REPLACEMENT_CHARACTER
                })
            })
            .collect();
        if is_end {
            self.rest.clear();
        } else {
            self.rest.drain(..used);
        }
        self.text = text.into_bytes();
        self.position = 0;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use handlescope_model::Cancel;

    use super::*;
    use handlescope_extract::NoObserver;

    fn read(bytes: &[u8]) -> String {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let mut text = String::new();
        let cancel = Cancel::default();
        let progress = Rc::new(ReadProgress::new(&NoObserver, &cancel));
        utf8(file, progress).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn byte_order_marks_are_left_out() {
        assert_eq!(read(b"\xEF\xBB\xBF{}"), "{}");
        assert_eq!(read(b"{}"), "{}");
        assert_eq!(read(b""), "");
    }

    #[test]
    fn utf16_of_either_order_is_translated_also_across_chunks() {
        let text = "ä𝄞".repeat(20_000);
        let units = || std::iter::once(0xFEFF).chain(text.encode_utf16());
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        assert_eq!(read(&little), text);
        assert_eq!(read(&big), text);
    }

    #[test]
    fn utf16_is_recognized_without_a_byte_order_mark() {
        let text = "0:000> !htrace";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [&little, &big] {
            assert!(may_be_text(bytes));
            assert_eq!(read(bytes), text);
        }
        assert!(may_be_text(b"a \x96 b"), "a code page");
        for binary in [&b"\0\0\x01\0\x90\0\0\0"[..], b"PK\x03\x04", b"7z\xBC\xAF\x27\x1C"] {
            assert!(!may_be_text(binary), "{binary:?}");
        }
    }

    #[test]
    fn half_a_pair_and_half_a_unit_are_no_panic() {
        assert_eq!(read(b"\xFF\xFE\x61\x00\x00\xD8"), "a\u{FFFD}");
        assert_eq!(read(b"\xFF\xFE\x61\x00\x62"), "a");
    }
}
