//! Long loops that stop when asked to.

use crate::cancel::{Cancel, Cancelled};

/// Rounds between two looks: some milliseconds of work.
const EVERY: u32 = 4096;

/// Looks at a [`Cancel`] every few thousand rounds of a loop.
pub(crate) struct Poll<'a> {
    cancel: &'a Cancel,
    rounds: u32,
}

impl<'a> Poll<'a> {
    pub(crate) fn new(cancel: &'a Cancel) -> Self {
        Self { cancel, rounds: 0 }
    }

    /// To be called in each round, the first of which looks.
    pub(crate) fn round(&mut self) -> Result<(), Cancelled> {
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
