//! What can be wrong with a command line.

use std::{error::Error, ffi::OsString};

use handlescope_model::Untrusted;
use thiserror::Error;

use crate::values::ValueError;

/// A command line that means nothing. Every message names what was typed and what to type instead.
#[derive(Debug, Error)]
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
    /// What only one command knows to be wrong, in its own words.
    #[error(transparent)]
    Refused(Box<dyn Error + Send + Sync>),
}

impl ParseError {
    pub(crate) fn refused(error: impl Error + Send + Sync + 'static) -> ParseError {
        ParseError::Refused(Box::new(error))
    }
}
