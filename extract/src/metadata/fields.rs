//! Compiled schemas: the fields of a payload, with the extent and form of their values.

use std::sync::Arc;

use crate::etl::Guid;

/// Maximum number of fields in an event. EventInfo records have room for 2,700.
const MAX_FIELDS: usize = 4096;

/// Maximum nesting depth of structures.
const MAX_DEPTH: u8 = 8;

/// Source of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchemaSource {
    /// The event itself carries it.
    TraceLogging,
    /// An EventInfo record (TRACE_EVENT_INFO).
    EventInfo,
    /// Manifest that an EventSource wrote into the trace.
    Manifest,
}

/// Number of a schema in its [`Decoder`](super::Decoder).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaId(pub u32);

impl SchemaId {
    /// Returns the number for indexing.
    pub fn row(self) -> usize {
        self.0 as usize
    }
}

/// Names of an event, and the layout of its payload.
#[derive(Debug, Clone)]
pub struct Schema {
    pub source: SchemaSource,
    /// Name of the provider; empty if the trace does not say.
    pub provider: Arc<str>,
    pub guid: Guid,
    pub id: u16,
    pub version: u8,
    /// Name of the task, or for TraceLogging of the event; empty if there is none.
    pub task: Arc<str>,
    /// Name of the opcode; empty if there is none.
    pub opcode: Arc<str>,
    pub fields: Arc<Fields>,
}

impl Schema {
    /// Returns the name of the event: task, `/` and opcode; `Event(7)` if there is no task.
    pub fn name(&self) -> String {
        let mut name = self.task.to_string();
        if name.is_empty() {
            name = format!("Event({})", self.id);
        }
        if !self.opcode.is_empty() {
            name.push('/');
            name.push_str(&self.opcode);
        }
        name
    }
}

/// Field: a value, a structure, or an array of either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPlan {
    pub name: Box<str>,
    pub kind: FieldKind,
    pub count: Count,
    /// Map that names its values.
    pub map: Option<Box<str>>,
}

/// Kind of a field or array item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    Value(ValueForm, Extent),
    /// A structure of consecutive fields.
    Structure {
        first: u16,
        members: u16,
    },
}

/// Number of values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// A single value, no array.
    Single,
    /// An array of this size.
    Fixed(u16),
    /// An array; its size is in the integer of this field.
    Field(u16),
    /// An array preceded by its size as a 16-bit number.
    Prefixed,
}

/// Fields of an event: the top level, then members of structures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    plans: Vec<FieldPlan>,
    top_level: usize,
}

impl Fields {
    /// Creates the fields; the first `top_level` are those of the event itself. Returns `None` if there are too many,
    /// if references lead nowhere, or if structures are not a shallow tree.
    pub fn new(plans: Vec<FieldPlan>, top_level: usize) -> Option<Self> {
        if plans.len() > MAX_FIELDS || top_level > plans.len() {
            return None;
        }
        let is_field = |at: u16| usize::from(at) < plans.len();
        let mut depths = vec![1_u8; plans.len()];
        let mut members_in_all = 0;
        // Members follow their structure, so going backwards each depth is known when needed.
        for (at, field) in plans.iter().enumerate().rev() {
            let counts = !matches!(field.count, Count::Field(at) if !is_field(at));
            let extends = match field.kind {
                FieldKind::Value(_, Extent::BytesOf(at) | Extent::CharactersOf(at)) => is_field(at),
                FieldKind::Value(..) => true,
                FieldKind::Structure { first, members } => {
                    let (first, members) = (usize::from(first), usize::from(members));
                    members_in_all += members;
                    let inner = depths.get(first..first + members)?;
                    let deepest = inner.iter().max().copied().unwrap_or(0);
                    let is_tree = first > at && members_in_all <= plans.len();
                    if !is_tree || deepest >= MAX_DEPTH {
                        return None;
                    }
                    depths[at] = deepest + 1;
                    true
                }
            };
            if !counts || !extends {
                return None;
            }
        }
        Some(Self { plans, top_level })
    }

    /// Returns the fields of the event itself.
    pub fn top_level(&self) -> &[FieldPlan] {
        self.plans.get(..self.top_level).unwrap_or_default()
    }

    /// Returns the field with a number.
    pub fn get(&self, at: usize) -> Option<&FieldPlan> {
        self.plans.get(at)
    }

