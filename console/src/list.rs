//! `.list`

use std::io::Write;

use handlescope_model::{Table, Trace};

use crate::{error::CommandError, screen::Screen, session::Session, table};

/// Prints the loaded traces with where they were recorded.
///
/// # Errors
/// When a trace cannot be read, or `out` cannot be written.
pub fn list(session: &Session, out: &mut dyn Write, screen: Screen) -> Result<(), CommandError> {
    if session.files().is_empty() {
        writeln!(out, "No traces are loaded.")?;
        return Ok(());
    }
    let mut table = table::table(screen, &["#", "File", "Machine", "Windows", "Events", "Lost"]);
    for (index, file) in session.files().iter().enumerate() {
        let text = |column| first(&file.trace, column);
        table.add_row([
            index.to_string(),
            file.path.display().to_string(),
            text("computer")?,
            format!("{} ({})", text("os_version")?, text("os_build")?),
            text("events_total")?,
            text("events_lost")?,
        ]);
    }
    table::align_right(&mut table, &[0, 4, 5]);
    write!(out, "{}", table::text(&table))?;
    Ok(())
}

/// A value of the one row about the whole trace.
fn first(trace: &Trace, column: &str) -> Result<String, CommandError> {
    let column = trace.column(Table::Trace, column)?;
    let value = column.get(0).ok().filter(|value| !value.is_null());
    Ok(value.map_or_else(|| "unknown".to_owned(), |value| value.str_value().into_owned()))
}
