//! Decodes EventInfo records (TRACE_EVENT_INFO of `tdh.h`, with EVENT_PROPERTY_INFO for each field), and EventMapInfo
//! records, which name values (EVENT_MAP_INFO).

use uuid::uuid;

use super::fields::{Count, FieldKind, FieldPlan, Fields, Length, Schema, SchemaSource, reading};
use crate::etl::{EventId, Guid};
use crate::payload::{Payload, utf16_bytes, utf16_text};

pub const PROVIDER: Guid = Guid::from_uuid(uuid!("bbccf6c1-6cd1-48c4-80ff-839482e37671"));

/// Events that an EventInfo record describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemaTarget {
    Manifest { guid: Guid, id: u16, version: u8 },
    Classic { guid: Guid, opcode: u8, version: u8 },
}

impl SchemaTarget {
    pub fn new(event: EventId, version: u8) -> Option<Self> {
        match event {
            EventId::Manifest { guid, id } => Some(Self::Manifest { guid, id, version }),
            EventId::Classic { guid, opcode } => Some(Self::Classic { guid, opcode, version }),
            EventId::Hook(_) | EventId::Message => None,
        }
    }
}

/// Maximum length of a name or text; real ones have some hundred characters.
const MAX_TEXT: usize = 1024;

/// Decoding source of a WMI class rather than a manifest.
const WMI: u32 = 1;

/// Offsets of the fields of a schema.
const DECODING_SOURCE: usize = 48;
const PROVIDER_NAME: usize = 52;
const TASK_NAME: usize = 68;
const OPCODE_NAME: usize = 72;
const PROPERTY_COUNT: usize = 100;
const TOP_LEVEL_COUNT: usize = 104;

/// Offset of the property array, and size of a property.
const PROPERTIES: usize = 112;
const PROPERTY: usize = 24;

/// Flags of a property.
const STRUCTURE: u32 = 0x1;
const LENGTH_ELSEWHERE: u32 = 0x2;
const COUNT_ELSEWHERE: u32 = 0x4;
const FIXED_LENGTH: u32 = 0x10;
const FIXED_COUNT: u32 = 0x20;

/// Decodes the schema in a record, and which events it describes; `None` if the record makes no sense.
pub fn decode(record: &[u8]) -> Option<(SchemaTarget, Schema)> {
    let at = |offset: usize| Payload::new(record.get(offset..).unwrap_or_default(), 8);
    let u32_at = |offset| at(offset).u32();
    let mut p = at(0);
    let (guid, class) = (p.guid()?, p.guid()?);
    let (id, version, _channel) = (p.u16()?, p.u8()?, p.u8()?);
    let (_level, opcode, _task) = (p.u8()?, p.u8()?, p.u16()?);
    let described = if u32_at(DECODING_SOURCE)? == WMI {
        SchemaTarget::Classic { guid: class, opcode, version }
    } else {
        SchemaTarget::Manifest { guid, id, version }
    };
    let text = |offset| Some(text_at(record, u32_at(offset)?));
    let opcode_name = if opcode == 0 { String::new() } else { text(OPCODE_NAME)? };
    let (count, top_level) = (u32_at(PROPERTY_COUNT)? as usize, u32_at(TOP_LEVEL_COUNT)? as usize);
    let properties = record.get(PROPERTIES..)?.chunks_exact(PROPERTY);
    if count > properties.len() {
        return None;
    }
    let fields: Option<Vec<FieldPlan>> =
        properties.take(count).map(|bytes| property(record, bytes)).collect();
    let schema = Schema {
        source: SchemaSource::EventInfo,
        provider: text(PROVIDER_NAME)?.into(),
        guid: if u32_at(DECODING_SOURCE)? == WMI { class } else { guid },
        id,
        version,
        task: text(TASK_NAME)?.into(),
        opcode: opcode_name.into(),
        fields: Fields::new(fields?, top_level)?.into(),
    };
    Some((described, schema))
}

