//! Columns of tables as queries see them: those of the archive, and others that are computed on
//! demand.

use std::borrow::Cow;

use handlescope_model::tables::{
    Allocators, Events, Objects, ResourceEnd, ResourceKind, ResourceMissKind, ResourceMisses,
    Resources,
};
use handlescope_model::{Cell, ColumnSpec, ColumnType, Columns, EventKind, Key, Table, Trace};
use polars::prelude::{
    Column, DataType, IntoColumn, NewChunkedArray, PlSmallStr, PolarsError, PolarsResult,
    StringChunked,
};

use handlescope_query::{TypeNames, type_name};

#[derive(Debug, Clone, Copy)]
pub struct TableColumn {
    pub table: Table,
    pub spec: ColumnSpec,
    pub values: Values,
}

/// The source of a column's values.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    Archive,
    /// The time in the archive; null in a trace without a clock.
    Time,
    /// Numbers in the archive as hex text.
    Hex,
    FileIndex,
    Row,
    ObjectId,
    /// Values computed from other columns of a trace.
    Made(fn(&Trace, PlSmallStr) -> PolarsResult<Column>),
    /// Values computed from the frames of stacks, whose names have to be looked up.
    OfFrames,
}

/// A column that some tables have in queries only; without these, all have it.
pub type Added = (&'static [Table], Values, ColumnSpec);

macro_rules! words {
    ($codes:expr, $word:ident) => {
        Values::Made(|trace, name| {
            let codes = trace.values($codes).map_err(failed)?;
            let texts = codes.values().iter().map(|code| $word::from_code(*code).map($word::name));
            Ok(StringChunked::from_iter_options(name, texts).into_column())
        })
    };
}

macro_rules! added {
    ($($(#[doc = $doc:literal])+ $name:ident: $dtype:ident $(of $table:ident)? = $values:expr;)+) => {
        &[$((
            &[$(Table::$table)?],
            $values,
            ColumnSpec {
                name: stringify!($name),
                dtype: ColumnType::$dtype,
                nullable: false,
                unit: "",
                refers_to: None,
                doc: concat!($($doc),+),
            },
        )),+]
    };
}

/// The columns of queries only, in front of those of the archive.
static ADDED: &[Added] = added! {
    /// Number of the file among those that are loaded.
    file_index: U32 = Values::FileIndex;
    /// What other tables point to; with several files it counts on.
    row: U32 = Values::Row;
    /// The number of the object, as answers about objects show it.
    id: U32 of Objects = Values::ObjectId;
    /// Name of the type, as in Event.
    type: Text of Objects = Values::Made(type_names);
    /// The kind, as in handle_create.
    kind_name: Text of Events = words!(Events::kind, EventKind);
    /// The kind, as in heap.
    kind_name: Text of Allocators = words!(Allocators::kind, ResourceKind);
    /// How it ended, as in freed.
    end_name: Text of Resources = words!(Resources::end, ResourceEnd);
    /// What it is, as in orphan_free.
    what_name: Text of ResourceMisses = words!(ResourceMisses::what, ResourceMissKind);
    /// Number of frames; functions inlined into others count.
    depth: U32 of Stacks = Values::OfFrames;
    /// The function that says most: the first of the program, as in leaky.exe!Cache::Get.
    function: Text of Stacks = Values::OfFrames;
    /// A line for each frame, as in leaky.exe!main.
    text: Text of Stacks = Values::OfFrames;
};

/// The columns that a table has in queries only, in front of its own.
pub fn added(table: Table) -> impl Iterator<Item = &'static Added> {
    ADDED.iter().filter(move |(tables, ..)| tables.is_empty() || tables.contains(&table))
}

/// All columns of a table in queries.
pub fn specs(table: Table) -> impl Iterator<Item = ColumnSpec> {
    columns(table).map(|column| column.spec)
}

fn columns(table: Table) -> impl Iterator<Item = TableColumn> {
    let added = added(table).map(|(_, values, spec)| (*values, *spec));
    let stored = table.columns().iter().map(|spec| match spec.is_hex() {
        true => (Values::Hex, ColumnSpec { dtype: ColumnType::Text, ..*spec }),
        false => (Values::Archive, *spec),
    });
    added.chain(stored).map(move |(values, spec)| TableColumn { table, spec, values })
}

/// The description of a column of a table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationColumn {
    pub name: Cow<'static, str>,
    pub dtype: DataType,
    /// Whether it has values that are unknown or do not apply.
    pub nullable: bool,
    pub unit: Cow<'static, str>,
    pub doc: Cow<'static, str>,
}

impl RelationColumn {
    pub fn of(spec: &ColumnSpec) -> RelationColumn {
        RelationColumn {
            name: spec.name.into(),
            dtype: spec.dtype.dtype(),
            nullable: spec.nullable,
            unit: spec.unit_text(),
            doc: spec.doc.trim().into(),
        }
    }

    /// Returns the type, without the mark of missing values.
    pub fn dtype_text(&self) -> String {
        let dtype = self.dtype.to_string();
        type_name(&dtype).unwrap_or(dtype)
    }

    /// Returns the type, with `?` if values may be missing.
    pub fn type_text(&self) -> String {
        format!("{}{}", self.dtype_text(), if self.nullable { "?" } else { "" })
    }
}

impl TableColumn {
    /// The column of a table that has a name.
    pub fn named(table: Table, name: &str) -> Option<TableColumn> {
        columns(table).find(|column| column.spec.name == name)
    }

    /// A column of the archive.
    pub const fn of<C: Columns, T: Cell>(key: Key<C, T>) -> TableColumn {
        TableColumn { table: C::TABLE, spec: key.spec(), values: Values::Archive }
    }

    /// The time of an event, where the trace has a clock.
    pub const TIME: TableColumn =
        TableColumn { values: Values::Time, ..TableColumn::of(Events::time_ns) };
}

/// The name of each object's type.
fn type_names(trace: &Trace, name: PlSmallStr) -> PolarsResult<Column> {
    let names = TypeNames::load(trace).map_err(failed)?;
    let types = trace.values(Objects::type_id).map_err(failed)?;
    let texts = types.range(0..types.len()).map(|id| names.get(id));
    Ok(StringChunked::from_iter_values(name, texts).into_column())
}

/// A failure as polars has them.
pub fn failed(error: impl std::fmt::Display) -> PolarsError {
    PolarsError::ComputeError(error.to_string().into())
}
