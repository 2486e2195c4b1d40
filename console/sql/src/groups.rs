//! Groups as polars understands them.
//!
//! Polars computes a window over the rows of each group. So the groups become a subquery, and windows are computed over
//! its rows. It also loses the column of a join's second table if SELECT renames it, so such keys become positions.

use std::ops::ControlFlow;

use sqlparser::{
    ast::{
        Expr, Function, GroupByExpr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Value,
        Visit, VisitMut, Visitor, VisitorMut,
    },
    dialect::GenericDialect,
    parser::Parser,
};

use super::names::{column_name, is_calculated};
use super::shapes::{RefusalReason, contains, is_aggregate, is_grouped, is_window};

/// The name of the subquery.
const GROUPS: &str = "_groups";

/// Rewrites a query with windows over groups.
///
/// # Errors
/// If its groups cannot be determined.
pub fn over_groups(query: &mut Query) -> Result<(), RefusalReason> {
    let SetExpr::Select(select) = &mut *query.body else { return Ok(()) };
    let mut order = match query.order_by.as_mut().map(|order| &mut order.kind) {
        Some(OrderByKind::Expressions(by)) => Some(by),
        _ => None,
    };
    let has_window = contains(&select.projection, is_window)
        || contains(&select.qualify, is_window)
        || order.as_ref().is_some_and(|by| contains(&**by, is_window));
    if !has_window || !is_grouped(select) {
        return Ok(());
    }
    let mut columns = GroupedColumns { known: keys(select)?, nested: 0 };
    let _ = Visit::visit(&select.projection, &mut columns);
    let _ = Visit::visit(&select.qualify, &mut columns);
    let _ = order.as_ref().map(|by| Visit::visit(&**by, &mut columns));
    let groups = groups(select, &columns.known);
    let mut replacing = Replacing(&columns.known);
    select.projection = select
        .projection
        .iter()
        .map(|item| named(item, &mut replacing))
        .collect::<Result<_, _>>()?;
    let _ = VisitMut::visit(&mut select.qualify, &mut replacing);
    if let Some(by) = &mut order {
        let _ = VisitMut::visit(*by, &mut replacing);
    }
    select.selection = None;
    select.having = None;
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    let from = format!("({groups}) AS {GROUPS}");
    let from = Parser::new(&GenericDialect {}).try_with_sql(&from);
    let from = from.and_then(|mut parser| parser.parse_table_and_joins());
    select.from = vec![from.map_err(|error| error.to_string())?];
    Ok(())
}

/// Returns the columns that rows are grouped by, each as written in SELECT.
fn keys(select: &Select) -> Result<Vec<Expr>, RefusalReason> {
    let refused = || {
        "a window (OVER) over groups needs their columns in GROUP BY; select the groups in a subquery, and the \
                      window from it".to_owned()
    };
    let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else { return Err(refused()) };
    let of_item = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            Some(expr.clone())
        }
        _ => None,
    };
    let key = |key: &Expr| match key {
        Expr::Value(value) => {
            let Value::Number(number, _) = &value.value else { return Err(refused()) };
            let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let item = index.and_then(|index| select.projection.get(index));
            item.and_then(of_item).ok_or_else(refused)
        }
        Expr::Identifier(name) => {
            let item = select.projection.iter().find(|item| {
                matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value == name.value)
            });
            let Some(expr) = item.and_then(of_item) else { return Ok(key.clone()) };
            // The name may also be that of a column.
            if contains(&expr, |part| part == key) { Err(refused()) } else { Ok(expr) }
        }
        Expr::CompoundIdentifier(_) => Ok(key.clone()),
        key if is_calculated(key) && modifiers.is_empty() => Ok(key.clone()),
        _ => Err(refused()),
    };
    keys.iter().map(key).collect()
}

/// Returns position and alias of a table's column in SELECT.
fn renamed(select: &Select, column: &Expr) -> Option<(usize, Ident)> {
    let is_qualified = matches!(column, Expr::CompoundIdentifier(_));
    let mut items = select.projection.iter().enumerate().filter(|_| is_qualified);
    items.find_map(|(index, item)| match item {
        SelectItem::ExprWithAlias { expr, alias } if expr == column => {
            Some((index + 1, alias.clone()))
        }
        _ => None,
    })
}

/// Replaces `GROUP BY t.x` by the position of `t.x AS y` in SELECT. Polars would look for the column of the second
/// table of a join under a name that it has lost by then.
pub fn group_by_position(select: &mut Select) {
    let positions = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => {
            keys.iter().map(|key| renamed(select, key)).collect::<Vec<_>>()
        }
        GroupByExpr::All(_) => return,
    };
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else { return };
    for (key, position) in keys.iter_mut().zip(positions) {
        if let Some((position, _)) = position {
            *key = Expr::value(Value::Number(position.to_string(), false));
        }
    }
}

/// Replaces `t.x` in the ORDER BY of groups by the alias it has in SELECT, for the same reason.
pub fn order_by_alias(query: &mut Query) {
    let SetExpr::Select(select) = &*query.body else { return };
    let order = query.order_by.as_mut().map(|order| &mut order.kind);
    let Some(OrderByKind::Expressions(by)) = order.filter(|_| is_grouped(select)) else { return };
    for by in by {
        if let Some((_, alias)) = renamed(select, &by.expr) {
            by.expr = Expr::Identifier(alias);
        }
    }
}

/// Columns of groups: the grouping columns and the aggregates.
struct GroupedColumns {
    known: Vec<Expr>,
    nested: usize,
}

impl Visitor for GroupedColumns {
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
        if self.nested == 0 && is_aggregate(expr) && !self.known.contains(expr) {
            self.known.push(expr.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Returns the query of the groups.
fn groups(select: &Select, columns: &[Expr]) -> Select {
    let item = |(index, expr): (usize, &Expr)| SelectItem::ExprWithAlias {
        expr: expr.clone(),
        alias: alias(index),
    };
    Select {
        projection: columns.iter().enumerate().map(item).collect(),
        distinct: None,
        qualify: None,
        ..select.clone()
    }
}

fn alias(index: usize) -> Ident {
    Ident::new(format!("_group{index}"))
}

/// Replaces columns of groups by their names.
struct Replacing<'a>(&'a [Expr]);

impl VisitorMut for Replacing<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_over = matches!(expr, Expr::Function(Function { over: Some(_), .. }));
        if !is_over && let Some(index) = self.0.iter().position(|column| column == expr) {
            *expr = Expr::Identifier(alias(index));
        }
        ControlFlow::Continue(())
    }
}

/// Returns a column of the answer, under the name it has without a subquery.
fn named(item: &SelectItem, replacing: &mut Replacing<'_>) -> Result<SelectItem, RefusalReason> {
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(expr) => (expr, column_name(expr)),
        SelectItem::ExprWithAlias { expr, alias } => (expr, alias.clone()),
        _ => {
            return Err(
                "a window (OVER) over groups needs the names of columns in place of *".to_owned()
            );
        }
    };
    let mut expr = expr.clone();
    let _ = VisitMut::visit(&mut expr, replacing);
    Ok(SelectItem::ExprWithAlias { expr, alias })
}
