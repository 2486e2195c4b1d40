//! The program: its command line, the prompt, the live view, recordings, and the maintenance of datasets.
//!
//! The binary `handlescope` is a thin layer on top of this crate.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

pub mod cli;
pub mod live;
pub mod maintenance;
pub mod one_shot;
pub mod recording;
pub mod repl;
pub mod shell;