    pub fn plans(&self) -> &[FieldPlan] {
        &self.plans
    }

    /// Returns the members of a structure.
    pub fn members(&self, first: u16, members: u16) -> &[FieldPlan] {
        let first = usize::from(first);
        self.plans.get(first..first + usize::from(members)).unwrap_or_default()
    }

    /// Returns the size in memory, in bytes.
    pub fn size(&self) -> usize {
        let text =
            |text: &FieldPlan| text.name.len() + text.map.as_ref().map_or(0, |map| map.len());
        self.plans.iter().map(|field| size_of::<FieldPlan>() + text(field)).sum()
    }
}

/// How to interpret the bytes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    /// Signed integer of 1 to 8 bytes.
    Signed,
    /// Unsigned integer of 1 to 8 bytes.
    Unsigned,
    /// Unsigned integer printed in hexadecimal: a pointer or mask.
    Hex,
    /// True unless all bytes are zero.
    Bool,
    /// IEEE number of 4 or 8 bytes.
    Float,
    Utf16,
    /// 8-bit text; its code page is not recorded.
    Ansi,
    Binary,
    Guid,
    /// 100 ns since 1601.
    FileTime,
    /// Eight 16-bit numbers: year, month, day of the week, day, hour, minute, second, millisecond.
    SystemTime,
    /// Security identifier.
    Sid,
}

/// Size of a value in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Fixed number of bytes.
    Bytes(u16),
    /// Pointer size of the event.
    Pointer,
    /// Number of bytes in the integer of this field.
    BytesOf(u16),
    /// Text of this many characters, possibly including a terminator.
    Characters(u16),
    /// Number of characters in the integer of this field.
    CharactersOf(u16),
    /// Text up to its terminator, or to the end of the payload if there is none.
    Terminated,
    /// A 16-bit count of bytes comes first.
    Counted,
    /// A 16-bit count of characters comes first.
    CountedCharacters,
    /// A 16-bit count of bytes comes first, big-endian.
    CountedBigEndian,
    /// A 32-bit count of bytes comes first.
    Counted32,
    /// All remaining bytes.
    Rest,
    /// Size according to the identifier's count of subauthorities.
    Sid,
    /// Security identifier after two pointers (TOKEN_USER).
    TokenUser,
}

/// Length of a value according to a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    OfType,
    /// Characters of a text, or bytes of a binary.
    Fixed(u16),
    /// Length is in an integer field before it.
    Field(u16),
}

/// xs:hexBinary as an IPv6 address (TDH_OUTTYPE_IPV6).
const OUT_IPV6: u16 = 24;

/// Returns form and extent for an in-type (`_TDH_IN_TYPE` of `tdh.h`, and TraceLogging types); `None` if it is unknown.
/// The size of a pointer or number follows from its type, whatever the schema says.
pub fn reading(in_type: u16, out_type: u16, length: Length) -> Option<(ValueForm, Extent)> {
    let text = match length {
        Length::OfType => Extent::Terminated,
        Length::Fixed(count) => Extent::Characters(count),
        Length::Field(field) => Extent::CharactersOf(field),
    };
    Some(match in_type {
        0 => (ValueForm::Binary, Extent::Bytes(0)),
        1 => (ValueForm::Utf16, text),
        2 => (ValueForm::Ansi, text),
        3 => (ValueForm::Signed, Extent::Bytes(1)),
        4 => (ValueForm::Unsigned, Extent::Bytes(1)),
        5 => (ValueForm::Signed, Extent::Bytes(2)),
        6 => (ValueForm::Unsigned, Extent::Bytes(2)),
        7 => (ValueForm::Signed, Extent::Bytes(4)),
        8 => (ValueForm::Unsigned, Extent::Bytes(4)),
        9 => (ValueForm::Signed, Extent::Bytes(8)),
        10 => (ValueForm::Unsigned, Extent::Bytes(8)),
        11 => (ValueForm::Float, Extent::Bytes(4)),
        12 => (ValueForm::Float, Extent::Bytes(8)),
        13 => (ValueForm::Bool, Extent::Bytes(4)),
        14 => (
            ValueForm::Binary,
            match length {
                Length::Fixed(count) => Extent::Bytes(count),
                Length::Field(field) => Extent::BytesOf(field),
                Length::OfType if out_type == OUT_IPV6 => Extent::Bytes(16),
                Length::OfType => Extent::Bytes(0),
            },
        ),
        15 => (ValueForm::Guid, Extent::Bytes(16)),
        16 | 308 => (ValueForm::Hex, Extent::Pointer),
        17 => (ValueForm::FileTime, Extent::Bytes(8)),
        18 => (ValueForm::SystemTime, Extent::Bytes(16)),
        19 => (ValueForm::Sid, Extent::Sid),
        20 => (ValueForm::Hex, Extent::Bytes(4)),
        21 => (ValueForm::Hex, Extent::Bytes(8)),
        22 | 300 => (ValueForm::Utf16, Extent::Counted),
        23 | 301 => (ValueForm::Ansi, Extent::Counted),
        25 => (ValueForm::Binary, Extent::Counted),
        302 => (ValueForm::Utf16, Extent::CountedBigEndian),
        303 => (ValueForm::Ansi, Extent::CountedBigEndian),
        304 => (ValueForm::Utf16, Extent::Rest),
        305 => (ValueForm::Ansi, Extent::Rest),
        306 => (ValueForm::Utf16, Extent::Characters(1)),
        307 => (ValueForm::Ansi, Extent::Characters(1)),
        309 => (ValueForm::Binary, Extent::Counted32),
        310 => (ValueForm::Sid, Extent::TokenUser),
        _ => return None,
    })
}

