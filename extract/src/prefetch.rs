//! Hints for the processor's cache.

/// Bytes that a processor reads at once.
const CACHE_LINE: usize = 64;

/// Asks the processor to read all lines of the cache that bytes lie in, without waiting for them.
pub fn prefetch_all(bytes: &[u8]) {
    bytes.chunks(CACHE_LINE).for_each(prefetch);
    // Bytes that begin within a line end in a further one.
    prefetch(&bytes[bytes.len().saturating_sub(1)..]);
}

/// Asks the processor to read the line of the cache that the items begin in, without waiting for it.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the hint takes a pointer")]
pub fn prefetch<T>(items: &[T]) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint reads nothing that a program sees, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().cast()) }
}

/// Does nothing: elsewhere no stable function gives the hint.
#[cfg(not(target_arch = "x86_64"))]
pub fn prefetch<T>(_: &[T]) {}
