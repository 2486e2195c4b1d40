//! Presents tables to polars: a schema, and columns when the plan wants them.

use std::{any::Any, sync::Arc};

use handlescope_model::Table;
use polars::prelude::{
    AnonymousScan, AnonymousScanArgs, Column, DataFrame, Field, LazyFrame, PolarsResult,
    ScanArgsAnonymous, Schema, polars_bail,
};

use super::columns::{TableColumn, specs};
use super::tables::QueriedTables;

/// Creates a frame that reads columns of a table when it is collected, and only those it needs.
pub fn scan(tables: Arc<QueriedTables>, table: Table) -> PolarsResult<LazyFrame> {
    let fields = specs(table).map(|spec| Field::new(spec.name.into(), spec.dtype.dtype()));
    let schema = Some(Arc::new(Schema::from_iter(fields)));
    let args = ScanArgsAnonymous { schema, name: table.name(), ..ScanArgsAnonymous::default() };
    LazyFrame::anonymous_scan(Arc::new(Scan { tables, table }), args)
}

struct Scan {
    tables: Arc<QueriedTables>,
    table: Table,
}

impl AnonymousScan for Scan {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn scan(&self, args: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let frame = frame(&self.tables, self.table, args.with_columns.as_deref())?;
        Ok(args.n_rows.map_or_else(|| frame.clone(), |rows| frame.head(Some(rows))))
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }
}

/// Returns columns of a table by name; all of them if there are no names.
fn frame(
    tables: &QueriedTables,
    table: Table,
    names: Option<&[impl AsRef<str>]>,
) -> PolarsResult<DataFrame> {
    tables.check_stop()?;
    let names: Vec<&str> = match names {
        Some(names) => names.iter().map(AsRef::as_ref).collect(),
        None => specs(table).map(|spec| spec.name).collect(),
    };
    let column = |name: &str| match TableColumn::named(table, name) {
        Some(column) => tables.column(column),
        None => polars_bail!(ColumnNotFound: "{name}"),
    };
    let columns: PolarsResult<Vec<Column>> = names.into_iter().map(column).collect();
    DataFrame::new(tables.height(table)?, columns?)
}
