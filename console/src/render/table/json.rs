//! Tables as JSON: one document, or one object a line.

use std::io::{self, Write};

use polars::prelude::{AnyValue, Column};
use serde::{
    Serialize, Serializer,
    ser::{Error, SerializeMap},
};

use super::{
    ColumnSpec, Member, Table,
    value::{Value, hex},
};
use crate::{
    cancel::{Cancel, Poll},
    render::json::{self, Array, Members},
    terminal::Neutral,
    values::JsonMode,
};

impl Table<'_> {
    /// The document with the rows that are left.
    pub(in crate::render) fn json(
        &self,
        mode: JsonMode,
        cancel: &Cancel,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        cancel.check().map_err(io::Error::other)?;
        json::write(&WholeTable(self), mode, out)
    }

    /// One JSON object a line.
    pub(in crate::render) fn ndjson(&self, cancel: &Cancel, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Neutral::json(out);
        let (columns, mut poll) = (self.data().collect::<Vec<_>>(), Poll::new(cancel));
        for row in self.rows() {
            poll.round().map_err(io::Error::other)?;
            serde_json::to_writer(&mut out, &Cells { columns: &columns, row })?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// The columns of documents and files, with their values.
    pub(super) fn data(&self) -> impl Iterator<Item = (&Column, &ColumnSpec)> {
        self.data_columns().filter_map(|(at, spec)| Some((self.frame.columns().get(at)?, spec)))
    }
}

struct WholeTable<'t, 'a>(&'t Table<'a>);

impl Serialize for WholeTable<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = self.0;
        let mut map = serializer.serialize_map(None)?;
        table.head.write(&mut map)?;
        let left_out = table.frame.height() - table.rows().count();
        if table.counts_left_out && left_out > 0 {
            map.serialize_entry("left_out", &Members(|| [(table.key, left_out)]))?;
        }
        map.serialize_entry(table.key, &Array(|| table.rows().map(|row| Row { table, row })))?;
        table.tail.write(&mut map)?;
        map.end()
    }
}

/// A row with the names of its members.
struct Row<'t, 'a> {
    table: &'t Table<'a>,
    row: usize,
}

impl Serialize for Row<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for member in &self.table.members {
            match member {
                Member::Nested(name, value) => map.serialize_entry(name, &value(self.row))?,
                Member::Column(at) => {
                    let column = self.table.frame.columns().get(*at).zip(self.table.specs.get(*at));
                    column.map_or(Ok(()), |column| write_cell(column, self.row, &mut map))?;
                }
            }
        }
        map.end()
    }
}

/// A row of files with the names of its columns.
struct Cells<'a> {
    columns: &'a [(&'a Column, &'a ColumnSpec)],
    row: usize,
}

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.columns.iter().try_for_each(|column| write_cell(*column, self.row, &mut map))?;
        map.end()
    }
}

fn write_cell<M: SerializeMap>(
    (column, spec): (&Column, &ColumnSpec),
    row: usize,
    map: &mut M,
) -> Result<(), M::Error> {
    let name = column.name().as_str();
    match column.get(row).map_err(M::Error::custom)? {
        AnyValue::Null if spec.omits_unknown => Ok(()),
        AnyValue::Null => map.serialize_entry(name, &()),
        value if spec.is_hex() => map.serialize_entry(name, &hex(&value)),
        value => map.serialize_entry(name, &Value(value)),
    }
}
