//! The list of commands and of kinds of `.dump`. Parsing, help, completion, highlighting, shell
//! completions and the manual page read it.

use handlescope_model::Untrusted;
use thiserror::Error;

use crate::{self as c, AnyKind, Registry, dump, fleet};
use handlescope_session::grammar::{ParseError, Token};

/// Everything there is, in the order of the help.
pub static REGISTRY: Registry = Registry {
    commands: &[
        &c::load::Load,
        &c::load::LoadMore,
        &c::session::List,
        &c::session::Unload,
        &c::extract::Extract,
        &c::redact::Redact,
        &c::save::Symbolize,
        &c::dir::Dir,
        &c::dir::Cd,
        &dump::why::COMMAND,
        &c::converttime::Snapshot,
        &dump::diff::DiffCommand,
        &dump::Dump,
        &c::pictures::plot::Plot,
        &c::pictures::flame::Flame,
        &c::pictures::report::Report,
        &c::sql::Sql,
        &c::converttime::ConvertTime,
        &c::export::Export,
        &c::save::Save,
        &c::schema::Schema,
        &c::settings::TIME_FORMAT,
        &c::settings::TIME_DIGITS,
        &c::settings::PROCESS_FORMAT,
        &c::settings::FILE_NAMES,
        &c::settings::CLIP,
        &c::settings::PAGER,
        &c::settings::SYSTEM_MODULES,
        &c::session::Cls,
        &c::sympath::SymPath,
        &c::config::Config,
        &c::alias::Alias,
        &c::help::Help,
        &c::session::Quit,
    ],
    kinds: &[
        &dump::object_ref::ObjectRef,
        &dump::why::Why,
        &dump::diff::Diff,
        &dump::resource::Resource,
        &dump::process::Process,
        &dump::module::Module,
        &dump::module::Version,
        &dump::stack::Stack,
        &dump::module::Symbols,
        &dump::events::Events,
        &dump::events::Stats,
    ],
    topics: c::topics::TOPICS,
};

/// Commands and kinds while a dataset is loaded: those over traces are missing, or go by the same name and have other
/// options.
pub static OVER_DATASET: Registry = Registry {
    commands: &[
        &c::load::Load,
        &c::load::LoadMore,
        &c::session::List,
        &c::session::Unload,
        &c::extract::Extract,
        &c::redact::Redact,
        &c::dir::Dir,
        &c::dir::Cd,
        &fleet::why::COMMAND,
        &fleet::diff::COMMAND,
        &fleet::groups::FleetDump,
        &fleet::plot::FleetPlot,
        &fleet::report::FleetPage,
        &c::sql::Sql,
        &c::schema::Schema,
        &c::settings::CLIP,
        &c::settings::PAGER,
        &c::settings::SYSTEM_MODULES,
        &c::session::Cls,
        &c::sympath::SymPath,
        &c::config::Config,
        &c::alias::Alias,
        &c::help::Help,
        &c::session::Quit,
    ],
    kinds: &[&fleet::groups::FleetObjectRef, &fleet::why::FleetWhy, &fleet::diff::FleetDiff],
    topics: c::topics::TOPICS,
};

/// The commands while a dataset is loaded, or while traces are.
pub fn registry(over_dataset: bool) -> &'static Registry {
    if over_dataset { &OVER_DATASET } else { &REGISTRY }
}

/// A command, kind or option of traces, while a dataset is loaded.
#[derive(Debug, Error)]
#[error(
    "{} works on traces, and a dataset is loaded; .load ID loads the extract of one of its traces, \
     and .dump ObjectRef -GroupBy trace lists the ids", Untrusted(.0)
)]
struct OnlyTraces(String);

/// An error about a line while a dataset is loaded: what is only there for traces is named so.
pub fn explained(error: ParseError, tokens: &[Token]) -> ParseError {
    let Some((first, rest)) = tokens.split_first() else { return error };
    let refused = |name: &str| ParseError::refused(OnlyTraces(name.to_owned()));
    if OVER_DATASET.command(&first.text).is_none() {
        return REGISTRY.command(&first.text).map_or(error, |command| refused(command.name()));
    }
    let kind = |registry: &Registry| {
        rest.iter().find_map(|token| registry.kind(&token.text)).map(AnyKind::name)
    };
    let is_dump = first.text.eq_ignore_ascii_case(".dump");
    if let (true, None, Some(kind)) = (is_dump, kind(&OVER_DATASET), kind(&REGISTRY)) {
        return refused(&format!(".dump {kind}"));
    }
    let (ParseError::UnknownOption { name, .. } | ParseError::OptionElsewhere { name, .. }) =
        &error
    else {
        return error;
    };
    let kind = rest.iter().find_map(|token| REGISTRY.kind(&token.text));
    let options = match (is_dump, kind) {
        (true, Some(kind)) => kind.options(),
        _ => REGISTRY.command(&first.text).map_or_else(Vec::new, |command| command.options()),
    };
    match options.iter().any(|option| option.is_named(name)) {
        true => refused(name),
        false => error,
    }
}

#[cfg(test)]
mod line_tests;
#[cfg(test)]
pub mod tests;
