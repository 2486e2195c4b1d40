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
