//! Frames row by row, as text for programs.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use polars::prelude::{AnyValue, DataFrame};
use serde::{
    Serialize, Serializer,
    ser::{Error, SerializeMap},
};

use crate::cancel::{Cancel, Poll};

/// Comma-separated values as RFC 4180 describes them, with a header; an unknown value is empty, a
/// list is written as in JSON.
pub(crate) fn csv(frame: &DataFrame, cancel: &Cancel, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(frame.get_column_names().into_iter().map(|name| name.as_str()))?;
    let (mut poll, mut text) = (Poll::new(cancel), String::new());
    for row in 0..frame.height() {
        poll.round().map_err(io::Error::other)?;
        for column in frame.columns() {
            text.clear();
            cell(&column.get(row).map_err(io::Error::other)?, &mut text);
            writer.write_field(&text)?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()
}

/// One JSON object a line.
pub(crate) fn ndjson(frame: &DataFrame, cancel: &Cancel, out: &mut dyn Write) -> io::Result<()> {
    let mut poll = Poll::new(cancel);
    for row in 0..frame.height() {
        poll.round().map_err(io::Error::other)?;
        serde_json::to_writer(&mut *out, &Row { frame, row })?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// A value as text; nothing when it is unknown.
pub(super) fn cell(value: &AnyValue<'_>, text: &mut String) {
    // Writing to a string does not fail.
    let _ = match value {
        AnyValue::Null => Ok(()),
        AnyValue::String(value) => text.write_str(value),
        AnyValue::StringOwned(value) => text.write_str(value),
        // Polars would round them.
        AnyValue::Float32(value) => write!(text, "{value}"),
        AnyValue::Float64(value) => write!(text, "{value}"),
        AnyValue::List(_) => match serde_json::to_string(&Value(value.clone())) {
            Ok(list) => text.write_str(&list),
            Err(_) => write!(text, "{value}"),
        },
        value => write!(text, "{value}"),
    };
}

/// A row with the names of its columns.
pub(super) struct Row<'a> {
    pub(super) frame: &'a DataFrame,
    pub(super) row: usize,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.frame.width()))?;
        for column in self.frame.columns() {
            let value = column.get(self.row).map_err(S::Error::custom)?;
            map.serialize_entry(column.name().as_str(), &Value(value))?;
        }
        map.end()
    }
}

/// A cell; what JSON has no type for is text.
struct Value<'a>(AnyValue<'a>);

impl Serialize for Value<'_> {
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
            AnyValue::List(values) => serializer.collect_seq(values.iter().map(Value)),
            other if other.is_primitive_numeric() => match other.extract::<i64>() {
                Some(value) => serializer.serialize_i64(value),
                None => serializer.collect_str(other),
            },
            other => serializer.collect_str(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use handlescope_model::FrameIdx;
    use handlescope_model::tables::{Module, Modules, Stack, Stacks};

    use super::*;

    type Write<'a> = fn(&DataFrame, &Cancel, &mut dyn io::Write) -> io::Result<()>;

    fn written(write: Write<'_>, frame: &DataFrame) -> String {
        let mut bytes = Vec::new();
        write(frame, &Cancel::default(), &mut bytes).expect("written");
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn lists_are_written_as_in_json() {
        let mut stacks = Stacks::default();
        stacks.push(Stack { frames: [1, 2, 3].map(FrameIdx).to_vec() });
        stacks.push(Stack { frames: Vec::new() });
        let frame = stacks.into_frame().expect("a frame");
        assert_eq!(written(csv, &frame), "frames\n\"[1,2,3]\"\n[]\n");
        assert_eq!(written(ndjson, &frame), "{\"frames\":[1,2,3]}\n{\"frames\":[]}\n");
    }

    #[test]
    fn an_unknown_value_is_empty_or_null_and_text_is_quoted_where_it_must_be() {
        let mut modules = Modules::default();
        let name = "a \"b\", c\nd;e".to_owned();
        modules.push(Module { name, size: u64::MAX, ..Module::default() });
        let frame = modules.into_frame().expect("a frame");
        let text = written(csv, &frame);
        assert!(text.contains("\"a \"\"b\"\", c\nd;e\",,18446744073709551615,,0,"), "{text}");
        let text = written(ndjson, &frame);
        let row: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(row["name"], "a \"b\", c\nd;e");
        assert_eq!(row["size"], u64::MAX);
        assert!(row["timestamp"].is_null());
    }

    #[test]
    fn it_stops_when_asked_to() {
        let mut modules = Modules::default();
        modules.push(Module::default());
        let frame = modules.into_frame().expect("a frame");
        let cancel = Cancel::default();
        cancel.cancel();
        assert!(csv(&frame, &cancel, &mut io::sink()).is_err());
        assert!(ndjson(&frame, &cancel, &mut io::sink()).is_err());
    }
}
