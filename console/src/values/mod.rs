//! Values of options and commands: ranges, numbers, formats.

mod counted;
mod formats;
mod lists;
mod output_formats;
mod ranges;

pub(crate) use counted::{Counted, Length, Size, finding};
pub use formats::{ProcessFormat, TimeDigits, TimeFormat};
pub(crate) use formats::{
    no_choice, on_or_off, process_format, process_words, time_format, time_words,
};
pub(crate) use lists::{joined, listed};
pub(crate) use output_formats::{CSV, FORMATS, FormatOption, RequestedFormat, TABLE_FORMATS};
pub use output_formats::{ColumnChoice, CsvText, Format, FormatSpec, JsonMode, NamesFile};
pub use ranges::{CountRange, CountUnit, SuspectId, TimeRange, TopN, ValueError};
pub(crate) use ranges::{address, bytes, length, nanoseconds, number, whole};
