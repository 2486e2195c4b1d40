//! Tables as JSON: one document, or one object a line.

use std::io::{self, Write};

use polars::prelude::{AnyValue, Column};
use serde::{
    Serialize, Serializer,
    ser::{Error, SerializeMap},
};

use super::{
    ColumnSpec, Table,
    value::{Value, hex},
};
use crate::{
    cancel::{Cancel, Poll},
    render::json::{self, Array},
    terminal::Neutral,
    values::JsonMode,
};

impl Table<'_> {
    /// The document of a kind whose elements are flat rows.
    pub(super) fn json(
        &self,
        mode: JsonMode,
        cancel: &Cancel,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        cancel.check().map_err(io::Error::other)?;
        json::write(&Document(self), mode, out)
    }

    /// One JSON object a line.
    pub(in crate::render) fn ndjson(&self, cancel: &Cancel, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Neutral::json(out);
        let (columns, mut poll) = (self.data().collect::<Vec<_>>(), Poll::new(cancel));
        for row in self.rows() {
            poll.round().map_err(io::Error::other)?;
            serde_json::to_writer(&mut out, &Row { columns: &columns, row })?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// The columns of documents and files, with their values.
    pub(super) fn data(&self) -> impl Iterator<Item = (&Column, &ColumnSpec)> {
        self.data_columns().filter_map(|(at, spec)| Some((self.frame.columns().get(at)?, spec)))
    }
}

struct Document<'a>(&'a Table<'a>);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = self.0;
        let mut map = serializer.serialize_map(None)?;
        if let Some(command) = &table.command {
            let names: Vec<&str> = table.data().map(|(column, _)| column.name().as_str()).collect();
            map.serialize_entry("command", command)?;
            map.serialize_entry("columns", &names)?;
        }
        let columns: Vec<_> = table.data().collect();
        let rows = Array(|| table.rows().map(|row| Row { columns: &columns, row }));
        map.serialize_entry(table.key, &rows)?;
        let no_match = table.no_match.map(|(file, no_match)| (file, Some(no_match)));
        if let Some(no_match) = json::first_no_match(no_match.into_iter()) {
            map.serialize_entry("no_match", &no_match)?;
        }
        map.end()
    }
}

/// A row with the names of its columns.
struct Row<'a> {
    columns: &'a [(&'a Column, &'a ColumnSpec)],
    row: usize,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (column, spec) in self.columns {
            let name = column.name().as_str();
            match column.get(self.row).map_err(S::Error::custom)? {
                AnyValue::Null if spec.omits_unknown => {}
                AnyValue::Null => map.serialize_entry(name, &())?,
                value if spec.is_hex() => map.serialize_entry(name, &hex(&value))?,
                value => map.serialize_entry(name, &Value(value))?,
            }
        }
        map.end()
    }
}
