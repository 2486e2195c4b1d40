//! The columns of views, gathered along row numbers from the events that open something.

use handlescope_model::{Table, rules::OPENING};
use polars::prelude::{
    Column, DataFrame, IdxCa, IntoColumn, NewChunkedArray, PolarsError, PolarsResult,
    StringChunked, polars_bail,
};

use super::{
    relations::{OPENED, Origin, View},
    tables::{Tables, spec, target},
};

/// Columns of a view by their names.
pub(super) fn frame(tables: &Tables, view: View, names: &[&str]) -> PolarsResult<DataFrame> {
    let rows = opening_events(tables, view)?;
    let column = |name: &&str| -> PolarsResult<Column> {
        let Some(column) = OPENED.iter().find(|column| column.spec.name == *name) else {
            polars_bail!(ColumnNotFound: "{name}");
        };
        let follow = |path| follow(tables, &rows, path);
        let values = match column.origin {
            Origin::Path(path) => follow(path)?,
            Origin::Hex(path) => hex(&follow(path)?)?,
            Origin::Between(from, to) => (&follow(to)? - &follow(from)?)?,
        };
        Ok(values.with_name((*name).into()))
    };
    let columns: PolarsResult<Vec<Column>> = names.iter().map(column).collect();
    DataFrame::new(rows.len(), columns?)
}

/// Numbers as text like `0xC0`.
pub(super) fn hex(numbers: &Column) -> PolarsResult<Column> {
    let numbers = numbers.cast(&polars::prelude::DataType::UInt64)?;
    let texts = numbers.u64()?.iter().map(|number| number.map(|number| format!("0x{number:X}")));
    Ok(StringChunked::from_iter_options(numbers.name().clone(), texts).into_column())
}

/// The rows of the events that the view shows.
fn opening_events(tables: &Tables, view: View) -> PolarsResult<IdxCa> {
    let kinds = tables.column(Table::Events, "kind")?;
    let leaked = tables.column(Table::Events, "leaked")?;
    let is_shown = |leaked: bool| view == View::Handles || leaked;
    let events = (0..).zip(kinds.u32()?.into_no_null_iter()).zip(leaked.bool()?.iter());
    let shown = events.filter(|&((_, kind), leaked)| {
        OPENING.contains_code(kind) && is_shown(leaked == Some(true))
    });
    let rows: Vec<u32> = shown.map(|((row, _), _)| row).collect();
    Ok(IdxCa::from_vec("row".into(), rows))
}

/// The values at the end of a path: a column of the events, or of the row it points to, and so on.
fn follow(tables: &Tables, events: &IdxCa, path: &[&str]) -> PolarsResult<Column> {
    let (mut table, mut rows) = (Table::Events, events.clone());
    let mut path = path.iter().peekable();
    while let Some(name) = path.next() {
        let column = tables.column(table, name)?.take(&rows)?;
        if path.peek().is_none() {
            return Ok(column);
        }
        let Some(next) = spec(table, name).and_then(target) else {
            polars_bail!(ComputeError: "{name} of {} points to no row", table.name());
        };
        table = next;
        rows = within(column.u32()?, tables.height(table)?);
    }
    Err(PolarsError::ComputeError("a path without columns".into()))
}

/// Row numbers, without those that a damaged file makes up.
fn within(rows: &IdxCa, height: usize) -> IdxCa {
    let known = rows.iter().map(|row| row.filter(|&row| (row as usize) < height));
    IdxCa::from_iter_options(rows.name().clone(), known)
}
