//! The one list of commands, kinds and options. Parsing, help, completion and highlighting read it,
//! so that what is accepted, explained, offered and coloured is the same thing.

mod commands;
mod extract;
mod files;
mod kinds;
mod object_ref;
mod option;
mod output;
mod sql;
mod stack;
mod stack_display;
pub(crate) mod suggest;
mod symbols;
mod tables;
mod topics;
mod without_effect;

pub use commands::COMMANDS;
pub(crate) use extract::{EXTRACT, EXTRACTED, EXTRACTORS};
pub(crate) use files::{CONVERT_TIME, DIR, LOAD};
pub use kinds::KINDS;
pub(crate) use kinds::{MODULE, PROCESS, STATS, SYMBOLS};
pub(crate) use object_ref::GROUPS as OBJECT_REF;
pub use option::{Choice, Doc, Opt, OptionSpec, Take, Texts, ValueKind};
pub(crate) use option::{process_format, time_format};
pub(crate) use sql::{SQL, sql_options};
pub(crate) use stack::GROUPS as STACK;
pub(crate) use symbols::{SERVERS, SYMBOL_PATH, SYMBOLIZE};
pub(crate) use tables::{EXPORT, SAVE, SCHEMA};
pub use topics::{TOPICS, TopicSpec, topic};
pub(crate) use without_effect::DEBUG;

use crate::command::{Command, Dump, Entered, ParseError};
use crate::sql::Relation;

/// A command of the console.
pub struct CommandSpec {
    /// Its names; the first is the one that is shown.
    pub names: &'static [&'static str],
    /// The heading it stands under in the list of commands.
    pub group: &'static str,
    /// What may follow, as written in the help.
    pub usage: &'static str,
    /// What may follow, for completion and highlighting.
    pub arguments: Arguments,
    /// One line.
    pub summary: &'static str,
    /// What it does exactly.
    pub details: &'static str,
    /// Command lines that work.
    pub examples: &'static [&'static str],
    /// Its options; those of `.dump` belong to the kinds.
    pub groups: fn() -> Vec<GroupView>,
    /// Makes the command of what follows its name.
    pub(crate) parse: fn(&Entered<'_>) -> Result<Command, ParseError>,
}

/// What may follow the name of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arguments {
    /// Nothing.
    None,
    /// Its options.
    Options,
    /// Files on disk.
    Files,
    /// A folder on disk.
    Folder,
    /// Tables of a trace.
    Tables,
    /// A query, with options around it.
    Sql,
    /// Files that are loaded.
    LoadedFiles,
    /// A symbol path.
    SymbolPath,
    /// A kind of `.dump`, then its options.
    Kind,
    /// A command, or a kind of `.dump`.
    Topic,
    /// How times are written, then a number of digits.
    TimeFormat,
    /// A number of digits.
    Digits,
    /// How starts and ends of processes are written.
    ProcessFormat,
    /// On or off.
    Switch,
}

impl Arguments {
    /// The words that may come first, each with its meaning, where there are only so many.
    pub fn words(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Arguments::TimeFormat => option::time_words().collect(),
            Arguments::ProcessFormat => option::process_words().collect(),
            Arguments::Tables => {
                Relation::all().map(|relation| (relation.name(), relation.doc())).collect()
            }
            Arguments::Switch => vec![("1", "on"), ("0", "off")],
            _ => Vec::new(),
        }
    }
}

/// What `.dump` can dump.
pub struct KindSpec {
    /// Its name.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it prints exactly.
    pub details: &'static str,
    /// Command lines that work on `examples/leaky.etl`.
    pub examples: &'static [Example],
    /// Its options.
    pub groups: fn() -> Vec<GroupView>,
    /// Makes the dump of what follows the kind.
    pub(crate) parse: fn(&Entered<'_>) -> Result<Dump, ParseError>,
}

/// A command line that is worth knowing.
pub struct Example {
    /// What it is for.
    pub goal: &'static str,
    /// The line.
    pub line: &'static str,
}

/// Options that serve one purpose.
pub struct OptionGroup<A: 'static> {
    /// The purpose, as heading in the help.
    pub title: &'static str,
    /// The options.
    pub options: &'static [Opt<A>],
}

/// An [`OptionGroup`] whose arguments are of no interest.
pub struct GroupView {
    /// The purpose, as heading in the help.
    pub title: &'static str,
    /// The options.
    pub options: Vec<&'static dyn OptionSpec>,
}

impl CommandSpec {
    /// The name that is shown.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// Its name with what may follow, and its line of the help.
    pub fn help_line(&self) -> String {
        let usage = [self.name(), self.usage].join(" ");
        format!("{}  {}", usage.trim_end(), self.summary)
    }

    /// Whether it goes by this name, in any case.
    pub fn is_named(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// All its options.
    pub fn options(&self) -> Vec<&'static dyn OptionSpec> {
        (self.groups)().into_iter().flat_map(|group| group.options).collect()
    }

    /// The option of this name, in any case.
    pub fn option(&self, name: &str) -> Option<&'static dyn OptionSpec> {
        self.options().into_iter().find(|option| option.is_named(name))
    }
}

impl KindSpec {
    /// All its options.
    pub fn options(&self) -> Vec<&'static dyn OptionSpec> {
        (self.groups)().into_iter().flat_map(|group| group.options).collect()
    }

    /// The option of this name, in any case.
    pub fn option(&self, name: &str) -> Option<&'static dyn OptionSpec> {
        self.options().into_iter().find(|option| option.is_named(name))
    }
}

/// The command of this name, in any case.
pub fn command(name: &str) -> Option<&'static CommandSpec> {
    COMMANDS.iter().find(|command| command.is_named(name))
}

/// The kind of `.dump` of this name, in any case.
pub fn kind(name: &str) -> Option<&'static KindSpec> {
    KINDS.iter().find(|kind| kind.name.eq_ignore_ascii_case(name))
}

/// Groups of options without their arguments.
fn views<A: Default>(groups: &'static [OptionGroup<A>]) -> Vec<GroupView> {
    let view = |group: &'static OptionGroup<A>| GroupView {
        title: group.title,
        options: group.options.iter().map(|option| option as &dyn OptionSpec).collect(),
    };
    groups.iter().map(view).collect()
}

#[cfg(test)]
mod option_tests;
#[cfg(test)]
mod tests;
