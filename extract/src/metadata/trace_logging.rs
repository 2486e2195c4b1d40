//! Reads extended items between the header and payload of a manifest event, and the schemas that TraceLogging events
//! carry in them (TraceLoggingProvider.h).

use super::fields::{Count, Extent, FieldKind, FieldPlan, Fields, Length, ValueForm, reading};
use crate::etl::Guid;
use crate::payload::Payload;

/// Bits of a field's type.
const HAS_OUT_TYPE: u8 = 0x80;
const IN_TYPE: u8 = 0x1F;
const COUNT: u8 = 0x60;
const FIXED_COUNT: u8 = 0x20;
const PREFIXED_COUNT: u8 = 0x40;
const CUSTOM: u8 = 0x60;

const STRUCTURE: u8 = 24;
/// Out-types that change the meaning of integers.
const OUT_CHARACTER: u8 = 2;
const OUT_BOOLEAN: u8 = 3;

/// Trait that names the provider's group.
const GROUP: u8 = 1;

/// Maximum nesting depth of structures; deeper ones are refused.
const MAX_DEPTH: usize = 8;

/// Returns the schema of a TraceLogging event; `None` for other events.
pub fn schema_item(extended: &[u8]) -> Option<&[u8]> {
    if extended.is_empty() { None } else { item(extended, SCHEMA) }
}

/// Returns the traits of an event's provider.
pub fn traits_item(extended: &[u8]) -> Option<&[u8]> {
    item(extended, TRAITS)
}

/// Returns the event name in a schema, as UTF-8 bytes from the file.
pub fn event_name(schema: &[u8]) -> Option<&[u8]> {
    let mut p = sized(schema)?;
    tags(&mut p)?;
    Some(text(&mut p))
}

/// Returns the provider name in traits, as UTF-8 bytes from the file.
pub fn provider_name(traits: &[u8]) -> Option<&[u8]> {
    Some(text(&mut sized(traits)?))
}

/// Returns the provider groups in traits.
pub fn groups(traits: &[u8]) -> Vec<Guid> {
    let Some(mut p) = sized(traits) else { return Vec::new() };
    text(&mut p);
    let mut groups = Vec::new();
    while let Some(bytes) = p.u16().and_then(|size| p.bytes(usize::from(size).checked_sub(2)?)) {
        if let [GROUP, guid @ ..] = bytes {
            groups.extend(guid.first_chunk().copied().map(Guid));
        }
    }
    groups
}

/// Decodes the event name and the fields of a schema; `None` if the schema makes no sense.
pub fn decode(schema: &[u8]) -> Option<(String, Fields)> {
    let mut p = sized(schema)?;
    tags(&mut p)?;
    let name = String::from_utf8_lossy(text(&mut p)).into_owned();
    let mut top_level = Vec::new();
    while !p.rest().is_empty() {
        top_level.push(field(&mut p, 1)?);
    }
    let count = top_level.len();
    Some((name, Fields::new(flat(top_level)?, count)?))
}

/// Returns the content after a 16-bit size, which counts itself.
fn sized(item: &[u8]) -> Option<Payload<'_>> {
    let size = usize::from(Payload::new(item, 8).u16()?);
    Some(Payload::new(item.get(2..size)?, 8))
}

/// Skips tags: bytes up to and including the first with a clear top bit.
fn tags(p: &mut Payload<'_>) -> Option<()> {
    while p.u8()? & 0x80 != 0 {}
    Some(())
}

/// Reads a text up to its terminator.
fn text<'a>(p: &mut Payload<'a>) -> &'a [u8] {
    let rest = p.rest();
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let _ = p.skip((end + 1).min(rest.len()));
    &rest[..end]
}

/// Field, with its members if it is a structure.
struct ParsedField {
    plan: FieldPlan,
    members: Vec<Self>,
}

fn field(p: &mut Payload<'_>, depth: usize) -> Option<ParsedField> {
    let name: Box<str> = String::from_utf8_lossy(text(p)).into();
    let kind = p.u8()?;
    let mut out_type = 0;
    if kind & HAS_OUT_TYPE != 0 {
        let byte = p.u8()?;
        out_type = byte & 0x7F;
        if byte & 0x80 != 0 {
            tags(p)?;
        }
    }
    let count = match kind & COUNT {
        FIXED_COUNT => Count::Fixed(p.u16()?),
        PREFIXED_COUNT => Count::Prefixed,
        CUSTOM => {
            let size = p.u16()?;
            p.skip(usize::from(size))?;
            let kind = FieldKind::Value(ValueForm::Binary, Extent::Counted);
            let plan = FieldPlan { name, kind, count: Count::Single, map: None };
            return Some(ParsedField { plan, members: Vec::new() });
        }
        _ => Count::Single,
    };
    let in_type = kind & IN_TYPE;
    if in_type == STRUCTURE {
        if depth >= MAX_DEPTH {
            return None;
        }
        let members: Option<Vec<_>> = (0..out_type).map(|_| field(p, depth + 1)).collect();
        // The position is known once all are in one list.
        let kind = FieldKind::Structure { first: 0, members: out_type.into() };
        return Some(ParsedField {
            plan: FieldPlan { name, kind, count, map: None },
            members: members?,
        });
    }
    let (kind, count) = value(in_type, out_type, count)?;
    Some(ParsedField { plan: FieldPlan { name, kind, count, map: None }, members: Vec::new() })
}

