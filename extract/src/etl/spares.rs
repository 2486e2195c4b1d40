//! Values whose memory is used again.

use std::sync::Mutex;

use handlescope_model::guard::lock;

/// A value that can be emptied, and keeps its memory.
pub trait Spare: Default {
    /// Empties it.
    fn clear(&mut self);
}

impl Spare for () {
    fn clear(&mut self) {}
}

/// Pool of values that are no longer used; the latest one, which may still be in a cache, is used again first.
#[derive(Default)]
pub struct Spares<T>(Mutex<Vec<T>>);

impl<T: Spare> Spares<T> {
    /// An empty value.
    pub fn take(&self) -> T {
        let mut value = lock(&self.0).pop().unwrap_or_default();
        value.clear();
        value
    }

    /// Takes a value back.
    pub fn give(&self, value: T) {
        lock(&self.0).push(value);
    }
}
