//! Events copied one after the other.

use crate::etl::{Event, EventId};

/// Copies of events, in two allocations.
#[derive(Debug, Default)]
pub struct PackedEvents {
    heads: Vec<Head>,
    /// Extended items and payload of each event.
    bytes: Vec<u8>,
}

/// An event without its bytes.
#[derive(Debug, Clone, Copy)]
struct Head {
    id: EventId,
    version: u8,
    pointer_size: u8,
    processor: u16,
    time: i64,
    pid: Option<u32>,
    tid: Option<u32>,
    offset: u64,
    extended: u32,
    payload: u32,
}

impl PackedEvents {
    /// Adds a copy of an event.
    pub fn push(&mut self, event: &Event<'_>) {
        self.heads.push(Head {
            id: event.id,
            version: event.version,
            pointer_size: event.pointer_size as u8,
            processor: event.processor,
            time: event.time,
            pid: event.pid,
            tid: event.tid,
            offset: event.offset,
            extended: event.extended.len() as u32,
            payload: event.payload.len() as u32,
        });
        self.bytes.extend_from_slice(event.extended);
        self.bytes.extend_from_slice(event.payload);
    }

    /// The events, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Event<'_>> {
        let mut rest = self.bytes.as_slice();
        self.heads.iter().map(move |head| {
            let (extended, behind) = rest.split_at(head.extended as usize);
            let (payload, behind) = behind.split_at(head.payload as usize);
            rest = behind;
            Event {
                id: head.id,
                version: head.version,
                time: head.time,
                pid: head.pid,
                tid: head.tid,
                processor: head.processor,
                pointer_size: head.pointer_size.into(),
                payload,
                extended,
                offset: head.offset,
            }
        })
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Bytes that the events take.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.heads.len() * size_of::<Head>()
    }

    /// Forgets all events, and keeps the memory for others.
    pub fn clear(&mut self) {
        self.heads.clear();
        self.bytes.clear();
    }

    /// Keeps the events for which `keeps`, in their order, is true, and gives memory back.
    pub(super) fn retain(&mut self, keeps: &[bool]) {
        let (mut from, mut to) = (0, 0);
        let mut each = keeps.iter();
        let Self { heads, bytes } = self;
        heads.retain(|head| {
            let size = head.extended as usize + head.payload as usize;
            let is_kept = each.next().copied().unwrap_or(true);
            if is_kept {
                bytes.copy_within(from..from + size, to);
                to += size;
            }
            from += size;
            is_kept
        });
        bytes.truncate(to);
        bytes.shrink_to_fit();
        heads.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_as_they_were_put_in() {
        let mut packed = PackedEvents::default();
        let payloads: [&[u8]; 4] = [b"one", b"", b"three", b"4"];
        for (time, payload) in (0..).zip(payloads) {
            let extended = &payload[..payload.len() / 2];
            packed.push(&Event { time, payload, extended, pid: Some(9), ..Event::default() });
        }
        let found: Vec<_> = packed.iter().map(|e| (e.time, e.payload, e.extended, e.pid)).collect();
        assert_eq!(found[2], (2, &b"three"[..], &b"th"[..], Some(9)));
        assert_eq!((found.len(), found[1].1, found[3].1), (4, &b""[..], &b"4"[..]));
        packed.retain(&[false, true, true, false]);
        let found: Vec<_> = packed.iter().map(|event| (event.time, event.payload)).collect();
        assert_eq!(found, [(1, &b""[..]), (2, &b"three"[..])]);
    }
}