fn value(in_type: u8, out_type: u8, count: Count) -> Option<(FieldKind, Count)> {
    let (form, extent) = match (in_type, out_type) {
        // An array of characters is one text.
        (4 | 6, OUT_CHARACTER) => {
            let form = if in_type == 4 { ValueForm::Ansi } else { ValueForm::Utf16 };
            let extent = match count {
                Count::Fixed(count) => Extent::Characters(count),
                Count::Prefixed => Extent::CountedCharacters,
                Count::Single | Count::Field(_) => Extent::Characters(1),
            };
            return Some((FieldKind::Value(form, extent), Count::Single));
        }
        (4, OUT_BOOLEAN) => (ValueForm::Bool, Extent::Bytes(1)),
        // A binary has its length in front of it rather than in the schema.
        (14, _) => (ValueForm::Binary, Extent::Counted),
        _ => reading(in_type.into(), out_type.into(), Length::OfType)?,
    };
    Some((FieldKind::Value(form, extent), count))
}

/// Flattens the fields into a list: fields of the event first, then the members of each structure.
fn flat(top_level: Vec<ParsedField>) -> Option<Vec<FieldPlan>> {
    let mut fields: Vec<FieldPlan> = Vec::new();
    let mut waiting = Vec::new();
    let mut level = top_level;
    let mut next = 0;
    loop {
        for ParsedField { plan, members } in level {
            if matches!(plan.kind, FieldKind::Structure { .. }) {
                waiting.push((fields.len(), members));
            }
            fields.push(plan);
        }
        let Some((at, members)) = waiting.get_mut(next) else { return Some(fields) };
        next += 1;
        level = std::mem::take(members);
        let first = u16::try_from(fields.len()).ok()?;
        let members = u16::try_from(level.len()).ok()?;
        fields.get_mut(*at)?.kind = FieldKind::Structure { first, members };
    }
}

/// EVENT_HEADER_EXT_TYPE_EVENT_SCHEMA_TL and _PROV_TRAITS.
pub const SCHEMA: u16 = 11;
pub const TRAITS: u16 = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtendedItem<'a> {
    /// EVENT_HEADER_EXT_TYPE_… of `evntcons.h`.
    pub kind: u16,
    pub data: &'a [u8],
}

/// Returns the items of [`Event::extended`](crate::etl::Event), up to the first that does not fit.
pub fn extended_items(mut bytes: &[u8]) -> impl Iterator<Item = ExtendedItem<'_>> {
    std::iter::from_fn(move || {
        let mut p = Payload::new(bytes, 8);
        let (size, kind, _link, length) = (p.u16()?, p.u16()?, p.u16()?, p.u16()?);
        let data = p.bytes(usize::from(length))?;
        bytes = bytes.get(usize::from(size).max(8)..).unwrap_or_default();
        Some(ExtendedItem { kind, data })
    })
}

/// Returns the first item of a kind.
pub fn item(extended: &[u8], kind: u16) -> Option<&[u8]> {
    extended_items(extended).find(|item| item.kind == kind).map(|item| item.data)
}

