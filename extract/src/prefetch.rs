//! Hints for the processor's cache.

/// Bytes that a processor reads at a time.
const CACHE_LINE: usize = 64;

/// Asks the processor to read all cache lines that contain the bytes, without waiting.
pub fn prefetch_all(bytes: &[u8]) {
    bytes.chunks(CACHE_LINE).for_each(prefetch);
    // Bytes that begin inside a line may end in one more.
    prefetch(&bytes[bytes.len().saturating_sub(1)..]);
}

/// Asks the processor to read the cache line where the items begin, without waiting.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the hint takes a pointer")]
pub fn prefetch<T>(items: &[T]) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint reads nothing that the program can see, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().cast()) }
}

/// Does nothing: on other processors, no stable function gives the hint.
#[cfg(not(target_arch = "x86_64"))]
pub fn prefetch<T>(_: &[T]) {}
