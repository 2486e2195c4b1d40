//! How much memory the records that are being read take. A record is larger than the shortest JSON that
//! makes one, and a packed file may hold millions of `{}`.
//!
//! A parser has no place for it, and one file is read on one thread.

use std::cell::Cell;

use serde::de::Error;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// From now on, records may take so many bytes.
pub(super) fn allow(bytes: u64) {
    LEFT.set(bytes);
}

/// Takes the memory of one more element of a list.
pub(super) fn take<T, E: Error>() -> Result<(), E> {
    let left = LEFT.get().checked_sub(size_of::<T>() as u64);
    LEFT.set(left.ok_or_else(|| E::custom(TOO_MUCH))?);
    Ok(())
}

/// What the parser says then.
pub(super) const TOO_MUCH: &str = "its records need more memory than a file of this size may take";
