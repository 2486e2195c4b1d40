//! The columns of views, gathered along row numbers from the rows that they show.

use handlescope_model::rules::{OPENING, is_never_freed, leak_class};
use handlescope_model::tables::{Events, ResourceEnd, Resources};
use handlescope_model::{EventKind, Table};
use polars::prelude::{Column, DataFrame, IdxCa, NewChunkedArray, PolarsResult, polars_bail};

use super::columns::TableColumn;
use super::functions::hex_of;
use super::paths::{Origin, Path};
use super::relations::View;
use super::tables::Tables;

/// Columns of a view by their names.
pub(super) fn frame(tables: &Tables, view: View, names: &[&str]) -> PolarsResult<DataFrame> {
    let rows = match view {
        View::Handles | View::Leaks => opening_events(tables, view)?,
        View::Allocations | View::ResourceLeaks => allocations(tables, view)?,
        View::ProviderValues => all_rows(tables.height(Table::EventValues)?),
    };
    let column = |name: &&str| -> PolarsResult<Column> {
        let Some(column) = view.columns().iter().find(|column| column.spec.name == *name) else {
            polars_bail!(ColumnNotFound: "{name}");
        };
        let follow = |path| follow(tables, &rows, path);
        let values = match column.origin {
            Origin::Value(path) => follow(path)?,
            Origin::Hex(path) => hex_of(&follow(path)?)?,
            Origin::Between(from, to) => (&follow(to)? - &follow(from)?)?,
        };
        Ok(values.with_name((*name).into()))
    };
    let columns: PolarsResult<Vec<Column>> = names.iter().map(column).collect();
    DataFrame::new(rows.len(), columns?)
}

/// The rows of the events that the view shows.
fn opening_events(tables: &Tables, view: View) -> PolarsResult<IdxCa> {
    let kinds = tables.column(TableColumn::of(Events::kind))?;
    let leaked = tables.column(TableColumn::of(Events::leaked))?;
    let at_exit = tables.column(TableColumn::of(Events::closed_at_exit))?;
    let flags = leaked.bool()?.iter().zip(at_exit.bool()?.iter());
    let events = (0..).zip(kinds.u32()?.into_no_null_iter()).zip(flags);
    let shown = events.filter(|&((_, code), (leaked, at_exit))| {
        let is_leak =
            |kind| leak_class(kind, leaked == Some(true), at_exit == Some(true)).is_some();
        match view {
            View::Leaks => EventKind::from_code(code).is_some_and(is_leak),
            _ => OPENING.contains_code(code),
        }
    });
    let rows: Vec<u32> = shown.map(|((row, _), _)| row).collect();
    Ok(IdxCa::from_vec("row".into(), rows))
}

/// The rows of the allocations that the view shows.
fn allocations(tables: &Tables, view: View) -> PolarsResult<IdxCa> {
    let ends = tables.column(TableColumn::of(Resources::end))?;
    let ends = (0..).zip(ends.u32()?.into_no_null_iter());
    let is_leak = |end: u32| ResourceEnd::from_code(end).is_some_and(is_never_freed);
    let shown = ends.filter(|(_, end)| view == View::Allocations || is_leak(*end));
    let rows: Vec<u32> = shown.map(|(row, _)| row).collect();
    Ok(IdxCa::from_vec("row".into(), rows))
}

fn all_rows(height: usize) -> IdxCa {
    IdxCa::from_vec("row".into(), (0..height as u32).collect())
}

/// The values at the end of a path: a column of the rows, or of the row it points to, and so on.
fn follow(tables: &Tables, shown: &IdxCa, Path(columns): Path) -> PolarsResult<Column> {
    let mut rows = shown.clone();
    let mut columns = columns.iter().peekable();
    while let Some(column) = columns.next() {
        let values = tables.column(*column)?.take(&rows)?;
        let Some(next) = columns.peek() else { return Ok(values) };
        rows = within(values.u32()?, tables.height(next.table)?);
    }
    polars_bail!(ComputeError: "a path without columns")
}

/// Row numbers, without those that a damaged file makes up.
fn within(rows: &IdxCa, height: usize) -> IdxCa {
    let known = rows.iter().map(|row| row.filter(|&row| (row as usize) < height));
    IdxCa::from_iter_options(rows.name().clone(), known)
}
