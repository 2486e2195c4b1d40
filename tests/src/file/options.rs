//! Contents of the trace header, and the layout of the file.

use crate::bytes::PointerSize;
use crate::payload::{ClockChanges, TraceHeaderPayload};

/// 100 ns units per second, the unit of FILETIME.
const FILETIME_PER_SECOND: i128 = 10_000_000;
/// Log file mode bit of compressed files.
const MODE_COMPRESSED: u32 = 0x0400_0000;
/// Log file mode bit of preallocated files.
const MODE_PREALLOCATED: u32 = 0x20;

/// The clock of raw time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawClock {
    /// Performance counter (type 1).
    Qpc {
        /// Ticks per second.
        frequency: i64,
    },
    /// System time (type 2): raw values are FILETIMEs.
    SystemTime,
    /// Processor cycles (type 3).
    CpuCycles {
        /// Million cycles per second.
        mhz: u32,
    },
}

impl RawClock {
    /// Returns the ticks per second.
    #[must_use]
    pub fn frequency(self) -> i64 {
        match self {
            Self::Qpc { frequency } => frequency,
            Self::SystemTime => 10_000_000,
            Self::CpuCycles { mhz } => i64::from(mhz) * 1_000_000,
        }
    }

    fn type_id(self) -> u32 {
        match self {
            Self::Qpc { .. } => 1,
            Self::SystemTime => 2,
            Self::CpuCycles { .. } => 3,
        }
    }
}

/// Order of the buffers in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferOrder {
    /// Order of flushing (mode bit 1).
    Sequential,
    /// The newest buffers overwrite the oldest (mode bit 2), the header buffer stays.
    Circular {
        /// Buffers in the file, not counting the header buffer.
        max_buffers: u64,
    },
    /// The session keeps its newest buffers in memory (mode bit 0x400) and writes them at the end.
    InMemory(Ring),
}

/// Buffers that a session keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// Number of buffers kept, not counting the header buffer.
    pub buffers: usize,
    /// Whether this many are kept per processor, rather than in total.
    pub per_processor: bool,
    /// Whether the buffers are as a merge writes them: numbered from 0, and with the merge's own mode instead of the
    /// session's.
    pub renumbered: bool,
}

/// End of the session, according to the trace header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The time of the last event.
    AtLastEvent,
    /// A given FILETIME.
    At(i64),
    /// The session was not closed: end time 0, and one buffer written.
    NotClosed,
}

/// A buffer besides the event buffers, written before the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraBuffer {
    /// Buffer type (1 rundown, 3 reference time, ...).
    pub buffer_type: u16,
    pub flags: u16,
    /// Content after the buffer header.
    pub content: Vec<u8>,
}

/// Options for writing a trace file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOptions {
    /// Buffer size, in bytes, a multiple of 8.
    pub buffer_size: u32,
    /// Pointer width of the writing system.
    pub pointer: PointerSize,
    /// Number of processors.
    pub cpus: u32,
    /// Clock of the raw times.
    pub clock: RawClock,
    /// Raw time of the start; not used with the system time clock.
    pub base: i64,
    /// Start of the session (FILETIME).
    pub start: i64,
    pub end: SessionEnd,
    /// Boot time of the system (FILETIME).
    pub boot: i64,
    /// UTC = local time + bias, in minutes.
    pub bias_minutes: i32,
    /// Clock changes of the time zone. Default: none.
    pub changes: ClockChanges,
    /// Interval of the system timer, in 100 ns units.
    pub timer_resolution: u32,
    /// System version: major, minor, sub, subminor.
    pub os_version: [u8; 4],
    pub build: u32,
    /// Number of lost events in the header.
    pub events_lost: u32,
    /// Number of lost buffers in the header.
    pub buffers_lost: u32,
    /// Flags added to the last buffer: 2 events lost, 4 buffer lost.
    pub loss_flags: u16,
    /// Further log file mode bits.
    pub mode: u32,
    /// Compress the event buffers.
    pub compressed: bool,
    /// Order of the buffers.
    pub layout: BufferOrder,
    /// Number of unused zero buffers at the end.
    pub preallocated: u32,
    /// Whether it is like a merged file: buffer time stamps are FILETIMEs after the end, not raw flush times.
    pub merged: bool,
    /// Write 16-bit processor indexes (flag 0x20) instead of the old byte.
    pub wide_cpu_index: bool,
    /// Encoded events of the header buffer after the trace header event.
    pub header_events: Vec<Vec<u8>>,
    pub extra_buffers: Vec<ExtraBuffer>,
    /// Process and thread that wrote the trace header event.
    pub writer: (u32, u32),
    pub logger_name: String,
    pub file_name: String,
}

impl Default for FileOptions {
    /// Returns options for a merged trace of a 64-bit system with 4 processors, 64 KiB buffers and a 10 MHz clock.
    fn default() -> Self {
        Self {
            buffer_size: 0x1_0000,
            pointer: PointerSize::Eight,
            cpus: 4,
            clock: RawClock::Qpc { frequency: 10_000_000 },
            base: 9_861_340_898_118,
            start: 133_975_736_100_000_000, // 2025-07-21
            end: SessionEnd::AtLastEvent,
            boot: 133_965_000_000_000_000,
            bias_minutes: -60,
            changes: ClockChanges::default(),
            timer_resolution: 156_250,
            os_version: [10, 0, 1, 10],
            build: 26_100,
            events_lost: 0,
            buffers_lost: 0,
            loss_flags: 0,
            mode: 0x1_0000,
            compressed: false,
            layout: BufferOrder::Sequential,
            preallocated: 0,
            merged: true,
            wide_cpu_index: true,
            header_events: Vec::new(),
            extra_buffers: Vec::new(),
            writer: (1234, 4),
            logger_name: "Relogger".into(),
            file_name: "[multiple files]".into(),
        }
    }
}

