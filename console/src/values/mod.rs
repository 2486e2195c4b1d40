//! What options and commands take as values: ranges, numbers, formats.

mod documents;
mod formats;
mod ranges;

pub use documents::{CsvTarget, CsvText, JsonMode};
pub use formats::{ProcessFormat, TimeDigits, TimeFormat};
pub(crate) use formats::{no_choice, process_format, process_words, time_format, time_words};
pub use ranges::{CountRange, CountUnit, SecondsRange, TopN, ValueError};
pub(crate) use ranges::{address, bytes, number};
