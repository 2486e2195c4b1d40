//! Values of a decoded event.

use std::borrow::Cow;

use super::fields::{FieldPlan, Fields};
use super::read::{Slot, SlotKind, integer};
use super::reading::Form;
use crate::etl::Guid;
use crate::payload::{Payload, utf16_text};

/// The value of a field, borrowed from the payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Signed(i64),
    Unsigned(u64),
    /// An unsigned number that is printed as hexadecimal: a pointer, a mask.
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
    pub(super) fn new(form: Form, bytes: &'a [u8]) -> Self {
        let number = integer(bytes);
        match form {
            Form::Signed => Self::Signed(extended(number, bytes.len())),
            Form::Unsigned => Self::Unsigned(number),
            Form::Hex => Self::Hex(number),
            Form::Bool => Self::Bool(number != 0),
            Form::Float if bytes.len() == 4 => Self::F32(f32::from_bits(number as u32)),
            Form::Float => Self::F64(f64::from_bits(number)),
            Form::Utf16 => Self::Utf16(bytes),
            Form::Ansi => Self::Ansi(bytes),
            Form::Binary => Self::Binary(bytes),
            Form::Guid => Self::Guid(Payload::new(bytes, 8).guid().unwrap_or(Guid([0; 16]))),
            Form::FileTime => Self::FileTime(number),
            Form::SystemTime => {
                let mut p = Payload::new(bytes, 8);
                Self::SystemTime([(); 8].map(|()| p.u16().unwrap_or_default()))
            }
            Form::Sid => Self::Sid(bytes),
        }
    }

    /// An integer or pointer as 64 unsigned bits; `None` for anything else.
    pub fn bits(self) -> Option<u64> {
        match self {
            Self::Signed(number) => Some(number as u64),
            Self::Unsigned(number) | Self::Hex(number) => Some(number),
            _ => None,
        }
    }

    /// An integer or pointer as 64 signed bits; `None` for anything else.
    pub fn signed(self) -> Option<i64> {
        self.bits().map(|bits| bits as i64)
    }

    /// A text; `None` for anything else.
    ///
    /// 8-bit text is UTF-8, or else Latin-1, so that distinct texts stay distinct.
    pub fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Utf16(bytes) => Some(utf16_text(bytes).into()),
            Self::Ansi(bytes) => Some(Payload::new(bytes, 8).ansi()),
            _ => None,
        }
    }
}

/// A number of fewer bytes with its sign.
fn extended(number: u64, bytes: usize) -> i64 {
    let unused = 64 - 8 * bytes.clamp(1, 8);
    ((number << unused) as i64) >> unused
}

/// A value, array or structure of a decoded event.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    pub(super) slots: &'a [Slot],
    pub(super) fields: &'a Fields,
    pub(super) payload: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Node<'a> {
    fn slot(&self) -> Option<&'a Slot> {
        self.slots.get(self.at)
    }

    /// The number of its field among [`Fields::all`].
    pub fn field_number(&self) -> usize {
        self.slot().map_or(0, |slot| usize::from(slot.field))
    }

    /// Its field; items of an array have that of the array.
    pub fn field(&self) -> Option<&'a FieldPlan> {
        self.fields.get(self.field_number())
    }

    /// The name of its field.
    pub fn name(&self) -> &'a str {
        self.field().map_or("", |field| &field.name)
    }

    /// Its value; `None` for an array or structure.
    pub fn value(&self) -> Option<Value<'a>> {
        let slot = self.slot()?;
        let SlotKind::Value(form) = slot.kind else { return None };
        let start = slot.start as usize;
        Some(Value::new(form, self.payload.get(start..start + slot.length as usize)?))
    }

    /// Whether its children are the items of an array.
    pub fn is_array(&self) -> bool {
        self.slot().is_some_and(|slot| slot.kind == SlotKind::Array)
    }

    /// Whether its children are the members of a structure.
    pub fn is_structure(&self) -> bool {
        self.slot().is_some_and(|slot| slot.kind == SlotKind::Structure)
    }

    /// The items of an array, or the members of a structure.
    pub fn children(&self) -> Nodes<'a> {
        let end = self.slot().map_or(self.at, |slot| slot.end as usize);
        Nodes { next: Self { at: self.at + 1, ..*self }, end }
    }
}

/// Nodes side by side.
#[derive(Debug, Clone)]
pub struct Nodes<'a> {
    pub(super) next: Node<'a>,
    pub(super) end: usize,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_sign() {
        assert_eq!(Value::new(Form::Signed, &[0xFE]), Value::Signed(-2));
        assert_eq!(Value::new(Form::Signed, &[0xFE, 0xFF]), Value::Signed(-2));
        assert_eq!(Value::new(Form::Signed, &[0xFF; 8]), Value::Signed(-1));
        assert_eq!(Value::new(Form::Unsigned, &[0xFE]), Value::Unsigned(0xFE));
        assert_eq!(Value::Signed(-1).bits(), Some(u64::MAX));
        assert_eq!(Value::Utf16(b"").bits(), None);
    }
}
