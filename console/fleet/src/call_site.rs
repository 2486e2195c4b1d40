//! Call sites: the stack, program and type that leaks in several traces have in common.

use std::sync::Arc;

use handlescope_session::settings::{IgnoreEntry, IgnoreList};
use polars::prelude::{DataFrame, Expr, IntoLazy, JoinType, LazyFrame, PolarsResult, col, lit};

use super::scan::{AnswerRow, collect};

/// What is acquired where. Sorts by its fields in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallSite {
    pub process: String,
    /// `handle`, `view` or the kind of allocations.
    pub kind: String,
    pub type_name: String,
    pub allocator: Option<String>,
    /// Identity of the create stack.
    pub stack: Option<String>,
    pub function: Option<String>,
    /// Frames, one per line.
    pub stack_text: Option<String>,
}

/// Columns that are equal in all rows of a call site.
pub const KEY: [&str; 5] = ["process", "kind", "type", "allocator", "stack"];

/// Fills the key columns of rows with the values that [`CallSite`] uses.
pub fn keyed(frame: LazyFrame) -> LazyFrame {
    frame.with_columns(["process", "kind", "type"].map(|name| col(name).fill_null(lit(""))))
}

/// Returns the rows of these call sites with the `id` of their site; drops rows of others.
pub fn identified(sites: &DataFrame, rows: DataFrame) -> PolarsResult<DataFrame> {
    let keys: Vec<Expr> = ["id"].iter().chain(&KEY).map(|name| col(*name)).collect();
    let joined = sites.clone().lazy().select(&keys).join_builder().with(rows.lazy());
    collect(joined.on(&keys[1..]).join_nulls(true).how(JoinType::Inner).finish())
}

impl CallSite {
    pub fn new(row: AnswerRow<'_>) -> Self {
        let text = |name| row.text(name).unwrap_or_default();
        Self {
            process: text("process"),
            kind: text("kind"),
            type_name: text("type"),
            allocator: row.text("allocator"),
            stack: row.text("stack"),
            function: row.text("function"),
            stack_text: row.text("stack_text"),
        }
    }

    /// Returns the matching entry, if this is a known leak.
    pub fn ignored_by(&self, list: &IgnoreList) -> Option<Arc<IgnoreEntry>> {
        let (function, stack) = (self.function.as_deref(), self.stack_text.as_deref());
        list.find(&self.process, &self.type_name, function, stack).cloned()
    }

    /// Whether it allocates rather than opening handles or views.
    pub fn is_of_allocations(&self) -> bool {
        !matches!(self.kind.as_str(), "handle" | "view")
    }
}
