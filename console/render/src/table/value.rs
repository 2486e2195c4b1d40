//! Values as text and as JSON, and their types.

use std::fmt::Write as _;

use polars::prelude::{
    AnyValue, DataType, Int64Type, IntoSeries, ListBuilderTrait, ListPrimitiveChunkedBuilder,
    NamedFrom, PlSmallStr, Series, UInt32Type,
};
use serde::{Serialize, Serializer};

use crate::json::Hex;

/// The format of a value in text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Show {
    /// The value unchanged.
    #[default]
    Plain,
    /// The value unchanged, including its line breaks.
    Lines,
    /// A text that is cut in the middle if the screen is too narrow for it.
    Clipped,
    /// A number with separators between thousands.
    Grouped,
    /// Bytes with a unit.
    Bytes,
    /// Nanoseconds as seconds.
    Seconds,
    /// A number like 0xC0 in every format, because it may exceed 2^53.
    Hex,
    /// An exit code: programs choose small ones, and the others are NTSTATUS values that people know in hex.
    ExitCode,
}

/// A type that column values can have.
pub trait CellType: Serialize + Sized {
    /// The type's name in JSON Schema, with `?` if a value may be unknown.
    const JSON: &'static str;

    const SHOW: Show = Show::Plain;

    fn series(name: PlSmallStr, values: Vec<Self>) -> Series;
}

macro_rules! cell_types {
    ($($json:literal: $($type:ty),+;)+) => {$($(
        impl CellType for $type {
            const JSON: &'static str = $json;

            fn series(name: PlSmallStr, values: Vec<Self>) -> Series {
                Series::new(name, values)
            }
        }

        impl CellType for Option<$type> {
            const JSON: &'static str = concat!($json, "?");

            fn series(name: PlSmallStr, values: Vec<Self>) -> Series {
                Series::new(name, values)
            }
        }
    )+)+};
}

cell_types! {
    "integer": u32, u64, i32, i64;
    "number": f64;
    "boolean": bool;
    "string": String, &str;
}

impl CellType for Option<Hex> {
    const JSON: &'static str = "string?";

    const SHOW: Show = Show::Hex;

    fn series(name: PlSmallStr, values: Vec<Self>) -> Series {
        Series::new(name, values.iter().map(|value| Some(value.as_ref()?.0)).collect::<Vec<_>>())
    }
}

macro_rules! list_types {
    ($($type:ty: $polars:ident, $of:ident;)+) => {$(
        impl CellType for Vec<$type> {
            const JSON: &'static str = "array";

            fn series(name: PlSmallStr, values: Vec<Self>) -> Series {
                let height = values.len();
                let mut lists =
                    ListPrimitiveChunkedBuilder::<$polars>::new(name, height, height, DataType::$of);
                values.iter().for_each(|list| lists.append_slice(list));
                lists.finish().into_series()
            }
        }
    )+};
}

list_types! {
    u32: UInt32Type, UInt32;
    i64: Int64Type, Int64;
}

/// A value in a document. There may be tens of millions, so values from tables go to the serializer directly, without
/// the cost of type erasure.
pub enum DocumentMember<'v> {
    Cell(CellValue<'v>),
    Made(&'v dyn erased_serde::Serialize),
    /// The rows of the document.
    Rows,
    /// How many of the document's rows with this name are left out.
    LeftOut(&'static str),
}

impl Serialize for DocumentMember<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            DocumentMember::Cell(value) => value.serialize(serializer),
            DocumentMember::Made(value) => value.serialize(serializer),
            DocumentMember::Rows | DocumentMember::LeftOut(_) => serializer.serialize_unit(),
        }
    }
}

/// Writes a value as text; nothing if it is unknown.
pub fn cell(value: &AnyValue<'_>, text: &mut String) {
    // Writing to a string does not fail.
    let _ = match value {
        AnyValue::Null => Ok(()),
        AnyValue::String(value) => text.write_str(value),
        AnyValue::StringOwned(value) => text.write_str(value),
        // Polars would round floats.
        AnyValue::Float32(value) => write!(text, "{value}"),
        AnyValue::Float64(value) => write!(text, "{value}"),
        AnyValue::List(_) => match serde_json::to_string(&CellValue(value.clone())) {
            Ok(list) => text.write_str(&list),
            Err(_) => write!(text, "{value}"),
        },
        AnyValue::Binary(bytes) => digits(bytes, text),
        AnyValue::BinaryOwned(bytes) => digits(bytes, text),
        value => write!(text, "{value}"),
    };
}

/// Writes bytes as hexadecimal digits.
fn digits(bytes: &[u8], text: &mut String) -> std::fmt::Result {
    bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}"))
}

/// Formats a number like 0xC0.
pub fn hex(value: &AnyValue<'_>) -> String {
    format!("0x{:X}", value.extract::<u64>().unwrap_or_default())
}

/// A cell; values that JSON has no type for become text.
pub struct CellValue<'a>(pub AnyValue<'a>);

impl Serialize for CellValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            AnyValue::Null => serializer.serialize_none(),
            AnyValue::Boolean(value) => serializer.serialize_bool(*value),
            AnyValue::Int32(value) => serializer.serialize_i32(*value),
            AnyValue::Int64(value) => serializer.serialize_i64(*value),
            AnyValue::UInt32(value) => serializer.serialize_u32(*value),
            AnyValue::UInt64(value) => serializer.serialize_u64(*value),
            AnyValue::Float32(value) => serializer.serialize_f32(*value),
            AnyValue::Float64(value) => serializer.serialize_f64(*value),
            AnyValue::String(value) => serializer.serialize_str(value),
            AnyValue::StringOwned(value) => serializer.serialize_str(value),
            bytes @ (AnyValue::Binary(_) | AnyValue::BinaryOwned(_)) => {
                let mut text = String::new();
                cell(bytes, &mut text);
                serializer.serialize_str(&text)
            }
            AnyValue::List(values) => serializer.collect_seq(values.iter().map(CellValue)),
            value if value.is_primitive_numeric() => match value.extract::<i64>() {
                Some(value) => serializer.serialize_i64(value),
                None => serializer.collect_str(value),
            },
            value => serializer.collect_str(value),
        }
    }
}
