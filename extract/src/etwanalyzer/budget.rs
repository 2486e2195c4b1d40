//! A limit on how much is read while an archive is opened.

use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

/// Bytes that may be read to know what an archive holds. Ten members take less than 1 KiB; packed
/// zeros of this size cost a few hundred megabytes of memory and not all of it.
const HEADER_BYTES: u64 = 64 << 10;

/// So many bytes may still be read.
pub(super) struct Budget(Rc<Cell<u64>>);

impl Budget {
    pub(super) fn for_header() -> Self {
        Self(Rc::new(Cell::new(HEADER_BYTES)))
    }

    /// A reader that stops when the budget is used up.
    pub(super) fn watch<R>(&self, inner: R) -> Watched<R> {
        Watched { inner, left: Rc::clone(&self.0) }
    }

    /// Lets everything be read.
    pub(super) fn lift(&self) {
        self.0.set(u64::MAX);
    }
}

/// A reader with a budget.
pub(super) struct Watched<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(target)?;
        match self.left.get().checked_sub(count as u64) {
            Some(left) => self.left.set(left),
            None => {
                let reason = format!("its table of contents has more than {HEADER_BYTES} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
        }
        Ok(count)
    }
}

impl<R: Seek> Seek for Watched<R> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.inner.seek(position)
    }
}
