//! What can be wrong with a command line.

use std::ffi::OsString;

use handlescope_model::Untrusted;
use thiserror::Error;

use crate::values::ValueError;

/// A command line that means nothing. Every message names what was typed and what to type instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The first word is not a command.
    #[error("unknown command {}{hint}", Untrusted(.name))]
    UnknownCommand {
        name: String,
        /// The nearest command, or how to list them.
        hint: String,
    },
    /// A word that is not text, which only names of files can be.
    #[error(
        "'{}' is not UTF-8; rename the file, or name it with * or ? in place of the other bytes",
        Untrusted(.word)
    )]
    NotText { word: OsString },
    /// `.dump` alone.
    #[error("{command} needs a kind: {kinds}")]
    MissingKind {
        command: String,
        /// What can be dumped, joined by commas.
        kinds: String,
    },
    /// `.dump` of something that does not exist.
    #[error("{command} cannot dump '{}', only {kinds}{hint}", Untrusted(.kind))]
    UnknownKind {
        command: String,
        kind: String,
        /// What can be dumped, joined by commas.
        kinds: String,
        /// The nearest kind, or nothing.
        hint: String,
    },
    /// An option that the command does not have.
    #[error("unknown option {}{hint}{help}", Untrusted(.name))]
    UnknownOption {
        name: String,
        /// The nearest option, or how to list them.
        hint: String,
        /// The help line of the nearest option on a line of its own, or nothing.
        help: String,
    },
    /// A word where only options are expected.
    #[error("unexpected '{}'{hint}{help}", Untrusted(.word))]
    UnexpectedWord {
        word: String,
        /// The nearest option, or how to list them.
        hint: String,
        /// The help line of the nearest option on a line of its own, or nothing.
        help: String,
    },
    /// An option without its value.
    #[error("{option} needs a value\n  {help}")]
    MissingValue { option: String, help: String },
    /// An option with a value it cannot take.
    #[error("{option}: {source}\n  {help}")]
    BadValue { option: String, help: String, source: ValueError },
    /// An option with a value that is given twice.
    #[error("{option} is given twice; a filter takes several values divided by ;\n  {help}")]
    Repeated { option: String, help: String },
    /// A quote that is never closed.
    #[error("the quote in front of '{}' is never closed", Untrusted(.text))]
    OpenQuote { text: String },
    /// Two options that cannot be combined.
    #[error("{option} and {other} cannot be combined: {reason}")]
    Conflict { option: &'static str, other: &'static str, reason: &'static str },
    /// A command without its argument.
    #[error("{command} needs {what}")]
    MissingArgument { command: String, what: &'static str },
    /// More arguments than the command takes.
    #[error("{command} takes {takes}; unexpected '{}'", Untrusted(.word))]
    TooManyArguments {
        command: String,
        takes: &'static str,
        /// The first that is too much.
        word: String,
    },
    /// `.extract` of nothing that an extract has.
    #[error("{command}: {}: {reason}; name ObjectRef, or leave {} out", Untrusted(.names), Untrusted(.names))]
    NothingToExtract {
        command: String,
        /// What an extract holds.
        reason: &'static str,
        /// What was asked for, joined by commas.
        names: String,
    },
    /// A command of ETWAnalyzer that is not here.
    #[error("{command}: {reason}")]
    Refused { command: String, reason: &'static str },
    /// `.help` about something that does not exist.
    #[error("no help found on '{}'{hint}", Untrusted(.topic))]
    UnknownTopic {
        topic: String,
        /// The nearest topic, or how to list them.
        hint: String,
    },
}
