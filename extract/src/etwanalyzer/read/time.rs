//! Times as ETWAnalyzer writes them: ISO 8601 with the offset of the recording machine.

use jiff::fmt::temporal::Pieces;

use crate::filetime::{PER_SECOND, of_date_time};

/// FILETIME of 1602: what is before is ETWAnalyzer's "never" in some time zone.
const EARLIEST: i64 = 366 * 24 * 3600 * PER_SECOND;

/// FILETIME of 9000; what is after is its "for ever".
const LATEST: i64 = 2_335_000_000_000_000_000;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time {
    /// 100 ns since 1601, as written: UTC if there is an offset, else the wall clock.
    filetime: i64,
    /// Local time minus UTC, minutes, if it was written.
    offset: Option<i32>,
}

impl Time {
    /// A time that was written; one that cannot be read is unknown.
    pub(super) fn of(text: &Option<String>) -> Option<Time> {
        text.as_deref().and_then(Time::parse)
    }

    /// Reads a time; the minimum and maximum that stand for "unknown" are none.
    fn parse(text: &str) -> Option<Time> {
        let pieces = Pieces::parse(text).ok()?;
        let offset = pieces.to_numeric_offset().map(|offset| offset.seconds() / 60);
        let written = of_date_time(pieces.date().to_datetime(pieces.time()?))?;
        let filetime = written.checked_sub(minutes(offset.unwrap_or(0)))?;
        (EARLIEST..LATEST).contains(&filetime).then_some(Time { filetime, offset })
    }

    /// Local time minus UTC, minutes; 0 if it was not written, so that the wall clock stays.
    pub(super) fn offset(self) -> i32 {
        self.offset.unwrap_or(0)
    }

    /// 100 ns since 1601, UTC. A time without offset has that of the session.
    pub(super) fn utc(self, session: Time) -> i64 {
        let missing = if self.offset.is_some() { 0 } else { session.offset() };
        self.filetime.saturating_sub(minutes(missing))
    }

    /// Nanoseconds since the start of the session.
    pub(super) fn since(self, session: Time) -> Option<i64> {
        self.utc(session).checked_sub(session.utc(session))?.checked_mul(100)
    }
}

/// FILETIME units of a number of minutes.
fn minutes(minutes: i32) -> i64 {
    i64::from(minutes) * 60 * PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Time {
        Time::parse(text).unwrap()
    }

    #[test]
    fn the_offset_is_kept_and_all_digits_count() {
        let start = time("2024-05-10T12:46:34+02:00");
        assert_eq!(start.offset(), 120);
        assert_eq!(start.utc(start), 133_598_115_940_000_000);
        let later = time("2024-05-10T10:46:36.1234567Z");
        assert_eq!(later.since(start), Some(2_123_456_700));
    }

    #[test]
    fn without_offset_the_wall_clock_of_the_session_is_meant() {
        let start = time("2024-05-10T12:46:34+02:00");
        assert_eq!(time("2024-05-10T12:46:35").since(start), Some(1_000_000_000));
        let bare = time("2024-05-10T12:46:34.5");
        assert_eq!((bare.offset(), bare.since(bare)), (0, Some(0)));
    }

    #[test]
    fn the_ends_of_time_are_unknown_times() {
        for text in [
            "0001-01-01T00:00:00+00:00",
            "9999-12-31T23:59:59.9999999+00:00",
            "0001-01-01T00:00:00+01:00",
            "",
            "yesterday",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }
}
