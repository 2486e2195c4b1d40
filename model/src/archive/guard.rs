//! Running a decoder over bytes that nobody vouches for.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use polars::prelude::PolarsError;

/// How the threads of the decoder are called.
const WORKER: &str = "polars-";

thread_local! {
    /// Whether a decoder runs on this thread.
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// How many decoders run.
static DECODING: AtomicUsize = AtomicUsize::new(0);

/// Runs a Parquet decoder; what it says, or that it gave up.
///
/// It panics on some damaged tables where it should return an error. That must not end the program, and
/// nobody has to read of it. The checksum of a member catches accidental damage before.
pub(super) fn guarded<T>(decode: impl FnOnce() -> Result<T, PolarsError>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !is_of_decoder() {
                report(info);
            }
        }));
    });
    let outer = IS_DECODING.replace(true);
    DECODING.fetch_add(1, Ordering::Relaxed);
    // What a panic leaves half done is dropped with the decoder.
    let result = panic::catch_unwind(AssertUnwindSafe(decode));
    DECODING.fetch_sub(1, Ordering::Relaxed);
    IS_DECODING.set(outer);
    match result {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("the Parquet decoder gave up".to_owned()),
    }
}

/// Whether this thread runs a decoder, or a part of one.
fn is_of_decoder() -> bool {
    let is_worker = || thread::current().name().is_some_and(|name| name.starts_with(WORKER));
    IS_DECODING.get() || (DECODING.load(Ordering::Relaxed) > 0 && is_worker())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoder_that_gives_up_is_an_error() {
        assert_eq!(guarded(|| Ok(1)), Ok(1));
        let index = std::hint::black_box(7);
        let result = guarded(|| Ok([1, 2, 3][index]));
        assert_eq!(result, Err("the Parquet decoder gave up".to_owned()));
        assert!(!is_of_decoder());
    }
}
