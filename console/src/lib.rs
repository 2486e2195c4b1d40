//! The console: commands, queries on the tables of a trace, and how they are shown.
//!
//! The binary `handlescope` is a few lines on top of this crate.

pub mod command;
pub mod dump;
pub mod error;
pub mod filter;
pub mod help;
pub mod messages;
pub mod registry;
pub mod screen;
pub mod session;
pub mod table;
