//! Treats any bytes as the metadata of a trace: builds schemas from it and decodes payloads.
//!
//! The first byte says what the rest is. The second says where it ends and a payload begins:
//!
//! * 0: an EventInfo record; 1: an EventMapInfo record;
//! * 2: the content of a manifest's only chunk, which gets a chunk header; 3: a whole chunk as in the event;
//! * else: a TraceLogging schema.

use handlescope_extract::etl::{Event, EventId, Guid};
use handlescope_extract::metadata::{Decoder, line};

/// The provider of metadata events.
const METADATA: Guid =
    Guid::new(0xbbcc_f6c1, 0x6cd1, 0x48c4, [0x80, 0xff, 0x83, 0x94, 0x82, 0xe3, 0x76, 0x71]);

/// The provider of events with a manifest or TraceLogging schema.
const PROVIDER: Guid = Guid([7; 16]);

/// Decodes events with metadata made from these bytes; returns how many had a schema.
pub fn decode(bytes: &[u8]) -> usize {
    let [kind, share, rest @ ..] = bytes else { return 0 };
    let (schema, payload) = rest.split_at(rest.len() * usize::from(*share) / 255);
    let mut decoder = Decoder::default();
    let mut extended = Vec::new();
    let chunk = EventId::Manifest { guid: PROVIDER, id: 65534 };
    let record = match kind {
        0 => Some((EventId::Classic { guid: METADATA, opcode: 32 }, schema.to_vec())),
        1 => Some((EventId::Classic { guid: METADATA, opcode: 33 }, schema.to_vec())),
        2 => Some((chunk, [&[1, 1, 0, 0x5B, 1, 0, 0, 0], schema].concat())),
        3 => Some((chunk, schema.to_vec())),
        _ => {
            let size = u16::try_from(schema.len()).unwrap_or(u16::MAX - 15);
            let total = (8 + size).next_multiple_of(8);
            extended.extend([total, 11, 0, size].iter().flat_map(|n| n.to_le_bytes()));
            extended.extend(schema);
            None
        }
    };
    if let Some((id, payload)) = &record {
        let event = Event { id: *id, pid: Some(1), payload, ..Event::default() };
        decoder.learn(&event);
    }
    let described: Vec<_> = decoder.schemas().iter().map(|s| (s.guid, s.id, s.version)).collect();
    let ids = described.into_iter().take(64).chain([(PROVIDER, 0, 0)]);
    ids.filter(|&(guid, id, version)| {
        is_decoded(&mut decoder, guid, id, version, &extended, payload)
    })
    .count()
}

fn is_decoded(
    decoder: &mut Decoder,
    guid: Guid,
    id: u16,
    version: u8,
    extended: &[u8],
    payload: &[u8],
) -> bool {
    let id = EventId::Manifest { guid, id };
    let mut is_decoded = false;
    for pointer_size in [4, 8] {
        let event = Event {
            id,
            version,
            pid: Some(1),
            pointer_size,
            payload,
            extended,
            ..Event::default()
        };
        let Some(decoded) = decoder.decode(&event) else { continue };
        is_decoded = true;
        let mut text = String::new();
        line(decoded.fields(), &mut text).expect("texts can be written");
        assert!(decoded.rest() <= payload.len());
    }
    is_decoded
}
