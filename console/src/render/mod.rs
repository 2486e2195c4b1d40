//! Answers as text for people, and as JSON, CSV and Parquet for programs.
//!
//! `kinds/` makes a [`Table`] of the answer of each kind, `table/` writes it in every format,
//! `output.rs` says which format and where. Only the objects of `.dump ObjectRef` have a text and CSV
//! of their own (`text/`, `csv/`), and nested documents their serializers (`json/`).

mod csv;
mod event_item;
mod json;
mod kinds;
mod no_match;
pub(crate) mod output;
pub(crate) mod pictures;
pub(crate) mod report;
mod style;
mod table;
mod text;
pub(crate) mod time;

pub(crate) use kinds::{OBJECT_COLUMNS, columns, write_frame};
pub use kinds::{
    call_stacks, diff_allocated, diff_allocations, diff_points, diff_traces, event_counts, frame,
    modules, object_ref, processes, properties, provider_events, resources, stats, symbols,
    versions, why,
};
pub(crate) use no_match::option;
pub use output::{OutputError, OutputOptions};
pub use style::ObjectRefStyle;
pub use table::Table;

#[cfg(test)]
mod tests;
