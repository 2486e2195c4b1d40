//! Decodes the trace header event (TRACE_LOGFILE_HEADER), the first event of every file, and the time zone in it
//! (TIME_ZONE_INFORMATION).

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time, Weekday};

use super::{Field, Payload};
use crate::etl::{Clock, ClockKind, Event, EventId, SessionLayout};
use crate::filetime::{date_time, of_date_time};

/// Fields of the trace header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceHeader {
    /// Buffer size of the session in bytes.
    pub buffer_size: u32,
    /// Version of Windows: major, minor, sub, subminor.
    pub version: [u8; 4],
    /// Windows build.
    pub os_build: u32,
    pub cpu_count: u32,
    /// Session end, FILETIME; 0 if the session was not closed.
    pub end_time: i64,
    /// Interval of the system timer, 100 ns.
    pub timer_resolution: u32,
    /// Maximum size of the file in MB; 0 for no limit.
    pub maximum_file_size: u32,
    pub log_file_mode: u32,
    /// Number of buffers the session wrote, including the header buffer.
    pub buffers_written: u32,
    /// Pointer size of the recording system, bytes.
    pub pointer_size: u32,
    pub events_lost: u32,
    /// CPU frequency, MHz.
    pub cpu_mhz: u32,
    /// Time zone of the recording system.
    pub time_zone: TimeZone,
    /// Boot time, FILETIME; 0 if unknown.
    pub boot_time: i64,
    /// Frequency of the performance counter, ticks per second.
    pub perf_freq: i64,
    /// Session start, FILETIME.
    pub start_time: i64,
    /// Clock type: 1 performance counter, 2 system time, 3 CPU cycles.
    pub clock_type: u32,
    pub buffers_lost: u32,
    /// Raw timestamp of the header event, which is the time of the session start.
    pub base: i64,
}

/// Offsets of the fields of the trace header.
pub mod header_offset {
    pub const BUFFER_SIZE: usize = 0;
    pub const VERSION: usize = 4;
    pub const OS_BUILD: usize = 8;
    pub const CPU_COUNT: usize = 12;
    pub const END_TIME: usize = 16;
    pub const TIMER_RESOLUTION: usize = 24;
    pub const MAXIMUM_FILE_SIZE: usize = 28;
    pub const LOG_FILE_MODE: usize = 32;
    pub const BUFFERS_WRITTEN: usize = 36;
    pub const POINTER_SIZE: usize = 44;
    pub const EVENTS_LOST: usize = 48;
    pub const CPU_MHZ: usize = 52;
    /// Pointers to the names of session and file, which mean nothing on disk.
    pub const POINTERS: usize = 56;

    // Offsets from the end of the pointers. The time zone ends at 172; in files of both pointer sizes, times are
    // aligned to 8 bytes.
    pub const TIME_ZONE: usize = 0;
    pub const BOOT_TIME: usize = 176;
    pub const PERF_FREQ: usize = 184;
    pub const START_TIME: usize = 192;
    pub const CLOCK_TYPE: usize = 200;
    pub const BUFFERS_LOST: usize = 204;
    pub const END: usize = 208;
}

/// Returns the offset of a field whose offset is counted from the end of the pointers.
pub const fn behind_pointers(offset: usize, pointer_size: usize) -> usize {
    header_offset::POINTERS + 2 * pointer_size + offset
}

/// Longest plausible interval of the system timer, 100 ns; real systems have at most 15.625 ms.
const MAX_TIMER_STEP: i64 = 10_000_000;

impl TraceHeader {
    /// Event that carries the header.
    pub const EVENT: EventId = EventId::Hook(0);

    /// Time zone names are between the zone's numbers; session and file names come last.
    pub const FIELDS: &[Field] = &[
        Field::Bytes(header_offset::POINTERS),
        Field::Pointers(2),
        Field::Bytes(BIAS_BYTES),
        Field::Unread(NAME_BYTES),
        Field::Bytes(CHANGE_BYTES),
        Field::Unread(NAME_BYTES),
        Field::Bytes(header_offset::END - BIAS_BYTES - NAME_BYTES - CHANGE_BYTES - NAME_BYTES),
        Field::Utf16,
        Field::Utf16,
    ];

