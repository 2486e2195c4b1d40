//! From `.etl` bytes to handle trace tables, and from addresses to function names.
//!
//! Data flows one way, one module per stage:
//!
//! 1. [`etl`]: bytes → buffers → events in time order; knows no payload.
//! 2. [`kernel`]: one payload decoder per event family.
//!    [`managed`] has those of the .NET runtime.
//! 3. [`collect`] and [`stacks`]: events → raw columns, in one pass.
//! 4. [`lifecycle`]: raw columns → objects, owners, leaks.
//! 5. `assemble`: all of it → tables → archive.
//!
//! [`extract`] runs all of them. [`OpenRecording`] with a [`collect::Collector`] of one's own runs
//! the first three, for whoever needs every stack or every event. [`symbols`] stands apart: it is
//! asked when stacks are shown. [`import`] fills the same tables from an extract of ETWAnalyzer.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod assemble;
pub mod collect;
mod error;
pub mod etl;
mod etwanalyzer;
mod extraction;
mod input;
mod intern;
pub mod kernel;
pub mod lifecycle;
pub mod managed;
mod members;
mod recording;
pub mod stacks;
pub mod symbols;

pub use assemble::filetime;
pub use error::ExtractError;
pub use etwanalyzer::{
    ImportError, ImportLimits, SaveError, SaveOptions, import, import_sources, is_for_etwanalyzer,
    save,
};
pub use extraction::{
    ExtractObserver, ExtractOptions, ExtractSummary, ExtractWarning, NoObserver, StackChoice,
    extract,
};
pub use recording::{OpenRecording, Recording};
