//! `.dump`: from the loaded traces to the output.

use std::io::Write;

use crate::{command::Dump, error::CommandError, screen::Screen, session::Session};

/// Answers a `.dump`: results, and nothing else, go to `out`, in the manner of `screen`.
///
/// # Errors
/// When nothing is loaded, a trace cannot be read, or `out` cannot be written.
pub fn dump(
    session: &Session,
    dump: &Dump,
    out: &mut dyn Write,
    screen: Screen,
) -> Result<(), CommandError> {
    let _ = (dump, out, screen);
    if session.files().is_empty() {
        return Err(CommandError::NothingLoaded);
    }
    Err(CommandError::Output { source: std::io::Error::other("not built yet") })
}
