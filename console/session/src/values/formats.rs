//! Formats of points in time and of processes.

use std::fmt;

use super::ValueError;
use crate::suggest;

/// Format of a point in time.
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

/// What to write after a process that started or ended in the trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProcessFormat {
    /// `+` for a start, `-` for an end.
    #[default]
    Marks,
    /// Nothing.
    None,
    /// The times of start and end, and the duration if both are known.
    Times(TimeFormat),
}

/// Digits after the second, 0 to 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeDigits(u8);

impl TimeDigits {
    /// Microseconds, the most digits ever printed.
    pub const MAX: TimeDigits = TimeDigits(6);

    /// Whole seconds.
    pub const NONE: TimeDigits = TimeDigits(0);

    pub fn get(self) -> usize {
        self.0.into()
    }

    /// Reads a number from 0 to 6.
    pub fn parse(text: &str) -> Result<TimeDigits, ValueError> {
        let digits = text.parse().ok().filter(|digits| *digits <= TimeDigits::MAX.0);
        digits.map(TimeDigits).ok_or_else(|| ValueError::NoDigits { value: text.to_owned() })
    }
}

impl Default for TimeDigits {
    fn default() -> TimeDigits {
        TimeDigits::MAX
    }
}

impl TimeFormat {
    /// Every format with its words; the first word is shown.
    pub const WORDS: &[(&[&str], TimeFormat, &str)] = &[
        (&["s", "second"], TimeFormat::Seconds, "seconds since the session started"),
        (&["Local"], TimeFormat::Local, "date and time of the recording machine (default)"),
        (&["LocalTime"], TimeFormat::LocalTime, "time of the recording machine"),
        (&["UTC"], TimeFormat::Utc, "date and time in UTC"),
        (&["UTCTime"], TimeFormat::UtcTime, "time in UTC"),
        (&["Here"], TimeFormat::Here, "date and time in the time zone of this machine"),
        (&["HereTime"], TimeFormat::HereTime, "time in the time zone of this machine"),
    ];

    /// Returns the format of this word, ignoring case.
    pub fn from_word(word: &str) -> Option<TimeFormat> {
        let format = TimeFormat::WORDS
            .iter()
            .find(|(words, ..)| words.iter().any(|known| known.eq_ignore_ascii_case(word)));
        format.map(|(_, format, _)| *format)
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

/// Words for time formats, each with its meaning.
pub fn time_words() -> impl Iterator<Item = (&'static str, &'static str)> {
    let words = TimeFormat::WORDS.iter();
    words.filter_map(|(words, _, help)| Some((words.first().copied()?, *help)))
}

/// Words for process formats, each with its meaning.
pub fn process_words() -> impl Iterator<Item = (&'static str, &'static str)> {
    std::iter::once(("None", "nothing, not even + and -")).chain(time_words())
}

pub fn time_format(word: &str) -> Result<TimeFormat, ValueError> {
    TimeFormat::from_word(word)
        .ok_or_else(|| no_choice(word, || time_words().map(|(word, _)| word)))
}

pub fn process_format(word: &str) -> Result<ProcessFormat, ValueError> {
    if word.eq_ignore_ascii_case("None") {
        return Ok(ProcessFormat::None);
    }
    let format = TimeFormat::from_word(word);
    format
        .map(ProcessFormat::Times)
        .ok_or_else(|| no_choice(word, || process_words().map(|(word, _)| word)))
}

/// Words for on and off.
const SWITCH: [(&str, bool); 4] = [("1", true), ("0", false), ("true", true), ("false", false)];

pub fn on_or_off(word: &str) -> Result<bool, ValueError> {
    let entry = SWITCH.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
    entry.map(|&(_, on)| on).ok_or_else(|| no_choice(word, || SWITCH.iter().map(|(word, _)| *word)))
}

/// Returns the error for a word that is not one of the choices.
pub fn no_choice<'a, I: Iterator<Item = &'a str>>(word: &str, words: impl Fn() -> I) -> ValueError {
    ValueError::NoChoice {
        value: word.to_owned(),
        choices: words().collect::<Vec<_>>().join(", "),
        hint: suggest::hint(word, words()),
    }
}
