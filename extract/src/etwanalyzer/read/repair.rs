//! JSON that other programs wrote with names that are not text: bytes that are not UTF-8, and halves of
//! surrogate pairs.

use crate::text::Progress;
use std::io::{self, Read};
use std::rc::Rc;

/// Bytes that are looked at together.
const CHUNK: usize = 32 << 10;

/// What stands for a half pair, as long as that.
const ESCAPED: &[u8] = b"\\uFFFD";

/// Bytes that one step looks at, so that many steps do not look at the same ones again and again.
const NEAR: usize = 256;

/// Bytes of `\uD800`.
const ESCAPE: usize = 6;

/// Passes UTF-8 on, with U+FFFD in place of what is not a character, and counts that.
pub(super) struct Repair<'a, R> {
    inner: R,
    progress: Rc<Progress<'a>>,
    /// Bytes that were read and not looked at yet.
    rest: Vec<u8>,
    /// Repaired text, of which so many bytes were given away.
    text: Vec<u8>,
    given: usize,
}

/// What stands at some place.
enum Found {
    /// So many bytes of text.
    Text(usize),
    /// So many bytes that are none; and what takes their place.
    Broken(usize, &'static [u8]),
    /// The start of something.
    Unfinished,
}

impl<'a, R: Read> Repair<'a, R> {
    pub(super) fn new(inner: R, progress: Rc<Progress<'a>>) -> Self {
        Self { inner, progress, rest: Vec::new(), text: Vec::new(), given: 0 }
    }

    /// Looks at the next bytes; false at the end.
    fn look(&mut self) -> io::Result<bool> {
        let before = self.rest.len();
        (&mut self.inner).take(CHUNK as u64).read_to_end(&mut self.rest)?;
        let is_end = self.rest.len() == before;
        (self.given, self.text) = (0, Vec::with_capacity(self.rest.len()));
        let mut at = 0;
        while let Some(bytes) = self.rest.get(at..).filter(|bytes| !bytes.is_empty()) {
            let here = match found(bytes) {
                Found::Unfinished if !is_end => break,
                // The parser says what is missing.
                Found::Unfinished if bytes.starts_with(b"\\") => Found::Text(bytes.len()),
                Found::Unfinished => Found::Broken(bytes.len(), "\u{FFFD}".as_bytes()),
                here => here,
            };
            let (length, shown) = match here {
                Found::Broken(length, instead) => {
                    self.progress.replaced.set(self.progress.replaced.get() + 1);
                    (length, instead)
                }
                Found::Text(length) => (length, bytes.get(..length).unwrap_or_default()),
                Found::Unfinished => break,
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
        while self.given == self.text.len() {
            if !self.look()? {
                return Ok(0);
            }
        }
        let mut source = self.text.get(self.given..).unwrap_or_default();
        let count = source.read(target)?;
        self.given += count;
        Ok(count)
    }
}

fn found(bytes: &[u8]) -> Found {
    let near = bytes.get(..NEAR).unwrap_or(bytes);
    match near.iter().position(|byte| *byte == b'\\') {
        Some(0) => escape(bytes),
        Some(before) => text(near.get(..before).unwrap_or_default(), true),
        None => text(near, false),
    }
}

/// Text without escapes, that is `whole` when something else follows.
fn text(bytes: &[u8], whole: bool) -> Found {
    let Err(error) = std::str::from_utf8(bytes) else { return Found::Text(bytes.len()) };
    match (error.valid_up_to(), error.error_len()) {
        (0, Some(length)) => Found::Broken(length, "\u{FFFD}".as_bytes()),
        (0, None) if whole => Found::Broken(bytes.len(), "\u{FFFD}".as_bytes()),
        (0, None) => Found::Unfinished,
        (valid, _) => Found::Text(valid),
    }
}

/// What starts with a backslash.
fn escape(bytes: &[u8]) -> Found {
    match bytes.get(1) {
        None => return Found::Unfinished,
        Some(b'u') => {}
        Some(_) => return Found::Text(2),
    }
    let Some(first) = bytes.get(..ESCAPE) else { return Found::Unfinished };
    match unit(first) {
        Some(0xD800..0xDC00) => {}
        Some(0xDC00..0xE000) => return Found::Broken(ESCAPE, ESCAPED),
        _ => return Found::Text(ESCAPE),
    }
    let behind = bytes.get(ESCAPE..).unwrap_or_default();
    match behind.get(..ESCAPE) {
        Some(second) if matches!(unit(second), Some(0xDC00..0xE000)) => Found::Text(2 * ESCAPE),
        Some(_) => Found::Broken(ESCAPE, ESCAPED),
        // Whether the other half follows is not known yet.
        None if b"\\u".starts_with(behind.get(..2).unwrap_or(behind)) => Found::Unfinished,
        None => Found::Broken(ESCAPE, ESCAPED),
    }
}

/// The code unit of `\uXXXX`.
fn unit(escape: &[u8]) -> Option<u16> {
    let digits = std::str::from_utf8(escape.strip_prefix(b"\\u")?).ok()?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use handlescope_model::Cancel;

    use super::*;
    use crate::options::NoObserver;

    /// A reader of one byte at a time.
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
            let progress = Rc::new(Progress::new(&NoObserver, &cancel));
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
    fn what_is_no_character_is_replaced_and_counted() {
        for (bytes, text, count) in [
            (&b"a\xFFb"[..], "a\u{FFFD}b", 1),
            (b"\"\xC3\"", "\"\u{FFFD}\"", 1),
            (b"\xC3\\n", "\u{FFFD}\\n", 1),
            (b"\xF0\x9D\x84", "\u{FFFD}", 1),
            (br"x\uD800y", r"x\uFFFDy", 1),
            (br#"\uD800""#, r#"\uFFFD""#, 1),
            // The parser says that the text ends too soon.
            (br"\uD800", r"\uD800", 0),
            (br"\uDC00\uD800\n", r"\uFFFD\uFFFD\n", 2),
            (br"\uD800\uD834\uDD1E", r"\uFFFD\uD834\uDD1E", 1),
            (br"\uD8", r"\uD8", 0),
        ] {
            assert_eq!(repaired(bytes), (text.to_owned(), count), "{text}");
        }
    }
}
