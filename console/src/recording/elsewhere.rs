//! Errors on systems where this program cannot record; they name the Windows tools that record the same.

use handlescope_model::Untrusted;
use handlescope_record::{
    PROFILE_NAME, REPRODUCE, RecordOptions, SessionError, Target, quoted, xperf_commands,
};

use super::args::SessionArgs;
use handlescope_commands::CommandError;

/// The profile that the command lines write and start.
const PROFILE: &str = "handlescope.wprp";

/// Returns why `command` cannot be carried out, and the tools that record the same.
pub fn refusal(
    command: &'static str,
    session: &SessionArgs,
    options: &RecordOptions,
    error: &SessionError,
) -> CommandError {
    let mut lines = vec!["WPR, which is part of Windows, in an administrator's prompt:".to_owned()];
    lines.extend(indented(wpr_commands(session, options)));
    lines.push("or xperf, of the Windows Performance Toolkit:".to_owned());
    lines.extend(indented(xperf_commands(options)));
    if !options.types.is_empty() {
        lines.push("Neither has --type: handles of all types are recorded.".to_owned());
    }
    if options.duration.is_some() || !options.stop_when.is_empty() {
        lines.push(
            "Neither stops by itself, so --duration and --stop-when do not apply.".to_owned(),
        );
    }
    if command == "live" {
        lines.push("This replays a recorded trace here:".to_owned());
        let replay = format!("handlescope live --replay {}", quoted(options.target.file()));
        lines.extend(indented(vec![replay]));
    }
    let reason = match error {
        SessionError::NotWindows { .. } => error.to_string(),
        error => format!("cannot start a session: {error}"),
    };
    CommandError::NotHere { command, reason, instead: lines.join("\n") }
}

/// Returns the command lines of WPR. Without `-filemode`, WPR keeps events in memory.
fn wpr_commands(session: &SessionArgs, options: &RecordOptions) -> Vec<String> {
    let clr = if options.dot_net { " --clr" } else { "" };
    let mode = if matches!(options.target, Target::Ring(_)) { "" } else { " -filemode" };
    vec![
        format!("handlescope wprp {PROFILE}{}{clr}", session.words()),
        format!("wpr -start {PROFILE}!{PROFILE_NAME}{mode}"),
        REPRODUCE.to_owned(),
        format!("wpr -stop {}", quoted(options.target.file())),
    ]
}

fn indented(lines: Vec<String>) -> impl Iterator<Item = String> {
    lines.into_iter().map(|line| format!("  {}", Untrusted(line)))
}
