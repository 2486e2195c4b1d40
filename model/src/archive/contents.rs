//! What an archive may claim before anything of it is believed.

use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sevenz_rust::Archive;

/// Bytes that may be read to know what an archive holds. Twenty members take less than 2 KiB; packed
/// zeros of this size cost a few hundred megabytes of memory and not all of it.
const HEADER_BYTES: u64 = 64 << 10;

/// Content below this size may be packed as well as it likes.
const SMALL_CONTENT: u64 = 64 << 20;

/// How many times its packed size the content may have, once it is large. JSON of handles has 20 to
/// 100; zeros have thousands.
const MAX_RATIO: u64 = 1000;

/// A limit on how much is read while an archive is opened.
#[derive(Debug, Clone)]
pub struct HeaderBudget(Arc<AtomicU64>);

impl Default for HeaderBudget {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(HEADER_BYTES)))
    }
}

impl HeaderBudget {
    /// A reader that fails when the budget is used up.
    pub fn watch<R>(&self, inner: R) -> Watched<R> {
        Watched { inner, left: Arc::clone(&self.0) }
    }

    /// Lets everything be read: the archive is opened.
    pub fn lift(&self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }
}

/// A reader with a [`HeaderBudget`].
#[derive(Debug)]
pub struct Watched<R> {
    inner: R,
    left: Arc<AtomicU64>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(target)?;
        // Nobody else reads meanwhile; the number is shared to be lifted only.
        match self.left.load(Ordering::Relaxed) {
            u64::MAX => Ok(count),
            left => match left.checked_sub(count as u64) {
                Some(left) => {
                    self.left.store(left, Ordering::Relaxed);
                    Ok(count)
                }
                None => {
                    let reason =
                        format!("its table of contents has more than {HEADER_BYTES} bytes");
                    Err(io::Error::new(io::ErrorKind::InvalidData, reason))
                }
            },
        }
    }
}

impl<R: Seek> Seek for Watched<R> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.inner.seek(position)
    }
}

/// The first member whose name leads out of the archive or is there twice, and what is wrong.
pub fn refused_name(archive: &Archive) -> Option<(&str, &'static str)> {
    let mut seen = HashSet::new();
    archive.files.iter().map(|entry| entry.name.as_str()).find_map(|name| {
        let reason = suspicion(name).or((!seen.insert(name)).then_some("is there twice"))?;
        Some((name, reason))
    })
}

/// What is wrong with the name of a member, if it leads out of the archive.
fn suspicion(name: &str) -> Option<&'static str> {
    let mut parts = name.split(['/', '\\']);
    if name.starts_with(['/', '\\']) || name.as_bytes().get(1) == Some(&b':') {
        return Some("has an absolute name");
    }
    if parts.any(|part| part == "..") {
        return Some("leads out of the archive by \"..\"");
    }
    None
}

/// Whether `packed` bytes cannot hold so much content, unless it was made to fill memory or disk.
pub fn is_bomb(packed: u64, content: u64) -> bool {
    content > SMALL_CONTENT && content / packed.max(1) > MAX_RATIO
}

/// Memory that a decoder asks for, as its properties in the archive say.
pub fn decoder_memory(method: &[u8], properties: &[u8]) -> u64 {
    const LZMA: &[u8] = &[3, 1, 1];
    const LZMA2: &[u8] = &[0x21];
    const PPMD: &[u8] = &[3, 4, 1];
    match (method, properties) {
        (LZMA | PPMD, [_, a, b, c, d, ..]) => u64::from(u32::from_le_bytes([*a, *b, *c, *d])),
        (LZMA2, [bits, ..]) => match bits & 0x3F {
            bits @ 0..40 => (2 | u64::from(bits & 1)) << (bits / 2 + 11),
            _ => u64::from(u32::MAX),
        },
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_noticed() {
        for bad in ["/etc/x.json", "\\x.json", "C:\\x.json", "../x.json", "a/../../x", "a\\..\\x"] {
            assert!(suspicion(bad).is_some(), "{bad}");
        }
        for good in ["x.json", "a/x.json", "..x.json", "a..b"] {
            assert!(suspicion(good).is_none(), "{good}");
        }
    }

    #[test]
    fn only_large_content_that_is_packed_beyond_reason_is_a_bomb() {
        assert!(!is_bomb(10, 60 << 20));
        assert!(!is_bomb(1 << 20, 500 << 20));
        assert!(is_bomb(1 << 10, 500 << 20));
        assert!(is_bomb(0, u64::MAX));
    }

    #[test]
    fn a_budget_ends_and_can_be_lifted() {
        let budget = HeaderBudget::default();
        let mut reader = budget.watch(io::repeat(1));
        let mut buffer = vec![0; HEADER_BYTES as usize];
        assert!(reader.read(&mut buffer).is_ok());
        assert!(reader.read(&mut buffer).is_err());
        budget.lift();
        assert!(reader.read(&mut buffer).is_ok());
    }

    #[test]
    fn the_memory_of_a_decoder_is_in_its_properties() {
        assert_eq!(decoder_memory(&[3, 1, 1], &[0x5D, 0, 0, 0, 2]), 32 << 20);
        assert_eq!(decoder_memory(&[0x21], &[24]), 16 << 20);
        assert_eq!(decoder_memory(&[0x21], &[39]), 3 << 30);
        assert_eq!(decoder_memory(&[0x21], &[40]), u64::from(u32::MAX));
        assert_eq!(decoder_memory(&[0], &[]), 0);
    }
}
