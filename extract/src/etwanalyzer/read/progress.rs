//! How far an import is, and whether it is still wanted.

use std::cell::Cell;
use std::io;

use crate::extraction::ExtractObserver;

/// Tells the observer how many bytes have passed, and asks it whether to go on.
pub(super) struct Progress<'a> {
    observer: &'a dyn ExtractObserver,
    passed: Cell<u64>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(observer: &'a dyn ExtractObserver) -> Self {
        Self { observer, passed: Cell::new(0) }
    }

    pub(super) fn add(&self, bytes: u64) {
        let passed = self.passed.get() + bytes;
        self.passed.set(passed);
        self.observer.on_progress(passed);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.observer.is_cancelled()
    }

    /// Fails when nobody wants more.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.is_cancelled() { Err(io::Error::other("cancelled")) } else { Ok(()) }
    }
}
