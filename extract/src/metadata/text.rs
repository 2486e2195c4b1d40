//! Decoded events as text that is the same for the same values, whatever prints it.
//!
//! `FIELD=VALUE` with commas between them; `[a;b]` is an array and `{x=1;y=2}` a structure. Integers are
//! decimal, pointers and masks hexadecimal, floating point numbers the hexadecimal digits of their bits, so
//! that nothing is rounded. Characters that separate have `\` in front, and control characters are `\xNN`.

use std::fmt::{self, Write};

use super::node::{Node, Nodes, Value};
use crate::payload::Payload;

/// Writes the fields of an event.
///
/// # Errors
/// When `out` cannot be written.
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

/// A security identifier as text, as in `S-1-5-18`.
pub(crate) fn sid_text(bytes: &[u8]) -> String {
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
    use crate::etl::Guid;

    #[test]
    fn every_kind_of_value_has_one_text() {
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
