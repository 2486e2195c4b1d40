//! Values of options and commands: ranges, numbers and formats, and why they are refused.

mod counted;
mod formats;
mod gate;
mod output_formats;
mod ranges;

pub use counted::{CountedNoun, Length, Size, finding, joined, listed};
pub use formats::{ProcessFormat, TimeDigits, TimeFormat};
pub use formats::{no_choice, on_or_off, process_format, process_words, time_format, time_words};
pub use gate::{FailOn, FindingFormat};
pub use output_formats::{CSV, FORMATS, FormatOption, RequestedFormat, TABLE_FORMATS};
pub use output_formats::{ColumnChoice, CsvText, Format, FormatSpec, JsonMode, NamesFile};
pub use ranges::{CountRange, CountUnit, SuspectId, TimeRange, TopN};
pub use ranges::{address, bytes, length, nanoseconds, number, whole};

use handlescope_model::Untrusted;
use thiserror::Error;

/// Why a value was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// Not a number, or one with a comma.
    #[error("'{}' is not a number (write 0.5 with a point, without separators)", Untrusted(.value))]
    NoNumber { value: String },
    /// A time of day where seconds since session start are expected.
    #[error(
        "'{}' is a time of day: give seconds since the session started, which -TimeFmt s shows",
        Untrusted(.value)
    )]
    Clock { value: String },
    /// A number followed by something that is not a unit, or by a unit of another kind.
    #[error("'{}' is not {expected}", Untrusted(.value))]
    NoUnit {
        value: String,
        /// The kind of value with its units.
        expected: &'static str,
    },
    /// Something other than digits where a count is expected.
    #[error("'{}' is not a whole number; write digits only, as in 20", Untrusted(.value))]
    NotWhole { value: String },
    /// More than the machine can count.
    #[error("'{}' is too large", Untrusted(.value))]
    TooLarge { value: String },
    /// Zero where at least one is needed.
    #[error("must be at least 1")]
    Zero,
    /// A negative duration.
    #[error("'{}' is negative; write 0 or more, as in 500us", Untrusted(.value))]
    Negative { value: String },
    /// The minimum is larger than the maximum.
    #[error("'{}' ends before it begins", Untrusted(.value))]
    Backwards { value: String },
    /// Not a number of digits.
    #[error("'{}' is not a number of digits from 0 to 6", Untrusted(.value))]
    NoDigits { value: String },
    /// Not a hexadecimal number of 64 bits.
    #[error("'{}' is not an address (hexadecimal, like 0x1B544000010)", Untrusted(.value))]
    NoAddress { value: String },
    /// Not the id of a suspect.
    #[error("'{}' is not the id of a suspect (4 to 10 hexadecimal digits, like 3f2a)", Untrusted(.value))]
    NoSuspect { value: String },
    /// None of the words the option knows.
    #[error("'{}' is not one of {choices}{hint}", Untrusted(.value))]
    NoChoice {
        value: String,
        /// The words, separated by commas.
        choices: String,
        /// `, did you mean X?`, or empty.
        hint: String,
    },
    /// A filter that cannot be compiled.
    #[error("{reason}")]
    Filter { reason: String },
    /// An exclusion without a name.
    #[error("'{}' has a ! without a name; write what to exclude, as in *;!System", Untrusted(.filter))]
    NothingExcluded { filter: String },
    /// Not a condition for a gate.
    #[error(
        "'{}' is not leak, steady or processes with a number, as in leaky.exe:0", Untrusted(.value)
    )]
    NoGate { value: String },
    /// A word that is not a symbol server.
    #[error("{reason}")]
    Server {
        /// Says what the word could have been.
        reason: String,
    },
    /// An option that cannot be used here.
    #[error("{reason}")]
    Refused { reason: &'static str },
}
