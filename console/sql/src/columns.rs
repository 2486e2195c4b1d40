//! Columns of tables in queries: those of the archive, and others computed on demand.

use std::borrow::Cow;

use handlescope_model::tables::{
    AcquisitionKind, Acquisitions, Allocators, End, Events, Origin, ResourceKind, ResourceMissKind,
    ResourceMisses,
};
use handlescope_model::{ColumnSpec, ColumnType, Columns, EventKind, Key, Table};
use polars::prelude::{Column, DataFrame, DataType, PolarsError};

use super::error::SqlError;
use handlescope_query::type_name;
use handlescope_session::suggest;

#[derive(Debug, Clone, Copy)]
pub struct TableColumn {
    pub table: Table,
    pub spec: ColumnSpec,
    pub values: ValueSource,
}

/// Where a column's values come from.
#[derive(Debug, Clone, Copy)]
pub enum ValueSource {
    Archive,
    /// The time in the archive; null in a trace without a clock.
    Time,
    /// Numbers in the archive as hex text.
    Hex,
    FileIndex,
    Row,
    ObjectId,
    /// The name of an object's type.
    TypeName,
    /// Words for the codes in a column of the archive.
    Words(&'static str, fn(u32) -> Option<&'static str>),
    /// A value derived from the origin and end of acquisitions.
    OfLife(fn(Origin, End) -> bool),
    /// Values computed from the frames of stacks, which need names to be resolved.
    OfFrames,
}

/// A column that a table has only in queries; without a table, all tables have it.
pub type AddedColumn = (Option<Table>, ValueSource, ColumnSpec);

/// Declares a column for queries: table, type, name, meaning and values.
const fn add(
    table: Option<Table>,
    dtype: ColumnType,
    name: &'static str,
    doc: &'static str,
    values: ValueSource,
) -> AddedColumn {
    (table, values, ColumnSpec { name, dtype, nullable: false, unit: "", refers_to: None, doc })
}

/// Declares a column with words for codes.
const fn words<C: Columns>(
    codes: Key<C, u32>,
    name: &'static str,
    doc: &'static str,
    word: fn(u32) -> Option<&'static str>,
) -> AddedColumn {
    add(Some(C::TABLE), ColumnType::Text, name, doc, ValueSource::Words(codes.name(), word))
}

/// Declares a column derived from the origin and end of acquisitions.
const fn life(name: &'static str, doc: &'static str, of: fn(Origin, End) -> bool) -> AddedColumn {
    add(Some(Table::Acquisitions), ColumnType::Bool, name, doc, ValueSource::OfLife(of))
}

/// Columns that exist only in queries; they precede those of the archive.
static ADDED: &[AddedColumn] = {
    use ColumnType::{Text, U32};
    use ValueSource::{FileIndex, ObjectId, OfFrames, Row, TypeName};
    const OBJECTS: Option<Table> = Some(Table::Objects);
    const STACKS: Option<Table> = Some(Table::Stacks);
    &[
        add(None, U32, "file_index", "Number of the file among the loaded ones.", FileIndex),
        add(
            None,
            U32,
            "row",
            "Row number, which other tables point to; it counts on from file to file.",
            Row,
        ),
        add(
            OBJECTS,
            U32,
            "id",
            "Number of the object, as answers about objects show it.",
            ObjectId,
        ),
        add(OBJECTS, Text, "type", "Name of the type, as in Event.", TypeName),
        words(Events::kind, "kind_name", "The kind, as in handle_create.", |code| {
            Some(EventKind::from_code(code)?.name())
        }),
        words(Allocators::kind, "kind_name", "The kind, as in heap.", |code| {
            Some(ResourceKind::from_code(code)?.name())
        }),
        words(Acquisitions::kind, "kind_name", "The kind, as in handle.", |code| {
            Some(AcquisitionKind::from_code(code)?.name())
        }),
        words(Acquisitions::origin, "origin_name", "How it began, as in create.", |code| {
            Some(Origin::from_code(code)?.name())
        }),
        life("in_trace", "Whether the trace has its opening.", |origin, _| origin.is_in_trace()),
        life(
            "leaked",
            "Whether the trace has its opening, and nothing released it.",
            Origin::is_leak,
        ),
        life(
            "at_exit",
            "Whether only the end of its process released it.",
            Origin::is_leak_at_exit,
        ),
        words(Acquisitions::end, "end_name", "How it ended, as in closed.", |code| {
            Some(End::from_code(code)?.name())
        }),
        words(ResourceMisses::what, "what_name", "What it is, as in orphan_free.", |code| {
            Some(ResourceMissKind::from_code(code)?.name())
        }),
        add(
            STACKS,
            U32,
            "depth",
            "Number of frames; functions inlined into others count.",
            OfFrames,
        ),
        add(
            STACKS,
            Text,
            "function",
            "The most telling function: the first of the program, as in leaky.exe!Cache::Get.",
            OfFrames,
        ),
        add(STACKS, Text, "text", "A line for each frame, as in leaky.exe!main.", OfFrames),
    ]
};