    /// Decodes the payload of [`Self::EVENT`].
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let at = |offset: usize| {
            let mut rest = Payload::from_event(event);
            rest.skip(offset)?;
            Some(rest)
        };
        let u32_at = |offset| at(offset)?.u32();
        let i64_at = |offset| at(offset)?.i64();
        let behind = |offset| behind_pointers(offset, event.pointer_size);
        Some(Self {
            buffer_size: u32_at(header_offset::BUFFER_SIZE)?,
            version: u32_at(header_offset::VERSION)?.to_le_bytes(),
            os_build: u32_at(header_offset::OS_BUILD)?,
            cpu_count: u32_at(header_offset::CPU_COUNT)?,
            end_time: i64_at(header_offset::END_TIME)?,
            timer_resolution: u32_at(header_offset::TIMER_RESOLUTION)?,
            maximum_file_size: u32_at(header_offset::MAXIMUM_FILE_SIZE)?,
            log_file_mode: u32_at(header_offset::LOG_FILE_MODE)?,
            buffers_written: u32_at(header_offset::BUFFERS_WRITTEN)?,
            pointer_size: u32_at(header_offset::POINTER_SIZE)?,
            events_lost: u32_at(header_offset::EVENTS_LOST)?,
            cpu_mhz: u32_at(header_offset::CPU_MHZ)?,
            time_zone: TimeZone::decode(&mut at(behind(header_offset::TIME_ZONE))?)?,
            boot_time: i64_at(behind(header_offset::BOOT_TIME))?,
            perf_freq: i64_at(behind(header_offset::PERF_FREQ))?,
            start_time: i64_at(behind(header_offset::START_TIME))?,
            clock_type: u32_at(behind(header_offset::CLOCK_TYPE))?,
            buffers_lost: u32_at(behind(header_offset::BUFFERS_LOST))?,
            base: event.time,
        })
    }

    /// Returns what matters for finding the session's buffers.
    pub fn session(&self) -> SessionLayout {
        SessionLayout { buffer_size: self.buffer_size, log_file_mode: self.log_file_mode }
    }

    /// Returns the session's clock; `None` if its type or frequency makes no sense.
    pub fn clock(&self) -> Option<Clock> {
        let (kind, frequency) = match self.clock_type {
            1 => (ClockKind::PerformanceCounter, self.perf_freq),
            2 => (ClockKind::SystemTime, 10_000_000),
            3 => (ClockKind::CpuCycles, i64::from(self.cpu_mhz) * 1_000_000),
            _ => return None,
        };
        // System time advances at timer interrupts, which come at this interval or more often.
        let step = match kind {
            ClockKind::SystemTime => i64::from(self.timer_resolution).clamp(1, MAX_TIMER_STEP),
            ClockKind::PerformanceCounter | ClockKind::CpuCycles => 1,
        };
        (frequency > 0).then_some(Clock { kind, base: self.base, frequency, step })
    }
}

/// A time zone's offset from UTC and its daylight saving rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeZone {
    /// UTC = local time + bias, minutes, without daylight saving time.
    pub bias: i32,
    standard: ClockChange,
    daylight: ClockChange,
}

/// Change of the clocks (a SYSTEMTIME and its bias).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ClockChange {
    /// 0: every year, on the given weekday of the month, the `day`th one (5: last).
    year: u16,
    /// 0: the clocks never change.
    month: u16,
    weekday: u16,
    day: u16,
    hour: u16,
    minute: u16,
    bias: i32,
}

/// Bytes of a bias.
const BIAS_BYTES: usize = 4;

/// Bytes of a change: a SYSTEMTIME and a bias.
const CHANGE_BYTES: usize = 16 + BIAS_BYTES;

/// Bytes of a zone name: 32 UTF-16 units.
const NAME_BYTES: usize = 64;

/// Maximum number of years with computed changes.
const MAX_YEARS: i16 = 20;

