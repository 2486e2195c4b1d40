//! Reads a payload with its schema into slots that are reused for every event.

use super::fields::{Count, Extent, FieldKind, Fields, ValueForm};
use crate::payload::{Payload, utf16_bytes};

/// Value, or the beginning of an array or structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueSlot {
    /// Number of the field.
    pub field: u16,
    pub kind: SlotKind,
    /// Offset of the value's bytes in the payload.
    pub start: u32,
    pub length: u32,
    /// Slot after this one and its children.
    pub end: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotKind {
    Value(ValueForm),
    Array,
    Structure,
}

/// How the end of a payload compares with the end of its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Complete, with this many bytes left in the payload.
    Whole(usize),
    /// The payload ends before the fields; incomplete fields are left out.
    Short,
    /// The payload claims more values than its bytes allow.
    TooMany,
}

/// Why reading stops.
struct Stop(Ending);

/// Maximum number of values per payload byte: one-byte structures nested as deeply as allowed.
const SLOTS_PER_BYTE: usize = 9;

/// Reads payloads in sequence.
#[derive(Default)]
pub struct FieldReader {
    pub slots: Vec<ValueSlot>,
    /// Last integer of each field, for lengths and counts in others.
    numbers: Vec<u64>,
}

impl FieldReader {
    /// Reads a payload; the values are then in `slots`.
    pub fn read(&mut self, fields: &Fields, payload: &[u8], pointer_size: usize) -> Ending {
        self.slots.clear();
        self.numbers.clear();
        self.numbers.resize(fields.plans().len(), 0);
        let mut reading = PayloadReader {
            fields,
            p: Payload::new(payload, pointer_size),
            size: payload.len(),
            start: 0,
            most: fields.plans().len() + SLOTS_PER_BYTE * payload.len(),
            slots: &mut self.slots,
            numbers: &mut self.numbers,
        };
        for field in 0..fields.top_level().len() {
            let whole = reading.slots.len();
            if let Err(Stop(ending)) = reading.field(field) {
                self.slots.truncate(whole);
                return ending;
            }
        }
        Ending::Whole(reading.p.rest().len())
    }
}

struct PayloadReader<'a> {
    fields: &'a Fields,
    p: Payload<'a>,
    /// Payload size in bytes.
    size: usize,
    /// Offset of the bytes taken last.
    start: usize,
    /// Maximum number of slots.
    most: usize,
    slots: &'a mut Vec<ValueSlot>,
    numbers: &'a mut Vec<u64>,
}

impl<'a> PayloadReader<'a> {
    fn field(&mut self, at: usize) -> Result<(), Stop> {
        let Some(plan) = self.fields.get(at) else { return Ok(()) };
        let count = match plan.count {
            Count::Single => return self.item(at, plan.kind),
            Count::Fixed(count) => u64::from(count),
            Count::Field(field) => self.number(field),
            Count::Prefixed => u64::from(self.u16()?),
        };
        let slot = self.push(at, SlotKind::Array)?;
        for _ in 0..count {
            self.item(at, plan.kind)?;
        }
        self.close(slot);
        Ok(())
    }

    fn item(&mut self, at: usize, kind: FieldKind) -> Result<(), Stop> {
        match kind {
            FieldKind::Structure { first, members } => {
                let slot = self.push(at, SlotKind::Structure)?;
                for member in usize::from(first)..usize::from(first) + usize::from(members) {
                    self.field(member)?;
                }
                self.close(slot);
                Ok(())
            }
            FieldKind::Value(form, extent) => {
                let bytes = self.bytes(form, extent)?;
                let is_integer =
                    matches!(form, ValueForm::Signed | ValueForm::Unsigned | ValueForm::Hex);
                if let Some(number) = self.numbers.get_mut(at).filter(|_| is_integer) {
                    *number = integer(bytes);
                }
                let (start, length) = (self.start as u32, bytes.len() as u32);
                let slot = self.push(at, SlotKind::Value(form))?;
                if let Some(slot) = self.slots.get_mut(slot) {
                    (slot.start, slot.length) = (start, length);
                }
                Ok(())
            }
        }
    }

