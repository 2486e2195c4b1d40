//! Points in time, formatted for people and machines.

use std::fmt;

use handlescope_extract::filetime::{PER_SECOND, UNIX_EPOCH};
use handlescope_model::Untrusted;
use handlescope_model::tables::{TraceInfo, UtcOffsets};
use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};

use handlescope_session::settings::Display;
use handlescope_session::values::{TimeDigits, TimeFormat};

/// Formats a FILETIME (100 ns since 1601, UTC) like `2024-05-10T10:46:34.5000000Z`.
pub fn utc(filetime: i64) -> String {
    instant(filetime).map_or_else(|| filetime.to_string(), |time| format!("{time:.7}"))
}

/// Writes the times of a trace in one format.
#[derive(Debug, Clone)]
pub struct TraceClock {
    /// Whether there are times at all; if not, each is shown as `unknown`.
    is_known: bool,
    /// Session start, FILETIME.
    start: i64,
    /// Offset of the recording machine's clock from UTC.
    recorded_ahead: UtcOffsets,
    format: TimeFormat,
    digits: TimeDigits,
    /// The time zone of this machine.
    zone: TimeZone,
    /// A date that is left out.
    left_out: Option<Date>,
}

impl TraceClock {
    pub fn new(info: &TraceInfo, format: TimeFormat, digits: TimeDigits) -> Self {
        let zone = match format {
            TimeFormat::Here | TimeFormat::HereTime => TimeZone::system(),
            _ => TimeZone::UTC,
        };
        Self::in_zone(info, format, digits, zone)
    }

    fn in_zone(info: &TraceInfo, format: TimeFormat, digits: TimeDigits, zone: TimeZone) -> Self {
        Self {
            is_known: info.has_clock(),
            start: info.session_start_filetime,
            recorded_ahead: UtcOffsets::new(info),
            format,
            digits,
            zone,
            left_out: None,
        }
    }

    /// Returns the heading of a trace: its start and its name.
    pub fn heading(info: &TraceInfo, name: &str) -> String {
        format!("{:<22} {}", Self::session_start(info), Untrusted(name))
    }

    /// Returns the clock for times below the heading of a trace; the heading has the date. A pipe gets full times,
    /// because its lines may be read separately.
    pub fn below_heading(info: &TraceInfo, display: &Display) -> Self {
        let clock = Self::new(info, display.time_format, display.time_digits);
        if display.clip { clock.without_start_date() } else { clock }
    }

    /// Omits the date that [`TraceClock::session_start`] shows.
    pub fn without_start_date(self) -> Self {
        let start = self.recorded(self.start);
        Self { left_out: start.map(DateTime::date), ..self }
    }

    /// Formats the session start on the recording machine's clock, to the second.
    pub fn session_start(info: &TraceInfo) -> String {
        Self::recorded_at(info, 0)
    }

    /// Formats the time when the events of the trace begin, on the recording machine's clock, to the second.
    pub fn recorded_start(info: &TraceInfo) -> String {
        Self::recorded_at(info, info.recorded_ns().map_or(0, |time| *time.start()))
    }

    fn recorded_at(info: &TraceInfo, time_ns: i64) -> String {
        let digits = TimeDigits::NONE;
        Self::in_zone(info, TimeFormat::Local, digits, TimeZone::UTC).at(time_ns).to_string()
    }

    /// Formats a time; nothing if it is unknown.
    pub fn text(&self, time_ns: Option<i64>) -> String {
        time_ns.map_or_else(String::new, |ns| self.at(ns).to_string())
    }

    /// Returns a displayable time; `time_ns` counts from session start.
    pub fn at(&self, time_ns: i64) -> At<'_> {
        At { clock: self, time_ns }
    }

    /// Returns date and time of a FILETIME on the clock that the format uses; `None` outside the calendar.
    fn wall(&self, filetime: i64) -> Option<DateTime> {
        match self.format {
            TimeFormat::Here | TimeFormat::HereTime => {
                // The instant, not the session start, decides about daylight saving time.
                Some(self.zone.to_datetime(instant(filetime)?))
            }
            TimeFormat::Local | TimeFormat::LocalTime => self.recorded(filetime),
            _ => in_utc(filetime),
        }
    }

    /// Returns date and time of a FILETIME on the recording machine's clock.
    fn recorded(&self, filetime: i64) -> Option<DateTime> {
        let ahead = i64::from(self.recorded_ahead.minutes_at(filetime)) * 60 * PER_SECOND;
        in_utc(filetime.saturating_add(ahead))
    }
}

