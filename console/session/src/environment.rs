//! Checks before the program starts: variables its libraries can use, enough threads, and address space.

use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::{env, thread};

use thiserror::Error;

/// Variables that libraries (polars and tokio) read as numbers of at least 1; they panic at anything else.
const NUMBERS: [&str; 3] =
    ["POLARS_MAX_THREADS", "POLARS_ROW_GROUP_PREFETCH_SIZE", "TOKIO_WORKER_THREADS"];

/// Stack size of new threads in bytes; Rust's library reads it.
const STACK: &str = "RUST_MIN_STACK";

/// Stack size in bytes that the threads need, which is the default of Rust's library.
const LEAST_STACK: usize = 2 << 20;

/// Threads independent of the number of processors: signals, progress, queries, reading and packing.
const OWN_THREADS: usize = 8;

/// Threads per processor: the pools of polars, rayon and tokio, and the search for symbols.
const THREADS_OF_PROCESSOR: usize = 4;

/// Stack size in bytes of a thread that only waits.
const WAITING_STACK: usize = 64 << 10;

/// The system does not allow the program as many threads as it needs.
#[derive(Debug, Error)]
#[error(
    "the system allows {possible} more threads, but this program needs {needed}; raise the limit (ulimit -u, or \
     pids.max of the container)"
)]
pub struct TooFewThreads {
    possible: usize,
    needed: usize,
}

/// A variable that is ignored, and why.
pub type IgnoredVariable = (&'static str, String);

/// Finds the variables that libraries cannot use; the caller removes them.
#[must_use]
pub fn unusable() -> Vec<IgnoredVariable> {
    let value = |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let numbers = NUMBERS.into_iter().filter_map(|name| {
        let value = value(name)?;
        let is_usable = value.parse::<NonZeroUsize>().is_ok();
        (!is_usable)
            .then(|| (name, format!("{name}={value} is ignored: not a number of at least 1")))
    });
    let stack = value(STACK).and_then(|value| {
        let is_usable = value.parse::<usize>().is_ok_and(|bytes| bytes >= LEAST_STACK);
        let reason = format!("{STACK}={value} is ignored: not a number of at least {LEAST_STACK}");
        (!is_usable).then_some((STACK, reason))
    });
    numbers.chain(stack).collect()
}

/// Starts as many threads at once as the program may need, and ends them. Libraries panic or wait forever when they
/// cannot start one of theirs.
///
/// # Errors
/// If one of them cannot be started.
pub fn try_threads() -> Result<(), TooFewThreads> {
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let needed = OWN_THREADS + THREADS_OF_PROCESSOR * processors;
    let mut waiting = Vec::with_capacity(needed);
    let mut result = Ok(());
    while waiting.len() < needed {
        let (end, ended) = mpsc::channel::<()>();
        // Wakes up when the sender is dropped.
        let wait = move || {
            let _ = ended.recv();
        };
        match thread::Builder::new().stack_size(WAITING_STACK).spawn(wait) {
            Ok(thread) => waiting.push((end, thread)),
            Err(_) => {
                result = Err(TooFewThreads { possible: waiting.len(), needed });
                break;
            }
        }
    }
    for (end, thread) in waiting {
        drop(end);
        // The thread does nothing that could fail.
        let _ = thread.join();
    }
    result
}

/// Limit of the process's address space in bytes; `None` without a limit.
#[cfg(unix)]
pub fn most_addresses() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

#[cfg(not(unix))]
pub fn most_addresses() -> Option<u64> {
    None
}
