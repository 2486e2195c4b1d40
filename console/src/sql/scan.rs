//! Relations as polars sees them: a schema, and columns when the plan wants them.

use std::{any::Any, sync::Arc};

use polars::prelude::{
    AnonymousScan, AnonymousScanArgs, Column, DataFrame, Field, LazyFrame, PolarsResult,
    ScanArgsAnonymous, Schema, polars_bail,
};

use super::columns::TableColumn;
use super::relations::Relation;
use super::tables::Tables;
use super::views;

/// A frame that reads columns of a relation when it is collected, and only those that it needs.
pub(super) fn scan(tables: Arc<Tables>, relation: Relation) -> PolarsResult<LazyFrame> {
    let fields = relation.columns();
    let fields = fields.iter().map(|spec| Field::new(spec.name.into(), spec.dtype.dtype()));
    let schema = Some(Arc::new(Schema::from_iter(fields)));
    let args = ScanArgsAnonymous { schema, name: relation.name(), ..ScanArgsAnonymous::default() };
    LazyFrame::anonymous_scan(Arc::new(Scan { tables, relation }), args)
}

struct Scan {
    tables: Arc<Tables>,
    relation: Relation,
}

impl AnonymousScan for Scan {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn scan(&self, args: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let frame = frame(&self.tables, self.relation, args.with_columns.as_deref())?;
        Ok(args.n_rows.map_or_else(|| frame.clone(), |rows| frame.head(Some(rows))))
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }
}

/// Columns of a relation by their names; all without names.
fn frame(
    tables: &Tables,
    relation: Relation,
    names: Option<&[impl AsRef<str>]>,
) -> PolarsResult<DataFrame> {
    tables.check_stop()?;
    let names: Vec<&str> = match names {
        Some(names) => names.iter().map(AsRef::as_ref).collect(),
        None => relation.columns().iter().map(|spec| spec.name).collect(),
    };
    let table = match relation {
        Relation::Table(table) => table,
        Relation::View(view) => return views::frame(tables, view, &names),
    };
    let column = |name: &str| match TableColumn::named(table, name) {
        Some(column) => tables.column(column),
        None => polars_bail!(ColumnNotFound: "{name}"),
    };
    let columns: PolarsResult<Vec<Column>> = names.into_iter().map(column).collect();
    DataFrame::new(tables.height(table)?, columns?)
}
