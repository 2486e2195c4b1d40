//! In-types: how the bytes of a value are delimited, and what they mean.

/// What the bytes of a value mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Signed integer of 1 to 8 bytes.
    Signed,
    /// Unsigned integer of 1 to 8 bytes.
    Unsigned,
    /// Unsigned integer that is printed as hexadecimal number: a pointer, a mask.
    Hex,
    /// True unless all bytes are zero.
    Bool,
    /// IEEE number of 4 or 8 bytes.
    Float,
    Utf16,
    /// 8-bit text, whose code page is not recorded.
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

/// How many bytes a value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// So many.
    Bytes(u16),
    /// Those of a pointer of the event.
    Pointer,
    /// As many as the integer in this field says.
    BytesOf(u16),
    /// Text of so many characters, perhaps with a terminator among them.
    Characters(u16),
    /// The same, as many as the integer in this field says.
    CharactersOf(u16),
    /// Text up to its terminator; without one it ends with the payload.
    Terminated,
    /// A 16-bit count of bytes comes first.
    Counted,
    /// A 16-bit count of characters comes first.
    CountedCharacters,
    /// A 16-bit count of bytes comes first, big-endian.
    CountedBigEndian,
    /// A 32-bit count of bytes comes first.
    Counted32,
    /// All bytes that are left.
    Rest,
    /// As the identifier's own count of parts says.
    Sid,
    /// The same after two pointers (TOKEN_USER).
    TokenUser,
}

/// What a schema says of the length of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    OfType,
    /// Characters of text, bytes of binary.
    Fixed(u16),
    /// The same, in an integer before it.
    Field(u16),
}

/// xs:hexBinary as an IPv6 address (TDH_OUTTYPE_IPV6).
const OUT_IPV6: u16 = 24;

/// How values of an in-type (`_TDH_IN_TYPE` of `tdh.h`, and those of TraceLogging) are read; `None` for an
/// unknown one. The size of a pointer or number is that of its type whatever the schema says.
pub(super) fn reading(in_type: u16, out_type: u16, length: Length) -> Option<(Form, Extent)> {
    let text = match length {
        Length::OfType => Extent::Terminated,
        Length::Fixed(count) => Extent::Characters(count),
        Length::Field(field) => Extent::CharactersOf(field),
    };
    Some(match in_type {
        0 => (Form::Binary, Extent::Bytes(0)),
        1 => (Form::Utf16, text),
        2 => (Form::Ansi, text),
        3 => (Form::Signed, Extent::Bytes(1)),
        4 => (Form::Unsigned, Extent::Bytes(1)),
        5 => (Form::Signed, Extent::Bytes(2)),
        6 => (Form::Unsigned, Extent::Bytes(2)),
        7 => (Form::Signed, Extent::Bytes(4)),
        8 => (Form::Unsigned, Extent::Bytes(4)),
        9 => (Form::Signed, Extent::Bytes(8)),
        10 => (Form::Unsigned, Extent::Bytes(8)),
        11 => (Form::Float, Extent::Bytes(4)),
        12 => (Form::Float, Extent::Bytes(8)),
        13 => (Form::Bool, Extent::Bytes(4)),
        14 => (
            Form::Binary,
            match length {
                Length::Fixed(count) => Extent::Bytes(count),
                Length::Field(field) => Extent::BytesOf(field),
                Length::OfType if out_type == OUT_IPV6 => Extent::Bytes(16),
                Length::OfType => Extent::Bytes(0),
            },
        ),
        15 => (Form::Guid, Extent::Bytes(16)),
        16 | 308 => (Form::Hex, Extent::Pointer),
        17 => (Form::FileTime, Extent::Bytes(8)),
        18 => (Form::SystemTime, Extent::Bytes(16)),
        19 => (Form::Sid, Extent::Sid),
        20 => (Form::Hex, Extent::Bytes(4)),
        21 => (Form::Hex, Extent::Bytes(8)),
        22 | 300 => (Form::Utf16, Extent::Counted),
        23 | 301 => (Form::Ansi, Extent::Counted),
        25 => (Form::Binary, Extent::Counted),
        302 => (Form::Utf16, Extent::CountedBigEndian),
        303 => (Form::Ansi, Extent::CountedBigEndian),
        304 => (Form::Utf16, Extent::Rest),
        305 => (Form::Ansi, Extent::Rest),
        306 => (Form::Utf16, Extent::Characters(1)),
        307 => (Form::Ansi, Extent::Characters(1)),
        309 => (Form::Binary, Extent::Counted32),
        310 => (Form::Sid, Extent::TokenUser),
        _ => return None,
    })
}

/// The number of an in-type that a manifest names, as in `win:UInt32`.
pub(super) fn in_type_of_name(name: &str) -> Option<u16> {
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
