//! A decoded event: its values and their canonical text.
//!
//! The text is `FIELD=VALUE` with commas in between; `[a;b]` is an array and `{x=1;y=2}` a structure. Integers are
//! decimal, pointers and masks hexadecimal. Floating-point numbers are the hexadecimal digits of their bits, so that
//! nothing is rounded. Separators in text are escaped with `\`, and control characters are `\xNN`.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::fields::{FieldPlan, Fields, Schema, SchemaId, ValueForm};
use super::read::{Ending, SlotKind, ValueSlot, integer};
use crate::etl::Guid;
use crate::payload::{Payload, utf16_text};

/// Value of a field, borrowed from the payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Signed(i64),
    Unsigned(u64),
    /// Unsigned number printed in hexadecimal: a pointer or mask.
    Hex(u64),
    Bool(bool),
    F32(f32),
    F64(f64),
    /// UTF-16 text without terminator.
    Utf16(&'a [u8]),
    /// 8-bit text without terminator.
    Ansi(&'a [u8]),
    Binary(&'a [u8]),
    Guid(Guid),
    /// 100 ns since 1601.
    FileTime(u64),
    /// Year, month, day of the week, day, hour, minute, second, millisecond.
    SystemTime([u16; 8]),
    /// Security identifier.
    Sid(&'a [u8]),
}

impl<'a> Value<'a> {
    pub fn new(form: ValueForm, bytes: &'a [u8]) -> Self {
        let number = integer(bytes);
        match form {
            ValueForm::Signed => Self::Signed(extended(number, bytes.len())),
            ValueForm::Unsigned => Self::Unsigned(number),
            ValueForm::Hex => Self::Hex(number),
            ValueForm::Bool => Self::Bool(number != 0),
            ValueForm::Float if bytes.len() == 4 => Self::F32(f32::from_bits(number as u32)),
            ValueForm::Float => Self::F64(f64::from_bits(number)),
            ValueForm::Utf16 => Self::Utf16(bytes),
            ValueForm::Ansi => Self::Ansi(bytes),
            ValueForm::Binary => Self::Binary(bytes),
            ValueForm::Guid => Self::Guid(Payload::new(bytes, 8).guid().unwrap_or(Guid([0; 16]))),
            ValueForm::FileTime => Self::FileTime(number),
            ValueForm::SystemTime => {
                let mut p = Payload::new(bytes, 8);
                Self::SystemTime([(); 8].map(|()| p.u16().unwrap_or_default()))
            }
            ValueForm::Sid => Self::Sid(bytes),
        }
    }

    /// Returns an integer or pointer as an unsigned 64-bit number; `None` for anything else.
    pub fn bits(self) -> Option<u64> {
        match self {
            Self::Signed(number) => Some(number as u64),
            Self::Unsigned(number) | Self::Hex(number) => Some(number),
            _ => None,
        }
    }

    /// Returns an integer or pointer as a signed 64-bit number; `None` for anything else.
    pub fn signed(self) -> Option<i64> {
        self.bits().map(|bits| bits as i64)
    }

    /// Returns a text; `None` for anything else.
    ///
    /// 8-bit text is taken as UTF-8 or else as Latin-1, so that distinct texts stay distinct.
    pub fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Utf16(bytes) => Some(utf16_text(bytes).into()),
            Self::Ansi(bytes) => Some(Payload::new(bytes, 8).ansi()),
            _ => None,
        }
    }
}

/// Sign-extends a number of up to eight bytes.
fn extended(number: u64, bytes: usize) -> i64 {
    let unused = 64 - 8 * bytes.clamp(1, 8);
    ((number << unused) as i64) >> unused
}

/// Value, array or structure of a decoded event.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    pub slots: &'a [ValueSlot],
    pub fields: &'a Fields,
    pub payload: &'a [u8],
    pub at: usize,
}

