//! How far an import is, and whether it is still wanted.

use std::cell::Cell;
use std::io;

use handlescope_model::Cancel;

use crate::options::ExtractObserver;

/// Reports to the observer how many bytes have passed.
pub(crate) struct Progress<'a> {
    observer: &'a dyn ExtractObserver,
    pub(crate) cancel: &'a Cancel,
    passed: Cell<u64>,
    /// What was not a character and is U+FFFD now.
    pub(crate) replaced: Cell<u64>,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(observer: &'a dyn ExtractObserver, cancel: &'a Cancel) -> Self {
        Self { observer, cancel, passed: Cell::new(0), replaced: Cell::new(0) }
    }

    pub(crate) fn add(&self, bytes: u64) {
        let passed = self.passed.get() + bytes;
        self.passed.set(passed);
        self.observer.on_progress(passed);
    }

    pub(crate) fn check(&self) -> io::Result<()> {
        self.cancel.check().map_err(io::Error::other)
    }
}
