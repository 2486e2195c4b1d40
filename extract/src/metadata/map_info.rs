//! EventMapInfo records: names of values (EVENT_MAP_INFO of `tdh.h`).

use super::event_info::text_at;
use crate::etl::Guid;
use crate::payload::Payload;

/// What the numbers of a map are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapKind {
    /// Each is a value.
    Values,
    /// Each is a bit of a mask.
    Bits,
    /// Another kind, which is not applied.
    Other,
}

/// Names of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventMap {
    pub kind: MapKind,
    /// Values with their names, in the order of the record.
    pub entries: Vec<(u32, Box<str>)>,
}

impl EventMap {
    /// Bytes it takes in memory.
    pub(super) fn size(&self) -> usize {
        self.entries.iter().map(|(_, text)| size_of::<(u32, Box<str>)>() + text.len()).sum()
    }
}

/// The provider, the name and the content of a map; `None` when the record makes no sense.
pub(super) fn decode(record: &[u8]) -> Option<(Guid, String, EventMap)> {
    let mut p = Payload::new(record, 8);
    let guid = p.guid()?;
    let info = p.rest();
    let (name, flag, count, _value_type) = (p.u32()?, p.u32()?, p.u32()?, p.u32()?);
    let entries = p.rest().chunks_exact(8);
    if count as usize > entries.len() {
        return None;
    }
    let entry = |bytes: &[u8]| {
        let mut p = Payload::new(bytes, 8);
        let (text, value) = (p.u32()?, p.u32()?);
        Some((value, text_at(info, text).into()))
    };
    let entries: Option<Vec<_>> = entries.take(count as usize).map(entry).collect();
    let kind = match flag {
        1 => MapKind::Values,
        2 => MapKind::Bits,
        _ => MapKind::Other,
    };
    Some((guid, text_at(info, name), EventMap { kind, entries: entries? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(count: u32) -> Vec<u8> {
        let mut record = vec![3; 16];
        for number in [32, 2, count, 0, 42, 1, 42, 8] {
            record.extend(u32::to_le_bytes(number));
        }
        for text in ["Map ", "On "] {
            record.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        }
        record
    }

    #[test]
    fn a_map_names_its_values() {
        let (guid, name, map) = decode(&record(2)).unwrap();
        assert_eq!((guid, name.as_str()), (Guid([3; 16]), "Map"));
        assert_eq!(map.kind, MapKind::Bits);
        assert_eq!(map.entries, [(1, "On".into()), (8, "On".into())]);
    }

    #[test]
    fn a_map_that_claims_millions_of_entries_is_refused() {
        assert!(decode(&record(5_000_000)).is_none());
        for length in 0..record(2).len() {
            let _ = decode(&record(2)[..length]);
        }
    }
}
