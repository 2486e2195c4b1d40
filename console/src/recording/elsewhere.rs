//! Where this program cannot record: the tools of Windows that record the same.

use handlescope_model::Untrusted;
use handlescope_record::{PROFILE_NAME, RecordOptions, Target, quoted, xperf_commands};

use super::args::SessionArgs;
use crate::commands::CommandError;

/// The profile that the command lines write and start.
const PROFILE: &str = "handlescope.wprp";

/// Why `command` cannot be carried out, and what records the same.
pub(super) fn refusal(
    command: &'static str,
    session: &SessionArgs,
    options: &RecordOptions,
) -> CommandError {
    let mut lines = vec!["WPR, which is part of Windows, in an administrator's prompt:".to_owned()];
    lines.extend(indented(wpr_commands(session, &options.target)));
    lines.push("or xperf, of the Windows Performance Toolkit:".to_owned());
    lines.extend(indented(xperf_commands(options)));
    if !options.types.is_empty() {
        lines.push("Neither has --type: handles of all types are recorded.".to_owned());
    }
    if options.duration.is_some() || !options.stop_when.is_empty() {
        lines.push("Neither ends by itself, as --duration and --stop-when ask for.".to_owned());
    }
    CommandError::NotHere { command, reason: reason(), instead: lines.join("\n") }
}

/// Why there is no session of our own.
fn reason() -> String {
    match cfg!(windows) {
        true => "is not part of this version".to_owned(),
        false => format!("needs Windows, and this is {}", std::env::consts::OS),
    }
}

/// The command lines of WPR. Without `-filemode`, it keeps events in memory.
fn wpr_commands(session: &SessionArgs, target: &Target) -> Vec<String> {
    let mode = if matches!(target, Target::Ring(_)) { "" } else { " -filemode" };
    vec![
        format!("handlescope wprp {PROFILE}{}", session.words()),
        format!("wpr -start {PROFILE}!{PROFILE_NAME}{mode}"),
        format!("wpr -stop {}", quoted(target.file())),
    ]
}

fn indented(lines: Vec<String>) -> impl Iterator<Item = String> {
    lines.into_iter().map(|line| format!("  {}", Untrusted(line)))
}