fn property(record: &[u8], bytes: &[u8]) -> Option<FieldPlan> {
    let mut p = Payload::new(bytes, 8);
    let (flags, name) = (p.u32()?, p.u32()?);
    let (in_type, out_type, map) = (p.u16()?, p.u16()?, p.u32()?);
    let (count, length) = (p.u16()?, p.u16()?);
    let length = match length {
        field if flags & LENGTH_ELSEWHERE != 0 => Length::Field(field),
        0 if flags & FIXED_LENGTH == 0 => Length::OfType,
        length => Length::Fixed(length),
    };
    let kind = if flags & STRUCTURE != 0 {
        FieldKind::Structure { first: in_type, members: out_type }
    } else {
        let (form, extent) = reading(in_type, out_type, length)?;
        FieldKind::Value(form, extent)
    };
    let count = match count {
        field if flags & COUNT_ELSEWHERE != 0 => Count::Field(field),
        count if count > 1 || flags & FIXED_COUNT != 0 => Count::Fixed(count),
        _ => Count::Single,
    };
    let map = Some(map)
        .filter(|map| *map != 0 && flags & STRUCTURE == 0)
        .map(|offset| text_at(record, offset).into());
    Some(FieldPlan { name: text_at(record, name).into(), kind, count, map })
}

/// Returns the text at an offset, without the trailing space that some have; empty if there is none.
fn text_at(record: &[u8], offset: u32) -> String {
    let rest = record.get(offset as usize..).filter(|_| offset != 0).unwrap_or_default();
    let rest = rest.get(..2 * MAX_TEXT).unwrap_or(rest);
    let mut text = utf16_text(utf16_bytes(rest));
    text.truncate(text.trim_end_matches(' ').len());
    text
}

/// What the numbers in a map mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapKind {
    /// Plain values.
    Values,
    /// Bits of a mask.
    Bits,
    /// Unsupported; such a map is not applied.
    Unsupported,
}

/// Names of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventMap {
    pub kind: MapKind,
    /// Values with their names, in the order of the record.
    pub entries: Vec<(u32, Box<str>)>,
}

impl EventMap {
    /// Size in memory, bytes.
    pub fn size(&self) -> usize {
        self.entries.iter().map(|(_, text)| size_of::<(u32, Box<str>)>() + text.len()).sum()
    }
}

