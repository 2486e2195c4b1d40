//! Ctrl-C: how a command that runs is asked to stop.

use std::io;

pub use handlescope_model::{Cancel, Cancelled};
use signal_hook::{consts::SIGINT, flag};

/// The exit status of a program that Ctrl-C ended: 128 and the number of the signal, as shells
/// have it.
pub const STATUS: u8 = 130;

/// A cancel that Ctrl-C sets from now on, instead of ending the program. A second Ctrl-C, while
/// the first was not answered, ends the program nevertheless.
///
/// # Errors
/// When the system does not let the program handle the signal.
pub fn on_ctrl_c() -> io::Result<Cancel> {
    let cancel = Cancel::default();
    // In this order: the first one looks at what the second one has set at the time before.
    flag::register_conditional_shutdown(SIGINT, STATUS.into(), cancel.flag())?;
    flag::register(SIGINT, cancel.flag())?;
    Ok(cancel)
}

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
