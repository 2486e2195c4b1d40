//! Points in time as people and machines read them.

use std::fmt;

use chrono::{DateTime, Utc};
use handlescope_model::tables::TraceInfo;

/// 100 ns units per second.
const TICKS_PER_SECOND: i64 = 10_000_000;

/// Seconds between 1601, where FILETIME starts, and 1970.
const FILETIME_TO_UNIX_SECONDS: i64 = 11_644_473_600;

/// A FILETIME (100 ns since 1601, UTC), displayed like `2024-05-10T10:46:34.5000000Z`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Utc7(pub(crate) i64);

impl fmt::Display for Utc7 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(time) = date_time(self.0) else { return write!(f, "{}", self.0) };
        let fraction = self.0.rem_euclid(TICKS_PER_SECOND);
        write!(f, "{}.{fraction:07}Z", time.format("%Y-%m-%dT%H:%M:%S"))
    }
}

/// The wall clock of the recording machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalClock {
    /// Session start in local time, 100 ns since 1601.
    start: i64,
}

impl LocalClock {
    pub(crate) fn new(info: &TraceInfo) -> Self {
        let offset = i64::from(info.utc_offset_minutes) * 60 * TICKS_PER_SECOND;
        Self { start: info.session_start_filetime.saturating_add(offset) }
    }

    /// The session start, to the second.
    pub(crate) fn session_start(self) -> impl fmt::Display {
        date_time(self.start).unwrap_or_default().format("%Y-%m-%d %H:%M:%S")
    }

    /// A time since session start, displayed like `2024-05-10 12:46:37.775935`.
    pub(crate) fn at(self, time_ns: i64) -> Local {
        Local(self.start.saturating_add(time_ns.div_euclid(100)))
    }
}

/// A local time, 100 ns since 1601.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local(i64);

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(time) = date_time(self.0) else { return write!(f, "{}", self.0) };
        let micros = self.0.rem_euclid(TICKS_PER_SECOND) / 10;
        write!(f, "{}.{micros:06}", time.format("%Y-%m-%d %H:%M:%S"))
    }
}

/// The second of a FILETIME; `None` outside of the calendar.
fn date_time(filetime: i64) -> Option<DateTime<Utc>> {
    let seconds = filetime.div_euclid(TICKS_PER_SECOND) - FILETIME_TO_UNIX_SECONDS;
    DateTime::from_timestamp(seconds, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_time_is_written_with_all_its_digits() {
        assert_eq!(Utc7(133_598_115_940_000_000).to_string(), "2024-05-10T10:46:34.0000000Z");
        assert_eq!(Utc7(133_598_115_945_000_001).to_string(), "2024-05-10T10:46:34.5000001Z");
    }

    #[test]
    fn event_times_are_local_to_the_recording_machine() {
        let info = TraceInfo {
            session_start_filetime: 133_598_115_940_000_000,
            utc_offset_minutes: 120,
            ..Default::default()
        };
        let clock = LocalClock::new(&info);
        assert_eq!(clock.at(3_775_935_999).to_string(), "2024-05-10 12:46:37.775935");
        assert_eq!(clock.at(-1).to_string(), "2024-05-10 12:46:33.999999");
        assert_eq!(clock.session_start().to_string(), "2024-05-10 12:46:34");
    }

    #[test]
    fn an_absurd_time_is_printed_as_a_number() {
        for filetime in [i64::MIN, i64::MAX] {
            assert!(!Utc7(filetime).to_string().is_empty());
            assert!(!Local(filetime).to_string().is_empty());
        }
    }
}