/// Encodes an item as in an event; `more` says that another one follows.
#[cfg(test)]
pub fn encoded_item(kind: u16, data: &[u8], more: bool) -> Vec<u8> {
    let size = (8 + data.len()).next_multiple_of(8);
    let head = [size as u16, kind, u16::from(more), data.len() as u16];
    let mut item: Vec<u8> = head.into_iter().flat_map(u16::to_le_bytes).collect();
    item.extend(data);
    item.resize(size, 0);
    item
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn schema(name: &str, fields: &[u8]) -> Vec<u8> {
        let body = [&[0][..], name.as_bytes(), &[0], fields].concat();
        [&(body.len() as u16 + 2).to_le_bytes()[..], &body].concat()
    }

    fn fields(bytes: &[u8]) -> Option<Vec<(String, FieldKind, Count)>> {
        let (_, fields) = decode(&schema("E", bytes))?;
        let plans = fields.plans().iter();
        Some(plans.map(|field| (field.name.to_string(), field.kind, field.count)).collect())
    }

    fn of(name: &str, form: ValueForm, extent: Extent, count: Count) -> (String, FieldKind, Count) {
        (name.to_owned(), FieldKind::Value(form, extent), count)
    }

    #[test]
    fn tags_of_events_and_fields_are_passed_over() {
        let body = b"\x80\x00Go\0a\0\x88\x80\x81\x02b\0\x08";
        let item = [&(body.len() as u16 + 2).to_le_bytes()[..], body].concat();
        assert_eq!(event_name(&item), Some(&b"Go"[..]));
        let (name, fields) = decode(&item).unwrap();
        assert_eq!((name.as_str(), fields.plans().len()), ("Go", 2));
    }

    #[test]
    fn arrays_have_their_count_in_the_schema_or_in_the_payload() {
        let number = |name, count| of(name, ValueForm::Unsigned, Extent::Bytes(4), count);
        let fields = fields(b"a\0\x08b\0\x28\x03\0c\0\x48").unwrap();
        let counts = [
            number("a", Count::Single),
            number("b", Count::Fixed(3)),
            number("c", Count::Prefixed),
        ];
        assert_eq!(fields, counts);
    }

    #[test]
    fn out_types_make_characters_and_booleans() {
        let fields = fields(b"a\0\x86\x02b\0\xC4\x02c\0\x84\x03d\0\x0E").unwrap();
        let expected = [
            of("a", ValueForm::Utf16, Extent::Characters(1), Count::Single),
            of("b", ValueForm::Ansi, Extent::CountedCharacters, Count::Single),
            of("c", ValueForm::Bool, Extent::Bytes(1), Count::Single),
            of("d", ValueForm::Binary, Extent::Counted, Count::Single),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_custom_field_is_bytes_with_a_count() {
        let fields = fields(b"a\0\x61\x02\0xyb\0\x08").unwrap();
        assert_eq!(fields[0], of("a", ValueForm::Binary, Extent::Counted, Count::Single));
        assert_eq!(fields.len(), 2);
    }

    #[test]
    fn the_fields_behind_a_structure_are_its_members() {
        let fields = fields(b"s\0\x98\x02a\0\x08t\0\x98\x01b\0\x08c\0\x08").unwrap();
        let names: Vec<&str> = fields.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["s", "c", "a", "t", "b"]);
        assert_eq!(fields[0].1, FieldKind::Structure { first: 2, members: 2 });
        assert_eq!(fields[3].1, FieldKind::Structure { first: 4, members: 1 });
    }

    #[test]
    fn structures_without_end_are_refused() {
        assert_eq!(fields(b"s\0\x98\x7Fa\0\x08"), None);
        assert_eq!(fields(&b"s\0\x98\x01".repeat(5000)), None);
    }

    #[test]
    fn no_cut_or_changed_schema_panics() {
        let sound = schema("E", b"s\0\x98\x02a\0\x08t\0\x98\x01b\0\xC4\x02c\0\x61\x02\0xy");
        assert!(decode(&sound).is_some());
        for at in 0..sound.len() {
            let _ = decode(&sound[..at]);
            for byte in 0..=255 {
                let mut bytes = sound.clone();
                bytes[at] = byte;
                let _ = decode(&bytes);
            }
        }
    }

    #[test]
    fn traits_name_provider_and_group() {
        let mut traits = b"\0\0Contoso\0\x13\0\x01".to_vec();
        traits.extend([5; 16]);
        traits[0] = traits.len() as u8;
        assert_eq!(provider_name(&traits), Some(&b"Contoso"[..]));
        assert_eq!(groups(&traits), [Guid([5; 16])]);
    }

    #[test]
    fn items_are_selected_by_kind_and_end_at_a_false_size() {
        let mut bytes = vec![24, 0, 6, 0, 1, 0, 16, 0];
        bytes.extend([0; 8]);
        bytes.extend(7_u64.to_le_bytes());
        bytes.extend([16, 0, 12, 0, 0, 0, 3, 0, 1, 2, 3, 0, 0, 0, 0, 0]);
        assert_eq!(item(&bytes, TRAITS), Some(&[1, 2, 3][..]));
        assert_eq!(item(&bytes, 6).and_then(|data| data.get(8..)), Some(&7_u64.to_le_bytes()[..]));
        bytes[30] = 200;
        assert_eq!(extended_items(&bytes).count(), 1);
        // A size of 0 does not make it loop endlessly.
        assert_eq!(extended_items(&[0; 64]).count(), 8);
    }
}
