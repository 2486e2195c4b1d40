//! `.dump`: from the loaded traces to the output.

use std::io::Write;

use crate::{render, cancel::{Cancel, Cancelled}, command::Dump, commands::CommandError, query::{self, Source}, settings::DisplayArgs, symbols::WatchedSymbols, terminal::{Messages, Screen}, trace::{LoadedTrace, Session, chosen::{self, files_of}}, values::JsonMode};

/// Answers a `.dump`: results, and nothing else, go to `out`, in the manner of `screen`.
///
/// # Errors
/// When nothing is loaded or left, a trace cannot be read, `out` cannot be written, or `cancel` asks
/// to stop.
pub fn dump(
    session: &Session,
    dump: &Dump,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
    out: &mut dyn Write,
    screen: Screen,
) -> Result<(), CommandError> {
    let wanted = file_filter::choose(session.files(), files_of(dump), messages)?;
    let source = |(index, file)| {
        let LoadedTrace { path, trace, frames, .. }: &LoadedTrace = file;
        Source { path, index, trace, frames }
    };
    let sources: Vec<Source<'_>> = wanted.into_iter().map(source).collect();
    let usual = session.settings.display(&DisplayArgs::default(), screen);
    let names = WatchedSymbols::new(session.symbolizer(), messages.spinner(), cancel);
    match dump {
        Dump::ObjectRef(args) => {
            let answer = query::object_ref(&sources, args, &names, cancel)?;
            let display = session.settings.display(&args.display, screen);
            match &args.csv {
                None => render::object_ref(&answer, args, &display, out)?,
                Some(path) => {
                    let failed = |source| match cancel.check() {
                        Ok(()) => CommandError::Csv { path: path.clone(), source },
                        Err(Cancelled) => CommandError::Cancelled,
                    };
                    let written = render::csv(&answer, args, &display, path).map_err(failed)?;
                    let written = written.display();
                    writeln!(out, "CSV export was successful. File is: {written}")?;
                }
            }
        }
        Dump::Process(args) => {
            render::processes(&query::processes(&sources, args, cancel)?, args, &usual, out)?;
        }
        Dump::Module(args) => {
            render::modules(&query::modules(&sources, args, cancel)?, args, &usual, out)?;
        }
        Dump::Stack(args) => {
            let answers = query::call_stacks(&sources, args, &names, cancel)?;
            // The text says so itself.
            if args.json != JsonMode::Off && answers.iter().any(|answer| !answer.has_every_stack) {
                messages.note(
                    "note: these are stacks of handle events; for those of every event extract \
                     with -stacks all",
                );
            }
            render::call_stacks(&answers, args, &usual, out)?;
        }
        Dump::Symbols(args) => {
            let answers = query::symbols(&sources, args, &names, cancel)?;
            render::symbols(&answers, args, &usual, out)?;
        }
        Dump::Stats(args) => render::stats(&query::stats(&sources, cancel)?, args, &usual, out)?,
    }
    Ok(())
}
