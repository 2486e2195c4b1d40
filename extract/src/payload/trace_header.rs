//! The trace header event (TRACE_LOGFILE_HEADER), the first event of every file.

use super::bytes::Payload;
use super::field::Field;
use super::time_zone::TimeZone;
use crate::etl::{Clock, ClockKind, Event, EventId, Session};

/// What the trace header says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceHeader {
    /// Buffer size of the session, bytes.
    pub buffer_size: u32,
    /// Version of Windows: major, minor, sub, subminor.
    pub version: [u8; 4],
    /// Windows build.
    pub os_build: u32,
    pub cpu_count: u32,
    /// Session end, FILETIME; 0 when the session was not closed.
    pub end_time: i64,
    /// Interval of the system timer, 100 ns.
    pub timer_resolution: u32,
    /// Largest size of the file, MB; 0 for any.
    pub maximum_file_size: u32,
    pub log_file_mode: u32,
    /// Buffers the session wrote, the header buffer included.
    pub buffers_written: u32,
    /// Pointer size of the recording system, bytes.
    pub pointer_size: u32,
    pub events_lost: u32,
    /// CPU frequency, MHz.
    pub cpu_mhz: u32,
    /// Time zone of the recording system.
    pub time_zone: TimeZone,
    /// Boot, FILETIME; 0 when unknown.
    pub boot_time: i64,
    /// Frequency of the performance counter, ticks per second.
    pub perf_freq: i64,
    /// Session start, FILETIME.
    pub start_time: i64,
    /// Clock type: 1 performance counter, 2 system time, 3 CPU cycles.
    pub clock_type: u32,
    pub buffers_lost: u32,
    /// Raw time stamp of the header event, which stands for the session start.
    pub base: i64,
}

/// Longest interval of the system timer that is believed, 100 ns: that of real systems is at most 15.625 ms.
const MAX_TIMER_STEP: i64 = 10_000_000;

impl TraceHeader {
    /// The event that carries it.
    pub const EVENT: EventId = EventId::Hook(0);

    /// Names of the time zone stand between its numbers, names of session and file after all.
    pub(crate) const FIELDS: &[Field] = &[
        Field::Bytes(56),
        Field::Pointers(2),
        Field::Bytes(4),
        Field::Unread(64),
        Field::Bytes(20),
        Field::Unread(64),
        Field::Bytes(56),
        Field::Utf16,
        Field::Utf16,
    ];

    /// Decodes the payload of [`Self::EVENT`].
    pub fn decode(event: &Event<'_>) -> Option<Self> {
        let mut p = Payload::of(event);
        Some(Self {
            buffer_size: p.u32()?,
            version: [p.u8()?, p.u8()?, p.u8()?, p.u8()?],
            os_build: p.u32()?,
            cpu_count: p.u32()?,
            end_time: p.i64()?,
            timer_resolution: p.u32()?,
            maximum_file_size: p.u32()?,
            log_file_mode: p.u32()?,
            buffers_written: p.u32()?,
            pointer_size: {
                p.skip(4)?; // start buffers
                p.u32()?
            },
            events_lost: p.u32()?,
            cpu_mhz: p.u32()?,
            time_zone: {
                // Logger and file name pointers, meaningless on disk.
                p.skip(2 * event.pointer_size)?;
                TimeZone::decode(&mut p)?
            },
            boot_time: {
                // The time zone ends at 244 (236) and the times are aligned to 8 bytes in both layouts.
                p.skip(4)?;
                p.i64()?
            },
            perf_freq: p.i64()?,
            start_time: p.i64()?,
            clock_type: p.u32()?,
            buffers_lost: p.u32()?,
            base: event.time,
        })
    }

    /// The session's buffers.
    pub fn session(&self) -> Session {
        Session { buffer_size: self.buffer_size, log_file_mode: self.log_file_mode }
    }

    /// The session's clock; `None` when its type or frequency makes no sense.
    pub fn clock(&self) -> Option<Clock> {
        let (kind, frequency) = match self.clock_type {
            1 => (ClockKind::PerformanceCounter, self.perf_freq),
            2 => (ClockKind::SystemTime, 10_000_000),
            3 => (ClockKind::CpuCycles, i64::from(self.cpu_mhz) * 1_000_000),
            _ => return None,
        };
        // The system time advances at interrupts of the timer, which come at this interval or more often.
        let step = match kind {
            ClockKind::SystemTime => i64::from(self.timer_resolution).clamp(1, MAX_TIMER_STEP),
            ClockKind::PerformanceCounter | ClockKind::CpuCycles => 1,
        };
        (frequency > 0).then_some(Clock { kind, base: self.base, frequency, step })
    }
}
