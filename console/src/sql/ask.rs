//! From `.sql` as entered to the output.

use std::io::Write;

use indicatif::HumanCount;

use super::sql;
use crate::{
    cancel::Cancel,
    command::{DisplayArgs, SqlArgs},
    error::CommandError,
    file_filter,
    messages::Messages,
    render,
    screen::Screen,
    session::Session,
    symbols::WatchedSymbols,
};

/// Answers a query: the answer, and nothing else, goes to `out`, in the manner of `screen`, or into
/// the file that was named.
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
    let (rows, output) = (answer.height(), &args.output);
    let table = render::frame(answer, &args.text);
    let left_out = table.write(output, &output.display(display), cancel, out)?;
    if left_out > 0 {
        messages.note(format_args!(
            "note: the first {} of {} rows; -json and -csv write all of them",
            HumanCount((rows - left_out) as u64),
            HumanCount(rows as u64)
        ));
    }
    Ok(())
}
