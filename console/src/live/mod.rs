//! `handlescope live`: shows open handles while they are opened and closed.
//!
//! Events go through a queue into a [`LiveWindow`](handlescope_extract::live::LiveWindow). From time to time its tables
//! are written, loaded and queried like those of any trace. So the table, `.why` and saved files come from the same
//! queries.

mod picture;
mod shown;
mod state;

use std::io::Write;

use self::picture::{TITLES, cells};
use self::state::Live;
use crate::recording::LiveArgs;
use handlescope_commands::CommandError;
use handlescope_commands::console::Console;
use handlescope_session::terminal::{ColorChoice, Messages, Screen, table};
use handlescope_session::trace::{Caveat, warn_of};

/// Shows what is open until a key or Ctrl-C ends it; without a terminal, prints it once at the end.
///
/// # Errors
/// If there are no events, a table cannot be made, or the terminal cannot be used.
pub fn run(
    console: &mut Console,
    args: &LiveArgs,
    color: ColorChoice,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Result<(), CommandError> {
    let screen = Screen::stdout(color);
    let cancel = console.cancel.clone();
    let mut live = Live::start(args, screen.is_terminal(), &cancel)?;
    if screen.is_terminal() {
        return shown::run(&mut live, console, messages);
    }
    while !live.has_ended() && !cancel.is_cancelled() {
        live.receive()?;
    }
    live.stop()?;
    // Ctrl-C ended the session, but not the answer.
    cancel.reset();
    let groups = live.open_groups(console, messages)?;
    for file in &console.session.files {
        warn_of(&file.path, &Caveat::for_trace(&file.trace)?, messages);
    }
    let heading = live.heading();
    writeln!(out, "{}", heading.line())?;
    let mut rows = table::table(screen, &TITLES);
    rows.add_rows(groups.iter().map(cells));
    table::align_right(&mut rows, &[0, 1]);
    write!(out, "{}", table::text(rows))?;
    if let Some(reached) = &live.reached {
        messages.note(format_args!("ended: {reached}"));
    }
    Ok(())
}
