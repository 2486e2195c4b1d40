//! `handlescope extract`

use std::{
    collections::HashMap,
    io::Write,
    path::{Path, PathBuf},
};

use super::{beside, line, lost, paths, prepare_folder, run};
use crate::{
    cancel::Cancel,
    error::{CommandError, LoadError},
    expand::{TRACE_EXTENSIONS, expand, has_extension},
    messages::Messages,
};

/// Extracts traces; `names` may have wildcards. Each summary goes to `out`, everything else to
/// `messages`. Without `outdir`, extracts lie in `Extract` beside their traces.
///
/// Returns whether all of it worked. A file that fails does not keep the others from being done.
///
/// # Errors
/// When `out` cannot be written, or it was cancelled.
pub fn extract_files(
    names: &[String],
    outdir: Option<&Path>,
    cancel: &Cancel,
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> Result<bool, CommandError> {
    let mut outputs: HashMap<PathBuf, PathBuf> = HashMap::new();
    let mut worked = true;
    for input in inputs(names, messages, &mut worked) {
        let output = match outdir {
            Some(outdir) => outdir.join(paths::file_name(&input)),
            None => beside(&input),
        };
        if let Some(other) = outputs.insert(output.clone(), input.clone()) {
            if other == input {
                continue; // named twice, by two patterns for instance
            }
            let error = LoadError::SameExtract { path: input, other, output };
            messages.error(error);
            worked = false;
            continue;
        }
        match extract_file(&input, &output, cancel, messages) {
            Ok(summary) => writeln!(out, "{summary}")?,
            Err(_) if cancel.is_cancelled() => return Err(CommandError::Cancelled),
            Err(error) => {
                messages.error(error);
                worked = false;
            }
        }
    }
    Ok(worked)
}

/// All files the names stand for. Names that stand for none are told and clear `worked`; a pattern
/// passes over files that are no traces.
fn inputs(names: &[String], messages: &mut Messages<'_>, worked: &mut bool) -> Vec<PathBuf> {
    let mut inputs = Vec::new();
    for name in names {
        let mut problems = Vec::new();
        let mut expanded = expand(name, false, &mut problems);
        if expanded.is_found {
            expanded.files.retain(|path| has_extension(path, TRACE_EXTENSIONS));
        }
        inputs.append(&mut expanded.files);
        for problem in problems {
            messages.error(problem);
            *worked = false;
        }
    }
    inputs
}

fn extract_file(
    input: &Path,
    output: &Path,
    cancel: &Cancel,
    messages: &mut Messages<'_>,
) -> Result<String, LoadError> {
    prepare_folder(output)
        .map_err(|source| LoadError::NoPlace { path: output.to_path_buf(), source })?;
    let summary = run(input, output, cancel, messages)?;
    if let Some(lost) = lost(summary.events_lost, summary.buffers_lost) {
        messages.warning(format_args!("{}: {lost}", input.display()));
    }
    Ok(line(output, &summary))
}
