//! Frames events: parses headers of every kind. Payloads are not decoded here.

use std::fmt;

use super::stack_parts::StackParts;

/// GUID in its on-disk form: the first three groups little-endian.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// Creates a GUID from a UUID, for constants.
    pub const fn from_uuid(uuid: uuid::Uuid) -> Self {
        Self(uuid.to_bytes_le())
    }

    /// Creates a GUID from its textual groups, for constants.
    pub const fn new(a: u32, b: u16, c: u16, d: [u8; 8]) -> Self {
        let (a, b, c) = (a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes());
        Self([
            a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5],
            d[6], d[7],
        ])
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_bytes_le(self.0).hyphenated().fmt(f)
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Identity of an event, from its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventId {
    /// Kernel event: group << 8 | opcode.
    Hook(u16),
    /// Classic event of a provider.
    Classic { guid: Guid, opcode: u8 },
    /// Manifest or TraceLogging event.
    Manifest { guid: Guid, id: u16 },
    /// Trace message (WPP); only its provider knows the fields.
    Message,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hook(hook) => write!(f, "hook:{hook:04x}"),
            Self::Classic { guid, opcode } => write!(f, "classic:{guid}:{opcode}"),
            Self::Manifest { guid, id } => write!(f, "manifest:{guid}:{id}"),
            Self::Message => f.write_str("message"),
        }
    }
}

/// Event, borrowed from its buffer.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    pub id: EventId,
    pub version: u8,
    /// Raw timestamp; see [`super::Clock`].
    pub time: i64,
    /// Process id from the header; `None` if the header has none.
    pub pid: Option<u32>,
    /// Thread id from the header; `None` if the header has none.
    pub tid: Option<u32>,
    /// Processor that wrote the event.
    pub processor: u16,
    /// Pointer size of the payload, 4 or 8.
    pub pointer_size: usize,
    /// Payload, without header and extended items.
    pub payload: &'a [u8],
    /// Extended items of manifest events.
    pub extended: &'a [u8],
    /// Offset in the file; for compressed buffers, the offset of the buffer.
    pub offset: u64,
    /// Number of the bytes that [`Selector::repeated`] returned, if buffers are read ahead. Equal bytes have equal
    /// numbers, and numbers are below 2²².
    ///
    /// [`Selector::repeated`]: super::Selector::repeated
    pub repeated: Option<u32>,
    /// Parts of its stack that [`Selector::stack_part`] found in later events, which are not handed out themselves.
    ///
    /// [`Selector::stack_part`]: super::Selector::stack_part
    pub parts: Option<&'a StackParts<'a>>,
}

impl Default for Event<'_> {
    /// Creates an empty event of a 64-bit system.
    fn default() -> Self {
        Self {
            id: EventId::Message,
            version: 0,
            time: 0,
            pid: None,
            tid: None,
            processor: 0,
            pointer_size: 8,
            payload: &[],
            extended: &[],
            offset: 0,
            repeated: None,
            parts: None,
        }
    }
}

impl<'a> Event<'a> {
    /// Returns the first event in the bytes after a buffer header, if any.
    pub fn first(bytes: &'a [u8]) -> Option<Self> {
        frame(bytes, 0).ok().map(|framed| framed.event)
    }
}

/// Why an event cannot be framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Unknown header type or marker.
    #[error("unknown event header type")]
    UnknownHeader,
    /// A size smaller than the header, or past the end of the buffer.
    #[error("invalid event size")]
    BadSize,
}

/// Header and payload of an event, without its processor and offset.
pub struct EventFrame<'a> {
    pub event: Event<'a>,
    /// Bytes of its header that are read. Counters, the parent of an instance and extended items may follow.
    pub header: usize,
    /// Size in bytes; the payload is at the end.
    pub size: usize,
    /// Bytes to the next event.
    pub stride: usize,
}

const MARKER: u8 = 0xC0;
const MESSAGE_MARKER: u8 = 0x90;
/// Id in a header without process or thread (INVALID_THREAD in ntos).
const UNKNOWN_ID: u32 = u32::MAX;

/// Fixed-size reads from bytes; the caller has checked the length.
struct HeaderFields<'a>(&'a [u8]);

impl HeaderFields<'_> {
    fn u8(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.u8(at), self.u8(at + 1)])
    }
    fn u32(&self, at: usize) -> u32 {
        self.0.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b))
    }
    fn i64(&self, at: usize) -> i64 {
        self.0.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| i64::from_le_bytes(*b))
    }
    fn guid(&self, at: usize) -> Guid {
        Guid(self.0.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default())
    }
    /// Reads a process or thread id; `None` if unknown.
    fn id(&self, at: usize) -> Option<u32> {
        Some(self.u32(at)).filter(|id| *id != UNKNOWN_ID)
    }
}

