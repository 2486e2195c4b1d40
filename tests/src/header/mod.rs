//! Event headers: every kind a trace file can have.
//!
//! Kernel events ([`KernelEvent`]) are identified by a hook id, provider events by a GUID ([`ClassicEvent`],
//! [`InstanceEvent`], [`ManifestEvent`]) and old software tracing by a message number ([`TraceMessage`]). Each of them
//! encodes into the bytes of one event with its header; [`crate::file`] does the 8-byte alignment.

mod provider;

pub use self::provider::{ClassicEvent, ExtendedItem, InstanceEvent, ManifestEvent, TraceMessage};
use crate::bytes::{ByteString, PointerSize};

/// Time and thread of an event, as in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Raw clock value.
    pub time: i64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
}

impl Stamp {
    /// Creates a time stamp for a thread.
    #[must_use]
    pub fn new(time: i64, pid: u32, tid: u32) -> Self {
        Self { time, pid, tid }
    }
}

/// Returns the size field of an event.
fn event_size(bytes: usize) -> u16 {
    u16::try_from(bytes).expect("an event has at most 65535 bytes")
}

/// Marker in byte 3 of every event except trace messages.
pub const MARKER: u8 = 0xc0;

/// The three headers a kernel event can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeaderKind {
    /// 32 bytes with thread, process and processor times (types 1 and 2).
    System,
    /// 24 bytes with thread and process (types 3 and 4).
    #[default]
    Compact,
    /// 16 bytes without thread and process (types 0x10 and 0x11).
    PerfInfo,
}

impl HeaderKind {
    /// Returns the size of the header without extensions, in bytes.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::System => 32,
            Self::Compact => 24,
            Self::PerfInfo => 16,
        }
    }

    /// Returns the header type, byte 2 of the event.
    #[must_use]
    fn type_byte(self, pointer: PointerSize) -> u8 {
        let (four, eight) = match self {
            Self::System => (1, 2),
            Self::Compact => (3, 4),
            Self::PerfInfo => (0x10, 0x11),
        };
        if pointer == PointerSize::Four { four } else { eight }
    }
}

/// A kernel event, identified by its hook id (`group << 8 | opcode`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelEvent {
    /// Header to write.
    pub kind: HeaderKind,
    /// Pointer width of the payload.
    pub pointer: PointerSize,
    pub hook: u16,
    pub version: u8,
    /// Time, process and thread; a perfinfo header keeps only the time.
    pub stamp: Stamp,
    /// Kernel and user mode ticks (only in the system header).
    pub ticks: (u32, u32),
    /// Counter values between header and payload, up to 7 (bits 8 to 10 of the version).
    pub counters: Vec<u64>,
    /// One more value between header and payload (bit 15 of the version).
    pub extra: Option<u64>,
    pub payload: Vec<u8>,
}

impl KernelEvent {
    /// Returns the bytes of the event.
    ///
    /// # Panics
    /// If the event is larger than 65535 bytes or has more than 7 counters.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.counters.len() <= 7, "a header counts at most 7 extension values");
        let extensions = self.counters.len() + usize::from(self.extra.is_some());
        let size = self.kind.size() + 8 * extensions + self.payload.len();
        let version = u16::from(self.version)
            | (self.counters.len() as u16) << 8
            | u16::from(self.extra.is_some()) << 15;
        let start = ByteString::new()
            .u16(version)
            .u8(self.kind.type_byte(self.pointer))
            .u8(MARKER)
            .u16(event_size(size))
            .u16(self.hook);
        let header = match self.kind {
            HeaderKind::PerfInfo => start.i64(self.stamp.time),
            HeaderKind::Compact => self.with_thread(start),
            HeaderKind::System => self.with_thread(start).u32(self.ticks.0).u32(self.ticks.1),
        };
        self.counters
            .iter()
            .chain(&self.extra)
            .fold(header, |bytes, value| bytes.u64(*value))
            .raw(&self.payload)
            .into_vec()
    }

    fn with_thread(&self, start: ByteString) -> ByteString {
        start.u32(self.stamp.tid).u32(self.stamp.pid).i64(self.stamp.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: HeaderKind, pointer: PointerSize) -> KernelEvent {
        KernelEvent {
            kind,
            pointer,
            hook: 0x1120,
            version: 2,
            stamp: Stamp::new(0x0807_0605_0403_0201, 0x11, 0x22),
            ticks: (3, 4),
            payload: vec![0xaa],
            ..KernelEvent::default()
        }
    }

    #[test]
    fn a_system_header_has_thread_process_time_and_ticks() {
        let expected = [
            2, 0, 2, 0xc0, 33, 0, 0x20, 0x11, 0x22, 0, 0, 0, 0x11, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
            3, 0, 0, 0, 4, 0, 0, 0, 0xaa,
        ];
        assert_eq!(event(HeaderKind::System, PointerSize::Eight).encode(), expected);
    }

    #[test]
    fn a_compact_header_ends_with_the_time() {
        let expected = [
            2, 0, 3, 0xc0, 25, 0, 0x20, 0x11, 0x22, 0, 0, 0, 0x11, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
            0xaa,
        ];
        assert_eq!(event(HeaderKind::Compact, PointerSize::Four).encode(), expected);
    }

    #[test]
    fn a_perfinfo_header_has_no_thread() {
        let expected = [2, 0, 0x11, 0xc0, 17, 0, 0x20, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0xaa];
        assert_eq!(event(HeaderKind::PerfInfo, PointerSize::Eight).encode(), expected);
    }

    #[test]
    fn extension_values_sit_between_header_and_payload() {
        let mut event = event(HeaderKind::PerfInfo, PointerSize::Eight);
        event.counters = vec![1, 2];
        event.extra = Some(3);
        let bytes = event.encode();
        assert_eq!(bytes[..6], [2, 0x82, 0x11, 0xc0, 41, 0]);
        assert_eq!(bytes[16..32], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[32..], [3, 0, 0, 0, 0, 0, 0, 0, 0xaa]);
    }
}
