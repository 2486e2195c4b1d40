//! Reads a member of an extract as a stream.
//!
//! On the way to the parser, the JSON is repaired where other programs wrote names that are not text: invalid UTF-8, or
//! halves of surrogate pairs. Input that would be too expensive to parse is rejected.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::de::DeserializeSeed;
use serde_json::error::Category;

use super::super::record::{Fill, Record, TOO_MUCH};
use super::error::{ImportError, ImportLimits};
use crate::text::{ReadProgress, utf8};

/// Bytes read at once.
const BUFFER: usize = 128 << 10;

/// Longest text about an error, because the parser quotes what it did not expect.
const MAX_REASON_LENGTH: usize = 200;

/// A member in a file: of the plain form, or an unnamed temporary file.
pub struct Document {
    /// The extract it belongs to.
    pub path: PathBuf,
    pub member: String,
    pub file: File,
}

impl Document {
    /// Reads the document into a record; if the document is `null`, the record stays unchanged.
    pub fn read(
        self,
        record: &mut impl Record,
        limits: ImportLimits,
        progress: &Rc<ReadProgress<'_>>,
    ) -> Result<(), ImportError> {
        let Self { path, member, file } = self;
        let text = utf8(file, Rc::clone(progress)).map_err(|source| ImportError::Read {
            path: path.clone(),
            member: member.clone(),
            reason: source.to_string(),
        })?;
        let text = Repair::new(text, Rc::clone(progress));
        let guard = Guard::new(text, limits, Rc::clone(progress));
        let mut json =
            serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER, guard));
        let result = Fill(record).deserialize(&mut json).and_then(|()| json.end());
        result.map_err(|error| match progress.cancel.check() {
            Ok(()) => parse_error(&path, member, &error),
            Err(cancelled) => cancelled.into(),
        })
    }
}

/// Converts an error of the JSON parser.
fn parse_error(path: &Path, member: String, error: &serde_json::Error) -> ImportError {
    let path = path.to_path_buf();
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let position = format!(" at line {line} column {column}");
    let reason: String =
        text.strip_suffix(&position).unwrap_or(&text).chars().take(MAX_REASON_LENGTH).collect();
    match error.classify() {
        Category::Data if reason == TOO_MUCH => ImportError::TooMuch { path, member },
        Category::Io => ImportError::Read { path, member, reason },
        _ => ImportError::Json { path, member, line, column, reason },
    }
}

/// Passes bytes on. Fails if a string is too long, nesting is too deep, or the import is cancelled.
///
/// The parser limits neither what it skips nor the length of strings, so this checks all bytes alike.
pub struct Guard<'a, R> {
    inner: R,
    limits: ImportLimits,
    progress: Rc<ReadProgress<'a>>,
    position: TextPosition,
    depth: u32,
    passed: u64,
}

/// Where the reader is in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextPosition {
    Outside,
    /// In a string; the number of its bytes so far.
    String(u64),
    /// In a string, after a backslash.
    Escape(u64),
}

impl<'a, R: Read> Guard<'a, R> {
    pub fn new(inner: R, limits: ImportLimits, progress: Rc<ReadProgress<'a>>) -> Self {
        Self { inner, limits, progress, position: TextPosition::Outside, depth: 0, passed: 0 }
    }

    fn look(&mut self, bytes: &[u8]) -> io::Result<()> {
        for (byte, at) in bytes.iter().zip(self.passed..) {
            self.position = match (self.position, byte) {
                (TextPosition::Outside, b'"') => TextPosition::String(0),
                (TextPosition::Outside, b'{' | b'[') => {
                    self.depth += 1;
                    if self.depth > self.limits.depth {
                        let depth = self.limits.depth;
                        return Err(refused(&format!("nested deeper than {depth} levels"), at));
                    }
                    TextPosition::Outside
                }
                (TextPosition::Outside, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    TextPosition::Outside
                }
                (TextPosition::Outside, _) | (TextPosition::String(_), b'"') => {
                    TextPosition::Outside
                }
                (TextPosition::String(length), b'\\') => TextPosition::Escape(length + 1),
                (TextPosition::String(length) | TextPosition::Escape(length), _) => {
                    if length >= self.limits.string_bytes {
                        let limit = self.limits.string_bytes;
                        return Err(refused(&format!("a string of more than {limit} bytes"), at));
                    }
                    TextPosition::String(length + 1)
                }
            };
        }
        self.passed += bytes.len() as u64;
        Ok(())
    }
}

