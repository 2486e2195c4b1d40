//! The tables of the chosen traces as if they were those of one: rows count on from file to file, and
//! what points to rows is moved with them.

use std::sync::Arc;

use handlescope_model::{ColumnSpec, ColumnType, EventKind, Table, Trace};
use polars::prelude::{
    Column, DataFrame, IntoColumn, NewChunkedArray, PolarsError, PolarsResult, StringChunked,
    UInt32Chunked, polars_bail,
};

use super::{relations::Relation, stop::Stop, views};
use crate::query::TypeNames;

/// A trace that is asked.
pub(super) struct Part {
    /// Its number in the session.
    pub(super) file: u32,
    pub(super) trace: Arc<Trace>,
}

/// The tables of all parts.
pub(super) struct Tables {
    pub(super) parts: Vec<Part>,
    /// `depth` and `text` of the stacks of all parts, where the query names the stacks.
    pub(super) stacks: Option<DataFrame>,
    pub(super) stop: Stop,
}

impl Tables {
    /// Columns of a relation by their names; all without names.
    pub(super) fn frame(
        &self,
        relation: Relation,
        names: Option<&[impl AsRef<str>]>,
    ) -> PolarsResult<DataFrame> {
        self.stop.check()?;
        let all;
        let names: Vec<&str> = match names {
            Some(names) => names.iter().map(AsRef::as_ref).collect(),
            None => {
                all = relation.columns();
                all.iter().map(|spec| spec.name).collect()
            }
        };
        match relation {
            Relation::Table(table) => {
                let columns: PolarsResult<Vec<Column>> =
                    names.into_iter().map(|name| self.column(table, name)).collect();
                DataFrame::new(self.height(table)?, columns?)
            }
            Relation::View(view) => views::frame(self, view, &names),
        }
    }

    /// Number of rows of a table.
    pub(super) fn height(&self, table: Table) -> PolarsResult<usize> {
        self.parts.iter().try_fold(0, |sum, part| Ok(sum + height(part, table)?))
    }

    /// A column of a table, its own or an added one.
    pub(super) fn column(&self, table: Table, name: &str) -> PolarsResult<Column> {
        self.stop.check()?;
        if let Some(stacks) = self.stacks.as_ref().filter(|_| table == Table::Stacks)
            && let Ok(column) = stacks.column(name)
        {
            return Ok(column.clone());
        }
        let mut whole: Option<Column> = None;
        for (at, part) in self.parts.iter().enumerate() {
            let column = self.part_column(at, part, table, name)?;
            match &mut whole {
                None => whole = Some(column),
                Some(whole) => {
                    whole.append_owned(column)?;
                }
            }
        }
        match whole {
            Some(column) => Ok(column.rechunk()),
            None => polars_bail!(ColumnNotFound: "{name}"),
        }
    }

    fn part_column(
        &self,
        at: usize,
        part: &Part,
        table: Table,
        name: &str,
    ) -> PolarsResult<Column> {
        match (table, name) {
            (_, "file_index") => {
                let file = polars::prelude::Scalar::from(part.file);
                Ok(Column::new_scalar(name.into(), file, height(part, table)?))
            }
            (_, "row") => self.rows(at, part, table),
            (Table::Objects, "id") => {
                let rows = (1..).take(height(part, table)?);
                Ok(UInt32Chunked::from_iter_values(name.into(), rows).into_column())
            }
            (Table::Objects, "type") => type_names(&part.trace, name),
            (Table::Events, "kind_name") => kind_names(&part.trace, name),
            _ => {
                let column = part.trace.column(table, name).map_err(failed)?;
                match spec(table, name).and_then(|spec| target(spec).map(|target| (spec, target))) {
                    Some((spec, target)) => self.moved(column, spec, at, target),
                    None => Ok(column),
                }
            }
        }
    }

    fn rows(&self, at: usize, part: &Part, table: Table) -> PolarsResult<Column> {
        let first = self.first_row(at, table)?;
        let count = u32::try_from(height(part, table)?).map_err(too_many)?;
        let end = first.checked_add(count).ok_or_else(|| too_many(()))?;
        Ok(UInt32Chunked::from_iter_values("row".into(), first..end).into_column())
    }

    /// Row numbers of a part as row numbers of all.
    fn moved(
        &self,
        column: Column,
        spec: &ColumnSpec,
        at: usize,
        target: Table,
    ) -> PolarsResult<Column> {
        let first = self.first_row(at, target)?;
        if first == 0 {
            return Ok(column);
        }
        if spec.dtype == ColumnType::U32List {
            let moved = |rows: polars::prelude::Series| &rows + first;
            let lists = column.list()?.apply_to_inner(&|rows| Ok(moved(rows)))?;
            return Ok(lists.into_column());
        }
        Ok((column.u32()?.clone() + first).into_column())
    }

    /// The row of all that the first row of a part is.
    fn first_row(&self, at: usize, table: Table) -> PolarsResult<u32> {
        let before = self.parts.iter().take(at);
        let rows = before.map(|part| height(part, table)).sum::<PolarsResult<usize>>()?;
        u32::try_from(rows).map_err(too_many)
    }
}

/// The table whose rows a column counts.
pub(super) fn target(spec: &ColumnSpec) -> Option<Table> {
    let unit = spec.unit.strip_prefix("row of ").or_else(|| spec.unit.strip_prefix("rows of "));
    unit.and_then(Table::named)
}

/// The own column of a table.
pub(super) fn spec(table: Table, name: &str) -> Option<&'static ColumnSpec> {
    table.columns().iter().find(|spec| spec.name == name)
}

fn height(part: &Part, table: Table) -> PolarsResult<usize> {
    part.trace.height(table).map_err(failed)
}

/// The name of each object's type.
fn type_names(trace: &Trace, name: &str) -> PolarsResult<Column> {
    let names = TypeNames::load(trace).map_err(failed)?;
    let types = trace.column(Table::Objects, "type_id").map_err(failed)?;
    let texts = types.u32()?.into_no_null_iter().map(|id| names.get(id));
    Ok(StringChunked::from_iter_values(name.into(), texts).into_column())
}

/// The name of each event's kind; null for one that this program does not know.
fn kind_names(trace: &Trace, name: &str) -> PolarsResult<Column> {
    let kinds = trace.column(Table::Events, "kind").map_err(failed)?;
    let shown = |code| EventKind::from_code(code).map(EventKind::name);
    let texts = kinds.u32()?.into_no_null_iter().map(shown);
    Ok(StringChunked::from_iter_options(name.into(), texts).into_column())
}

fn failed(error: impl std::fmt::Display) -> PolarsError {
    PolarsError::ComputeError(error.to_string().into())
}

fn too_many<E>(_: E) -> PolarsError {
    PolarsError::ComputeError("too many rows in all files together; choose some with -fd".into())
}
