//! `.sql`: answers any SQL query over the tables of the loaded traces or of a dataset.
//!
//! Polars parses, plans and executes the query. This crate defines what a query can name ([`Relation`]) and provides
//! columns when the plan wants them, so that a query reads only what it touches.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod answer;
mod columns;
mod dialect;
mod error;
mod exact;
mod functions;
mod groups;
mod hex;
mod joins;
mod memory;
mod names;
mod nested;
mod over_dataset;
mod planner;
mod query_state;
mod relations;
mod scan;
mod shapes;
mod stack_texts;
mod tables;
#[cfg(test)]
mod tests;
mod view_file;
mod views;

pub use self::answer::{Queries, sql};
pub use self::columns::RelationColumn;
pub use self::error::SqlError;
pub use self::functions::calendar_times;
pub use self::hex::{HEX, NUMBER};
pub use self::memory::MemoryLimit;
pub use self::over_dataset::{dataset_columns, sql_over_dataset};
pub use self::query_state::{QueryState, query_state};
pub use self::relations::Relation;
pub use self::view_file::ViewError;
pub use self::views::{View, Views};
