//! The commands, one file for each, and one for each kind of `.dump`. A file has arguments, options with their help,
//! examples, and what the command does. [`crate::registry`] lists the commands.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

pub mod completion;
pub mod console;
pub mod registry;
pub mod script;

pub mod alias;
mod call;
mod command;
pub mod config;
mod context;
pub mod converttime;
pub mod dir;
pub mod dump;
mod error;
pub mod export;
pub mod extract;
pub mod help;
pub mod load;
pub mod pictures;
mod pipe;
pub mod redact;
pub mod save;
pub mod schema;
pub mod session;
pub mod settings;
pub mod shared;
pub mod sql;
pub mod sympath;
mod syntax;
pub mod topics;

pub use call::KindCommand;
pub use command::{
    AnyCommand, Command, EnteredLine, OverDataset, ParsedArgs, Registry, Scope, Signature, Tabular,
};
pub use context::answer;
pub use context::{Context, DumpContext, Flow, Invocation, SharedArgs};
pub use error::CommandError;
pub use pipe::Pipe;

#[cfg(test)]
mod tests;
