//! Values that are used again, for the sake of their memory.

use std::sync::Mutex;

use handlescope_model::guard::lock;

/// A value with memory of its own.
pub trait Spare: Default {
    /// Removes what it has.
    fn clear(&mut self);
}

impl Spare for () {
    fn clear(&mut self) {}
}

/// Values that are used again, the latest first, which may be in a cache.
#[derive(Default)]
pub(super) struct Spares<T>(Mutex<Vec<T>>);

impl<T: Spare> Spares<T> {
    /// An empty value.
    pub(super) fn take(&self) -> T {
        let mut value = lock(&self.0).pop().unwrap_or_default();
        value.clear();
        value
    }

    /// Takes a value back.
    pub(super) fn give(&self, value: T) {
        lock(&self.0).push(value);
    }
}
