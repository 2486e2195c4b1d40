//! `.dump`: from the loaded traces to the output.

use std::io::Write;

use crate::{
    command::{DisplayArgs, Dump},
    error::CommandError,
    query::{self, Source},
    render,
    screen::Screen,
    session::{LoadedTrace, Session},
};

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
    if session.files().is_empty() {
        return Err(CommandError::NothingLoaded);
    }
    let sources: Vec<Source<'_>> = session
        .files()
        .iter()
        .map(|LoadedTrace { path, trace, frames }| Source { path, trace, frames })
        .collect();
    let usual = session.settings.display(&DisplayArgs::default(), screen);
    match dump {
        Dump::ObjectRef(args) => {
            let answer = query::object_ref(&sources, args, session.symbolizer())?;
            let display = session.settings.display(&args.display, screen);
            render::object_ref(&answer, args, &display, out)?;
        }
        Dump::Process(args) => {
            render::processes(&query::processes(&sources, args)?, args, &usual, out)?;
        }
        Dump::Module(args) => {
            render::modules(&query::modules(&sources, args)?, args, &usual, out)?;
        }
        Dump::Stats(args) => render::stats(&query::stats(&sources)?, args, &usual, out)?,
    }
    Ok(())
}
