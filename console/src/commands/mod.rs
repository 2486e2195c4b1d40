//! Commands, one file for each, and one for each kind of `.dump`: arguments, options with their help,
//! examples, and what it does. [`crate::registry`] lists them.

pub(crate) mod alias;
mod command;
pub(crate) mod config;
mod context;
pub(crate) mod converttime;
pub(crate) mod dir;
pub(crate) mod dump;
mod error;
pub(crate) mod export;
pub(crate) mod extract;
pub(crate) mod fleet;
pub mod help;
pub(crate) mod load;
pub(crate) mod pictures;
pub(crate) mod redact;
pub(crate) mod save;
pub mod schema;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod sql;
pub(crate) mod sympath;
pub mod topics;

pub(crate) use command::KindCommand;
pub use command::{
    AnyCommand, AnyKind, Command, Entered, Kind, KindSignature, Registry, Signature,
};
pub(crate) use context::answer;
pub use context::{Context, DumpContext, Flow, Invocation, SharedArgs};
pub use error::CommandError;
