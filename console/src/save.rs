//! `.save`: a loaded trace as an archive, for this program and for ETWAnalyzer.

use std::{io::Write, path::Path};

use handlescope_extract::{ExtractObserver, SaveError, SaveOptions, save};
use handlescope_model::Trace;
use indicatif::DecimalBytes;

use crate::{
    cancel::Cancel,
    command::SaveArgs,
    error::CommandError,
    expand::{EXTRACT_EXTENSION, has_extension},
    extraction::prepare_folder,
    file_filter,
    messages::Messages,
    progress::Spinner,
    query::AllNames,
    render::Clean,
    session::Session,
    symbols::{NameSearch, found_names},
};

/// Writes the one loaded trace that is meant as an archive, and says so in a line. Returns its number
/// in the session if it was saved over itself, so that it has to be read again.
///
/// # Errors
/// When nothing or too much is loaded, the name is that of somebody else's file or of no archive, the
/// archive cannot be written, or it was cancelled.
pub(crate) fn save_loaded(
    session: &Session,
    args: &SaveArgs,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
    out: &mut dyn Write,
) -> Result<Option<usize>, CommandError> {
    let chosen = file_filter::choose(session.files(), &args.files, messages)?;
    let [(index, file)] = chosen.as_slice() else {
        return Err(CommandError::SaveSeveral { files: chosen.len() });
    };
    let (trace, output) = (&*file.trace, args.file.as_path());
    check_name(output)?;
    let line = if args.etwanalyzer {
        let search = NameSearch { frames: &file.frames, symbolizer: session.symbolizer(), cancel };
        save_for_etwanalyzer(trace, output, search, messages)?
    } else {
        let size = write(trace, output, SaveOptions::default(), cancel, messages)?;
        format!("{}: {}", output.display(), DecimalBytes(size))
    };
    writeln!(out, "{}", Clean(&line))?;
    Ok(is_same(output, trace.path()).then_some(*index))
}

/// Writes a trace as an archive that ETWAnalyzer reads, too, with the names of all frames that can be
/// found; returns a line about it.
///
/// # Errors
/// When the trace cannot be read or the archive not be written, or it was cancelled; then what was
/// there stays as it was.
pub(crate) fn save_for_etwanalyzer(
    trace: &Trace,
    output: &Path,
    search: NameSearch<'_>,
    messages: &mut Messages<'_>,
) -> Result<String, CommandError> {
    let AllNames { named, frames, table } = found_names(trace, search, messages)?;
    let names = (named > 0).then_some(table);
    let options = SaveOptions { names, etwanalyzer: true };
    let size = write(trace, output, options, search.cancel, messages)?;
    let (path, size) = (output.display(), DecimalBytes(size));
    Ok(format!("{path}: {size} with ETWAnalyzer's members, {named} of {frames} frames have names"))
}

fn write(
    trace: &Trace,
    output: &Path,
    options: SaveOptions,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<u64, CommandError> {
    messages.wait("saving");
    let spinner = messages.spinner();
    let written = save(trace, output, options, &Watch(&spinner), cancel);
    spinner.stop();
    Ok(written?)
}

/// Refuses names that no archive has, and those of files that are not ours.
fn check_name(output: &Path) -> Result<(), CommandError> {
    let path = || output.to_path_buf();
    if !has_extension(output, &[EXTRACT_EXTENSION]) {
        return Err(CommandError::SaveName { path: path() });
    }
    if output.exists() && Trace::open(output).is_err() {
        return Err(CommandError::SaveForeign { path: path() });
    }
    prepare_folder(output).map_err(|source| CommandError::SavePlace { path: path(), source })
}

fn is_same(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}

/// Shows beside the spinner what is written.
struct Watch<'a>(&'a Spinner);

impl ExtractObserver for Watch<'_> {
    fn on_phase(&self, name: &str) {
        self.0.tell(format!("writing {}", Clean(name)));
    }
}

impl From<SaveError> for CommandError {
    fn from(error: SaveError) -> CommandError {
        match error {
            SaveError::Cancelled(_) => CommandError::Cancelled,
            SaveError::Archive(error) => error.into(),
            error => CommandError::Save { source: error },
        }
    }
}
