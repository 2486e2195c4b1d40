//! `handlescope record`, `live` and `wprp`: recordings of handle events, for this program and for the tools of Windows.

mod args;
mod elsewhere;
mod record;
mod stop;

use std::io::Write;

use handlescope_record::{EventSink, Running, SessionPlan, recorder, wpr_profile};
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

pub use args::{LiveArgs, RecordArgs, SessionArgs, WprpArgs};
pub use record::decodable;
pub use stop::{StopTrigger, StopWatch};

use handlescope_commands::CommandError;
use handlescope_session::cancel::Cancel;
use handlescope_session::paths::{Overwrite, write_whole};
use handlescope_session::terminal::{Messages, Neutral};

/// Records until it is asked to stop, or prints the session that would be started. `force` replaces a trace that
/// handlescope did not write.
///
/// # Errors
/// If the session cannot be started (the error says what records the same) or is lost, or the trace cannot be
/// extracted.
pub fn record(
    args: &RecordArgs,
    force: bool,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
    cancel: &Cancel,
) -> Result<(), CommandError> {
    if args.dry_run {
        print(&SessionPlan::new(&args.options()), out)
    } else {
        record::run(args, force, recorder(), out, messages, cancel)
    }
}

/// Prints the session of `live`.
///
/// # Errors
/// If it cannot be written.
pub fn live_plan(args: &LiveArgs, out: &mut dyn Write) -> Result<(), CommandError> {
    print(&SessionPlan::new(&args.options()), out)
}

/// Starts that session; its events go to `events`.
///
/// # Errors
/// If it cannot be started; the error says what records the same.
pub fn live_session(args: &LiveArgs, events: EventSink) -> Result<Box<dyn Running>, CommandError> {
    let options = args.options();
    let started = recorder().start(SessionPlan::new(&options), events);
    started.map_err(|error| elsewhere::refusal("live", &args.session, &options, &error))
}

/// Prints a profile for WPR, or writes it to the named file. `force` replaces a file that handlescope did not write.
///
/// # Errors
/// If it cannot be written.
pub fn wprp(args: &WprpArgs, force: bool, out: &mut dyn Write) -> Result<(), CommandError> {
    let (events, size, count) = args.session.events_and_buffers();
    let providers = args.other_providers();
    let write = |out: &mut dyn Write| wpr_profile(events, &providers, size, count, out);
    let Some(path) = &args.file else { return Ok(write(out)?) };
    let file = Overwrite::new(force || args.force).replacing(path);
    let file = file.map_err(CommandError::from_command_line)?;
    let instead = "name another file";
    write_whole(&file, &Cancel::default(), write).map_err(|source| CommandError::Unwritten {
        path: path.clone(),
        source,
        instead,
    })
}

fn print(plan: &SessionPlan, out: &mut dyn Write) -> Result<(), CommandError> {
    let mut json = Neutral::json(&mut *out);
    plan.serialize(&mut Serializer::with_formatter(&mut json, PrettyFormatter::new()))
        .map_err(std::io::Error::from)?;
    writeln!(json)?;
    Ok(())
}