impl FileOptions {
    /// Returns the raw time of the trace header event.
    #[must_use]
    pub fn base_raw(&self) -> i64 {
        if self.clock == RawClock::SystemTime { self.start } else { self.base }
    }

    /// Returns the raw time `ns` nanoseconds after the start, rounded up to a tick.
    #[must_use]
    pub fn raw(&self, ns: i64) -> i64 {
        // Rounded up, so that converting back and rounding down gives `ns` again if a tick is 1 ns or `ns` is a
        // multiple of the tick.
        let ticks = i128::from(ns) * i128::from(self.clock.frequency());
        self.base_raw() + (ticks + 999_999_999).div_euclid(1_000_000_000) as i64
    }

    /// Converts a raw time as a reader does: nanoseconds since the start, rounded down.
    #[must_use]
    pub fn nanoseconds(&self, raw: i64) -> i64 {
        let ticks = i128::from(raw - self.base_raw());
        (ticks * 1_000_000_000).div_euclid(i128::from(self.clock.frequency())) as i64
    }

    /// Returns the FILETIME of a raw time.
    #[must_use]
    pub fn filetime(&self, raw: i64) -> i64 {
        let ticks = i128::from(raw - self.base_raw()) * FILETIME_PER_SECOND;
        self.start + ticks.div_euclid(i128::from(self.clock.frequency())) as i64
    }

    /// Returns the log file mode bits, including those of layout, compression and preallocation.
    #[must_use]
    pub fn log_file_mode(&self) -> u32 {
        let layout = match self.layout {
            BufferOrder::Sequential => 1,
            BufferOrder::Circular { .. } => 2,
            BufferOrder::InMemory(Ring { renumbered: true, .. }) => 1,
            BufferOrder::InMemory(_) => 0x400,
        };
        let compressed = if self.compressed { MODE_COMPRESSED } else { 0 };
        let preallocated = if self.preallocated > 0 { MODE_PREALLOCATED } else { 0 };
        self.mode | layout | compressed | preallocated
    }

    /// Returns the trace header for a file of `buffers` with its last event at `last` (raw).
    pub fn trace_header(&self, buffers: u64, last: i64) -> TraceHeaderPayload {
        let (end, buffers_written) = match self.end {
            SessionEnd::AtLastEvent => (self.filetime(last), buffers as u32),
            SessionEnd::At(end) => (end, buffers as u32),
            SessionEnd::NotClosed => (0, 1),
        };
        let (cpu_mhz, perf_frequency) = match self.clock {
            RawClock::Qpc { frequency } => (2918, frequency),
            RawClock::SystemTime => (2918, 10_000_000),
            RawClock::CpuCycles { mhz } => (mhz, 10_000_000),
        };
        TraceHeaderPayload {
            buffer_size: self.buffer_size,
            version: self.os_version,
            build: self.build,
            cpus: self.cpus,
            end,
            maximum_mb: 0,
            mode: self.log_file_mode(),
            buffers_written,
            pointer: self.pointer,
            events_lost: self.events_lost,
            cpu_mhz,
            bias_minutes: self.bias_minutes,
            changes: self.changes,
            timer_resolution: self.timer_resolution,
            boot: self.boot,
            perf_frequency,
            start: self.start,
            clock: self.clock.type_id(),
            buffers_lost: self.buffers_lost,
            logger_name: self.logger_name.clone(),
            file_name: self.file_name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_times_convert_back_to_at_most_one_tick_later() {
        let frequency = 2_143_632;
        let qpc = FileOptions { clock: RawClock::Qpc { frequency }, ..FileOptions::default() };
        for ns in [0, 1, 100, 999_999_999, 7_200_000_000_123] {
            let back = qpc.nanoseconds(qpc.raw(ns));
            assert!((ns..ns + 467).contains(&back), "{ns} became {back}");
        }
        let plain = FileOptions::default();
        assert_eq!(plain.nanoseconds(plain.raw(12_345_600)), 12_345_600);
    }

    #[test]
    fn system_time_starts_at_the_file_time_of_the_start() {
        let options = FileOptions { clock: RawClock::SystemTime, ..FileOptions::default() };
        assert_eq!(options.raw(200), options.start + 2);
        assert_eq!(options.filetime(options.raw(1_000_000_000)), options.start + 10_000_000);
    }

    #[test]
    fn the_mode_bits_follow_the_layout() {
        let circular = FileOptions {
            layout: BufferOrder::Circular { max_buffers: 3 },
            preallocated: 1,
            ..FileOptions::default()
        };
        assert_eq!(circular.log_file_mode(), 0x1_0022);
        let in_memory = |renumbered| {
            let ring = Ring { buffers: 3, per_processor: false, renumbered };
            let layout = BufferOrder::InMemory(ring);
            FileOptions { layout, ..FileOptions::default() }.log_file_mode()
        };
        assert_eq!([in_memory(false), in_memory(true)], [0x1_0400, 0x1_0001]);
        let compressed = FileOptions { compressed: true, ..FileOptions::default() };
        assert_eq!(compressed.log_file_mode(), 0x0401_0001);
    }
}
