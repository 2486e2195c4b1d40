//! Classifies parts of a statement: windows, aggregates, groups.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Function, GroupByExpr, Query, Select, Visit, Visitor};

/// Functions of many rows.
const AGGREGATES: [&str; 32] = [
    "array_agg",
    "avg",
    "corr",
    "count",
    "covar",
    "covar_pop",
    "covar_samp",
    "first",
    "group_concat",
    "last",
    "listagg",
    "max",
    "median",
    "min",
    "quantile_cont",
    "quantile_disc",
    "stddev",
    "stddev_samp",
    "stdev",
    "stdev_samp",
    "string_agg",
    "sum",
    "total",
    "var",
    "var_samp",
    "variance",
    "bit_and_agg",
    "bool_and",
    "bool_or",
    "mode",
    "any_value",
    "product",
];

/// Why a statement has no answer, in one sentence.
pub type RefusalReason = String;

/// Whether a part of a query contains an expression outside of its subqueries.
pub fn contains(part: &impl Visit, is_searched: impl Fn(&Expr) -> bool) -> bool {
    struct ExprSearch<F> {
        nested: usize,
        is_searched: F,
    }
    impl<F: Fn(&Expr) -> bool> Visitor for ExprSearch<F> {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.nested += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.nested -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if self.nested == 0 && (self.is_searched)(expr) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
    }
    part.visit(&mut ExprSearch { nested: 0, is_searched }).is_break()
}

pub fn is_window(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(Function { over: Some(_), .. }))
}

/// Whether an expression is an aggregate without a window.
pub fn is_aggregate(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if function.over.is_none() && is_of_many_rows(function))
}

pub fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

pub fn lower_name(function: &Function) -> String {
    function.name.to_string().to_lowercase()
}

pub fn is_of_many_rows(function: &Function) -> bool {
    AGGREGATES.contains(&lower_name(function).as_str())
}

/// Whether the rows of a query are groups.
pub fn is_grouped(select: &Select) -> bool {
    let has_keys = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
    };
    has_keys || contains(&select.projection, is_aggregate) || contains(&select.having, is_aggregate)
}
