//! Code that several commands share: common options, the search for frame names, and reasons why an answer is wrong,
//! incomplete or empty.

pub mod choice;
pub mod fleet;
pub mod gate;
pub mod ignore;
pub mod names;
pub mod options;
pub mod output_file;
pub mod symbols;

use handlescope_render::InOptions;
use std::path::Path;

use handlescope_model::tables::ResourceKind;
use handlescope_model::{Trace, Untrusted};

use handlescope_query::{NoMatch, QueryError, TraceAnswer, allocated_kinds};
use handlescope_session::terminal::Messages;
use handlescope_session::trace::{CaveatKind, Session, warn_of};

/// Arguments with a part that the options of several commands set.
pub trait Has<T> {
    fn part(&mut self) -> &mut T;
}

/// Lets options of several commands set fields of these arguments.
macro_rules! fields {
    ($args:ident { $($field:ident $(.$inner:ident)*: $type:ty),+ $(,)? }) => {
        $(impl $crate::shared::Has<$type> for $args {
            fn part(&mut self) -> &mut $type {
                &mut self.$field$(.$inner)*
            }
        })+
    };
}
pub(crate) use fields;

/// Headings in the list of commands, and of options that several kinds of `.dump` have.
pub mod groups {
    pub const FILES: &str = "Files";
    pub const QUERIES: &str = "Queries";
    pub const PRINTING: &str = "Output";
    pub const SESSION: &str = "Session";

    /// Options about order, number and format of the output.
    pub const DISPLAY: &str = "Output";

    /// Options about leaks to leave out.
    pub const KNOWN: &str = "Known leaks";

    /// Options that limit what a command may use.
    pub const LIMITS: &str = "Limits";

    /// Options that do nothing, so that ETWAnalyzer's command lines work.
    pub const WITHOUT_EFFECT: &str = "For ETWAnalyzer compatibility";

    /// Options for scripts.
    pub const SCRIPTS: &str = "Files and documents";
}

/// Reports what makes the answer about one trace wrong, incomplete or empty.
pub fn write_caveats<'a>(
    answer: &impl TraceAnswer<'a>,
    session: &Session,
    messages: &mut Messages<'_>,
) {
    let about = answer.about();
    session.note_caveats(&about.caveats);
    warn_of(about.path, &about.caveats, messages);
    write_no_match(about.path, about.no_match.as_ref(), messages);
}

/// Reports why nothing passes the filters of a trace.
pub fn write_no_match(path: &Path, no_match: Option<&NoMatch>, messages: &mut Messages<'_>) {
    if let Some(no_match) = no_match {
        messages.note(format_args!("{}: {}", Untrusted(path), InOptions(no_match)));
    }
}

/// Notes which option shows the allocations of a trace, if it has no handle events.
pub fn note_allocations<'a>(
    answer: &impl TraceAnswer<'a>,
    messages: &mut Messages<'_>,
) -> Result<(), QueryError> {
    let about = answer.about();
    if about.caveats.iter().any(|caveat| caveat.kind == CaveatKind::NoHandleEvents)
        && let Some(option) = kind_option(about.trace)?
    {
        let path = Untrusted(about.path);
        messages.note(format_args!("{path}: {option} selects its allocations"));
    }
    Ok(())
}

/// Returns `-Kind` with the kinds that a trace allocates; `None` if there are none.
pub fn kind_option(trace: &Trace) -> Result<Option<String>, QueryError> {
    let kinds: Vec<&str> = allocated_kinds(trace)?.into_iter().map(ResourceKind::name).collect();
    Ok((!kinds.is_empty()).then(|| format!("-Kind {}", kinds.join(";"))))
}
