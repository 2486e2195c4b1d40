//! Headers of events written by providers: classic, instance, manifest and trace messages.

use super::{MARKER, Stamp, event_size};
use crate::bytes::{ByteString, Guid, PointerSize};

/// A classic event: provider GUID and opcode, 48-byte header (types 10 and 20).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassicEvent {
    /// Pointer width of the payload.
    pub pointer: PointerSize,
    /// Event class.
    pub guid: Guid,
    /// Kind of event in the class.
    pub opcode: u8,
    pub level: u8,
    pub version: u16,
    /// Time, process and thread.
    pub stamp: Stamp,
    pub payload: Vec<u8>,
}

impl ClassicEvent {
    /// Returns the bytes of the event.
    ///
    /// # Panics
    /// If the event is larger than 65535 bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.start(types(self.pointer, 10, 20), 48).raw(&self.payload).into_vec()
    }

    fn start(&self, header_type: u8, header_size: usize) -> ByteString {
        ByteString::new()
            .u16(event_size(header_size + self.payload.len()))
            .u8(header_type)
            .u8(MARKER)
            .u8(self.opcode)
            .u8(self.level)
            .u16(self.version)
            .u32(self.stamp.tid)
            .u32(self.stamp.pid)
            .i64(self.stamp.time)
            .guid(self.guid)
            .zeros(8) // kernel and user time
    }
}

/// A classic event of one instance of a class, 72-byte header (types 11 and 21).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceEvent {
    /// The part shared with classic events, and the payload.
    pub event: ClassicEvent,
    /// Instance the event belongs to.
    pub instance: u32,
    pub parent: u32,
    /// Class of the parent instance.
    pub parent_guid: Guid,
}

impl InstanceEvent {
    /// Returns the bytes of the event. The last 24 header bytes follow `EVENT_INSTANCE_GUID_HEADER`.
    ///
    /// # Panics
    /// If the event is larger than 65535 bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.event
            .start(types(self.event.pointer, 11, 21), 72)
            .u32(self.instance)
            .u32(self.parent)
            .guid(self.parent_guid)
            .raw(&self.event.payload)
            .into_vec()
    }
}

/// An item between the header and the payload of a manifest event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtendedItem {
    /// Type of the data: 1 related activity, 5 and 6 stack, 11 schema, 12 provider traits.
    pub kind: u16,
    /// The data, up to 65520 bytes.
    pub data: Vec<u8>,
}

impl ExtendedItem {
    /// Makes a stack of 64-bit frames with match id 0, which means nothing to join.
    #[must_use]
    pub fn stack64(frames: &[u64]) -> Self {
        Self::part64(0, frames)
    }

    /// Makes a part of a stack with 64-bit frames; the other part has the same match id.
    #[must_use]
    pub fn part64(match_id: u64, frames: &[u64]) -> Self {
        let data = ByteString::new().u64(match_id).ptrs(PointerSize::Eight, frames).into_vec();
        Self { kind: 6, data }
    }

    /// Makes a stack given by its key; the frames are written later.
    #[must_use]
    pub fn key64(match_id: u64, key: u64) -> Self {
        Self { kind: 18, data: ByteString::new().u64(match_id).u64(key).into_vec() }
    }

    fn encode(&self, another_follows: bool) -> Vec<u8> {
        let total = (8 + self.data.len()).next_multiple_of(8);
        ByteString::new()
            .u16(event_size(total))
            .u16(self.kind)
            .u16(another_follows.into())
            .u16(event_size(self.data.len()))
            .raw(&self.data)
            .zeros(total - 8 - self.data.len())
            .into_vec()
    }
}

/// A manifest or TraceLogging event, 80-byte header (types 18 and 19).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManifestEvent {
    /// Pointer width of the payload.
    pub pointer: PointerSize,
    pub provider: Guid,
    pub id: u16,
    pub version: u8,
    pub channel: u8,
    pub level: u8,
    pub opcode: u8,
    pub task: u16,
    pub keyword: u64,
    pub activity: Guid,
    /// Time, process and thread.
    pub stamp: Stamp,
    /// Items before the payload; if there are any, bit 0 of the flags is set.
    pub items: Vec<ExtendedItem>,
    pub payload: Vec<u8>,
}

impl ManifestEvent {
    /// Returns the bytes of the event.
    ///
    /// # Panics
    /// If the event is larger than 65535 bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let last = self.items.len().saturating_sub(1);
        let items: Vec<u8> =
            self.items.iter().enumerate().flat_map(|(i, item)| item.encode(i < last)).collect();
        ByteString::new()
            .u16(event_size(80 + items.len() + self.payload.len()))
            .u8(types(self.pointer, 18, 19))
            .u8(MARKER)
            .u16((!items.is_empty()).into())
            .u16(0) // property
            .u32(self.stamp.tid)
            .u32(self.stamp.pid)
            .i64(self.stamp.time)
            .guid(self.provider)
            .u16(self.id)
            .u8(self.version)
            .u8(self.channel)
            .u8(self.level)
            .u8(self.opcode)
            .u16(self.task)
            .u64(self.keyword)
            .u64(0) // processor times
            .guid(self.activity)
            .raw(&items)
            .raw(&self.payload)
            .into_vec()
    }
}

