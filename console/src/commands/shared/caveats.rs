//! What makes an answer wrong or incomplete, or why there is none.

use std::path::Path;

use handlescope_model::Untrusted;

use crate::{query::FileAnswer, terminal::Messages, trace::Caveat};

/// Says so for one trace, of handles.
pub(crate) fn write_caveats(file: &FileAnswer<'_>, messages: &mut Messages<'_>) {
    let path = Untrusted(file.path());
    write_warnings(file.path(), &file.caveats, messages);
    if let Some(no_match) = &file.no_match {
        messages.note(format_args!("{path}: {no_match}"));
    }
}

/// Says what makes an answer for a trace wrong or incomplete.
pub(crate) fn write_warnings(path: &Path, caveats: &[Caveat], messages: &mut Messages<'_>) {
    for caveat in caveats {
        messages.warning(format_args!("{}: {}", Untrusted(path), caveat.text));
    }
}