/// A time in the format of a [`TraceClock`].
///
/// Seconds are rounded as in WPA; wall-clock times are truncated, because a clock is never ahead.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    clock: &'a TraceClock,
    time_ns: i64,
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceClock { is_known, format, digits, .. } = *self.clock;
        if !is_known {
            return f.write_str("unknown");
        }
        if format == TimeFormat::Seconds {
            return Seconds { ns: self.time_ns, digits }.fmt(f);
        }
        let filetime = self.clock.start.saturating_add(self.time_ns.div_euclid(100));
        let Some(time) = self.clock.wall(filetime) else { return write!(f, "{filetime}") };
        let has_date = matches!(format, TimeFormat::Local | TimeFormat::Utc | TimeFormat::Here);
        if has_date && self.clock.left_out != Some(time.date()) {
            write!(f, "{} ", time.date())?;
        }
        write!(f, "{:.*}", digits.get(), time.time())
    }
}

/// A number of seconds, rounded, as in `-0.004000`.
#[derive(Debug, Clone, Copy)]
pub struct Seconds {
    pub ns: i64,
    pub digits: TimeDigits,
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.*}", self.digits.get(), self.ns as f64 / 1e9)
    }
}

/// A duration like `0.00:00:00.032344`: days, hours, minutes and seconds.
#[derive(Debug, Clone, Copy)]
pub struct Duration {
    pub ns: i64,
    pub digits: TimeDigits,
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.ns < 0 { "-" } else { "" };
        let span = SignedDuration::from_nanos(self.ns).abs();
        let (days, time) = (span.as_hours() / 24, Time::midnight().wrapping_add(span));
        write!(f, "{sign}{days}.{time:.*}", self.digits.get())
    }
}

/// Returns the instant of a FILETIME; `None` outside the calendar.
pub fn instant(filetime: i64) -> Option<Timestamp> {
    let ticks = filetime.checked_sub(UNIX_EPOCH)?;
    Timestamp::from_nanosecond(i128::from(ticks) * 100).ok()
}

fn in_utc(filetime: i64) -> Option<DateTime> {
    Some(TimeZone::UTC.to_datetime(instant(filetime)?))
}

#[cfg(test)]
mod tests {
    use handlescope_model::tables::NO_CLOCK;

    use super::*;

    /// Returns a trace from 2024-05-10 10:46:34 UTC, recorded two hours east of UTC.
    fn info() -> TraceInfo {
        TraceInfo {
            session_start_filetime: 133_598_115_940_000_000,
            utc_offset_minutes: 120,
            ..Default::default()
        }
    }

    fn shown(format: &str, digits: &str, time_ns: i64) -> String {
        let format = TimeFormat::from_word(format).expect("a format");
        let digits = TimeDigits::parse(digits).expect("a number of digits");
        // In Central Europe, daylight saving time starts on the last Sunday of March at 2:00.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        TraceClock::in_zone(&info(), format, digits, zone).at(time_ns).to_string()
    }

    #[test]
    fn a_file_time_is_written_with_all_its_digits() {
        assert_eq!(utc(133_598_115_940_000_000), "2024-05-10T10:46:34.0000000Z");
        assert_eq!(utc(133_598_115_945_000_001), "2024-05-10T10:46:34.5000001Z");
    }

    #[test]
    fn every_format_shows_the_same_instant() {
        let time_ns = 3_775_935_999;
        assert_eq!(shown("s", "6", time_ns), "3.775936");
        assert_eq!(shown("Local", "6", time_ns), "2024-05-10 12:46:37.775935");
        assert_eq!(shown("LocalTime", "6", time_ns), "12:46:37.775935");
        assert_eq!(shown("UTC", "6", time_ns), "2024-05-10 10:46:37.775935");
        assert_eq!(shown("UTCTime", "6", time_ns), "10:46:37.775935");
        assert_eq!(shown("Here", "6", time_ns), "2024-05-10 12:46:37.775935");
        assert_eq!(shown("HereTime", "6", time_ns), "12:46:37.775935");
        assert_eq!(TraceClock::session_start(&info()), "2024-05-10 12:46:34");
    }

    #[test]
    fn a_trace_without_a_clock_has_no_times() {
        let info = TraceInfo { clock: NO_CLOCK.to_owned(), ..info() };
        assert_eq!(TraceClock::session_start(&info), "unknown");
        for (_, format, _) in TimeFormat::WORDS {
            assert_eq!(
                TraceClock::new(&info, *format, TimeDigits::MAX).at(7).to_string(),
                "unknown"
            );
        }
    }

