//! Cancellation of running work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A request to stop, shared by all clones. Checking it is cheap, so loops can check often.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// Number of checks until it cancels itself, in tests.
    looks: Option<Arc<AtomicU32>>,
}

/// The work was stopped on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

impl Cancel {
    /// Returns a request that cancels itself after this many checks, so that a test can stop work wherever it checks.
    pub fn after(looks: u32) -> Self {
        Self { looks: Some(Arc::new(AtomicU32::new(looks))), ..Self::default() }
    }

    /// Asks to stop.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Clears the request, before the next command.
    pub fn reset(&self) {
        self.flag.store(false, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        if let Some(looks) = &self.looks {
            let left =
                looks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            return left.is_err();
        }
        self.flag.load(Ordering::Relaxed)
    }

    /// Returns an error if asked to stop.
    ///
    /// # Errors
    /// [`Cancelled`], if asked to stop.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    /// Returns the error of failed work: `Cancelled` if it was stopped, because unfinished work may report any error.
    pub fn or<E: From<Cancelled>>(&self, error: E) -> E {
        self.check().err().map_or(error, E::from)
    }

    /// Returns the flag itself, for a signal handler to set.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }
}

/// Iterations between two checks: a few milliseconds of work.
const EVERY: u32 = 4096;

/// Checks a [`Cancel`] every few thousand iterations of a loop.
#[derive(Debug)]
pub struct Poll<'a> {
    cancel: &'a Cancel,
    rounds: u32,
}

impl<'a> Poll<'a> {
    /// Creates a poll whose first round checks.
    pub fn new(cancel: &'a Cancel) -> Self {
        Self { cancel, rounds: 0 }
    }

    /// Counts an iteration of the loop and checks in the first one and every few thousand.
    ///
    /// # Errors
    /// [`Cancelled`], if asked to stop.
    #[inline]
    pub fn round(&mut self) -> Result<(), Cancelled> {
        if self.rounds.is_multiple_of(EVERY) {
            self.cancel.check()?;
        }
        self.rounds = self.rounds.wrapping_add(1);
        Ok(())
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

    #[test]
    fn a_request_can_come_by_itself() {
        let cancel = Cancel::after(2);
        assert_eq!([(); 4].map(|()| cancel.is_cancelled()), [false, false, true, true]);
    }

    #[test]
    fn a_loop_stops_within_some_thousand_rounds() {
        let cancel = Cancel::default();
        let mut poll = Poll::new(&cancel);
        assert_eq!(poll.round(), Ok(()));
        cancel.cancel();
        let rounds = (0..10_000).take_while(|_| poll.round().is_ok()).count();
        assert!(rounds < EVERY as usize);
        assert_eq!(Poll::new(&cancel).round(), Err(Cancelled));
    }
}
