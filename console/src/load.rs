//! `.load`: from a file name to a trace, extracted first where needed.

use std::path::{Path, PathBuf};

use handlescope_model::{ArchiveError, Table, Trace};

use crate::{
    error::LoadError,
    expand::{TRACE_EXTENSIONS, expand, has_extension, is_extract},
    extraction::{self, Freshness, beside, freshness, in_cache, prepare_folder},
    messages::Messages,
    session::LoadedTrace,
};

/// Opens all files that some names stand for, and tells what happened to the others.
pub fn open_all(
    names: &[String],
    messages: &mut Messages<'_>,
) -> (Vec<LoadedTrace>, Vec<LoadError>) {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for name in names {
        let paths = expand(name).unwrap_or_else(|error| {
            errors.push(error.into());
            Vec::new()
        });
        for path in paths {
            match open(path, messages) {
                Ok(file) => files.push(file),
                Err(error) => errors.push(error),
            }
        }
    }
    (files, errors)
}

/// Opens an extract, or a trace by way of its extract.
pub fn open(path: PathBuf, messages: &mut Messages<'_>) -> Result<LoadedTrace, LoadError> {
    let trace = if is_extract(&path) {
        Trace::open(&path)?
    } else if has_extension(&path, TRACE_EXTENSIONS) {
        extracted(&path, messages)?
    } else {
        return Err(LoadError::UnknownFormat { path });
    };
    let (events, buffers) = losses(&trace)?;
    if let Some(lost) = extraction::lost(events, buffers) {
        messages.warning(format_args!("{}: {lost}", path.display()));
    }
    Ok(LoadedTrace::new(path, trace))
}

/// The extract of a trace: the one that is there, or else a new one.
fn extracted(path: &Path, messages: &mut Messages<'_>) -> Result<Trace, LoadError> {
    let (beside, in_cache) = (beside(path), in_cache(path));
    for extract in [&beside, &in_cache] {
        match freshness(path, extract) {
            Freshness::UpToDate(trace) => return Ok(*trace),
            Freshness::Missing => {}
            Freshness::Stale(reason) => {
                let extract = extract.display();
                messages.note(format_args!("{extract} {reason}; extracting the trace again"));
            }
        }
    }
    let output = match prepare_folder(&beside) {
        Ok(()) => beside,
        Err(reason) => {
            prepare_folder(&in_cache)
                .map_err(|source| LoadError::NoPlace { path: in_cache.clone(), source })?;
            let (wanted, used) = (beside.display(), in_cache.display());
            messages.note(format_args!("{wanted} cannot be written ({reason}); using {used}"));
            in_cache
        }
    };
    let summary = extraction::run(path, &output, messages)?;
    messages.note(extraction::line(&output, &summary));
    Ok(Trace::open(&output)?)
}

/// Events and buffers lost while recording.
fn losses(trace: &Trace) -> Result<(u64, u64), ArchiveError> {
    let first = |name| {
        let column = trace.column(Table::Trace, name)?;
        Ok(column.u64().ok().and_then(|column| column.get(0)).unwrap_or_default())
    };
    Ok((first("events_lost")?, first("buffers_lost")?))
}
