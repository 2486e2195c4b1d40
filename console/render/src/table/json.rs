//! Tables as JSON: one document, or one object per line.

use std::io::{self, Write};

use polars::prelude::{AnyValue, Column};
use serde::{
    Serialize, Serializer,
    ser::{Error, SerializeMap},
};

use super::{
    AnswerTable, ColumnFormat,
    columns::{MemberTaker, RowDocument},
    document::{DocumentWithRows, serialize_members},
    value::{CellValue, DocumentMember},
};
use crate::json::{self, Document};
use handlescope_session::cancel::{Cancel, Poll};
use handlescope_session::terminal::Neutral;
use handlescope_session::values::JsonMode;

impl AnswerTable<'_> {
    /// Writes the document with the rows that were kept.
    pub fn json(&self, mode: JsonMode, cancel: &Cancel, out: &mut dyn Write) -> io::Result<()> {
        cancel.check().map_err(io::Error::other)?;
        let left_out: usize = self.files.iter().map(|file| file.left_out).sum();
        let members = |take: MemberTaker<'_>| {
            (self.around)(&self.files, &mut |name, member| match member {
                DocumentMember::LeftOut(_) if left_out == 0 => {}
                DocumentMember::LeftOut(rows) => {
                    take(name, DocumentMember::Made(&Document::default().with(rows, left_out)));
                }
                member => take(name, member),
            });
        };
        json::write(&DocumentWithRows { members: &members, rows: JsonRows(self) }, mode, out)
    }

    /// Writes one JSON object per line.
    pub fn ndjson(&self, cancel: &Cancel, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Neutral::json(out);
        let (columns, mut poll) = (self.data().collect::<Vec<_>>(), Poll::new(cancel));
        for row in self.rows() {
            poll.round().map_err(io::Error::other)?;
            serde_json::to_writer(&mut out, &JsonCells { columns: &columns, row })?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Returns the columns of documents and files, with their values.
    pub fn data(&self) -> impl Iterator<Item = (&Column, &ColumnFormat)> {
        self.data_columns()
            .filter_map(|(index, spec)| Some((self.frame.columns().get(index)?, spec)))
    }
}

/// The rows that were kept. A frame without declared columns has them as files do.
struct JsonRows<'t, 'a>(&'t AnswerTable<'a>);

impl Serialize for JsonRows<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.0.rows();
        let Some(document) = &self.0.row_document else {
            let columns: Vec<_> = self.0.data().collect();
            return serializer.collect_seq(rows.map(|row| JsonCells { columns: &columns, row }));
        };
        serializer.collect_seq(rows.map(|row| JsonRow { document, row }))
    }
}

/// A row of a document.
struct JsonRow<'t, 'a> {
    document: &'t RowDocument<'a>,
    row: usize,
}

impl Serialize for JsonRow<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_members(serializer, &(), |take| (self.document)(self.row, take))
    }
}

/// A row of a file, and the names of its columns.
struct JsonCells<'a> {
    columns: &'a [(&'a Column, &'a ColumnFormat)],
    row: usize,
}

impl Serialize for JsonCells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (column, spec) in self.columns {
            let name = column.name().as_str();
            match spec.value(column, self.row).map_err(S::Error::custom)? {
                AnyValue::Null if spec.omits_unknown => {}
                value => map.serialize_entry(name, &CellValue(value))?,
            }
        }
        map.end()
    }
}
