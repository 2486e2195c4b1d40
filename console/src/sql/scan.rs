//! Relations as polars sees them: a schema, and columns when the plan wants them.

use std::{any::Any, sync::Arc};

use polars::prelude::{
    AnonymousScan, AnonymousScanArgs, DataFrame, Field, LazyFrame, PolarsResult, ScanArgsAnonymous,
    Schema,
};

use super::{relations::Relation, tables::Tables};

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
        let frame = self.tables.frame(self.relation, args.with_columns.as_deref())?;
        Ok(args.n_rows.map_or_else(|| frame.clone(), |rows| frame.head(Some(rows))))
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }
}
