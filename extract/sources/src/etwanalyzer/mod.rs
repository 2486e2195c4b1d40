//! ETWAnalyzer's extracts (`.json7z`, or `.json` with its companions): read into the tables of a
//! trace, and written from them.
//!
//! Both directions know the same names of members and the same fixed texts. Data that the format has no
//! place for is written as further members (`records`), which ETWAnalyzer passes over.

mod members;
mod read;
mod record;
mod records;
mod write;

pub use read::{ImportError, ImportLimits, import, import_sources};
pub use write::{SaveError, SaveOptions, is_for_etwanalyzer, save};