impl<R: Read> Read for Guard<'_, R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        self.progress.check()?;
        let count = self.inner.read(target)?;
        if let Some(bytes) = target.get(..count) {
            self.look(bytes)?;
        }
        self.progress.add(count as u64);
        Ok(count)
    }
}

fn refused(reason: &str, at: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{reason}, at byte {at}"))
}

/// Bytes read at once.
const CHUNK: usize = 32 << 10;

/// Replaces half a surrogate pair; has the same length.
const ESCAPED: &[u8] = b"\\uFFFD";

/// Most bytes examined in one step, so that many steps do not examine the same bytes repeatedly.
const MAX_PIECE: usize = 256;

/// Length of `\uD800` in bytes.
const ESCAPE: usize = 6;

/// Passes UTF-8 on, with invalid characters replaced by U+FFFD and counted.
pub struct Repair<'a, R> {
    inner: R,
    progress: Rc<ReadProgress<'a>>,
    /// Bytes read but not yet examined.
    rest: Vec<u8>,
    /// Repaired text, and how many of its bytes were handed out.
    text: Vec<u8>,
    position: usize,
}

/// What the next bytes are.
enum NextToken {
    /// This many bytes of valid text.
    Text(usize),
    /// This many invalid bytes, and their replacement.
    Broken(usize, &'static [u8]),
    /// The start of a character or an escape.
    Unfinished,
}

impl<'a, R: Read> Repair<'a, R> {
    pub fn new(inner: R, progress: Rc<ReadProgress<'a>>) -> Self {
        Self { inner, progress, rest: Vec::new(), text: Vec::new(), position: 0 }
    }

    /// Reads and repairs the next bytes; false at the end.
    fn look(&mut self) -> io::Result<bool> {
        let before = self.rest.len();
        (&mut self.inner).take(CHUNK as u64).read_to_end(&mut self.rest)?;
        let is_end = self.rest.len() == before;
        (self.position, self.text) = (0, Vec::with_capacity(self.rest.len()));
        let mut at = 0;
        while let Some(bytes) = self.rest.get(at..).filter(|bytes| !bytes.is_empty()) {
            let peeked = match peek(bytes) {
                NextToken::Unfinished if !is_end => break,
                // The parser reports what is missing.
                NextToken::Unfinished if bytes.starts_with(b"\\") => NextToken::Text(bytes.len()),
                NextToken::Unfinished => NextToken::Broken(bytes.len(), "\u{FFFD}".as_bytes()),
                peeked => peeked,
            };
            let (length, shown) = match peeked {
                NextToken::Broken(length, instead) => {
                    self.progress.replaced.set(self.progress.replaced.get() + 1);
                    (length, instead)
                }
                NextToken::Text(length) => (length, bytes.get(..length).unwrap_or_default()),
                NextToken::Unfinished => break,
            };
            self.text.extend_from_slice(shown);
            at += length;
        }
        self.rest.drain(..at);
        Ok(!is_end || !self.text.is_empty())
    }
}

impl<R: Read> Read for Repair<'_, R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        while self.position == self.text.len() {
            if !self.look()? {
                return Ok(0);
            }
        }
        let mut source = self.text.get(self.position..).unwrap_or_default();
        let count = source.read(target)?;
        self.position += count;
        Ok(count)
    }
}

fn peek(bytes: &[u8]) -> NextToken {
    let near = bytes.get(..MAX_PIECE).unwrap_or(bytes);
    match near.iter().position(|byte| *byte == b'\\') {
        Some(0) => escape(bytes),
        Some(before) => text(near.get(..before).unwrap_or_default(), true),
        None => text(near, false),
    }
}

/// Examines text without escapes; `whole` if something else follows it.
fn text(bytes: &[u8], whole: bool) -> NextToken {
    let Err(error) = std::str::from_utf8(bytes) else { return NextToken::Text(bytes.len()) };
    match (error.valid_up_to(), error.error_len()) {
        (0, Some(length)) => NextToken::Broken(length, "\u{FFFD}".as_bytes()),
        (0, None) if whole => NextToken::Broken(bytes.len(), "\u{FFFD}".as_bytes()),
        (0, None) => NextToken::Unfinished,
        (valid, _) => NextToken::Text(valid),
    }
}

