//! What Windows did not merge into a trace, added by this program.

use std::{
    env,
    io::{BufWriter, Write},
    path::PathBuf,
};

use handlescope_extract::{CompleteError, Completed, complete, image_file_name};
use handlescope_model::{OutputFile, Reason, Untrusted};
use handlescope_record::{FurtherTraces, MergeError};
use indicatif::HumanCount;

use crate::{
    cancel::Cancel,
    paths::Output,
    terminal::{Messages, Progress},
    values::Counted,
};

/// Replaces a trace that was just recorded by one with the identities of its images and with the further traces;
/// `reason` is why Windows did not. If it cannot be done, the trace stays as the session left it.
pub(super) fn merge(
    trace: &Output,
    further: &FurtherTraces,
    reason: &MergeError,
    messages: &mut Messages<'_>,
    cancel: &Cancel,
) {
    let progress = messages.progress(trace.path());
    let done = completed(trace, further, &progress, cancel);
    drop(progress);
    let path = Untrusted(trace.path());
    let reason = why(reason);
    match done {
        Ok(Completed { identified, unidentified, events }) => {
            if identified == 0 {
                messages.warning(format_args!(
                    "{path} has no identities of images, so that symbols will not be found: {reason}, and no file of \
                     an image could be read"
                ));
            } else {
                messages.note(format_args!(
                    "{path}: {} identified by file, {} not ({reason})",
                    Counted(identified, "image"),
                    HumanCount(unidentified)
                ));
            }
            if events > 0 {
                messages.note(format_args!("{path}: {} of .NET", Counted(events, "event")));
            }
        }
        Err(error) => messages.warning(format_args!(
            "{path} has no identities of images, so that symbols will not be found: {reason}, and its copy with them \
             failed: {error}"
        )),
    }
}

/// A reason in the words of the user.
fn why(reason: &MergeError) -> String {
    match reason {
        MergeError::Place(source) => format!("{reason}: {}", Reason(source)),
        reason => reason.to_string(),
    }
}

fn completed(
    trace: &Output,
    further: &FurtherTraces,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Completed, CompleteError> {
    let mut out = BufWriter::new(OutputFile::beside(trace.path())?);
    let windows = env::var("SystemRoot").unwrap_or_default();
    let done = complete(
        trace.path(),
        further.files(),
        &mut |path| on_this_system(path, &windows),
        &mut out,
        progress,
        cancel,
    )?;
    if (done.identified, done.events) == (0, 0) {
        return Ok(done);
    }
    out.flush()?;
    let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.persist(trace.path())?;
    trace.is_written();
    Ok(done)
}

/// The file of an image; what the names of the kernel mean is known to Windows only.
fn on_this_system(path: &str, windows: &str) -> Option<PathBuf> {
    image_file_name(path, windows).filter(|_| cfg!(windows)).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_trace_that_cannot_be_replaced_has_its_reason_in_plain_words() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(
            why(&MergeError::Place(full)),
            "the trace cannot be replaced by the merged one: the disk is full"
        );
        let library = "KernelTraceControl.dll";
        assert!(why(&MergeError::NoLibrary { library }).ends_with("is not installed"));
    }
}
