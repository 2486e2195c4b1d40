//! Panics that do not end the program: the one quiet guard, threads that pass theirs on, and locks that survive a
//! panic.
//!
//! Decoders of other projects panic on some damaged files where they should return an error, and a query must not end
//! the session. [`quietly`] turns such a panic into an error and keeps the panic hook's report off the terminal. It
//! installs the only panic hook of this workspace.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread;

/// Prefix of the names of the threads of polars; they do part of the guarded work.
const WORKER: &str = "polars-";

thread_local! {
    /// Whether guarded work runs on this thread.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
    /// Location of the last panic of guarded work on this thread, as `file:line:column`.
    static LOCATION: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Number of threads that run guarded work.
static GUARDED: AtomicUsize = AtomicUsize::new(0);

/// Reports panics that are not caught; if it is not set, the previous hook does.
static REPORT: OnceLock<fn(&PanicHookInfo<'_>)> = OnceLock::new();

/// A panic that was caught.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CaughtPanic {
    pub message: String,
    /// `file:line:column`; empty if another thread panicked.
    pub location: String,
}

/// Runs `work` and catches a panic in it, without printing anything.
///
/// After a panic, whatever `work` changes in place should be intact or dropped.
///
/// # Errors
/// If `work` panics.
pub fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    set_hook();
    let outer = IS_GUARDED.replace(true);
    GUARDED.fetch_add(1, Ordering::Relaxed);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.fetch_sub(1, Ordering::Relaxed);
    IS_GUARDED.set(outer);
    let location = LOCATION.take();
    result.map_err(|payload| CaughtPanic { message: message(&*payload), location })
}

/// Makes `report` print the panics that are not caught. Only the first call counts.
pub fn report_panics(report: fn(&PanicHookInfo<'_>)) {
    let _ = REPORT.set(report);
    set_hook();
}

/// Returns the result of a joined thread, or passes on its panic.
pub fn joined<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| panic::resume_unwind(panic))
}

fn set_hook() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !is_guarded() {
                return REPORT.get().map_or_else(|| before(info), |report| report(info));
            }
            let location = info.location().map(ToString::to_string).unwrap_or_default();
            LOCATION.with(|last| last.replace(location));
        }));
    });
}

/// Whether this thread runs guarded work or part of it.
fn is_guarded() -> bool {
    IS_GUARDED.get()
        || GUARDED.load(Ordering::Relaxed) > 0
            && thread::current().name().is_some_and(|name| name.starts_with(WORKER))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}

/// Locks a mutex even if another thread panicked while holding it.
///
/// This is for values that are intact at every step, as are all values under the locks of this workspace.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        assert_eq!(quietly(|| 1), Ok(1));
        let index = std::hint::black_box(7);
        let CaughtPanic { message, location } = quietly(|| [1, 2, 3][index]).unwrap_err();
        assert!(message.contains("the index is 7"), "{message}");
        assert!(location.contains("guard.rs:"), "{location}");
        assert!(!is_guarded());
    }

    #[test]
    fn a_guard_within_a_guard_leaves_it_alone() {
        let inner = quietly(|| {
            assert!(quietly(|| panic::panic_any(1)).is_err());
            is_guarded()
        });
        assert_eq!(inner, Ok(true));
    }

    #[test]
    fn a_lock_outlives_a_panic() {
        let mutex = Mutex::new(1);
        let poison = quietly(|| {
            let _held = lock(&mutex);
            panic::panic_any("poison");
        });
        assert_eq!(poison.unwrap_err().message, "poison");
        assert_eq!(*lock(&mutex), 1);
    }
}
