//! Data model of a handle trace: its tables, their columns and units, and the archive that contains them.
//!
//! A trace consists of columnar tables ([`Table`]). Each table has one file in [`tables`] that declares its columns
//! once. The schema ([`ColumnSpec`]), the typed keys ([`Key`]), the row type and the column builder come from that
//! declaration. An archive (`.json7z`) is a 7z file with one Parquet member per table; [`ArchiveWriter`] writes one,
//! [`Trace`] reads it column by column.
//!
//! This crate knows nothing of ETW or of terminals.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod archive;
mod cancel;
mod column;
mod derived;
mod file;
pub mod guard;
pub mod history;
mod index;
mod key;
mod mapped;
mod noting;
pub mod output;
pub mod rules;
pub mod stable_hash;
mod table;
pub mod tables;
mod untrusted;

pub use archive::{
    ARCHIVE_EXTENSIONS, AnyArchive, ArchiveError, ArchiveLimits, ArchiveWriter, Container,
    ContainerError, ContainerLimits, EncodedTable, ForeignContent, ParquetFile, ROW_GROUP_ROWS,
    TableEncoder, Trace, replace_table, unpack, write_parquet, write_parquet_with,
};
pub use cancel::{Cancel, Cancelled, Poll};
pub use column::{
    Blobs, Bytes, Cell, ColumnSpec, ColumnType, Flags, Lists, Number, Numbers, Reference, RowSet,
    Sparse, Texts,
};
pub use derived::{
    AcquisitionState, EventColumns, EventHandles, EventOrder, EventPart, EventProcesses,
    EventTable, EventTimes, EventValues, Numbering, OpenedValues, ViewValues,
};
pub use file::{inspect_opened, open_file, read_folder};
pub use index::{
    AcquisitionIdx, AllocatorIdx, EventCountIdx, EventFieldIdx, EventIdx, EventValueIdx, FrameIdx,
    MethodIdx, ModuleIdx, NameIdx, ObjectIdx, ProcessIdx, ProviderEventIdx, ResourceMissIdx,
    RowCount, StackIdx, TypeId, sentinel,
};
pub use key::{Columns, Key};
pub use mapped::{PageWatch, survive_lost_pages, take_loss};
pub use noting::{Noting, PolarsReason, Reason, innermost, is_full, remedy, without_plan};
pub use output::OutputFile;
pub use table::Table;
pub use tables::{
    EventKind, FILE_MAPPING_NAME, FILE_MAPPING_TYPE, SCHEMA_VERSION, TableRows, UNKNOWN_TYPE_NAME,
};
pub use untrusted::{Untrusted, is_harmful};