impl TimeZone {
    pub fn decode(p: &mut Payload<'_>) -> Option<Self> {
        let bias = p.u32()? as i32;
        p.skip(NAME_BYTES)?;
        let standard = ClockChange::decode(p)?;
        p.skip(NAME_BYTES)?;
        let daylight = ClockChange::decode(p)?;
        Some(Self { bias, standard, daylight })
    }

    /// Returns local time minus UTC in minutes, with the FILETIME (UTC) from which it holds. There is an entry for the
    /// beginning, and one for each change from the year before `first` to the year after `last`. Sessions do not last
    /// longer than `MAX_YEARS`.
    pub fn offsets(&self, first: i64, last: i64) -> Vec<(i64, i32)> {
        let (standard, daylight) = self.offset_pair();
        let year = |filetime: i64| Some(date_time(filetime)?.year());
        let Some((from, to)) = year(first).zip(year(last.max(first))) else {
            return vec![(first, self.offset_at(first))];
        };
        let changes = (from - 1..=(to + 1).min(from + MAX_YEARS)).flat_map(|year| {
            [(self.daylight, standard), (self.standard, daylight)].map(|(change, before)| {
                let before = SignedDuration::from_mins(before.into());
                of_date_time(change.in_year(year)?.checked_sub(before).ok()?)
            })
        });
        let mut changes: Vec<i64> = changes.flatten().collect();
        changes.sort_unstable();
        // The first entry has the offset just before the first change.
        let begin = changes.first().map_or(first, |change| first.min(*change - 1));
        let mut offsets: Vec<_> =
            std::iter::once(begin).chain(changes).map(|at| (at, self.offset_at(at))).collect();
        offsets.dedup_by_key(|(_, offset)| *offset);
        offsets
    }

    /// Returns local time minus UTC, in minutes, at a FILETIME (UTC).
    pub fn offset_at(&self, filetime: i64) -> i32 {
        let (standard, daylight) = self.offset_pair();
        match self.is_daylight(filetime, standard, daylight) {
            Some(true) => daylight,
            Some(false) => standard,
            None => self.bias.saturating_neg(),
        }
    }

    /// Returns the offsets without and with daylight saving time. A damaged file may claim any bias.
    fn offset_pair(&self) -> (i32, i32) {
        let offset = |change: ClockChange| self.bias.saturating_add(change.bias).saturating_neg();
        (offset(self.standard), offset(self.daylight))
    }

    /// Whether daylight saving time applies; `None` if the zone has none.
    fn is_daylight(&self, filetime: i64, standard: i32, daylight: i32) -> Option<bool> {
        let minutes = |minutes: i32| SignedDuration::from_mins(minutes.into());
        let utc = date_time(filetime)?;
        let year = utc.checked_add(minutes(standard)).ok()?.year();
        // Each change is given in the local time before it.
        let begin = self.daylight.in_year(year)?.checked_sub(minutes(standard)).ok()?;
        let end = self.standard.in_year(year)?.checked_sub(minutes(daylight)).ok()?;
        Some(if begin < end { begin <= utc && utc < end } else { utc < end || begin <= utc })
    }
}

impl ClockChange {
    fn decode(p: &mut Payload<'_>) -> Option<Self> {
        let (year, month, weekday) = (p.u16()?, p.u16()?, p.u16()?);
        let (day, hour, minute) = (p.u16()?, p.u16()?, p.u16()?);
        p.skip(4)?; // second, millisecond
        Some(Self { year, month, weekday, day, hour, minute, bias: p.u32()? as i32 })
    }

