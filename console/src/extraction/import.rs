//! Extracts of ETWAnalyzer: converted once, into the cache, and then opened like any other.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use handlescope_extract::{ImportLimits, import, import_sources};
use handlescope_model::{SCHEMA_VERSION, Trace};

use super::{line, paths, prepare_folder, report};
use crate::{cancel::Cancel, error::LoadError, messages::Messages, progress::Progress};

/// Some file systems keep times to two seconds.
const TIME_RESOLUTION: Duration = Duration::from_secs(2);

/// What an extract looks like from outside: the size of all its files, and when the last of them
/// was changed.
#[derive(Clone, Copy)]
struct State {
    size: u64,
    modified: Option<SystemTime>,
}

impl State {
    fn of(extract: &Path) -> State {
        let mut state = State { size: 0, modified: None };
        for file in import_sources(extract) {
            if let Ok(metadata) = fs::metadata(file) {
                state.size += metadata.len();
                state.modified = state.modified.max(metadata.modified().ok());
            }
        }
        state
    }
}

/// Opens what an extract of ETWAnalyzer was converted to, after converting it if that was not done
/// or the extract has changed since. The extract itself stays as it is.
pub(crate) fn imported(
    extract: &Path,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<Trace, LoadError> {
    let output = paths::converted(extract);
    let state = State::of(extract);
    if let Some(trace) = up_to_date(&output, state) {
        return Ok(trace);
    }
    prepare_folder(&output)
        .map_err(|source| LoadError::NoCache { path: output.clone(), source })?;
    let summary = {
        let progress = Progress::new(extract, messages.is_watched(), cancel);
        import(extract, &output, ImportLimits::default(), &progress)?
    };
    // ETWAnalyzer gives its files the time of the session, so that only the very same time shows
    // that a file is unchanged. Where it cannot be set, the next load converts again.
    let _ = set_time(&output, state.modified);
    report::warn(extract, &summary, messages);
    let (extract, line) = (extract.display(), line(&output, &summary));
    messages.note(format_args!("{extract} is ETWAnalyzer's and was converted: {line}"));
    Ok(Trace::open(&output)?)
}

fn up_to_date(output: &Path, state: State) -> Option<Trace> {
    let modified = fs::metadata(output).ok()?.modified().ok()?;
    let wanted = state.modified?;
    let apart = modified.duration_since(wanted).or_else(|_| wanted.duration_since(modified));
    let (trace, version, size) = paths::recorded(output).ok()?;
    let is_same = apart.is_ok_and(|apart| apart < TIME_RESOLUTION) && size == state.size;
    (is_same && version == SCHEMA_VERSION).then_some(trace)
}

fn set_time(output: &Path, time: Option<SystemTime>) -> io::Result<()> {
    match time {
        Some(time) => File::options().write(true).open(output)?.set_modified(time),
        None => Ok(()),
    }
}
