//! Datasets: the answers about many traces as Parquet files that any engine reads.
//!
//! `tables` declares tables, columns and rows, `layout` folders and files, `rows` makes rows of what one trace
//! acquired, and `add` writes them. docs/fleet.md describes a dataset to its readers.

mod add;
#[cfg(feature = "object-store")]
mod bucket;
mod check;
mod column;
mod error;
mod layout;
mod manifest;
mod origin;
mod rows;
mod store;
mod tables;

pub use self::add::{AddOptions, Added};
pub use self::check::ListedTrace;
pub use self::error::DatasetError;
pub use self::layout::short;
pub use self::layout::{Dataset, Partition};
pub use self::manifest::COMPARED_BYTES;
pub use self::origin::{Given, source_id};
pub use self::store::LocalFile;
pub use self::tables::{DatasetTable, SCHEMA_VERSION, TABLES};