    fn push(&mut self, field: usize, kind: SlotKind) -> Result<usize, Stop> {
        let slot = self.slots.len();
        if slot >= self.most {
            return Err(Stop(Ending::TooMany));
        }
        let end = slot as u32 + 1;
        self.slots.push(ValueSlot { field: field as u16, kind, start: 0, length: 0, end });
        Ok(slot)
    }

    /// Ends an array or structure.
    fn close(&mut self, slot: usize) {
        let end = self.slots.len() as u32;
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.end = end;
        }
    }

    /// Returns the bytes of a value; for a text without its terminator.
    fn bytes(&mut self, form: ValueForm, extent: Extent) -> Result<&'a [u8], Stop> {
        let unit = if form == ValueForm::Utf16 { 2 } else { 1 };
        let bytes = match extent {
            Extent::Bytes(count) => self.take(u64::from(count))?,
            Extent::Pointer => self.take(self.p.pointer_size() as u64)?,
            Extent::BytesOf(field) => self.take(self.number(field))?,
            Extent::Characters(count) => self.take(unit * u64::from(count))?,
            Extent::CharactersOf(field) => self.take(unit.saturating_mul(self.number(field)))?,
            Extent::Terminated => return Ok(self.terminated(form)),
            Extent::Counted => {
                let count = self.u16()?;
                self.take(u64::from(count))?
            }
            Extent::CountedCharacters => {
                let count = self.u16()?;
                self.take(unit * u64::from(count))?
            }
            Extent::CountedBigEndian => {
                let count = self.u16()?.swap_bytes();
                self.take(u64::from(count))?
            }
            Extent::Counted32 => {
                let count = self.p.u32().ok_or(Stop(Ending::Short))?;
                self.take(u64::from(count))?
            }
            Extent::Rest => self.take(self.p.rest().len() as u64)?,
            Extent::Sid => self.sid()?,
            Extent::TokenUser => {
                self.take(2 * self.p.pointer_size() as u64)?;
                self.sid()?
            }
        };
        Ok(match form {
            ValueForm::Utf16 => utf16_bytes(bytes),
            ValueForm::Ansi => until_zero(bytes),
            _ => bytes,
        })
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], Stop> {
        let count = usize::try_from(count).map_err(|_| Stop(Ending::Short))?;
        self.start = self.size - self.p.rest().len();
        self.p.bytes(count).ok_or(Stop(Ending::Short))
    }

    fn u16(&mut self) -> Result<u16, Stop> {
        self.p.u16().ok_or(Stop(Ending::Short))
    }

    fn number(&self, field: u16) -> u64 {
        self.numbers.get(usize::from(field)).copied().unwrap_or(0)
    }

    fn terminated(&mut self, form: ValueForm) -> &'a [u8] {
        let rest = self.p.rest();
        self.start = self.size - rest.len();
        let (text, unit) =
            if form == ValueForm::Utf16 { (utf16_bytes(rest), 2) } else { (until_zero(rest), 1) };
        // Without a terminator, the text ends with the payload, possibly inside a character.
        let used = if text.len() + unit > rest.len() { rest.len() } else { text.len() + unit };
        let _ = self.p.skip(used);
        text
    }

    /// Reads a revision, the number of parts, a six-byte authority and four-byte parts.
    fn sid(&mut self) -> Result<&'a [u8], Stop> {
        let parts = self.p.rest().get(1).copied().ok_or(Stop(Ending::Short))?;
        self.take(8 + 4 * u64::from(parts))
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