    /// Returns the local time of the change in a year.
    fn in_year(&self, year: i16) -> Option<DateTime> {
        let small = |field: u16| i8::try_from(field).ok();
        let date = if self.year == 0 {
            let weekday = Weekday::from_sunday_zero_offset(small(self.weekday % 7)?).ok()?;
            // The fifth weekday means the last one, even in months with four.
            let nth = if self.day >= 5 { -1 } else { small(self.day.max(1))? };
            Date::new(year, small(self.month)?, 1).ok()?.nth_weekday_of_month(nth, weekday).ok()?
        } else {
            let year = i16::try_from(self.year).ok()?;
            Date::new(year, small(self.month)?, small(self.day)?).ok()?
        };
        let time = Time::new(small(self.hour)?, small(self.minute)?, 0, 0).ok()?;
        Some(date.to_datetime(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(month: u16, day: u16, hour: u16, bias: i32) -> ClockChange {
        ClockChange { year: 0, month, weekday: 0, day, hour, minute: 0, bias }
    }

    fn filetime(text: &str) -> i64 {
        of_date_time(text.parse().unwrap()).unwrap()
    }

    #[test]
    fn daylight_saving_time_in_berlin_lasts_from_march_to_october() {
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
    fn a_bias_of_any_size_has_an_offset() {
        for bias in [i32::MIN, i32::MIN + 60, i32::MAX] {
            let zone =
                TimeZone { bias, standard: change(0, 0, 0, 0), daylight: change(0, 0, 0, -60) };
            assert_eq!(zone.offset_at(filetime("2024-01-15 00:00")), bias.saturating_neg());
            let zone =
                TimeZone { bias, standard: change(4, 1, 3, 0), daylight: change(10, 1, 2, -60) };
            zone.offset_at(filetime("2024-01-15 00:00"));
            zone.offsets(filetime("2024-01-15 00:00"), filetime("2025-01-15 00:00"));
        }
    }

    #[test]
    fn south_of_the_equator_daylight_saving_time_spans_the_new_year() {
        let sydney =
            TimeZone { bias: -600, standard: change(4, 1, 3, 0), daylight: change(10, 1, 2, -60) };
        assert_eq!(sydney.offset_at(filetime("2024-01-15 00:00")), 660);
        assert_eq!(sydney.offset_at(filetime("2024-07-15 00:00")), 600);
    }

    #[test]
    fn the_changes_of_a_recording_are_those_of_the_years_around_it() {
        let berlin =
            TimeZone { bias: -60, standard: change(10, 5, 3, 0), daylight: change(3, 5, 2, -60) };
        let (first, last) = (filetime("2024-10-27 00:30"), filetime("2024-10-27 01:30"));
        let changes = [
            ("2023-03-26 01:00", 120),
            ("2023-10-29 01:00", 60),
            ("2024-03-31 01:00", 120),
            ("2024-10-27 01:00", 60),
            ("2025-03-30 01:00", 120),
            ("2025-10-26 01:00", 60),
        ];
        let changes = changes.map(|(at, offset)| (filetime(at), offset));
        let before = (filetime("2023-03-26 01:00") - 1, 60);
        assert_eq!(berlin.offsets(first, last), [&[before][..], &changes].concat());
        for (at, offset) in changes {
            assert_eq!(berlin.offset_at(at), offset);
            assert_ne!(berlin.offset_at(at - 1), offset);
        }
        let none = TimeZone { standard: change(0, 0, 0, 0), ..berlin.clone() };
        let offsets: Vec<i32> =
            none.offsets(first, last).iter().map(|(_, minutes)| *minutes).collect();
        assert_eq!(offsets, [60]);
        assert_eq!(berlin.offsets(i64::MAX, 0).len(), 1);
    }

    #[test]
    fn a_rule_with_a_year_holds_in_that_year() {
        let once =
            |month, day, hour, bias| ClockChange { year: 2024, ..change(month, day, hour, bias) };
        let zone =
            TimeZone { bias: 180, standard: once(2, 18, 0, 0), daylight: once(10, 20, 0, -60) };
        let (first, last) = (filetime("2024-02-18 01:00"), filetime("2024-02-18 03:00"));
        let offsets = zone.offsets(first, last);
        assert_eq!(
            offsets[1..],
            [(filetime("2024-02-18 02:00"), -180), (filetime("2024-10-20 03:00"), -120)]
        );
        assert_eq!(offsets[0].1, -120);
    }

    #[test]
    fn a_zone_without_daylight_saving_time_has_a_single_offset() {
        let none =
            TimeZone { bias: 480, standard: change(0, 0, 0, 0), daylight: change(0, 0, 0, -60) };
        assert_eq!(none.offset_at(filetime("2024-07-15 00:00")), -480);
        assert_eq!(none.offset_at(i64::MIN), -480);
    }
}
