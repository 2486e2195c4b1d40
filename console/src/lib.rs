//! The console: commands, queries on the tables of a trace, and how they are shown.
//!
//! The binary `handlescope` is a few lines on top of this crate.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod cancel;
pub mod cli;
pub mod command;
pub mod console;
pub mod convert_time;
pub mod dump;
pub mod error;
pub mod expand;
pub mod export;
pub mod extraction;
mod file;
mod file_filter;
pub mod filter;
pub mod folder;
pub mod help;
pub mod list;
pub mod load;
mod margin;
pub mod messages;
pub mod one_shot;
mod output;
mod progress;
pub mod query;
pub mod registry;
pub mod render;
pub mod repl;
mod save;
pub mod schema;
pub mod screen;
pub mod script;
pub mod session;
pub mod settings;
pub mod shell;
pub mod sql;
mod symbols;
pub mod table;
mod wrap;
