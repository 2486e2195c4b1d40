//! The header of a session in real time, and the extended items of its events, laid out as in a file.

#![cfg_attr(not(any(windows, test)), allow(dead_code, reason = "only a session has them"))]

/// A FILETIME counts 100 ns.
const FILETIMES_PER_SECOND: i128 = 10_000_000;

/// `TRACE_LOGFILE_HEADER` (learn) of a 64-bit system.
#[derive(Debug, Clone, Default)]
pub struct Header {
    pub buffer_size: u32,
    pub version: u32,
    pub provider_version: u32,
    pub processors: u32,
    pub timer_resolution: u32,
    pub log_file_mode: u32,
    pub cpu_mhz: u32,
    /// `TIME_ZONE_INFORMATION`, 172 bytes.
    pub time_zone: Vec<u8>,
    pub boot_time: i64,
    pub frequency: i64,
    pub start_time: i64,
}

/// Bytes of `TIME_ZONE_INFORMATION`.
const TIME_ZONE_BYTES: usize = 172;

/// `ReservedFlags`: times are ticks of the performance counter.
const PERFORMANCE_COUNTER: u32 = 1;

impl Header {
    /// Returns the bytes of the structure. Fields known only at the end of a session are 0.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(280);
        let mut add = |value: &[u8]| bytes.extend_from_slice(value);
        let first = [self.buffer_size, self.version, self.provider_version, self.processors];
        first.iter().for_each(|value| add(&value.to_le_bytes()));
        add(&[0; 8]); // end
        add(&self.timer_resolution.to_le_bytes());
        add(&[0; 4]); // maximum file size
        add(&self.log_file_mode.to_le_bytes());
        add(&[0; 8]); // buffers written, start buffers
        add(&8u32.to_le_bytes()); // pointer size
        add(&[0; 4]); // events lost
        add(&self.cpu_mhz.to_le_bytes());
        add(&[0; 16]); // names
        let mut zone = self.time_zone.clone();
        zone.resize(TIME_ZONE_BYTES, 0);
        add(&zone);
        add(&[0; 4]); // align the next field
        [self.boot_time, self.frequency, self.start_time]
            .iter()
            .for_each(|value| add(&value.to_le_bytes()));
        add(&PERFORMANCE_COUNTER.to_le_bytes());
        add(&[0; 4]); // buffers lost
        bytes
    }
}

/// Returns the performance counter at a time, given both clocks `now`.
pub fn counter_at(filetime: i64, now: (i64, i64), frequency: i64) -> i64 {
    let (counter, now) = now;
    let passed = i128::from(now) - i128::from(filetime);
    let ticks = passed * i128::from(frequency) / FILETIMES_PER_SECOND;
    i64::try_from(i128::from(counter) - ticks).unwrap_or(counter)
}

/// Adds an extended item to those of an event, laid out as in a file: its size rounded up to eight bytes, its type,
/// whether another one follows, the size of its data, the data.
pub fn add_item(items: &mut Vec<u8>, kind: u16, follows: bool, data: &[u8]) {
    let size = (8 + data.len()).next_multiple_of(8);
    let head = [size as u16, kind, u16::from(follows), data.len() as u16];
    let end = items.len() + size;
    items.extend(head.iter().flat_map(|part| part.to_le_bytes()));
    items.extend_from_slice(data);
    items.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_its_fields_where_files_have_them() {
        let header = Header {
            buffer_size: 1 << 20,
            version: 0x0205_000A,
            provider_version: 26100,
            processors: 8,
            time_zone: vec![1, 2, 3, 4],
            boot_time: 11,
            frequency: 10_000_000,
            start_time: 22,
            ..Header::default()
        };
        let bytes = header.bytes();
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let i64_at = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!((bytes.len(), u32_at(0), u32_at(8), u32_at(12)), (280, 1 << 20, 26100, 8));
        assert_eq!((u32_at(44), u32_at(72), u32_at(272)), (8, 0x0403_0201, 1));
        assert_eq!((i64_at(248), i64_at(256), i64_at(264)), (11, 10_000_000, 22));
    }

    #[test]
    fn the_counter_at_the_start_follows_from_both_clocks_now() {
        assert_eq!(counter_at(1_000, (50_000, 11_000), 10_000_000), 40_000);
        assert_eq!(counter_at(0, (90, 10_000_000), 60), 30);
    }

    #[test]
    fn extended_items_are_chained() {
        let mut items = Vec::new();
        add_item(&mut items, 1, true, &[7; 16]);
        add_item(&mut items, 12, false, &[9; 3]);
        assert_eq!(items[..8], [24, 0, 1, 0, 1, 0, 16, 0]);
        assert_eq!(items[24..], [16, 0, 12, 0, 0, 0, 3, 0, 9, 9, 9, 0, 0, 0, 0, 0]);
    }
}
