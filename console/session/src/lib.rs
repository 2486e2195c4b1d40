//! The session of the console: typed values and filters, the grammar of command lines, paths, settings, the terminal,
//! and loaded traces.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

pub mod cancel;
pub mod environment;
pub mod filter;
pub mod grammar;
pub mod paths;
pub mod settings;
pub mod suggest;
pub mod terminal;
pub mod trace;
pub mod values;
