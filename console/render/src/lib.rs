//! Answers as text, pictures and pages for people, and as JSON, CSV and Parquet for programs.
//!
//! `kinds/` declares the columns of each kind of answer and makes an [`AnswerTable`] of it. `table/` writes tables in
//! every format, and `output.rs` chooses the format and the destination. `json/` is shared by all documents. Rows that
//! are blocks of lines write their own text (`row_text` in `kinds/`: resource, stack, why, provider_events and diff).
//! The objects of `.dump ObjectRef` have their own text and CSV (`text/`, `csv/`), because these are ETWAnalyzer's.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod csv;
mod event_item;
mod findings;
mod json;
mod kinds;
mod no_match;
pub mod output;
pub mod pictures;
pub mod report;
mod table;
mod text;
pub mod time;
mod traces;

pub use self::findings::{Findings, LeakFinding, write_findings};
pub use self::kinds::*;
pub use self::no_match::{InOptions, option};
pub use self::output::{OutputError, OutputOptions};
pub use self::table::{AnswerTable, Columns, Depth, MemberMeaning, RowOf};
pub use self::text::{ObjectRefStyle, capitalized, line_of_ignored, tree_columns};
pub use self::traces::totals_columns;
