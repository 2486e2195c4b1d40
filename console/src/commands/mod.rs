//! Commands, one file for each, and one for each kind of `.dump`: arguments, options with their help,
//! examples, and what it does. [`crate::registry`] lists them.

pub(crate) mod alias;
pub(crate) mod cd;
pub(crate) mod cls;
mod command;
pub(crate) mod config;
mod context;
pub(crate) mod converttime;
pub(crate) mod dir;
pub(crate) mod dump;
mod error;
pub(crate) mod export;
pub(crate) mod extract;
pub mod help;
mod invocation;
pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod pictures;
pub(crate) mod quit;
pub(crate) mod redact;
mod redirected;
pub(crate) mod save;
pub mod schema;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod snapshot;
pub(crate) mod sql;
pub(crate) mod symbolize;
pub(crate) mod sympath;
pub(crate) mod sys;
pub mod topics;
pub(crate) mod unload;

pub use command::{
    AnyCommand, AnyKind, Command, Entered, Kind, KindSignature, Registry, Signature,
};
pub(crate) use context::answer;
pub use context::{Context, DumpContext, Flow, SharedArgs};
pub use error::CommandError;
pub use invocation::Invocation;
