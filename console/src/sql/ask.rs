//! From `.sql` as entered to the output.

use std::io::Write;

use indicatif::HumanCount;

use super::answer::sql;
use crate::{
    cancel::{Cancel, Cancelled},
    command::{CsvTarget, DisplayArgs, SqlArgs},
    error::CommandError,
    file::write_whole,
    file_filter,
    messages::Messages,
    render,
    screen::Screen,
    session::Session,
    symbols::WatchedSymbols,
};

/// Answers a query: the answer, and nothing else, goes to `out`, in the manner of `screen`, or into
/// the file that `-csv` names.
///
/// # Errors
/// When nothing is loaded or left, the query is wrong, a trace cannot be read, the answer cannot be
/// written, or `cancel` asks to stop.
pub fn ask(
    session: &Session,
    args: &SqlArgs,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
    out: &mut dyn Write,
    screen: Screen,
) -> Result<(), CommandError> {
    let files = file_filter::choose(session.files(), &args.files, messages)?;
    messages.wait("searching");
    let names = WatchedSymbols::new(session.symbolizer(), messages.spinner(), cancel);
    let answer = sql(&files, &args.query, &names, cancel)?;
    let display = session.settings.display(&DisplayArgs::default(), screen);
    if let Some(CsvTarget::File(path)) = &args.csv {
        let failed = |source| match cancel.check() {
            Ok(()) => CommandError::Csv { path: path.clone(), source },
            Err(Cancelled) => CommandError::Cancelled,
        };
        let path = std::path::absolute(path).map_err(failed)?;
        write_whole(&path, |out| render::rows::csv(&answer, cancel, out)).map_err(failed)?;
        writeln!(out, "CSV export was successful. File is: {}", path.display())?;
        return Ok(());
    }
    let left_out = render::sql(&answer, args, &display, cancel, out)?;
    if left_out > 0 {
        let (shown, all) = (answer.height() - left_out, answer.height());
        messages.note(format_args!(
            "note: the first {} of {} rows; -json and -csv write all of them",
            HumanCount(shown as u64),
            HumanCount(all as u64)
        ));
    }
    Ok(())
}
