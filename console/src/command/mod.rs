//! Commands as entered: plain values, one file per family, and how they are read.

mod display;
mod dump_words;
pub(crate) mod entry;
mod error;
pub(crate) mod export;
pub(crate) mod file_entry;
mod files;
mod line;
mod object_ref;
pub(crate) mod parse;
mod redirect;
pub(crate) mod setting;
pub(crate) mod sql;
pub(crate) mod symbols;
mod tables;
mod values;

pub use display::{DisplayArgs, ProcessFormat, StackDisplayArgs, TimeDigits, TimeFormat};
pub(crate) use dump_words::DumpWords;
pub use entry::Entered;
pub use error::ParseError;
pub use export::{ExportArgs, ExportFormat, SchemaArgs};
pub use files::{ConvertTimeArgs, DirArgs, ExtractArgs, LoadArgs, SaveArgs};
pub use line::{Quotes, Token, join, split};
pub use object_ref::{MapMode, NewProcess, ObjectRefArgs, ShowTotal};
pub use setting::Setting;
pub use sql::SqlArgs;
pub(crate) use sql::SqlWords;
pub use symbols::{SymbolArgs, SymbolPathArgs, SymbolizeArgs};
pub use tables::{ModuleArgs, ProcessArgs, StackArgs, StatsArgs, SymbolsArgs};
pub use values::{CountRange, CountUnit, SecondsRange, TopN, ValueError};
pub(crate) use values::{address, bytes};

use crate::render::OutputOptions;

/// A command line that means something.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there is one command at a time")]
pub enum Command {
    /// `.load` and `.load+`
    Load(LoadArgs),
    /// `.list`
    List,
    /// `.unload`: paths, names and patterns; none for everything.
    Unload(Vec<String>),
    /// `.dir`
    Dir(DirArgs),
    /// `.export`
    Export(ExportArgs),
    /// `.save`
    Save(SaveArgs),
    /// `.schema`
    Schema(SchemaArgs),
    /// `.sql`
    Sql(SqlArgs),
    /// `.converttime`
    ConvertTime(ConvertTimeArgs),
    /// `.extract`
    Extract(Box<ExtractArgs>),
    /// `.cd`: the new folder, or none to show it.
    ChangeFolder(Option<String>),
    /// `.sympath`
    SymbolPath(SymbolPathArgs),
    /// `.symbolize`
    Symbolize(SymbolizeArgs),
    /// `.dump`
    Dump(Dump),
    /// How the session prints from now on.
    Set(Setting),
    /// `.cls`
    ClearScreen,
    /// `.help`: about a command or a kind, or none to list everything.
    Help(Vec<String>),
    /// `.quit`
    Quit,
}

/// A `.dump`, by what it dumps.
#[derive(Debug, Clone, PartialEq)]
pub enum Dump {
    /// `.dump ObjectRef`
    ObjectRef(Box<ObjectRefArgs>),
    /// `.dump Process`
    Process(ProcessArgs),
    /// `.dump Module`
    Module(ModuleArgs),
    /// `.dump Stack`
    Stack(StackArgs),
    /// `.dump Symbols`
    Symbols(SymbolsArgs),
    /// `.dump Stats`
    Stats(StatsArgs),
}

impl Dump {
    /// How the answer is written, and where.
    pub fn output(&self) -> &OutputOptions {
        match self {
            Dump::ObjectRef(args) => &args.output,
            Dump::Process(args) => &args.output,
            Dump::Module(args) => &args.output,
            Dump::Stack(args) => &args.output,
            Dump::Symbols(args) => &args.output,
            Dump::Stats(args) => &args.output,
        }
    }

    fn output_mut(&mut self) -> &mut OutputOptions {
        match self {
            Dump::ObjectRef(args) => &mut args.output,
            Dump::Process(args) => &mut args.output,
            Dump::Module(args) => &mut args.output,
            Dump::Stack(args) => &mut args.output,
            Dump::Symbols(args) => &mut args.output,
            Dump::Stats(args) => &mut args.output,
        }
    }
}

impl Command {
    /// Reads one line. A blank line and a comment (`#` in front) are no command.
    pub fn parse(line: &str) -> Result<Option<Command>, ParseError> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        entry::command(line, &split(line))
    }

    /// Reads words that somebody else has cut, a shell for instance: they may hold blanks and quotes.
    pub fn from_words(words: &[String]) -> Result<Option<Command>, ParseError> {
        let (line, tokens) = join(words);
        entry::command(&line, &tokens)
    }
}

#[cfg(test)]
mod tests;
