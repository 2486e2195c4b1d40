//! A choice of days: a range, or a filter on their text.

use jiff::civil::Date;
use thiserror::Error;

use super::Filter;
use super::pattern::FilterError;

/// Separates the first day from the last.
const RANGE: &str = "..";

/// Days of UTC.
///
/// ```
/// use handlescope_session::filter::Days;
///
/// let week = Days::parse("2026-11-16..2026-11-22")?;
/// assert!(week.matches("2026-11-21") && !week.matches("2026-11-23"));
/// assert!(Days::parse("2026-11-*")?.matches("2026-11-23"));
/// # Ok::<(), handlescope_session::filter::DaysError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Days {
    text: String,
    choice: Choice,
}

#[derive(Debug, Clone, PartialEq)]
enum Choice {
    /// From one day to another, both included; `None` means no limit.
    Range(Option<Date>, Option<Date>),
    Filter(Filter),
}

/// A choice of days that cannot be understood.
#[derive(Debug, Error)]
pub enum DaysError {
    #[error("'{0}' is not a day like 2026-11-21")]
    NoDay(String),
    #[error("'{0}' ends before it starts")]
    Backwards(String),
    #[error(transparent)]
    Filter(#[from] FilterError),
}

impl Days {
    /// Reads `FROM..TO`, where either may be missing, or a filter.
    ///
    /// # Errors
    /// If a day is not one, or the range ends before it starts.
    pub fn parse(text: &str) -> Result<Days, DaysError> {
        let choice = match text.split_once(RANGE) {
            None => Choice::Filter(Filter::new(text)?),
            Some((from, to)) => match (day(from)?, day(to)?) {
                (Some(from), Some(to)) if to < from => {
                    return Err(DaysError::Backwards(text.to_owned()));
                }
                (from, to) => Choice::Range(from, to),
            },
        };
        Ok(Days { text: text.to_owned(), choice })
    }

    /// The choice as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a day like `2026-11-21` is chosen.
    pub fn matches(&self, day: &str) -> bool {
        match &self.choice {
            Choice::Filter(filter) => filter.matches(day),
            Choice::Range(from, to) => day.parse().is_ok_and(|day: Date| {
                from.is_none_or(|from| from <= day) && to.is_none_or(|to| day <= to)
            }),
        }
    }
}

fn day(text: &str) -> Result<Option<Date>, DaysError> {
    let parsed = (!text.is_empty()).then(|| text.parse());
    parsed.transpose().map_err(|_| DaysError::NoDay(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_ends_and_may_lack_one() {
        for (text, day, expected) in [
            ("2026-11-20..2026-11-21", "2026-11-20", true),
            ("2026-11-20..2026-11-21", "2026-11-21", true),
            ("2026-11-20..2026-11-21", "2026-11-22", false),
            ("2026-11-20..", "2027-01-01", true),
            ("..2026-11-20", "2026-11-21", false),
            ("..", "2026-11-21", true),
            ("2026-11-2*;!2026-11-22", "2026-11-21", true),
            ("2026-11-2*;!2026-11-22", "2026-11-22", false),
        ] {
            assert_eq!(Days::parse(text).expect("days").matches(day), expected, "{text} {day}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let error = |text: &str| Days::parse(text).expect_err(text).to_string();
        assert_eq!(error("2026-13-01.."), "'2026-13-01' is not a day like 2026-11-21");
        let backwards = "2026-11-21..2026-11-20";
        assert_eq!(error(backwards), format!("'{backwards}' ends before it starts"));
    }
}
