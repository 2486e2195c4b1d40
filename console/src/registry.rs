//! The list of commands and of kinds of `.dump`. Parsing, help, completion, highlighting, shell
//! completions and the manual page read it.

use crate::commands::{
    Registry,
    cd::Cd,
    clip::Clip,
    cls::Cls,
    converttime::ConvertTime,
    dir::Dir,
    dump::{
        Dump, module::Module, object_ref::ObjectRef, process::Process, stack::Stack, stats::Stats,
        symbols::Symbols, version::Version,
    },
    export::Export,
    extract::Extract,
    help::{Help, TOPICS},
    list::List,
    load::{Load, LoadMore},
    processfmt::ProcessFmt,
    quit::Quit,
    save::Save,
    schema::Schema,
    sffn::Sffn,
    sql::Sql,
    symbolize::Symbolize,
    sympath::SymPath,
    timedigits::Digits,
    timefmt::TimeFmt,
    unload::Unload,
};

/// Everything there is, in the order of the help.
pub static REGISTRY: Registry = Registry {
    commands: &[
        &Load,
        &LoadMore,
        &List,
        &Unload,
        &Extract,
        &Dir,
        &Cd,
        &Dump,
        &Sql,
        &ConvertTime,
        &Export,
        &Save,
        &Schema,
        &TimeFmt,
        &Digits,
        &ProcessFmt,
        &Sffn,
        &Clip,
        &Cls,
        &SymPath,
        &Symbolize,
        &Help,
        &Quit,
    ],
    kinds: &[&ObjectRef, &Process, &Module, &Version, &Stack, &Symbols, &Stats],
    topics: TOPICS,
};

#[cfg(test)]
mod line_tests;
#[cfg(test)]
pub(crate) mod tests;
