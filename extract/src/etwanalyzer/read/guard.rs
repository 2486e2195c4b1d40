//! A reader that looks at JSON while it passes and stops what would cost too much to parse.

use std::io::{self, Read};
use std::rc::Rc;

use super::limits::ImportLimits;
use crate::text::Progress;

/// Passes bytes on; fails when strings are too long, nesting is too deep or the import is cancelled.
///
/// The parser limits neither what it skips nor the length of a string, so that this is done here,
/// for all bytes alike.
pub(super) struct Guard<'a, R> {
    inner: R,
    limits: ImportLimits,
    progress: Rc<Progress<'a>>,
    place: Place,
    depth: u32,
    passed: u64,
}

/// Where in the text the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    /// In a string of so many bytes so far.
    String(u64),
    /// In a string, after a backslash.
    Escape(u64),
}

impl<'a, R: Read> Guard<'a, R> {
    pub(super) fn new(inner: R, limits: ImportLimits, progress: Rc<Progress<'a>>) -> Self {
        Self { inner, limits, progress, place: Place::Outside, depth: 0, passed: 0 }
    }

    fn look(&mut self, bytes: &[u8]) -> io::Result<()> {
        for (byte, at) in bytes.iter().zip(self.passed..) {
            self.place = match (self.place, byte) {
                (Place::Outside, b'"') => Place::String(0),
                (Place::Outside, b'{' | b'[') => {
                    self.depth += 1;
                    if self.depth > self.limits.depth {
                        let depth = self.limits.depth;
                        return Err(refused(&format!("nested deeper than {depth} levels"), at));
                    }
                    Place::Outside
                }
                (Place::Outside, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    Place::Outside
                }
                (Place::Outside, _) | (Place::String(_), b'"') => Place::Outside,
                (Place::String(length), b'\\') => Place::Escape(length + 1),
                (Place::String(length) | Place::Escape(length), _) => {
                    if length >= self.limits.string_bytes {
                        let limit = self.limits.string_bytes;
                        return Err(refused(&format!("a string of more than {limit} bytes"), at));
                    }
                    Place::String(length + 1)
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

#[cfg(test)]
mod tests {
    use handlescope_model::Cancel;

    use super::*;
    use crate::options::NoObserver;

    fn pass(text: &str) -> Result<String, String> {
        let limits = ImportLimits { string_bytes: 5, depth: 2, ..ImportLimits::default() };
        let cancel = Cancel::default();
        let progress = Rc::new(Progress::new(&NoObserver, &cancel));
        let mut passed = String::new();
        Guard::new(text.as_bytes(), limits, progress)
            .read_to_string(&mut passed)
            .map(|_| passed)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_within_the_limits_passes_as_it_is() {
        for text in ["", r#"{"a":[1,2]}"#, r#""[[[[""#, r#"["\"[[","12345"]"#] {
            assert_eq!(pass(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn what_exceeds_them_is_refused_with_its_place() {
        assert_eq!(pass("[[[").unwrap_err(), "nested deeper than 2 levels, at byte 2");
        assert_eq!(pass(r#"["123456""#).unwrap_err(), "a string of more than 5 bytes, at byte 7");
    }
}
