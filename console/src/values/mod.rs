//! What options and commands take as values: ranges, numbers, formats.

mod counted;
mod documents;
mod formats;
mod length;
mod output_formats;
mod ranges;
mod suspect;

pub(crate) use counted::{Counted, kind_of};
pub use documents::{CsvText, JsonMode};
pub use formats::{ProcessFormat, TimeDigits, TimeFormat};
pub(crate) use formats::{
    no_choice, on_or_off, process_format, process_words, time_format, time_words,
};
pub(crate) use length::Length;
pub(crate) use output_formats::{AskedFormat, CSV, FORMATS, FormatOption, TABLE_FORMATS};
pub use output_formats::{ColumnChoice, Format, FormatSpec, NamesFile};
pub use ranges::{CountRange, CountUnit, TimeRange, TopN, ValueError};
pub(crate) use ranges::{address, bytes, nanoseconds, number, whole};
pub use suspect::SuspectId;
