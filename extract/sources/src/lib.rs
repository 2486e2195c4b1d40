//! Archives from every source of handles: text of `!htrace`, minidumps and extracts of ETWAnalyzer are read here, traces by
//! `handlescope-extract`.
//!
//! [`extract`] selects the reader by the content of a file. `htrace` and `dump` read operations on handles without times,
//! of which `operations` makes the tables. [`import`] fills the tables from an extract of ETWAnalyzer, and [`save`] writes
//! one from an archive.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod dump;
mod etwanalyzer;
mod extraction;
mod htrace;
mod operations;
mod text;

pub use dump::is_dump;
pub use etwanalyzer::{
    ImportError, ImportLimits, SaveError, SaveOptions, import, import_sources, is_for_etwanalyzer,
    save,
};
pub use extraction::extract;
pub use htrace::is_htrace;
