//! The list of commands and of kinds of `.dump`. Parsing, help, completion, highlighting, shell
//! completions and the manual page read it.

use crate::commands::{self as c, Registry, dump};

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
        &dump::why::WhyCommand,
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

#[cfg(test)]
mod line_tests;
#[cfg(test)]
pub(crate) mod tests;
