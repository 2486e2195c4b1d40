//! Times as ETWAnalyzer writes them: ISO 8601 with the offset of the recording machine.

use jiff::SignedDuration;

use crate::filetime::date_time;

/// A time that was never, or before anything.
pub(super) const MINIMUM: &str = "0001-01-01T00:00:00+00:00";

/// A time that never came.
pub(super) const MAXIMUM: &str = "9999-12-31T23:59:59.9999999+00:00";

/// A clock on the wall of the recording machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct WallClock {
    /// Session start, 100 ns since 1601, UTC; 0 when it is unknown.
    pub(super) session_start: i64,
    /// Local time minus UTC, minutes.
    pub(super) offset_minutes: i32,
}

impl WallClock {
    /// A time, 100 ns since 1601 and UTC; the minimum if it cannot be written.
    pub(super) fn time(self, filetime: i64) -> String {
        self.format(filetime).unwrap_or_else(|| MINIMUM.to_owned())
    }

    /// A time, ns since session start. ETWAnalyzer's times end at 100 ns.
    pub(super) fn at(self, time_ns: i64) -> String {
        self.time(self.session_start.saturating_add(time_ns / 100))
    }

    fn format(self, filetime: i64) -> Option<String> {
        if filetime == 0 {
            return None;
        }
        let minutes = self.offset_minutes;
        if minutes.unsigned_abs() >= 24 * 60 {
            return None;
        }
        let offset = SignedDuration::from_mins(minutes.into());
        let local = date_time(filetime)?.checked_add(offset).ok()?;
        let sign = if minutes < 0 { '-' } else { '+' };
        let (hours, minutes) = (minutes.unsigned_abs() / 60, minutes.unsigned_abs() % 60);
        (local.year() > 0).then(|| format!("{local}{sign}{hours:02}:{minutes:02}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 133_598_115_940_000_000;

    fn clock(offset_minutes: i32) -> WallClock {
        WallClock { session_start: START, offset_minutes }
    }

    #[test]
    fn the_offset_is_kept_and_zeros_at_the_end_are_dropped() {
        assert_eq!(clock(120).time(START), "2024-05-10T12:46:34+02:00");
        assert_eq!(clock(0).time(START), "2024-05-10T10:46:34+00:00");
        assert_eq!(clock(-210).time(START), "2024-05-10T07:16:34-03:30");
        assert_eq!(clock(120).time(START + 5_000_000), "2024-05-10T12:46:34.5+02:00");
        assert_eq!(clock(120).time(START + 1_234_567), "2024-05-10T12:46:34.1234567+02:00");
    }

    #[test]
    fn times_within_the_session_end_at_ticks() {
        assert_eq!(clock(120).at(1_000_000_199), "2024-05-10T12:46:35.0000001+02:00");
        assert_eq!(clock(120).at(-500_000_000), "2024-05-10T12:46:33.5+02:00");
    }

    #[test]
    fn what_cannot_be_written_is_the_minimum() {
        let unknown = WallClock { session_start: 0, offset_minutes: 60 };
        assert_eq!(unknown.time(0), MINIMUM);
        assert_eq!(clock(0).time(i64::MAX), MINIMUM);
        assert_eq!(clock(i32::MAX).time(START), MINIMUM);
    }
}
