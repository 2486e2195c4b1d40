//! Reads the header in front of every buffer (WMI_BUFFER_HEADER), and the time ranges of a buffer's events, which show
//! what a ring kept.

use super::event::{Event, EventId};

/// Size of a buffer header in bytes; events follow it.
pub const BUFFER_HEADER_SIZE: usize = 72;

/// Offsets of the fields of a buffer header.
pub mod buffer_offset {
    pub const SIZE: usize = 0;
    pub const SAVED: usize = 4;
    pub const CURRENT: usize = 8;
    pub const REFERENCES: usize = 12;
    pub const TIME: usize = 16;
    pub const SEQUENCE: usize = 24;
    pub const NEXT_BUFFER: usize = 32;
    pub const PROCESSOR: usize = 40;
    pub const FILLED: usize = 48;
    pub const FLAGS: usize = 52;
    pub const KIND: usize = 54;
    /// Links of lists, up to the end of the header.
    pub const LINKS: usize = 56;
}

/// Largest plausible buffer size: Windows limits session buffers to 16 MiB.
const MAX_BUFFER_SIZE: u32 = 64 << 20;

/// Buffer flag: the last buffer of a session that was stopped, and the buffer of the header.
const FLAG_LAST: u16 = 0x01;
/// Buffer flag: events were lost before this buffer.
const FLAG_EVENTS_LOST: u16 = 0x02;
/// Buffer flag: a buffer was lost before this one.
const FLAG_BUFFER_LOST: u16 = 0x04;
/// Buffer flag: the processor index has 16 bits.
const FLAG_PROCESSOR_INDEX: u16 = 0x20;
/// Buffer flag: the events are compressed.
pub const FLAG_COMPRESSED: u16 = 0x40;

/// Trusted fields of a buffer header.
///
/// The other fields (current offset, reference count, list links) are leftovers from the session's memory and mean
/// nothing on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferHeader {
    /// Bytes the buffer occupies in the file, header included.
    pub size: u32,
    /// End of the valid data, header included, after decompression.
    pub filled: u32,
    /// Processor that logged its events.
    pub processor: u16,
    /// 0 normal, 4 trace header; see the `holds_events` method.
    pub kind: u16,
    /// Sequence number in the session, if there is one; not in file order.
    pub sequence: u64,
    /// Time the session wrote it, in a unit that depends on the file.
    pub time: u64,
    /// Usually equal to `filled`; used only to compare copies of buffers.
    pub saved: u32,
    flags: u16,
}

/// Why a buffer header is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadHeader {
    /// All bytes are zero: unused space of a preallocated file, or a wiped range.
    Empty,
    /// An impossible size or fill.
    Implausible,
}

impl BufferHeader {
    /// Reads the first [`BUFFER_HEADER_SIZE`] bytes of a buffer.
    ///
    /// # Errors
    /// Fails if the bytes are not a buffer header.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadHeader> {
        let Some(bytes) = bytes.first_chunk::<BUFFER_HEADER_SIZE>() else {
            return Err(BadHeader::Implausible);
        };
        if bytes.iter().all(|b| *b == 0) {
            return Err(BadHeader::Empty);
        }
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let flags = u16_at(buffer_offset::FLAGS);
        let header = Self {
            size: u32_at(buffer_offset::SIZE),
            filled: u32_at(buffer_offset::FILLED),
            processor: if flags & FLAG_PROCESSOR_INDEX != 0 {
                u16_at(buffer_offset::PROCESSOR)
            } else {
                u16::from(bytes[buffer_offset::PROCESSOR])
            },
            kind: u16_at(buffer_offset::KIND),
            sequence: u64_at(buffer_offset::SEQUENCE),
            time: u64_at(buffer_offset::TIME),
            saved: u32_at(buffer_offset::SAVED),
            flags,
        };
        let smallest = BUFFER_HEADER_SIZE as u32;
        let fits = header.is_compressed() || header.filled <= header.size;
        if header.size < smallest
            || header.size > MAX_BUFFER_SIZE
            || header.filled < smallest
            || header.filled > MAX_BUFFER_SIZE
            || !fits
        {
            return Err(BadHeader::Implausible);
        }
        Ok(header)
    }

    /// Creates a header of a buffer with this number, processor and flags.
    #[cfg(test)]
    pub fn new(sequence: u64, processor: u16, flags: u16) -> Self {
        let (size, filled, kind, time, saved) = (4096, 4096, 0, 0, 0);
        Self { size, filled, processor, kind, sequence, time, saved, flags }
    }

    /// Whether the events after the header are compressed.
    pub fn is_compressed(&self) -> bool {
        self.flags & FLAG_COMPRESSED != 0
    }

    /// Turns the header in front of expanded bytes into that of an uncompressed buffer.
    pub fn make_plain(bytes: &mut [u8], header: &Self) {
        let size = (bytes.len() as u32).to_le_bytes();
        let flags = (header.flags & !FLAG_COMPRESSED).to_le_bytes();
        for (at, field) in [
            (buffer_offset::SIZE, &size[..]),
            (buffer_offset::FILLED, &size),
            (buffer_offset::FLAGS, &flags),
        ] {
            if let Some(target) = bytes.get_mut(at..at + field.len()) {
                target.copy_from_slice(field);
            }
        }
    }

    /// Whether the flags say that the session lost events or buffers before this buffer.
    pub fn marks_loss(&self) -> bool {
        self.flags & (FLAG_EVENTS_LOST | FLAG_BUFFER_LOST) != 0
    }

    /// Whether it has events besides the trace header.
    pub fn has_session_events(&self) -> bool {
        self.kind != 4
    }

    /// Whether the session wrote it last, when the session was stopped.
    pub fn is_last(&self) -> bool {
        self.has_session_events() && self.flags & FLAG_LAST != 0
    }

    /// Whether the flags say that the session lost a buffer before this one.
    pub fn marks_lost_buffer(&self) -> bool {
        self.flags & FLAG_BUFFER_LOST != 0
    }

    /// Whether buffers of this kind hold framed events: 0 normal, 1 rundown, 4 trace header.
    ///
    /// 2 (compact context switches), 3 (reference time), 5 (batched), 6 (empty marker) and 7
    /// (debug information) do not.
    pub fn holds_events(&self) -> bool {
        matches!(self.kind, 0 | 1 | 4)
    }
}