/// A trace message of old software tracing (WPP), marker 0x90, 8-byte header and options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceMessage {
    /// Number of the message in its provider.
    pub number: u16,
    /// Message GUID, if it is written (option 2).
    pub guid: Option<Guid>,
    /// Time (option 8), thread and process (option 0x20), if they are written.
    pub stamp: Option<Stamp>,
    pub payload: Vec<u8>,
}

impl TraceMessage {
    /// Returns the bytes of the message, in the order of `MESSAGE_TRACE_HEADER` and its options.
    ///
    /// # Panics
    /// If the message is larger than 65535 bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut options = ByteString::new();
        let mut flags = 0;
        if let Some(guid) = self.guid {
            flags |= 2;
            options = options.guid(guid);
        }
        if let Some(stamp) = self.stamp {
            flags |= 0x28;
            options = options.i64(stamp.time).u32(stamp.tid).u32(stamp.pid);
        }
        ByteString::new()
            .u16(event_size(8 + options.len() + self.payload.len()))
            .u8(0)
            .u8(0x90)
            .u16(self.number)
            .u16(flags)
            .raw(&options.into_vec())
            .raw(&self.payload)
            .into_vec()
    }
}

fn types(pointer: PointerSize, four: u8, eight: u8) -> u8 {
    if pointer == PointerSize::Four { four } else { eight }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: Guid = Guid::new(0x0403_0201_0605_0807_090a_0b0c_0d0e_0f10);
    const STAMP: Stamp = Stamp { time: 0x100, pid: 7, tid: 8 };

    fn classic() -> ClassicEvent {
        ClassicEvent {
            guid: GUID,
            opcode: 36,
            level: 1,
            version: 2,
            stamp: STAMP,
            payload: vec![0xaa, 0xbb],
            ..ClassicEvent::default()
        }
    }

    #[test]
    fn a_classic_event_has_the_guid_at_24_and_the_payload_at_48() {
        let bytes = classic().encode();
        assert_eq!(bytes[..16], [50, 0, 20, 0xc0, 36, 1, 2, 0, 8, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(bytes[16..24], [0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[24..40], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(bytes[48..], [0xaa, 0xbb]);
    }

    #[test]
    fn an_instance_event_has_the_payload_at_72() {
        let event = InstanceEvent { event: classic(), instance: 5, ..InstanceEvent::default() };
        let bytes = event.encode();
        assert_eq!(bytes[..4], [74, 0, 21, 0xc0]);
        assert_eq!(bytes[48..52], [5, 0, 0, 0]);
        assert_eq!(bytes[72..], [0xaa, 0xbb]);
    }

    #[test]
    fn a_manifest_event_has_its_descriptor_at_40_and_the_payload_at_80() {
        let event = ManifestEvent {
            pointer: PointerSize::Four,
            provider: GUID,
            id: 0x102,
            version: 3,
            channel: 4,
            level: 5,
            opcode: 6,
            task: 7,
            keyword: 8,
            stamp: STAMP,
            payload: vec![0xaa],
            ..ManifestEvent::default()
        };
        let bytes = event.encode();
        assert_eq!(bytes[..8], [81, 0, 18, 0xc0, 0, 0, 0, 0]);
        assert_eq!(bytes[40..52], [2, 1, 3, 4, 5, 6, 7, 0, 8, 0, 0, 0]);
        assert_eq!(bytes[80..], [0xaa]);
    }

    #[test]
    fn extended_items_are_linked_and_padded_to_8_bytes() {
        let items = vec![
            ExtendedItem { kind: 11, data: vec![1, 2, 3] },
            ExtendedItem { kind: 12, data: vec![4; 8] },
        ];
        let bytes = ManifestEvent { items, payload: vec![9], ..Default::default() }.encode();
        assert_eq!(bytes[..6], [113, 0, 19, 0xc0, 1, 0]);
        assert_eq!(bytes[80..96], [16, 0, 11, 0, 1, 0, 3, 0, 1, 2, 3, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[96..104], [16, 0, 12, 0, 0, 0, 8, 0]);
        assert_eq!(bytes[112..], [9]);
    }

    #[test]
    fn a_trace_message_has_marker_90_and_its_options_in_order() {
        let message = TraceMessage { number: 5, stamp: Some(STAMP), payload: vec![1], guid: None };
        let expected =
            [25, 0, 0, 0x90, 5, 0, 0x28, 0, 0, 1, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, 1];
        assert_eq!(message.encode(), expected);
    }
}
