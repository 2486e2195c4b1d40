//! What makes an answer wrong or incomplete, or why there is none.

use handlescope_model::Untrusted;

use crate::{query::FileAnswer, terminal::Messages};

/// Says so for one trace.
pub(crate) fn write_caveats(file: &FileAnswer<'_>, messages: &mut Messages<'_>) {
    let path = Untrusted(file.path());
    for caveat in &file.caveats {
        messages.warning(format_args!("{path}: {}", caveat.text));
    }
    if let Some(no_match) = &file.no_match {
        messages.note(format_args!("{path}: {no_match}"));
    }
}