/// Buffer of the file.
#[derive(Debug, Clone, Copy)]
pub struct IndexedBuffer {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Bytes it occupies in the file; fewer than its header says if the file is cut.
    pub stored: u32,
    pub header: BufferHeader,
    /// Raw time of its first event.
    pub first_time: i64,
}

/// Raw times of the events in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferTimes {
    pub processor: u16,
    /// Number of the buffer in its session.
    pub number: u64,
    /// Number of filled bytes.
    pub bytes: u32,
    /// Times of kernel events, except those of processes, threads and images, which every session has.
    pub kernel: Option<TimeBounds>,
    /// Times of all kernel and provider events.
    pub all: Option<TimeBounds>,
}

/// Raw times of some events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBounds {
    /// First event that is not of a rundown, if any.
    pub first: Option<i64>,
    pub last: i64,
}

impl BufferTimes {
    /// Creates the times of a buffer without events.
    pub fn new(buffer: &IndexedBuffer) -> Self {
        let header = &buffer.header;
        let (processor, number, bytes) = (header.processor, header.sequence, header.filled);
        Self { processor, number, bytes, kernel: None, all: None }
    }

    /// Takes the times from the header, which has the time of the first event, before the events are read.
    pub fn begin(buffer: &IndexedBuffer) -> Self {
        let time = buffer.first_time;
        let times = buffer
            .header
            .has_session_events()
            .then_some(TimeBounds { first: Some(time), last: time });
        Self { kernel: times, all: times, ..Self::new(buffer) }
    }

    /// Adds the next event of the buffer.
    pub fn add(&mut self, event: &Event<'_>) {
        let (is_kernel, is_listed) = match event.id {
            EventId::Hook(hook) if is_of_session(hook) => return,
            EventId::Hook(hook) => {
                (!matches!(hook >> 8, PROCESS | THREAD | IMAGE), is_listed(hook))
            }
            EventId::Manifest { .. } => (false, false),
            // A merge adds facts about the system and images as classic events, at any time.
            EventId::Classic { .. } | EventId::Message => return,
        };
        let add = |times: &mut Option<TimeBounds>| {
            let times = times.get_or_insert(TimeBounds { first: None, last: event.time });
            times.last = times.last.max(event.time);
            if !is_listed {
                times.first.get_or_insert(event.time);
            }
        };
        add(&mut self.all);
        if is_kernel {
            add(&mut self.kernel);
        }
    }
}

/// Groups of kernel events: `group << 8 | opcode` is a hook id.
const HEADER: u16 = 0x00;
const PROCESS: u16 = 0x03;
const THREAD: u16 = 0x05;
const SYSTEM_CONFIG: u16 = 0x0b;
const IMAGE: u16 = 0x14;

/// Whether an event states facts about the session or system, written with the session's start time.
fn is_of_session(hook: u16) -> bool {
    matches!(hook >> 8, HEADER | SYSTEM_CONFIG)
}

/// Whether an event is of a rundown: processes, threads, images, views, types and handles, exited processes, kernel
/// bases or stack keys. Rundowns are written at the start or end of a session.
fn is_listed(hook: u16) -> bool {
    matches!(
        hook,
        0x0303 | 0x0304 | 0x0327 | 0x0427 | 0x0428 | 0x0503 | 0x0504 | 0x1124
            ..=0x1127 | 0x1403 | 0x1404 | 0x1421 | 0x1422 | 0x1824
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(size: u32, filled: u32, flags: u16) -> [u8; 72] {
        let mut bytes = [0; 72];
        bytes[0..4].copy_from_slice(&size.to_le_bytes());
        bytes[40..42].copy_from_slice(&0x0803u16.to_le_bytes());
        bytes[48..52].copy_from_slice(&filled.to_le_bytes());
        bytes[52..54].copy_from_slice(&flags.to_le_bytes());
        bytes
    }

    #[test]
    fn the_processor_index_is_16_bits_wide_only_when_flagged() {
        assert_eq!(BufferHeader::parse(&header(4096, 100, 0)).unwrap().processor, 3);
        assert_eq!(BufferHeader::parse(&header(4096, 100, 0x20)).unwrap().processor, 0x0803);
    }

    #[test]
    fn only_a_compressed_buffer_may_hold_more_than_its_size() {
        assert_eq!(BufferHeader::parse(&header(100, 4096, 0)), Err(BadHeader::Implausible));
        assert!(BufferHeader::parse(&header(100, 4096, 0x40)).unwrap().is_compressed());
    }

    #[test]
    fn impossible_sizes_and_zeros_are_distinguished() {
        assert_eq!(BufferHeader::parse(&header(71, 72, 0)), Err(BadHeader::Implausible));
        assert_eq!(BufferHeader::parse(&header(u32::MAX, 72, 0)), Err(BadHeader::Implausible));
        assert_eq!(BufferHeader::parse(&header(4096, 71, 0)), Err(BadHeader::Implausible));
        assert_eq!(BufferHeader::parse(&[0; 72]), Err(BadHeader::Empty));
        assert_eq!(BufferHeader::parse(&[1; 71]), Err(BadHeader::Implausible));
    }
}
