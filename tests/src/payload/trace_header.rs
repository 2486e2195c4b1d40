//! The trace header event, the first of every trace (hook 0x0000).

use super::KernelPayload;
use crate::bytes::{ByteString, PointerSize};

/// Fields of the trace header event; file times are UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceHeaderPayload {
    /// The session's buffer size, in bytes.
    pub buffer_size: u32,
    /// Version of the writing system: major, minor, sub, subminor.
    pub version: [u8; 4],
    pub build: u32,
    /// Number of processors.
    pub cpus: u32,
    /// End time (FILETIME); 0 if the session was not closed.
    pub end: i64,
    /// Maximum file size, in MB.
    pub maximum_mb: u32,
    /// Log file mode bits.
    pub mode: u32,
    /// Number of buffers in the file, including the header buffer.
    pub buffers_written: u32,
    /// Pointer width of the writing system.
    pub pointer: PointerSize,
    pub events_lost: u32,
    /// Processor frequency, in MHz.
    pub cpu_mhz: u32,
    /// Time zone: UTC = local time + bias, in minutes.
    pub bias_minutes: i32,
    /// Clock changes of the time zone.
    pub changes: ClockChanges,
    /// Interval of the system timer, in 100 ns.
    pub timer_resolution: u32,
    /// Boot time (FILETIME).
    pub boot: i64,
    /// Ticks of the performance counter per second.
    pub perf_frequency: i64,
    /// Start time (FILETIME).
    pub start: i64,
    /// 1 performance counter, 2 system time, 3 processor cycles.
    pub clock: u32,
    pub buffers_lost: u32,
    pub logger_name: String,
    pub file_name: String,
}

impl TraceHeaderPayload {
    /// Returns the payload, laid out for the record's pointer width.
    #[must_use]
    pub fn payload(&self) -> KernelPayload {
        let before_boot = if self.pointer == PointerSize::Eight { 248 } else { 240 };
        let head = ByteString::new()
            .u32(self.buffer_size)
            .raw(&self.version)
            .u32(self.build)
            .u32(self.cpus)
            .i64(self.end)
            .u32(self.timer_resolution)
            .u32(self.maximum_mb)
            .u32(self.mode)
            .u32(self.buffers_written)
            .u32(1) // start buffers
            .u32(self.pointer.bytes() as u32)
            .u32(self.events_lost)
            .u32(self.cpu_mhz)
            .ptrs(self.pointer, &[0, 0]);
        let zone = time_zone(head, self.bias_minutes, self.changes);
        let padding = before_boot - zone.len();
        let bytes = zone
            .zeros(padding)
            .i64(self.boot)
            .i64(self.perf_frequency)
            .i64(self.start)
            .u32(self.clock)
            .u32(self.buffers_lost)
            .utf16z(&self.logger_name)
            .utf16z(&self.file_name)
            .into_vec();
        KernelPayload { hook: 0, version: 2, bytes }
    }
}

/// Appends a `TIME_ZONE_INFORMATION`, 172 bytes.
fn time_zone(bytes: ByteString, bias_minutes: i32, changes: ClockChanges) -> ByteString {
    let ClockChanges { standard, daylight } = changes;
    let date = |bytes: ByteString, date: [u16; 8]| date.into_iter().fold(bytes, ByteString::u16);
    let bytes = bytes.i32(bias_minutes).utf16_fixed("@tzres.dll,-322", 32);
    let bytes = date(bytes, standard).i32(0).utf16_fixed("@tzres.dll,-321", 32);
    date(bytes, daylight).i32(-60)
}

/// When the clocks of a zone change, as SYSTEMTIMEs in the local time before the change. The fields are year (0: every
/// year), month (0: never), weekday (0: Sunday), day or number of the weekday in the month (5: last), hour, minute,
/// second and millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockChanges {
    /// Change to standard time.
    pub standard: [u16; 8],
    /// Change to daylight saving time, one hour ahead.
    pub daylight: [u16; 8],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(pointer: PointerSize) -> Vec<u8> {
        TraceHeaderPayload {
            buffer_size: 0x1_0000,
            version: [10, 0, 1, 0],
            build: 26_100,
            cpus: 4,
            end: 0x1122,
            maximum_mb: 0,
            mode: 0x10001,
            buffers_written: 6,
            pointer,
            events_lost: 3,
            cpu_mhz: 2918,
            bias_minutes: -60,
            changes: ClockChanges::default(),
            timer_resolution: 156_250,
            boot: 0x3344,
            perf_frequency: 10_000_000,
            start: 0x5566,
            clock: 1,
            buffers_lost: 2,
            logger_name: "L".into(),
            file_name: "F".into(),
        }
        .payload()
        .bytes
    }

    #[test]
    fn the_64_bit_layout_has_the_boot_time_at_248() {
        let bytes = header(PointerSize::Eight);
        assert_eq!(bytes[0..12], [0, 0, 1, 0, 10, 0, 1, 0, 0xf4, 0x65, 0, 0]);
        assert_eq!(bytes[12..24], [4, 0, 0, 0, 0x22, 0x11, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[32..40], [1, 0, 1, 0, 6, 0, 0, 0]);
        assert_eq!(bytes[44..52], [8, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[72..76], [0xc4, 0xff, 0xff, 0xff]);
        assert_eq!(bytes[248..250], [0x44, 0x33]);
        assert_eq!(bytes[256..260], [0x80, 0x96, 0x98, 0]);
        assert_eq!(bytes[264..266], [0x66, 0x55]);
        assert_eq!(bytes[272..280], [1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(bytes[280..], [b'L', 0, 0, 0, b'F', 0, 0, 0]);
    }

    #[test]
    fn the_32_bit_layout_has_the_boot_time_at_240() {
        let bytes = header(PointerSize::Four);
        assert_eq!(bytes[44..48], [4, 0, 0, 0]);
        assert_eq!(bytes[64..68], [0xc4, 0xff, 0xff, 0xff]);
        assert_eq!(bytes[240..242], [0x44, 0x33]);
        assert_eq!(bytes[248..252], [0x80, 0x96, 0x98, 0]);
        assert_eq!(bytes[256..258], [0x66, 0x55]);
        assert_eq!(bytes[264..272], [1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(bytes[272..], [b'L', 0, 0, 0, b'F', 0, 0, 0]);
    }
}