/// Whether no more events follow: the bytes begin with the all-ones end marker, or there are none.
pub fn is_end(bytes: &[u8]) -> bool {
    bytes.len() < 8 || bytes.starts_with(&[0xFF; 4])
}

/// Frames the event at the start of `bytes`, which must extend to the end of the valid data.
///
/// `inherited_time` is the time of the previous event, for trace messages without a timestamp.
pub fn frame(bytes: &[u8], inherited_time: i64) -> Result<EventFrame<'_>, FrameError> {
    let fields = HeaderFields(bytes);
    match fields.u8(3) {
        MARKER => match fields.u8(2) {
            kind @ (1 | 2) => kernel(bytes, 32, pointer_size(kind == 2)),
            kind @ (3 | 4) => kernel(bytes, 24, pointer_size(kind == 4)),
            kind @ (0x10 | 0x11) => kernel(bytes, 16, pointer_size(kind == 0x11)),
            kind @ (10 | 20) => classic(bytes, CLASSIC_HEADER, pointer_size(kind == 20)),
            kind @ (11 | 21) => classic(bytes, 72, pointer_size(kind == 21)),
            kind @ (18 | 19) => manifest(bytes, pointer_size(kind == 19)),
            _ => Err(FrameError::UnknownHeader),
        },
        MESSAGE_MARKER => message(bytes, inherited_time),
        _ => Err(FrameError::UnknownHeader),
    }
}

fn pointer_size(wide: bool) -> usize {
    if wide { 8 } else { 4 }
}

/// Returns the timestamp at the start of a buffer's events, which orders the buffers.
pub fn leading_time(bytes: &[u8]) -> Option<i64> {
    let fields = HeaderFields(bytes);
    let at = match (fields.u8(3), fields.u8(2)) {
        (MARKER, 0x10 | 0x11) => 8,
        (MARKER, 1..=4 | 10 | 11 | 18..=21) => 16,
        _ => return None,
    };
    (bytes.len() >= at + 8).then(|| fields.i64(at))
}

/// Bytes of an event that [`leading_time`] needs.
pub const LEADING_BYTES: usize = 24;

fn sized(bytes: &[u8], size: usize, header: usize) -> Result<&[u8], FrameError> {
    if size < header {
        return Err(FrameError::BadSize);
    }
    bytes.get(..size).ok_or(FrameError::BadSize)
}

fn framed(header: usize, size: usize, event: Event<'_>) -> EventFrame<'_> {
    EventFrame { event, header, size, stride: size.next_multiple_of(8) }
}

/// Frames events with system (32), compact (24) and perfinfo (16) headers.
fn kernel(bytes: &[u8], header: usize, pointer_size: usize) -> Result<EventFrame<'_>, FrameError> {
    let fields = HeaderFields(bytes);
    let size = usize::from(fields.u16(4));
    let bytes = sized(bytes, size, header)?;
    let has_ids = header > 16;
    let version = fields.u16(0);
    // The high byte counts values between header and payload: bits 8-10 performance counters,
    // bit 15 one more (PERFINFO_TRACE_HEADER, EVENT_HEADER_EXTENDED).
    let extra = usize::from(version >> 8 & 7) + usize::from(version >> 15);
    let payload = bytes.get(header + extra * 8..).ok_or(FrameError::BadSize)?;
    let event = Event {
        id: EventId::Hook(fields.u16(6)),
        version: version as u8,
        time: fields.i64(if has_ids { 16 } else { 8 }),
        pid: if has_ids { fields.id(12) } else { None },
        tid: if has_ids { fields.id(8) } else { None },
        pointer_size,
        payload,
        ..Event::default()
    };
    Ok(framed(header, size, event))
}

const CLASSIC_HEADER: usize = 48;

/// Frames events with classic (48) and instance (72) headers; both have the event class at 24.
fn classic(bytes: &[u8], header: usize, pointer_size: usize) -> Result<EventFrame<'_>, FrameError> {
    let fields = HeaderFields(bytes);
    let size = usize::from(fields.u16(0));
    let bytes = sized(bytes, size, header)?;
    let event = Event {
        id: EventId::Classic { guid: fields.guid(24), opcode: fields.u8(4) },
        version: fields.u16(6) as u8,
        time: fields.i64(16),
        pid: fields.id(12),
        tid: fields.id(8),
        pointer_size,
        payload: &bytes[header..],
        ..Event::default()
    };
    Ok(framed(CLASSIC_HEADER, size, event))
}

const MANIFEST_HEADER: usize = 80;

