//! The console: commands, queries on the tables of a trace, and how they are shown.
//!
//! The binary `handlescope` is a few lines on top of this crate.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

pub mod addresses;
pub mod cancel;
pub mod cli;
pub mod commands;
pub mod completion;
pub mod console;
pub mod dataset;
pub mod environment;
pub mod filter;
pub mod fleet;
pub mod grammar;
pub mod live;
pub mod maintenance;
pub mod mcp;
pub mod one_shot;
mod paths;
pub mod query;
pub mod recording;
pub mod registry;
pub mod render;
pub mod repl;
pub mod script;
pub mod settings;
pub mod shell;
pub mod sql;
mod suggest;
pub mod terminal;
pub mod trace;
pub mod values;
