//! The list of commands and of kinds of `.dump`. Parsing, help, completion, highlighting, shell completions and the
//! manual page use it.

use handlescope_model::Untrusted;
use thiserror::Error;

use crate::Scope::{Anything, Traces};
use crate::{self as c, AnyCommand, Registry, Scope, dump};
use handlescope_session::grammar::{ParseError, Token};

/// The commands while traces, or nothing, are loaded.
pub const REGISTRY: Registry =
    Registry { list: LIST, over_dataset: false, topics: c::topics::TOPICS };

/// All commands, in the order of the help.
static LIST: &[(Scope, &dyn AnyCommand)] = &[
    (Anything, &c::load::Load),
    (Anything, &c::load::LoadMore),
    (Anything, &c::session::List),
    (Anything, &c::session::Unload),
    (Anything, &c::extract::Extract),
    (Anything, &c::redact::Redact),
    (Traces, &c::save::Symbolize),
    (Anything, &c::dir::Dir),
    (Anything, &c::dir::Cd),
    (Anything, &dump::why::COMMAND),
    (Traces, &c::converttime::Snapshot),
    (Anything, &dump::diff::COMMAND),
    (Anything, &dump::DUMP),
    (Anything, &c::pictures::plot::Plot),
    (Traces, &c::pictures::flame::Flame),
    (Anything, &c::pictures::report::Report),
    (Anything, &c::sql::Sql),
    (Traces, &c::converttime::ConvertTime),
    (Traces, &c::export::Export),
    (Traces, &c::save::Save),
    (Anything, &c::schema::Schema),
    (Traces, &c::settings::TIME_FORMAT),
    (Traces, &c::settings::TIME_DIGITS),
    (Traces, &c::settings::PROCESS_FORMAT),
    (Traces, &c::settings::FILE_NAMES),
    (Anything, &c::settings::CLIP),
    (Anything, &c::settings::PAGER),
    (Anything, &c::settings::SYSTEM_MODULES),
    (Anything, &c::session::Cls),
    (Anything, &c::sympath::SymPath),
    (Anything, &c::config::Config),
    (Anything, &c::alias::Alias),
    (Anything, &c::help::Help),
    (Anything, &c::session::Quit),
];

/// Returns the commands for a dataset, or for traces.
pub fn registry(over_dataset: bool) -> Registry {
    Registry { over_dataset, ..REGISTRY }
}

/// A command, kind or option for traces, used while a dataset is loaded.
#[derive(Debug, Error)]
#[error(
    "{} needs a trace, but a dataset is loaded; .load ID loads the extract of one of its traces, \
     and .dump ObjectRef -GroupBy trace lists the ids", Untrusted(.0)
)]
struct OnlyTraces(String);

/// Explains an error about a line while a dataset is loaded, if the line uses something that only works on traces.
pub fn explained(error: ParseError, tokens: &[Token]) -> ParseError {
    let Some((first, rest)) = tokens.split_first() else { return error };
    let refused = |name: &str| ParseError::refused(OnlyTraces(name.to_owned()));
    let over_dataset = registry(true);
    if over_dataset.command(&first.text).is_none() {
        return REGISTRY.command(&first.text).map_or(error, |command| refused(command.name()));
    }
    let kind = |registry: &Registry| {
        let mut words = rest.iter().filter(|_| first.text.eq_ignore_ascii_case(".dump"));
        words.find_map(|word| registry.kind(&word.text))
    };
    if let (None, Some(kind)) = (kind(&over_dataset), kind(&REGISTRY)) {
        return refused(&format!(".dump {}", kind.name()));
    }
    let (ParseError::UnknownOption { name, .. } | ParseError::OptionElsewhere { name, .. }) =
        &error
    else {
        return error;
    };
    let command = kind(&REGISTRY).or_else(|| REGISTRY.command(&first.text));
    if command.is_some_and(|command| command.option(name).is_some()) {
        refused(name)
    } else {
        error
    }
}

#[cfg(test)]
mod line_tests;
#[cfg(test)]
mod option_tests;
#[cfg(test)]
pub mod tests;
