//! Reasons why a tool has no answer.

use std::io;

use handlescope_model::Untrusted;
use thiserror::Error;

use handlescope_commands::CommandError;
use handlescope_session::grammar::ParseError;
use handlescope_session::suggest::followed_by;
use handlescope_session::trace::NoFile;
use handlescope_session::values::ValueError;

/// The reason why a tool has no answer, for the agent that called it.
#[derive(Debug, Error)]
pub enum ToolError {
    /// Arguments that the tool does not take.
    #[error(
        "{}",
        followed_by(format!("there is no argument '{name}'{hint}"), &format!("the arguments are {known}"))
    )]
    Unknown { name: String, hint: String, known: String },
    /// A required argument that is missing.
    #[error("the argument '{name}' is missing")]
    Missing { name: &'static str },
    /// A value of another type.
    #[error("the argument '{name}' takes {wanted}")]
    Wrong { name: &'static str, wanted: String },
    /// A value that would be read as an option of the command.
    #[error(
        "the argument '{name}' cannot start with '-'; write ? for this character, which stands for any"
    )]
    Option { name: &'static str },
    /// An invalid filter.
    #[error("the argument '{name}' is not a valid filter: {reason}")]
    Filter { name: &'static str, reason: String },
    /// An argument that means nothing for what is loaded.
    #[error("the argument '{name}' does not apply to {loaded}; the arguments are {known}")]
    NotOver { name: &'static str, loaded: &'static str, known: String },
    /// A tool that answers over traces only, while a dataset is loaded.
    #[error(
        "{tool} needs traces, but the dataset {} is loaded; ask it with {tools}, or load other \
         files, or one of its traces by id in `paths`", Untrusted(.dataset)
    )]
    OverDataset { tool: &'static str, dataset: String, tools: String },
    /// A value that the option of an argument does not take.
    #[error("{option}: {source}")]
    Value { option: String, source: ValueError },
    /// A cursor that belongs to another query.
    #[error(
        "the cursor belongs to another query; repeat the arguments it came with, or leave it out to \
         start again, as after each load"
    )]
    Cursor,
    /// A page without room for its row, because the call of the next page repeats the arguments.
    #[error(
        "a page takes at least {least} bytes with these arguments; raise `max_bytes`, or shorten them"
    )]
    PageTooSmall { least: usize },
    /// Nothing could be loaded: the loaded traces are those from before.
    #[error("{error}\nloaded now: {loaded}")]
    Load { error: Box<CommandError>, loaded: String },
    /// A query without an answer.
    #[error("{reason}")]
    Query { reason: String, has_ended: bool },
    /// The process of a query has ended without an answer.
    #[error(
        "the query was stopped because it needs more memory than is available; ask for fewer rows, \
         fewer columns or shorter texts"
    )]
    QueryEnded,
    /// A name that neither a table nor a view has.
    #[error("there is no table or view '{}'{hint}", Untrusted(.name))]
    NoTable { name: String, hint: String },
    #[error("no trace is loaded; call load first")]
    NothingLoaded,
    #[error(transparent)]
    Command(Box<CommandError>),
    /// The client has cancelled the call.
    #[error("cancelled")]
    Cancelled,
    #[error("this is a bug in handlescope ({reason}); please report it with the arguments")]
    Bug { reason: String },
}

impl From<CommandError> for ToolError {
    fn from(error: CommandError) -> ToolError {
        match error {
            CommandError::NoFile(NoFile::NothingLoaded) => ToolError::NothingLoaded,
            // Without the help of the command line.
            CommandError::Parse(ParseError::BadValue { option, source, .. }) => {
                ToolError::Value { option, source }
            }
            error => ToolError::Command(Box::new(error)),
        }
    }
}

impl From<io::Error> for ToolError {
    fn from(source: io::Error) -> ToolError {
        CommandError::Output { source }.into()
    }
}

impl From<serde_json::Error> for ToolError {
    fn from(error: serde_json::Error) -> ToolError {
        if error.is_io() {
            io::Error::from(error).into()
        } else {
            ToolError::Bug { reason: format!("not JSON: {error}") }
        }
    }
}
