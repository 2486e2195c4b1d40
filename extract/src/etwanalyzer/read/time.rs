//! Times as ETWAnalyzer writes them: ISO 8601 with the offset of the recording machine.

use chrono::{DateTime, NaiveDateTime};

/// Seconds from 1601 to 1970.
const UNIX_EPOCH: i64 = 11_644_473_600;

/// FILETIME of 1602: what is before is ETWAnalyzer's "never" in some time zone.
const EARLIEST: i64 = 366 * 24 * 3600 * 10_000_000;

/// FILETIME of 9000; what is behind is its "for ever".
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
    /// Reads a time; the minimum and maximum that stand for "unknown" are none.
    pub(super) fn parse(text: &str) -> Option<Time> {
        let (seconds, nanoseconds, offset) = match DateTime::parse_from_rfc3339(text) {
            Ok(time) => {
                let offset = time.offset().local_minus_utc() / 60;
                (time.timestamp(), time.timestamp_subsec_nanos(), Some(offset))
            }
            Err(_) => {
                let time = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
                (time.and_utc().timestamp(), time.and_utc().timestamp_subsec_nanos(), None)
            }
        };
        let seconds = seconds.checked_add(UNIX_EPOCH)?;
        let filetime =
            seconds.checked_mul(10_000_000)?.checked_add(i64::from(nanoseconds) / 100)?;
        (EARLIEST..LATEST).contains(&filetime).then_some(Time { filetime, offset })
    }

    /// Local time minus UTC, minutes; 0 if it was not written, so that the wall clock stays.
    pub(super) fn offset(self) -> i32 {
        self.offset.unwrap_or(0)
    }

    /// 100 ns since 1601, UTC. A time without offset has that of the session.
    pub(super) fn utc(self, session: Time) -> i64 {
        let missing = if self.offset.is_some() { 0 } else { session.offset() };
        self.filetime.saturating_sub(i64::from(missing) * 60 * 10_000_000)
    }

    /// Nanoseconds since the start of the session.
    pub(super) fn since(self, session: Time) -> Option<i64> {
        self.utc(session).checked_sub(session.utc(session))?.checked_mul(100)
    }
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