impl<'a> Node<'a> {
    fn slot(&self) -> Option<&'a ValueSlot> {
        self.slots.get(self.at)
    }

    /// Returns the number of its field for [`Fields::get`].
    pub fn field_number(&self) -> usize {
        self.slot().map_or(0, |slot| usize::from(slot.field))
    }

    /// Returns the node's field; array items have that of the array.
    pub fn field(&self) -> Option<&'a FieldPlan> {
        self.fields.get(self.field_number())
    }

    /// Returns the name of its field.
    pub fn name(&self) -> &'a str {
        self.field().map_or("", |field| &field.name)
    }

    /// Returns the node's value; `None` for an array or structure.
    pub fn value(&self) -> Option<Value<'a>> {
        let slot = self.slot()?;
        let SlotKind::Value(form) = slot.kind else { return None };
        let start = slot.start as usize;
        Some(Value::new(form, self.payload.get(start..start + slot.length as usize)?))
    }

    /// Whether its children are array items.
    pub fn is_array(&self) -> bool {
        self.slot().is_some_and(|slot| slot.kind == SlotKind::Array)
    }

    /// Whether its children are structure members.
    fn is_structure(&self) -> bool {
        self.slot().is_some_and(|slot| slot.kind == SlotKind::Structure)
    }

    /// Returns the items of an array, or the members of a structure.
    pub fn children(&self) -> Nodes<'a> {
        let end = self.slot().map_or(self.at, |slot| slot.end as usize);
        Nodes { next: Self { at: self.at + 1, ..*self }, end }
    }
}

/// Sibling nodes.
#[derive(Debug, Clone)]
pub struct Nodes<'a> {
    pub next: Node<'a>,
    pub end: usize,
}

impl<'a> Iterator for Nodes<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        let node = self.next;
        let slot = node.slot().filter(|_| node.at < self.end)?;
        self.next.at = (slot.end as usize).max(node.at + 1);
        Some(node)
    }
}

/// Event with its schema and values.
#[derive(Debug, Clone, Copy)]
pub struct DecodedEvent<'a> {
    pub id: SchemaId,
    pub schema: &'a Schema,
    pub slots: &'a [ValueSlot],
    pub payload: &'a [u8],
    pub ending: Ending,
}

impl<'a> DecodedEvent<'a> {
    /// Returns the top-level fields. Fields cut off by a short payload are missing.
    pub fn fields(&self) -> Nodes<'a> {
        let Self { schema, slots, payload, .. } = *self;
        let next = Node { slots, fields: &schema.fields, payload, at: 0 };
        Nodes { next, end: slots.len() }
    }

    /// Returns the first field with a name, ignoring case.
    pub fn field(&self, name: &str) -> Option<Node<'a>> {
        self.fields().find(|node| node.name().eq_ignore_ascii_case(name))
    }

    /// Returns the value of the first field with a name, ignoring case; `None` for an array or structure.
    pub fn value(&self, name: &str) -> Option<Value<'a>> {
        self.field(name)?.value()
    }

    /// Whether the payload ends before its fields.
    pub fn is_short(&self) -> bool {
        self.ending == Ending::Short
    }

    /// Whether fields claim more values than possible; the remaining fields are then missing.
    pub fn is_bad(&self) -> bool {
        self.ending == Ending::TooMany
    }

    /// Returns the number of payload bytes after the fields.
    pub fn rest(&self) -> usize {
        match self.ending {
            Ending::Whole(rest) => rest,
            Ending::Short | Ending::TooMany => 0,
        }
    }
}

/// Writes the fields of an event as one line.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn line(nodes: Nodes<'_>, out: &mut impl Write) -> fmt::Result {
    write_all(nodes, ',', true, out)
}

fn write_all(
    nodes: Nodes<'_>,
    separator: char,
    is_named: bool,
    out: &mut impl Write,
) -> fmt::Result {
    for (at, node) in nodes.enumerate() {
        if at > 0 {
            out.write_char(separator)?;
        }
        if is_named {
            out.write_str(node.name())?;
            out.write_char('=')?;
        }
        write_node(node, out)?;
    }
    Ok(())
}

