//! Values of options and commands: ranges, numbers, formats.

mod counted;
mod formats;
mod lists;
mod output_formats;
mod ranges;

pub use counted::{Counted, Length, Size, finding};
pub use formats::{ProcessFormat, TimeDigits, TimeFormat};
pub use formats::{no_choice, on_or_off, process_format, process_words, time_format, time_words};
pub use lists::{joined, listed};
pub use output_formats::{CSV, FORMATS, FormatOption, RequestedFormat, TABLE_FORMATS};
pub use output_formats::{ColumnChoice, CsvText, Format, FormatSpec, JsonMode, NamesFile};
pub use ranges::{CountRange, CountUnit, SuspectId, TimeRange, TopN, ValueError};
pub use ranges::{address, bytes, length, nanoseconds, number, whole};