fn manifest(bytes: &[u8], pointer_size: usize) -> Result<EventFrame<'_>, FrameError> {
    let fields = HeaderFields(bytes);
    let size = usize::from(fields.u16(0));
    let bytes = sized(bytes, size, MANIFEST_HEADER)?;
    let payload_at = if fields.u16(4) & 1 != 0 { end_of_extended(bytes)? } else { MANIFEST_HEADER };
    let event = Event {
        id: EventId::Manifest { guid: fields.guid(24), id: fields.u16(40) },
        version: fields.u8(42),
        time: fields.i64(16),
        pid: fields.id(12),
        tid: fields.id(8),
        pointer_size,
        payload: &bytes[payload_at..],
        extended: &bytes[MANIFEST_HEADER..payload_at],
        ..Event::default()
    };
    Ok(framed(MANIFEST_HEADER, size, event))
}

/// Walks the chain of extended items; bit 0 of an item's third field says that another follows.
fn end_of_extended(bytes: &[u8]) -> Result<usize, FrameError> {
    let fields = HeaderFields(bytes);
    let mut at = MANIFEST_HEADER;
    loop {
        let size = usize::from(fields.u16(at));
        let more = fields.u16(at + 4) & 1 != 0;
        if size < 8 || at + size > bytes.len() {
            return Err(FrameError::BadSize);
        }
        at += size;
        if !more {
            return Ok(at);
        }
    }
}

const MESSAGE_HEADER: usize = 8;

fn message(bytes: &[u8], time: i64) -> Result<EventFrame<'_>, FrameError> {
    let size = usize::from(HeaderFields(bytes).u16(0));
    let bytes = sized(bytes, size, MESSAGE_HEADER)?;
    Ok(framed(
        MESSAGE_HEADER,
        size,
        Event { time, payload: &bytes[MESSAGE_HEADER..], ..Event::default() },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates an event of one header kind with a payload of four bytes.
    fn event(kind: u8, header: usize, size_at: usize) -> Vec<u8> {
        let mut bytes = vec![0; header + 4];
        let size = bytes.len() as u16;
        bytes[2] = kind;
        bytes[3] = MARKER;
        bytes[size_at..size_at + 2].copy_from_slice(&size.to_le_bytes());
        bytes[header..].copy_from_slice(b"load");
        bytes
    }

    #[test]
    fn every_header_kind_gives_payload_and_pointer_size() {
        for (narrow, wide, header, size_at) in [
            (1, 2, 32, 4),
            (3, 4, 24, 4),
            (0x10, 0x11, 16, 4),
            (10, 20, 48, 0),
            (11, 21, 72, 0),
            (18, 19, 80, 0),
        ] {
            for (kind, pointer_size) in [(narrow, 4), (wide, 8)] {
                let bytes = event(kind, header, size_at);
                let framed = frame(&bytes, 0).unwrap();
                assert_eq!(framed.event.payload, b"load", "type {kind}");
                assert_eq!(framed.event.pointer_size, pointer_size, "type {kind}");
                assert_eq!(framed.stride, (header + 4).next_multiple_of(8));
                assert_eq!(frame(&bytes[..bytes.len() - 1], 0).err(), Some(FrameError::BadSize));
            }
        }
    }

    #[test]
    fn header_extensions_are_not_payload() {
        let mut bytes = event(0x11, 16 + 16, 4);
        bytes[1] = 0x81;
        let framed = frame(&bytes, 0).unwrap();
        assert_eq!(framed.event.payload, b"load");
        assert_eq!(framed.event.version, 0);
    }

    #[test]
    fn extended_items_are_not_payload() {
        let mut bytes = event(19, 80 + 16 + 8, 0);
        bytes[4] = 1;
        bytes[80..88].copy_from_slice(&[16, 0, 1, 0, 1, 0, 8, 0]);
        bytes[96..104].copy_from_slice(&[8, 0, 12, 0, 0, 0, 0, 0]);
        let event = frame(&bytes, 0).unwrap().event;
        assert_eq!((event.extended.len(), event.payload), (24, &b"load"[..]));
        bytes[96] = 200;
        assert_eq!(frame(&bytes, 0).err(), Some(FrameError::BadSize));
    }

    #[test]
    fn ids_of_all_ones_are_unknown() {
        let mut bytes = event(2, 32, 4);
        bytes[8..16].fill(0xFF);
        let event = frame(&bytes, 0).unwrap().event;
        assert_eq!((event.pid, event.tid), (None, None));
    }

    #[test]
    fn unknown_headers_are_refused() {
        assert_eq!(frame(&event(99, 80, 0), 0).err(), Some(FrameError::UnknownHeader));
        assert_eq!(frame(&[0; 16], 0).err(), Some(FrameError::UnknownHeader));
    }
}