fn write_node(node: Node<'_>, out: &mut impl Write) -> fmt::Result {
    if let Some(value) = node.value() {
        return write!(out, "{value}");
    }
    let (open, close) = if node.is_array() { ('[', ']') } else { ('{', '}') };
    out.write_char(open)?;
    write_all(node.children(), ';', node.is_structure(), out)?;
    out.write_char(close)
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Signed(number) => write!(f, "{number}"),
            Self::Unsigned(number) | Self::FileTime(number) => write!(f, "{number}"),
            Self::Hex(number) => write!(f, "{number:#x}"),
            Self::Bool(is_true) => write!(f, "{is_true}"),
            Self::F32(number) => write!(f, "{:#010x}", number.to_bits()),
            Self::F64(number) => write!(f, "{:#018x}", number.to_bits()),
            Self::Utf16(_) | Self::Ansi(_) => quoted(&self.text().unwrap_or_default(), f),
            Self::Binary(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Self::Guid(guid) => write!(f, "{guid}"),
            Self::SystemTime([year, month, _, day, hour, minute, second, ms]) => {
                write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}")
            }
            Self::Sid(bytes) => f.write_str(&sid_text(bytes)),
        }
    }
}

/// Formats a security identifier as text, such as `S-1-5-18`.
pub fn sid_text(bytes: &[u8]) -> String {
    let mut p = Payload::new(bytes, 8);
    let revision = p.u8().unwrap_or_default();
    let _parts = p.u8();
    let authority = p.bytes(6).unwrap_or_default();
    let authority = authority.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let mut text = format!("S-{revision}-{authority}");
    while let Some(part) = p.u32() {
        let _ = write!(text, "-{part}");
    }
    text
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for character in text.chars() {
        match character {
            '\\' | '|' | ',' | ';' | '{' | '}' | '[' | ']' | '=' => write!(f, "\\{character}")?,
            '\0'..'\x20' => write!(f, "\\x{:02x}", u32::from(character))?,
            _ => f.write_char(character)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_sign() {
        assert_eq!(Value::new(ValueForm::Signed, &[0xFE]), Value::Signed(-2));
        assert_eq!(Value::new(ValueForm::Signed, &[0xFE, 0xFF]), Value::Signed(-2));
        assert_eq!(Value::new(ValueForm::Signed, &[0xFF; 8]), Value::Signed(-1));
        assert_eq!(Value::new(ValueForm::Unsigned, &[0xFE]), Value::Unsigned(0xFE));
        assert_eq!(Value::Signed(-1).bits(), Some(u64::MAX));
        assert_eq!(Value::Utf16(b"").bits(), None);
    }

    #[test]
    fn every_kind_of_value_has_a_text() {
        let text: Vec<u8> = "a,b\\\r".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let sid = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        for (value, expected) in [
            (Value::Signed(-3), "-3"),
            (Value::Unsigned(u64::MAX), "18446744073709551615"),
            (Value::Hex(0xAB), "0xab"),
            (Value::Bool(true), "true"),
            (Value::F32(1.0), "0x3f800000"),
            (Value::F64(1.0), "0x3ff0000000000000"),
            (Value::Utf16(&text), r"a\,b\\\x0d"),
            (Value::Ansi(b"[x]"), r"\[x\]"),
            (Value::Binary(&[0, 0xAB]), "00ab"),
            (Value::Guid(Guid([0; 16])), "00000000-0000-0000-0000-000000000000"),
            (Value::FileTime(9), "9"),
            (Value::SystemTime([2024, 5, 5, 31, 23, 59, 59, 999]), "2024-05-31T23:59:59.999"),
            (Value::Sid(&sid), "S-1-5-18"),
        ] {
            assert_eq!(value.to_string(), expected);
        }
    }
}