/// Decodes provider, name and content of a map; `None` if the record makes no sense.
pub fn decode_map(record: &[u8]) -> Option<(Guid, String, EventMap)> {
    let mut p = Payload::new(record, 8);
    let guid = p.guid()?;
    let info = p.rest();
    let (name, flag, count, _value_type) = (p.u32()?, p.u32()?, p.u32()?, p.u32()?);
    let entries = p.rest().chunks_exact(8);
    if count as usize > entries.len() {
        return None;
    }
    let entries: Option<Vec<_>> = entries
        .take(count as usize)
        .map(|bytes| {
            let mut p = Payload::new(bytes, 8);
            let (text, value) = (p.u32()?, p.u32()?);
            Some((value, text_at(info, text).into()))
        })
        .collect();
    let kind = match flag {
        1 => MapKind::Values,
        2 => MapKind::Bits,
        _ => MapKind::Unsupported,
    };
    Some((guid, text_at(info, name), EventMap { kind, entries: entries? }))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::metadata::fields::{Extent, ValueForm};

    /// A property: flags, in-type, out-type, count and length. Its name follows from its index.
    pub type Property = (u32, u16, u16, u16, u16);

    pub const GUID: Guid = Guid([7; 16]);

    /// Creates an EventInfo record of event 5 with properties named `p0`, `p1` and so on.
    pub fn record(properties: &[Property], top_level: u32) -> Vec<u8> {
        let mut record = vec![0; PROPERTIES + PROPERTY * properties.len()];
        let put = |record: &mut Vec<u8>, text: &str| {
            let offset = record.len() as u32;
            record.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
            offset
        };
        let provider = put(&mut record, "Contoso");
        let task = put(&mut record, "Work ");
        let opcode = put(&mut record, "Start ");
        record[..16].copy_from_slice(&GUID.0);
        record[32..34].copy_from_slice(&5_u16.to_le_bytes());
        record[37] = 1;
        for (at, number) in [
            (52, provider),
            (68, task),
            (72, opcode),
            (100, properties.len() as u32),
            (104, top_level),
        ] {
            record[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        for (index, (flags, in_type, out_type, count, length)) in properties.iter().enumerate() {
            let name = put(&mut record, &format!("p{index}"));
            let mut bytes = [flags.to_le_bytes(), name.to_le_bytes()].concat();
            bytes.extend([in_type, out_type].iter().flat_map(|n| n.to_le_bytes()));
            bytes.extend(0_u32.to_le_bytes());
            bytes.extend([count, length].iter().flat_map(|n| n.to_le_bytes()));
            bytes.extend(0_u32.to_le_bytes());
            let at = PROPERTIES + PROPERTY * index;
            record[at..at + PROPERTY].copy_from_slice(&bytes);
        }
        record
    }

    fn kinds(properties: &[Property]) -> Vec<(FieldKind, Count)> {
        let (_, schema) = decode(&record(properties, properties.len() as u32)).unwrap();
        schema.fields.plans().iter().map(|field| (field.kind, field.count)).collect()
    }

    #[test]
    fn names_lose_the_space_behind_them() {
        let (described, schema) = decode(&record(&[(0, 8, 0, 1, 4)], 1)).unwrap();
        assert_eq!(described, SchemaTarget::Manifest { guid: GUID, id: 5, version: 0 });
        assert_eq!((&*schema.provider, schema.name().as_str()), ("Contoso", "Work/Start"));
        assert_eq!(&*schema.fields.top_level()[0].name, "p0");
    }

    #[test]
    fn the_length_of_a_pointer_is_that_of_the_event() {
        let pointer = FieldKind::Value(ValueForm::Hex, Extent::Pointer);
        assert_eq!(kinds(&[(0, 16, 0, 1, 4)]), [(pointer, Count::Single)]);
    }

    #[test]
    fn a_length_of_zero_is_a_terminator_unless_it_is_fixed() {
        let kinds = kinds(&[(0, 1, 0, 1, 0), (0x10, 1, 0, 1, 0), (0, 1, 0, 1, 5), (2, 1, 0, 1, 0)]);
        let extents = [
            Extent::Terminated,
            Extent::Characters(0),
            Extent::Characters(5),
            Extent::CharactersOf(0),
        ];
        assert_eq!(
            kinds,
            extents.map(|extent| (FieldKind::Value(ValueForm::Utf16, extent), Count::Single))
        );
    }

    #[test]
    fn an_array_has_a_flag_or_several_items() {
        let counts: Vec<Count> =
            kinds(&[(4, 8, 0, 0, 4), (0x20, 8, 0, 1, 4), (0, 8, 0, 2, 4), (0, 8, 0, 1, 4)])
                .into_iter()
                .map(|(_, count)| count)
                .collect();
        assert_eq!(counts, [Count::Field(0), Count::Fixed(1), Count::Fixed(2), Count::Single]);
    }

    #[test]
    fn records_that_lie_are_refused_and_none_panics() {
        let sound = record(&[(0, 8, 0, 1, 4), (4, 8, 0, 0, 4)], 2);
        for length in 0..sound.len() {
            let _ = decode(&sound[..length]);
        }
        for at in 0..sound.len() {
            for byte in [0, 1, 0x7F, 0xFF] {
                let mut bytes = sound.clone();
                bytes[at] = byte;
                let _ = decode(&bytes);
            }
        }
        for count in [3_u32, 0xFFFF, u32::MAX] {
            let mut bytes = sound.clone();
            bytes[100..104].copy_from_slice(&count.to_le_bytes());
            assert!(count == 3 || decode(&bytes).is_none(), "{count}");
        }
    }

    #[test]
    fn a_class_of_wmi_describes_classic_events() {
        let mut bytes = record(&[], 0);
        bytes[16..32].copy_from_slice(&[9; 16]);
        bytes[48] = 1;
        let described = SchemaTarget::Classic { guid: Guid([9; 16]), opcode: 1, version: 0 };
        assert_eq!(decode(&bytes).unwrap().0, described);
    }
}

#[cfg(test)]
mod map_info_tests {
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
        let (guid, name, map) = decode_map(&record(2)).unwrap();
        assert_eq!((guid, name.as_str()), (Guid([3; 16]), "Map"));
        assert_eq!(map.kind, MapKind::Bits);
        assert_eq!(map.entries, [(1, "On".into()), (8, "On".into())]);
    }

    #[test]
    fn a_map_that_claims_millions_of_entries_is_refused() {
        assert!(decode_map(&record(5_000_000)).is_none());
        for length in 0..record(2).len() {
            let _ = decode_map(&record(2)[..length]);
        }
    }
}
