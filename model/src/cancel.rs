//! Asking work that runs to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop, shared by all clones. Looking at it is cheap, so that loops can do it often.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// The work was stopped on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

impl Cancel {
    /// Asks to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes the request back, before the next command.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Stops with an error when asked to.
    ///
    /// # Errors
    /// [`Cancelled`], when asked to stop.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    /// The flag itself, for a signal handler that sets it.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reaches_every_clone_until_it_is_reset() {
        let cancel = Cancel::default();
        let clone = cancel.clone();
        assert_eq!(clone.check(), Ok(()));
        cancel.cancel();
        assert_eq!(clone.check(), Err(Cancelled));
        clone.reset();
        assert!(!cancel.is_cancelled());
    }
}
