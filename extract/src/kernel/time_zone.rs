//! The time zone of the recording system (TIME_ZONE_INFORMATION in the trace header).

use chrono::{Datelike, Days, NaiveDate, NaiveDateTime, TimeDelta};

use super::Payload;

/// When and by how much the clocks of a time zone change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeZone {
    /// UTC = local time + bias, minutes, without summer time.
    pub bias: i32,
    standard: Change,
    daylight: Change,
}

/// A change of the clocks (a SYSTEMTIME and its bias).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    /// 0: every year, on the `day`th (5: last) given weekday of the month.
    year: u16,
    /// 0: the clocks never change.
    month: u16,
    weekday: u16,
    day: u16,
    hour: u16,
    minute: u16,
    bias: i32,
}

/// Bytes of a zone name: 32 UTF-16 units.
const NAME_BYTES: usize = 64;

/// FILETIME of 1970-01-01, 100 ns since 1601.
const UNIX_EPOCH: i64 = 116_444_736_000_000_000;

impl TimeZone {
    pub(super) fn decode(p: &mut Payload<'_>) -> Option<Self> {
        let bias = p.u32()? as i32;
        p.skip(NAME_BYTES)?;
        let standard = Change::decode(p)?;
        p.skip(NAME_BYTES)?;
        let daylight = Change::decode(p)?;
        Some(Self { bias, standard, daylight })
    }

    /// Local time minus UTC, in minutes, at a FILETIME (UTC).
    pub fn offset_at(&self, filetime: i64) -> i32 {
        let standard = -self.bias.saturating_add(self.standard.bias);
        let daylight = -self.bias.saturating_add(self.daylight.bias);
        match self.is_summer(filetime, standard, daylight) {
            Some(true) => daylight,
            Some(false) => standard,
            None => -self.bias,
        }
    }

    /// Whether summer time holds; `None` when the zone has none.
    fn is_summer(&self, filetime: i64, standard: i32, daylight: i32) -> Option<bool> {
        let micros = filetime.checked_sub(UNIX_EPOCH)? / 10;
        let utc = chrono::DateTime::from_timestamp_micros(micros)?.naive_utc();
        let local = utc.checked_add_signed(TimeDelta::minutes(standard.into()))?;
        // Each change is stated in the local time before it.
        let begin = self.daylight.in_year(local.year())?;
        let begin = begin.checked_sub_signed(TimeDelta::minutes(standard.into()))?;
        let end = self.standard.in_year(local.year())?;
        let end = end.checked_sub_signed(TimeDelta::minutes(daylight.into()))?;
        Some(if begin < end { begin <= utc && utc < end } else { utc < end || begin <= utc })
    }
}

impl Change {
    fn decode(p: &mut Payload<'_>) -> Option<Self> {
        let (year, month, weekday) = (p.u16()?, p.u16()?, p.u16()?);
        let (day, hour, minute) = (p.u16()?, p.u16()?, p.u16()?);
        p.skip(4)?; // second, millisecond
        Some(Self { year, month, weekday, day, hour, minute, bias: p.u32()? as i32 })
    }

    /// The local moment of the change in a year.
    fn in_year(&self, year: i32) -> Option<NaiveDateTime> {
        let month = u32::from(self.month);
        let date = if self.year == 0 {
            let first = NaiveDate::from_ymd_opt(year, month, 1)?;
            let ahead = (7 + u32::from(self.weekday) - first.weekday().num_days_from_sunday()) % 7;
            let weeks = u64::from(self.day.clamp(1, 5)) - 1;
            let date = first.checked_add_days(Days::new(u64::from(ahead) + 7 * weeks))?;
            // The fifth weekday means the last one, also in months with four.
            if date.month() == month { date } else { date.checked_sub_days(Days::new(7))? }
        } else {
            NaiveDate::from_ymd_opt(i32::from(self.year), month, u32::from(self.day))?
        };
        date.and_hms_opt(u32::from(self.hour), u32::from(self.minute), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(month: u16, day: u16, hour: u16, bias: i32) -> Change {
        Change { year: 0, month, weekday: 0, day, hour, minute: 0, bias }
    }

    fn filetime(text: &str) -> i64 {
        let time = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap();
        time.and_utc().timestamp() * 10_000_000 + UNIX_EPOCH
    }

    #[test]
    fn summer_time_in_berlin_lasts_from_march_to_october() {
        let berlin =
            TimeZone { bias: -60, standard: change(10, 5, 3, 0), daylight: change(3, 5, 2, -60) };
        for (utc, offset) in [
            ("2024-03-31 00:59", 60),
            ("2024-03-31 01:00", 120),
            ("2024-10-27 00:59", 120),
            ("2024-10-27 01:00", 60),
        ] {
            assert_eq!(berlin.offset_at(filetime(utc)), offset, "{utc}");
        }
    }

    #[test]
    fn south_of_the_equator_summer_spans_the_new_year() {
        let sydney =
            TimeZone { bias: -600, standard: change(4, 1, 3, 0), daylight: change(10, 1, 2, -60) };
        assert_eq!(sydney.offset_at(filetime("2024-01-15 00:00")), 660);
        assert_eq!(sydney.offset_at(filetime("2024-07-15 00:00")), 600);
    }

    #[test]
    fn a_zone_without_summer_time_has_one_offset() {
        let none =
            TimeZone { bias: 480, standard: change(0, 0, 0, 0), daylight: change(0, 0, 0, -60) };
        assert_eq!(none.offset_at(filetime("2024-07-15 00:00")), -480);
        assert_eq!(none.offset_at(i64::MIN), -480);
    }
}