/// Returns the little-endian integer in up to eight bytes.
pub fn integer(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::fields::FieldPlan;

    fn field(kind: FieldKind, count: Count) -> FieldPlan {
        FieldPlan { name: "x".into(), kind, count, map: None }
    }

    fn value(form: ValueForm, extent: Extent) -> FieldPlan {
        field(FieldKind::Value(form, extent), Count::Single)
    }

    fn u16_field() -> FieldPlan {
        value(ValueForm::Unsigned, Extent::Bytes(2))
    }

    fn read(all: Vec<FieldPlan>, top_level: usize, payload: &[u8]) -> (Ending, usize) {
        let fields = Fields::new(all, top_level).unwrap();
        let mut reader = FieldReader::default();
        let ending = reader.read(&fields, payload, 8);
        (ending, reader.slots.len())
    }

    #[test]
    fn an_array_that_claims_more_than_can_be_is_given_up() {
        let none = FieldKind::Structure { first: 2, members: 1 };
        let empty = FieldKind::Value(ValueForm::Binary, Extent::Bytes(0));
        let fields = vec![u16_field(), field(none, Count::Field(0)), field(empty, Count::Field(0))];
        let (ending, slots) = read(fields, 2, &[0xFF, 0xFF]);
        assert_eq!((ending, slots), (Ending::TooMany, 1));
    }

    #[test]
    fn an_array_ends_where_the_payload_does() {
        let kind = FieldKind::Value(ValueForm::Unsigned, Extent::Bytes(4));
        let fields = vec![u16_field(), field(kind, Count::Field(0))];
        assert_eq!(read(fields.clone(), 2, &[2, 0, 1, 1, 1, 1, 2, 2, 2, 2]), (Ending::Whole(0), 4));
        assert_eq!(read(fields, 2, &[9, 0, 1, 1, 1, 1, 2, 2, 2, 2]), (Ending::Short, 1));
    }

    #[test]
    fn fields_before_the_end_of_a_short_payload_stay_and_bytes_left_are_counted() {
        let fields = || vec![u16_field(), u16_field()];
        assert_eq!(read(fields(), 2, &[1, 0, 2]), (Ending::Short, 1));
        assert_eq!(read(fields(), 2, &[1, 0, 2, 0, 5, 5]), (Ending::Whole(2), 2));
    }

    #[test]
    fn text_without_terminator_ends_with_the_payload() {
        for form in [ValueForm::Utf16, ValueForm::Ansi] {
            let fields = vec![value(form, Extent::Terminated)];
            assert_eq!(read(fields, 1, b"a\0b".as_slice()).1, 1);
        }
        let fields = vec![value(ValueForm::Utf16, Extent::Terminated)];
        assert_eq!(read(fields, 1, b"a\0b").0, Ending::Whole(0));
    }

    #[test]
    fn lengths_beyond_the_payload_are_short() {
        for extent in [
            Extent::Counted,
            Extent::CountedCharacters,
            Extent::CountedBigEndian,
            Extent::Counted32,
            Extent::Sid,
            Extent::TokenUser,
            Extent::Characters(0xFFFF),
        ] {
            let fields = vec![value(ValueForm::Utf16, extent)];
            assert_eq!(read(fields, 1, &[0xFF; 9]).0, Ending::Short, "{extent:?}");
        }
        let number = value(ValueForm::Signed, Extent::Bytes(8));
        for extent in [Extent::BytesOf(0), Extent::CharactersOf(0)] {
            let fields = vec![number.clone(), value(ValueForm::Utf16, extent)];
            assert_eq!(read(fields, 2, &[0xFF; 16]).0, Ending::Short, "{extent:?}");
        }
    }

    #[test]
    fn pointers_are_as_wide_as_those_of_the_event() {
        let fields = Fields::new(vec![value(ValueForm::Hex, Extent::Pointer)], 1).unwrap();
        let mut reader = FieldReader::default();
        assert_eq!(reader.read(&fields, &[1; 8], 4), Ending::Whole(4));
        assert_eq!(reader.read(&fields, &[1; 8], 8), Ending::Whole(0));
    }
}
