//! Numbers.

use indicatif::HumanCount;

/// A number, with separators between its thousands where they are wanted.
pub(super) fn grouped(number: u64, separate: bool) -> String {
    if separate { HumanCount(number).to_string() } else { number.to_string() }
}

/// So many of something, with its plural.
pub(super) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
