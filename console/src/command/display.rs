//! How things are printed, as far as it can be chosen: behind a `.dump`, or for the whole session.

use std::fmt;

use super::values::ValueError;

/// What was typed about the output. What was not typed is `None`: then the session decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DisplayArgs {
    /// `-TimeFmt`: how points in time are written.
    pub time_format: Option<TimeFormat>,
    /// `-TimeDigits`: digits behind the second.
    pub time_digits: Option<TimeDigits>,
    /// `-ProcessFmt`: what stands behind the name of a process that started or ended in the trace.
    pub process_format: Option<ProcessFormat>,
    /// `-NoDigitSep`: no separators between thousands.
    pub no_digit_separator: bool,
    /// `-Clip` and `-NoClip`: cut lines at the width of the terminal, or do not.
    pub clip: Option<bool>,
    /// `-ShowFullFileName`: the whole path above the objects of a file.
    pub full_file_name: bool,
    /// `-PlainProcessNames`: names of executables, also where a service has a better name.
    pub plain_process_names: bool,
}

/// How the stacks of a query are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackDisplayArgs {
    /// `-ShowStack`: print stacks instead of their numbers.
    pub show: bool,
    /// `-ShowAddress`: print offset and address of each frame.
    pub address: bool,
    /// `-ShowLine`: print file and line of each frame.
    pub line: bool,
}

/// How a point in time is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// Seconds since session start.
    Seconds,
    /// Date and time of the recording machine.
    #[default]
    Local,
    /// Time of the recording machine.
    LocalTime,
    /// Date and time in UTC.
    Utc,
    /// Time in UTC.
    UtcTime,
    /// Date and time in the zone of this machine.
    Here,
    /// Time in the zone of this machine.
    HereTime,
}

/// What stands behind the name of a process that started or ended in the trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProcessFormat {
    /// `+` for a start, `-` for an end.
    #[default]
    Marks,
    /// Nothing.
    None,
    /// The times of start and end, and the duration when both are known.
    Times(TimeFormat),
}

/// Digits behind the second, 0 to 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeDigits(u8);

impl TimeDigits {
    /// All digits that are printed: microseconds.
    pub const MOST: TimeDigits = TimeDigits(6);

    /// Whole seconds.
    pub const NONE: TimeDigits = TimeDigits(0);

    /// The number.
    pub fn get(self) -> usize {
        self.0.into()
    }

    /// Reads a number from 0 to 6.
    pub(crate) fn parse(text: &str) -> Result<TimeDigits, ValueError> {
        let digits = text.parse().ok().filter(|digits| *digits <= TimeDigits::MOST.0);
        digits.map(TimeDigits).ok_or_else(|| ValueError::NoDigits { value: text.to_owned() })
    }
}

impl Default for TimeDigits {
    fn default() -> TimeDigits {
        TimeDigits::MOST
    }
}

impl TimeFormat {
    /// Every format by the words it is known by; the first is the one that is shown.
    pub const WORDS: &[(&[&str], TimeFormat, &str)] = &[
        (&["s", "second"], TimeFormat::Seconds, "seconds since the session started"),
        (&["Local"], TimeFormat::Local, "date and time of the recording machine (default)"),
        (&["LocalTime"], TimeFormat::LocalTime, "time of the recording machine"),
        (&["UTC"], TimeFormat::Utc, "date and time in UTC"),
        (&["UTCTime"], TimeFormat::UtcTime, "time in UTC"),
        (&["Here"], TimeFormat::Here, "date and time in the time zone of this machine"),
        (&["HereTime"], TimeFormat::HereTime, "time in the time zone of this machine"),
    ];

    /// The format of this word, in any case.
    pub fn from_word(word: &str) -> Option<TimeFormat> {
        let is_word = |words: &[&str]| words.iter().any(|own| own.eq_ignore_ascii_case(word));
        TimeFormat::WORDS.iter().find(|(words, ..)| is_word(words)).map(|(_, format, _)| *format)
    }
}

impl fmt::Display for TimeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = TimeFormat::WORDS.iter().find(|(_, format, _)| format == self);
        f.write_str(word.and_then(|(words, ..)| words.first()).copied().unwrap_or_default())
    }
}

impl fmt::Display for ProcessFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessFormat::Marks => f.write_str("+-"),
            ProcessFormat::None => f.write_str("None"),
            ProcessFormat::Times(format) => format.fmt(f),
        }
    }
}
