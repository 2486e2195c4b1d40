//! Errors of an archive.

use std::io;
use std::path::PathBuf;

use polars::prelude::PolarsError;

use super::container::ContainerError;
use crate::noting::{PolarsReason, Reason, is_full};
use crate::untrusted::Untrusted;

/// An archive that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file cannot be created or renamed.
    #[error("{}: cannot {action}: {}{}", Untrusted(.path), Reason(.source), remedy(.source))]
    Io { path: PathBuf, action: &'static str, source: io::Error },
    /// The file was written, but its name is taken: on Windows, by a file that another program has loaded.
    #[error("{}: cannot be replaced: {}; close what uses it", Untrusted(.path), Reason(.source))]
    Replace { path: PathBuf, source: io::Error },
    /// The file cannot be unpacked, or is refused.
    #[error("{}{}", .0, if .0.is_damage() { "; extract the trace again" } else { "" })]
    Container(#[from] ContainerError),
    /// The file cannot be packed.
    #[error("{}: cannot pack: {reason}", Untrusted(.path))]
    Pack { path: PathBuf, reason: String },
    /// A member is damaged or does not fit its table.
    #[error("{}: member {} is damaged: {reason}; extract the trace again", Untrusted(.path), Untrusted(.member))]
    Member { path: PathBuf, member: String, reason: String },
    /// A member is missing.
    #[error("{}: member {member} is missing; extract the trace again", Untrusted(.path))]
    Missing { path: PathBuf, member: String },
    /// The archive holds no trace table, so it is not one of ours.
    #[error("{}: no member trace.parquet, so this is not a handlescope extract", Untrusted(.path))]
    NotAnExtract { path: PathBuf },
    /// The archive was made by another version.
    #[error("{}: layout version {version}, this program reads {supported}; {remedy}", Untrusted(.path))]
    Layout { path: PathBuf, version: u32, supported: u32, remedy: &'static str },
    /// A table could not be encoded.
    #[error("table {table}: cannot be written: {}", PolarsReason(.source))]
    Encode { table: &'static str, source: PolarsError },
}

/// Returns what to do if the disk is full.
fn remedy(error: &io::Error) -> &'static str {
    if is_full(error) { "; free some space, or choose another folder" } else { "" }
}

impl ArchiveError {
    /// Whether the file can be read with a higher limit.
    pub fn is_about_size(&self) -> bool {
        matches!(self, Self::Container(error) if error.is_about_size())
    }
}
