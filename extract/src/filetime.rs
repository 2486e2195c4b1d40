//! Windows timestamps: FILETIME, 100 ns since 1601, UTC.

use std::time::{Duration, SystemTime};

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};

/// FILETIME of 1970-01-01.
pub const UNIX_EPOCH: i64 = 116_444_736_000_000_000;

/// FILETIME units per second.
pub const PER_SECOND: i64 = 10_000_000;

/// FILETIME 0.
const START: DateTime = date(1601, 1, 1).at(0, 0, 0, 0);

/// Converts nanoseconds since 1970 to FILETIME, rounded down.
pub fn of_unix_ns(ns: i64) -> Option<i64> {
    ns.div_euclid(100).checked_add(UNIX_EPOCH)
}

/// Converts a FILETIME to system time; `None` before 1970.
pub fn system_time(filetime: i64) -> Option<SystemTime> {
    let since = u64::try_from(filetime.checked_sub(UNIX_EPOCH)?).ok()?;
    let (seconds, units) = (since / PER_SECOND as u64, since % PER_SECOND as u64);
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, units as u32 * 100))
}

/// Converts a FILETIME to date and time in UTC; `None` outside the years -9999 to 9999.
pub fn date_time(filetime: i64) -> Option<DateTime> {
    let (seconds, units) = (filetime.div_euclid(PER_SECOND), filetime.rem_euclid(PER_SECOND));
    START.checked_add(SignedDuration::new(seconds, units as i32 * 100)).ok()
}

/// Converts date and time in UTC to FILETIME, rounded down.
pub fn of_date_time(utc: DateTime) -> Option<i64> {
    i64::try_from(utc.duration_since(START).as_nanos().div_euclid(100)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::ns_since_1970;

    #[test]
    fn a_time_survives_both_ways() {
        for (filetime, text) in [
            (133_598_115_945_000_000, "2024-05-10T10:46:34.5"),
            (UNIX_EPOCH, "1970-01-01T00:00:00"),
            (-1, "1600-12-31T23:59:59.9999999"),
        ] {
            let time = date_time(filetime).unwrap();
            assert_eq!((time.to_string().as_str(), of_date_time(time)), (text, Some(filetime)));
            let same = system_time(filetime).and_then(ns_since_1970).and_then(of_unix_ns);
            assert_eq!(same, (filetime >= UNIX_EPOCH).then_some(filetime));
        }
        assert_eq!(date_time(i64::MAX), None);
    }
}