/// Examines an escape sequence, which starts with a backslash.
fn escape(bytes: &[u8]) -> NextToken {
    match bytes.get(1) {
        None => return NextToken::Unfinished,
        Some(b'u') => {}
        Some(_) => return NextToken::Text(2),
    }
    let Some(first) = bytes.get(..ESCAPE) else { return NextToken::Unfinished };
    match unit(first) {
        Some(0xD800..0xDC00) => {}
        Some(0xDC00..0xE000) => return NextToken::Broken(ESCAPE, ESCAPED),
        _ => return NextToken::Text(ESCAPE),
    }
    let behind = bytes.get(ESCAPE..).unwrap_or_default();
    match behind.get(..ESCAPE) {
        Some(second) if matches!(unit(second), Some(0xDC00..0xE000)) => NextToken::Text(2 * ESCAPE),
        Some(_) => NextToken::Broken(ESCAPE, ESCAPED),
        // Whether the other half follows is not known yet.
        None if b"\\u".starts_with(behind.get(..2).unwrap_or(behind)) => NextToken::Unfinished,
        None => NextToken::Broken(ESCAPE, ESCAPED),
    }
}

/// Returns the code unit of `\uXXXX`.
fn unit(escape: &[u8]) -> Option<u16> {
    let digits = std::str::from_utf8(escape.strip_prefix(b"\\u")?).ok()?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use handlescope_model::Cancel;

    use super::*;
    use handlescope_extract::NoObserver;

    fn pass(text: &str) -> Result<String, String> {
        let limits = ImportLimits { string_bytes: 5, depth: 2, ..ImportLimits::default() };
        let cancel = Cancel::default();
        let progress = Rc::new(ReadProgress::new(&NoObserver, &cancel));
        let mut passed = String::new();
        Guard::new(text.as_bytes(), limits, progress)
            .read_to_string(&mut passed)
            .map(|_| passed)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_document_within_the_limits_passes_unchanged() {
        for text in ["", r#"{"a":[1,2]}"#, r#""[[[[""#, r#"["\"[[","12345"]"#] {
            assert_eq!(pass(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn a_document_beyond_the_limits_is_refused_with_the_place() {
        assert_eq!(pass("[[[").unwrap_err(), "nested deeper than 2 levels, at byte 2");
        assert_eq!(pass(r#"["123456""#).unwrap_err(), "a string of more than 5 bytes, at byte 7");
    }

    /// A reader that returns one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            let end = target.len().min(1);
            self.0.read(target.get_mut(..end).unwrap_or_default())
        }
    }

    fn repaired(bytes: &[u8]) -> (String, u64) {
        let cancel = Cancel::default();
        let read = |inner: &mut dyn Read| {
            let progress = Rc::new(ReadProgress::new(&NoObserver, &cancel));
            let mut text = String::new();
            Repair::new(inner, Rc::clone(&progress)).read_to_string(&mut text).unwrap();
            (text, progress.replaced.get())
        };
        let at_once = read(&mut &bytes[..]);
        assert_eq!(read(&mut Slow(bytes)), at_once);
        at_once
    }

    #[test]
    fn text_passes_as_it_is() {
        for text in ["", r#"{"a":"ä𝄞\n\\u\"\u00e4\ud834\udd1e"}"#, r"\uD834\uDD1E\\uD800", "ä\\"]
        {
            assert_eq!(repaired(text.as_bytes()), (text.to_owned(), 0));
        }
        let long = "ä𝄞\\ud834\\udd1e".repeat(20_000);
        assert_eq!(repaired(long.as_bytes()), (long, 0));
    }

    #[test]
    fn invalid_characters_are_replaced_and_counted() {
        for (bytes, text, count) in [
            (&b"a\xFFb"[..], "a\u{FFFD}b", 1),
            (b"\"\xC3\"", "\"\u{FFFD}\"", 1),
            (b"\xC3\\n", "\u{FFFD}\\n", 1),
            (b"\xF0\x9D\x84", "\u{FFFD}", 1),
            (br"x\uD800y", r"x\uFFFDy", 1),
            (br#"\uD800""#, r#"\uFFFD""#, 1),
            // The parser reports that the text ends too soon.
            (br"\uD800", r"\uD800", 0),
            (br"\uDC00\uD800\n", r"\uFFFD\uFFFD\n", 2),
            (br"\uD800\uD834\uDD1E", r"\uFFFD\uD834\uDD1E", 1),
            (br"\uD8", r"\uD8", 0),
        ] {
            assert_eq!(repaired(bytes), (text.to_owned(), count), "{text}");
        }
    }
}
