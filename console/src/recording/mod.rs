//! `handlescope record`, `live` and `wprp`: recordings of handle events, as data and for the tools of Windows.

mod args;
mod elsewhere;
mod stop;

use std::{io::Write, path::Path};

use handlescope_record::{BufferCount, BufferSize, Events, SessionPlan, wpr_profile};
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

pub use args::{LiveArgs, RecordArgs, SessionArgs, WprpArgs};

use crate::{
    commands::CommandError,
    paths::{Overwrite, OverwriteError, write_whole},
    terminal::Neutral,
};

/// Prints the session that would record.
///
/// # Errors
/// Without `--dry-run`, because it does not record yet; the error says what does.
pub fn record(args: &RecordArgs, out: &mut dyn Write) -> Result<(), CommandError> {
    let options = args.options();
    match args.dry_run {
        true => print(&SessionPlan::new(&options), out),
        false => Err(elsewhere::refusal("record", &args.session, &options)),
    }
}

/// Prints the session that would show handles while they are opened and closed.
///
/// # Errors
/// As [`record`].
pub fn live(args: &LiveArgs, out: &mut dyn Write) -> Result<(), CommandError> {
    let options = args.options();
    match args.dry_run {
        true => print(&SessionPlan::new(&options), out),
        false => Err(elsewhere::refusal("live", &args.session, &options)),
    }
}

/// Prints a profile for WPR, or writes it to the file that is named. `force` replaces what handlescope did not write.
///
/// # Errors
/// When it cannot be written.
pub fn wprp(args: &WprpArgs, force: bool, out: &mut dyn Write) -> Result<(), CommandError> {
    let (events, size, count) = args.session.parts();
    match &args.file {
        Some(path) => profile_file(path, force || args.force, events, size, count),
        None => Ok(wpr_profile(events, size, count, out)?),
    }
}

fn profile_file(
    path: &Path,
    force: bool,
    events: Events,
    size: BufferSize,
    count: BufferCount,
) -> Result<(), CommandError> {
    let file = Overwrite::new(force).replacing(path).map_err(|error| match error {
        OverwriteError::Exists { path } => CommandError::ProfileExists { path },
        error => error.into(),
    })?;
    write_whole(&file, |out| wpr_profile(events, size, count, out))
        .map_err(|source| CommandError::ProfilePlace { path: path.to_path_buf(), source })
}

fn print(plan: &SessionPlan, out: &mut dyn Write) -> Result<(), CommandError> {
    let mut json = Neutral::json(&mut *out);
    plan.serialize(&mut Serializer::with_formatter(&mut json, PrettyFormatter::new()))
        .map_err(std::io::Error::from)?;
    writeln!(json)?;
    Ok(())
}
