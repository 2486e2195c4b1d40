use std::fmt;

use indicatif::HumanCount;

use crate::values::Counted;

/// A number, with separators between its thousands where they are wanted.
pub(super) fn grouped(number: u64, separate: bool) -> String {
    if separate { HumanCount(number).to_string() } else { number.to_string() }
}

/// A number as it is formatted, or `unknown`.
pub(super) struct OrUnknown<T>(pub(super) Option<T>);

impl<T: fmt::Display> fmt::Display for OrUnknown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(number) => number.fmt(f),
            None => f.pad("unknown"),
        }
    }
}

impl<T: fmt::UpperHex> fmt::UpperHex for OrUnknown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(number) => number.fmt(f),
            None => f.pad("unknown"),
        }
    }
}

/// So many of something, with its plural and, as in the lines of ETWAnalyzer, without separators.
pub(super) fn counted(count: u64, what: &'static str) -> String {
    format!("{count} {what}{}", Counted(count, what).plural())
}
