//! What can be wrong with a command line.

use thiserror::Error;

use crate::values::ValueError;

/// A command line that means nothing. Every message names what was typed and what to type instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The first word is not a command.
    #[error("unknown command {name}{hint}")]
    UnknownCommand {
        /// The word.
        name: String,
        /// The nearest command, or how to list them.
        hint: String,
    },
    /// `.dump` alone.
    #[error("{command} needs to know what to dump: {kinds}")]
    MissingKind {
        /// The command as typed.
        command: String,
        /// What can be dumped, joined by commas.
        kinds: String,
    },
    /// `.dump` of something that does not exist.
    #[error("{command} cannot dump '{kind}', only {kinds}{hint}")]
    UnknownKind {
        /// The command as typed.
        command: String,
        /// What was to be dumped.
        kind: String,
        /// What can be dumped, joined by commas.
        kinds: String,
        /// The nearest kind, or nothing.
        hint: String,
    },
    /// An option that the command does not have.
    #[error("unknown option {name}{hint}{help}")]
    UnknownOption {
        /// The option as typed.
        name: String,
        /// The nearest option, or how to list them.
        hint: String,
        /// The help line of the nearest option on a line of its own, or nothing.
        help: String,
    },
    /// A word where only options are expected.
    #[error("unexpected '{word}'{hint}{help}")]
    UnexpectedWord {
        /// The word.
        word: String,
        /// The nearest option, or how to list them.
        hint: String,
        /// The help line of the nearest option on a line of its own, or nothing.
        help: String,
    },
    /// An option without its value.
    #[error("{option} needs a value\n  {help}")]
    MissingValue {
        /// The option as typed.
        option: String,
        /// Its help line.
        help: String,
    },
    /// An option with a value it cannot take.
    #[error("{option}: {source}\n  {help}")]
    BadValue {
        /// The option as typed.
        option: String,
        /// Its help line.
        help: String,
        /// What is wrong with the value.
        source: ValueError,
    },
    /// Two options that cannot be had together.
    #[error("{option} and {other} cannot be had together: {reason}")]
    Conflict {
        /// The one.
        option: &'static str,
        /// The other.
        other: &'static str,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// A command without its argument.
    #[error("{command} needs {what}")]
    MissingArgument {
        /// The command as typed.
        command: String,
        /// What is missing.
        what: &'static str,
    },
    /// More arguments than the command takes.
    #[error("{command} takes {takes}; '{word}' is too much")]
    TooManyArguments {
        /// The command as typed.
        command: String,
        /// What it takes.
        takes: &'static str,
        /// The first that is too much.
        word: String,
    },
    /// `.extract` of nothing that an extract has.
    #[error("{command}: {names}: {reason}; ask for ObjectRef, or leave {names} out")]
    NothingToExtract {
        /// The command as typed.
        command: String,
        /// What an extract holds.
        reason: &'static str,
        /// What was asked for, joined by commas.
        names: String,
    },
    /// A command of ETWAnalyzer that is not here.
    #[error("{command}: {reason}")]
    Refused {
        /// The command as typed.
        command: String,
        /// Why, and what to use instead.
        reason: &'static str,
    },
    /// `.help` about something that does not exist.
    #[error("no help found on '{topic}'{hint}")]
    UnknownTopic {
        /// What was asked for.
        topic: String,
        /// The nearest topic, or how to list them.
        hint: String,
    },
}
