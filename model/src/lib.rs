//! What a handle trace *is*: its tables, their columns and units, and the archive they live in.
//!
//! A trace is seventeen columnar tables ([`Table`]). Each table has one file in [`tables`] that
//! declares its columns once: the schema ([`ColumnSpec`]), the row type and the column builder
//! come from that declaration. An archive (`.json7z`) is a 7z file with one Parquet member per
//! table; [`ArchiveWriter`] makes one, [`Trace`] reads it column by column.
//!
//! This crate knows nothing of ETW or of terminals.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod archive;
mod cancel;
mod column;
pub mod guard;
mod index;
pub mod rules;
pub mod tables;

pub use archive::{
    ArchiveError, ArchiveLimits, ArchiveWriter, Container, ContainerError, ContainerLimits,
    EncodedTable, TableEncoder, Trace, refused_name, replace_table, unpack_reason, write_parquet,
};
pub use cancel::{Cancel, Cancelled};
pub use column::{Cell, ColumnSpec, ColumnType};
pub use index::{
    EventIdx, FrameIdx, MethodIdx, ModuleIdx, NameIdx, ObjectIdx, ProcessIdx, StackIdx, sentinel,
};
pub use tables::{
    EventKind, FILE_MAPPING_NAME, FILE_MAPPING_TYPE, Table, TableRows, UNKNOWN_TYPE_NAME,
};

/// Version of the table layout, stored in the trace table and in the name of no member.
///
/// * 1: the first layout.
/// * 2: product, description and company of modules; managed methods (table `methods`, column
///   `method` of `frames`), stacks of any event (table `stack_events`).
pub const SCHEMA_VERSION: u32 = 2;