/// Returns the number of an in-type as named in a manifest, such as `win:UInt32`.
pub fn in_type_of_name(name: &str) -> Option<u16> {
    const NAMES: &[(&str, u16)] = &[
        ("UnicodeString", 1),
        ("AnsiString", 2),
        ("Int8", 3),
        ("UInt8", 4),
        ("Int16", 5),
        ("UInt16", 6),
        ("Int32", 7),
        ("UInt32", 8),
        ("Int64", 9),
        ("UInt64", 10),
        ("Float", 11),
        ("Double", 12),
        ("Boolean", 13),
        ("Binary", 14),
        ("GUID", 15),
        ("Pointer", 16),
        ("FILETIME", 17),
        ("SYSTEMTIME", 18),
        ("SID", 19),
        ("HexInt32", 20),
        ("HexInt64", 21),
        ("CountedUnicodeString", 22),
        ("CountedAnsiString", 23),
        ("CountedBinary", 25),
    ];
    let name = name.strip_prefix("win:").unwrap_or(name);
    let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    known.map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(kind: FieldKind, count: Count) -> FieldPlan {
        FieldPlan { name: "x".into(), kind, count, map: None }
    }

    fn structure(first: u16, members: u16) -> FieldPlan {
        field(FieldKind::Structure { first, members }, Count::Single)
    }

    fn value() -> FieldPlan {
        field(FieldKind::Value(ValueForm::Unsigned, Extent::Bytes(4)), Count::Single)
    }

    #[test]
    fn structures_are_a_tree() {
        let is_sound = |all: Vec<FieldPlan>| Fields::new(all, 1).is_some();
        assert!(is_sound(vec![structure(1, 2), value(), value()]));
        assert!(!is_sound(vec![structure(0, 1)]), "a member of itself");
        assert!(!is_sound(vec![structure(1, 1), structure(0, 1)]), "a circle");
        assert!(!is_sound(vec![structure(1, 2), value()]), "members that are not there");
        let shared = vec![structure(2, 2), structure(2, 2), value(), value()];
        assert!(!is_sound([shared, vec![structure(2, 2)]].concat()), "shared members");
        let deep = |depth: u16| (0..depth).map(|at| structure(at + 1, 1)).chain([value()]);
        assert!(is_sound(deep(7).collect()));
        assert!(!is_sound(deep(200).collect()));
    }

    #[test]
    fn references_lead_to_a_field() {
        let counted =
            |at| field(FieldKind::Value(ValueForm::Unsigned, Extent::Bytes(1)), Count::Field(at));
        let sized =
            |at| field(FieldKind::Value(ValueForm::Binary, Extent::BytesOf(at)), Count::Single);
        for (valid, invalid) in [(counted(0), counted(2)), (sized(0), sized(2))] {
            assert!(Fields::new(vec![value(), valid], 2).is_some());
            assert!(Fields::new(vec![value(), invalid], 2).is_none());
        }
        assert!(Fields::new(vec![value(); MAX_FIELDS + 1], 1).is_none());
    }
}