/// The columns a table has only in queries, which precede its own.
pub fn added(table: Table) -> impl Iterator<Item = &'static AddedColumn> {
    ADDED.iter().filter(move |(of, ..)| of.is_none_or(|of| of == table))
}

/// All columns of a table in queries.
pub fn specs(table: Table) -> impl Iterator<Item = ColumnSpec> {
    columns(table).map(|column| column.spec)
}

fn columns(table: Table) -> impl Iterator<Item = TableColumn> {
    let added = added(table).map(|(_, values, spec)| (*values, *spec));
    let stored = table.columns().iter().map(move |spec| {
        if spec.is_hex() {
            (ValueSource::Hex, ColumnSpec { dtype: ColumnType::Text, ..*spec })
        } else if table == Table::Acquisitions && spec.name.ends_with("_ns") {
            // In a trace without a clock, they are only an order.
            (ValueSource::Time, *spec)
        } else {
            (ValueSource::Archive, *spec)
        }
    });
    added.chain(stored).map(move |(values, spec)| TableColumn { table, spec, values })
}

/// Describes a column of a table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationColumn {
    pub name: Cow<'static, str>,
    pub dtype: DataType,
    /// Whether some values are unknown or do not apply.
    pub nullable: bool,
    pub unit: Cow<'static, str>,
    pub doc: Cow<'static, str>,
}

impl RelationColumn {
    pub fn new(spec: &ColumnSpec) -> RelationColumn {
        RelationColumn {
            name: spec.name.into(),
            dtype: spec.dtype.dtype(),
            nullable: spec.nullable,
            unit: spec.unit_text(),
            doc: spec.doc.trim().into(),
        }
    }

    /// Returns the type, without the mark for missing values.
    pub fn dtype_text(&self) -> String {
        let dtype = self.dtype.to_string();
        type_name(&dtype).unwrap_or(dtype)
    }

    /// Returns the type, with `?` if values may be missing.
    pub fn type_text(&self) -> String {
        format!("{}{}", self.dtype_text(), if self.nullable { "?" } else { "" })
    }
}

/// Lists the columns of a table or view, one per row. `names` are those of all tables and views.
///
/// # Errors
/// If there are no columns, because none has this name.
pub fn described_columns(
    name: &str,
    columns: Option<Vec<RelationColumn>>,
    names: &[&str],
) -> Result<DataFrame, SqlError> {
    let Some(columns) = columns else {
        let hint = suggest::nearest(name, names.iter().copied())
            .map_or_else(|| format!("; there are {}", names.join(", ")), suggest::did_you_mean);
        return Err(SqlError::failed(format!("no table '{name}'{hint}")));
    };
    let texts = |title: &'static str, text: fn(&RelationColumn) -> String| {
        Column::new(title.into(), columns.iter().map(text).collect::<Vec<String>>())
    };
    let frame = DataFrame::new_infer_height(vec![
        texts("column", |column| column.name.to_string()),
        texts("type", RelationColumn::dtype_text),
        texts("unit", |column| column.unit.to_string()),
        texts("meaning", |column| column.doc.to_string()),
    ]);
    Ok(frame?)
}

impl TableColumn {
    /// Returns the column of a table with this name.
    pub fn named(table: Table, name: &str) -> Option<TableColumn> {
        columns(table).find(|column| column.spec.name == name)
    }
}

/// Converts a failure to an error of polars.
pub fn failed(error: impl std::fmt::Display) -> PolarsError {
    PolarsError::ComputeError(error.to_string().into())
}
