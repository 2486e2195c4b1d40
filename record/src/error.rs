//! What no session can be configured with, and why a trace is not merged.

use std::io;

use thiserror::Error;

use crate::limits::{LEAST_BUFFERS, LEAST_KIB, MOST_KIB, MOST_TYPES};

/// A value of an option that no session takes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// More object types than the kernel's filter has places for.
    #[error(
        "{count} object types are too many: the kernel's filter has places for {MOST_TYPES}; name those that leak, \
         or none for all"
    )]
    TooManyTypes { count: usize },
    /// Nothing between two `;`.
    #[error("an object type is empty; write their names with ; between them, as in Event;File")]
    EmptyType,
    /// A name that no object type of Windows has.
    #[error("{name:?} is not an object type: their names are of ASCII letters, as in Event;File")]
    TypeNotAscii { name: String },
    /// A buffer that is too small, too large, or no whole number of KiB.
    #[error(
        "a buffer of {bytes} bytes is not possible: {LEAST_KIB} to {MOST_KIB} KiB are, in whole KiB"
    )]
    BufferSize { bytes: u64 },
    /// Too few buffers.
    #[error(
        "{count} is too few buffers, the least is {LEAST_BUFFERS}: one is written while another one fills"
    )]
    BufferCount { count: u32 },
}

/// Why Windows did not merge a trace.
#[derive(Debug, Error)]
pub enum MergeError {
    /// What merges is not installed.
    #[error("{library} of the Windows Performance Toolkit is not installed")]
    NoLibrary { library: &'static str },
    /// It is not the library it should be.
    #[error("{library} has no CreateMergedTraceFile")]
    NoFunction { library: &'static str },
    /// It says why by a code of Windows.
    #[error("CreateMergedTraceFile failed with {code:#x}")]
    Failed { code: u32 },
    /// The trace cannot be replaced; the reason is that of the source.
    #[error("the trace cannot be replaced by the merged one")]
    Place(#[from] io::Error),
}
