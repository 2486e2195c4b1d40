//! Reasons why an answer is wrong, incomplete or empty.

use handlescope_render::InOptions;
use std::path::Path;

use handlescope_model::tables::ResourceKind;
use handlescope_model::{Trace, Untrusted};

use handlescope_query::{FileAnswer, NoMatch, QueryError, TraceAnswer, allocated_kinds};
use handlescope_session::terminal::Messages;
use handlescope_session::trace::{CaveatKind, warn_of};

/// Reports them for one trace.
pub fn write_caveats<'a>(answer: &impl TraceAnswer<'a>, messages: &mut Messages<'_>) {
    let about = answer.about();
    warn_of(about.path, &about.caveats, messages);
    write_no_match(about.path, about.no_match.as_ref(), messages);
}

/// Says why nothing passes the filters of a trace.
pub fn write_no_match(path: &Path, no_match: Option<&NoMatch>, messages: &mut Messages<'_>) {
    if let Some(no_match) = no_match {
        messages.note(format_args!("{}: {}", Untrusted(path), InOptions(no_match)));
    }
}

/// Says which option asks for the allocations of a trace, where it has no handle events.
pub fn note_allocations(
    file: &FileAnswer<'_>,
    messages: &mut Messages<'_>,
) -> Result<(), QueryError> {
    if file.about.caveats.iter().any(|caveat| caveat.kind == CaveatKind::NoHandleEvents)
        && let Some(option) = kind_option(file.file.trace)?
    {
        let path = Untrusted(file.about.path);
        messages.note(format_args!("{path}: {option} selects its allocations"));
    }
    Ok(())
}

/// `-Kind` with the kinds of what a trace allocates; `None` where that is nothing.
pub fn kind_option(trace: &Trace) -> Result<Option<String>, QueryError> {
    let kinds: Vec<&str> = allocated_kinds(trace)?.into_iter().map(ResourceKind::name).collect();
    Ok((!kinds.is_empty()).then(|| format!("-Kind {}", kinds.join(";"))))
}