    #[test]
    fn a_date_that_is_known_from_the_start_can_be_left_out() {
        let clock =
            |format| TraceClock::new(&info(), format, TimeDigits::NONE).without_start_date();
        assert_eq!(clock(TimeFormat::Local).at(0).to_string(), "12:46:34");
        let day = 86_400_000_000_000;
        assert_eq!(clock(TimeFormat::Utc).at(day).to_string(), "2024-05-11 10:46:34");
        assert_eq!(clock(TimeFormat::Seconds).at(0).to_string(), "0");
    }

    #[test]
    fn times_before_the_session_are_negative_seconds_and_earlier_clocks() {
        assert_eq!(shown("s", "6", -4_000_000), "-0.004000");
        assert_eq!(shown("Local", "6", -1), "2024-05-10 12:46:33.999999");
        assert_eq!(shown("UTCTime", "0", -1), "10:46:33");
    }

    #[test]
    fn seconds_are_rounded_to_the_digits_and_clocks_are_cut() {
        assert_eq!(shown("s", "3", 1_999_900_000), "2.000");
        assert_eq!(shown("s", "0", 1_999_900_000), "2");
        assert_eq!(shown("LocalTime", "3", 1_999_900_000), "12:46:35.999");
        assert_eq!(shown("LocalTime", "1", 1_999_900_000), "12:46:35.9");
        assert_eq!(shown("UTC", "0", 1_999_900_000), "2024-05-10 10:46:35");
    }

    #[test]
    fn here_knows_daylight_saving_time_by_the_instant() {
        let day = 86_400_000_000_000;
        // 2024-03-31 00:59:59 UTC is the last second of winter time; the hour from 2:00 to 2:59:59 is skipped.
        let last = -41 * day + 51_205_000_000_000;
        assert_eq!(shown("UTC", "0", last), "2024-03-31 00:59:59");
        assert_eq!(shown("Here", "0", last), "2024-03-31 01:59:59");
        assert_eq!(shown("Here", "0", last + 1_000_000_000), "2024-03-31 03:00:00");
        assert_eq!(shown("Local", "0", last), "2024-03-31 02:59:59");
    }

    #[test]
    fn local_times_know_that_the_clocks_changed_while_it_was_recorded() {
        // 2024-10-27 00:30 UTC; at 1:00 the clocks went back from 3:00 to 2:00.
        let (start, change) = (133_744_626_000_000_000, 133_744_644_000_000_000);
        let offsets = [(0, 60), (start - 1, 120), (change, 60)];
        let info = TraceInfo {
            session_start_filetime: start,
            utc_offset_minutes: 120,
            utc_offsets: Some(UtcOffsets::text(&offsets)),
            ..Default::default()
        };
        let clock = TraceClock::new(&info, TimeFormat::Local, TimeDigits::NONE);
        let minute = 60_000_000_000;
        let shown_times = [0, 29, 30, 60].map(|minutes| clock.at(minutes * minute).to_string());
        let expected = ["02:30:00", "02:59:00", "02:00:00", "02:30:00"];
        assert_eq!(shown_times, expected.map(|time| format!("2024-10-27 {time}")));
    }

    #[test]
    fn durations_have_days_and_as_many_digits_as_times() {
        let shown = |ns, digits| {
            Duration { ns, digits: TimeDigits::parse(digits).expect("digits") }.to_string()
        };
        assert_eq!(shown(32_344_000, "6"), "0.00:00:00.032344");
        assert_eq!(shown(90_061_000_000_000 + 999, "6"), "1.01:01:01.000000");
        assert_eq!(shown(-61_500_000_000, "1"), "-0.00:01:01.5");
        assert_eq!(shown(61_500_000_000, "0"), "0.00:01:01");
    }

    #[test]
    fn an_absurd_time_is_printed_as_a_number() {
        for filetime in [i64::MIN, i64::MAX] {
            assert!(!utc(filetime).is_empty());
            let info = TraceInfo { session_start_filetime: filetime, ..info() };
            for (words, format, _) in TimeFormat::WORDS {
                let clock = TraceClock::new(&info, *format, TimeDigits::MAX);
                assert!(!clock.at(filetime).to_string().is_empty(), "{words:?}");
            }
        }
    }
}
