//! Names for unnamed columns of a query, and the names of `WITH`.

use std::collections::HashSet;
use std::ops::ControlFlow;

use polars::sql::extract_table_identifiers;
use sqlparser::{
    ast::{
        Expr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, VisitMut,
        VisitorMut, visit_expressions_mut,
    },
    dialect::GenericDialect,
    parser::Parser,
};

/// Polars' name for `count(*)`.
pub const POLARS_COUNT: &str = "len";
const COUNT: &str = "count(*)";

/// Names each calculated column of a query after itself, like `min(handle)`, and sorts by that name. Columns with equal
/// names get distinct ones, like `pid, pid_1`. `None` if there is nothing to name.
///
/// Polars names a call after its column, so `min(handle), max(handle)` would be two columns of one name. It would also
/// compute `ORDER BY max(handle)` again, from the rows of the answer.
pub fn with_names(query: &str) -> Option<String> {
    let mut statements = Parser::parse_sql(&GenericDialect {}, query).ok()?;
    let mut names = ColumnNaming::default();
    let _ = statements.visit(&mut names);
    let statements: Vec<String> = statements.iter().map(Statement::to_string).collect();
    names.has_new.then(|| statements.join("; "))
}

/// Returns the names that `WITH` gives to queries, except those that themselves select from another relation of that
/// name. Polars would use the other relation everywhere.
pub fn names_of_with(query: &str) -> Vec<String> {
    let statements = Parser::parse_sql(&GenericDialect {}, query).unwrap_or_default();
    statements
        .iter()
        .filter_map(|statement| match statement {
            Statement::Query(query) => query.with.as_ref(),
            _ => None,
        })
        .flat_map(|with| &with.cte_tables)
        .filter_map(|table| {
            let name = &table.alias.name.value;
            let used = extract_table_identifiers(&table.query.to_string(), false, true).ok()?;
            used.iter().all(|used| used != name).then(|| name.clone())
        })
        .collect()
}

#[derive(Default)]
struct ColumnNaming {
    has_new: bool,
}

impl VisitorMut for ColumnNaming {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let mut taken: HashSet<String> = select
            .projection
            .iter()
            .filter_map(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
                _ => None,
            })
            .collect();
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            let name = column_name(expr);
            let alias = unused(&name, &taken);
            taken.insert(alias.value.clone());
            if is_calculated(expr) || alias != name {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                self.has_new = true;
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let SetExpr::Select(select) = &*query.body else { return ControlFlow::Continue(()) };
        let order = query.order_by.as_mut().map(|order| &mut order.kind);
        if let Some(OrderByKind::Expressions(by)) = order {
            let _ = visit_expressions_mut(by, |expr| {
                if let Some(name) = alias_of(expr, &select.projection) {
                    *expr = Expr::Identifier(name);
                    self.has_new = true;
                }
                ControlFlow::<()>::Continue(())
            });
        }
        ControlFlow::Continue(())
    }
}

/// Returns the name, with a number appended if it is taken.
fn unused(name: &Ident, taken: &HashSet<String>) -> Ident {
    let start = if name.value == POLARS_COUNT { "count" } else { &name.value };
    let numbered = (1..).map(|number| format!("{start}_{number}"));
    let value = std::iter::once(name.value.clone())
        .chain(numbered)
        .find(|name| !taken.contains(name))
        .unwrap_or_default();
    Ident { value, ..name.clone() }
}

/// Returns the name of a calculated column among those of a query.
fn alias_of(column: &Expr, projection: &[SelectItem]) -> Option<Ident> {
    let text = column.to_string();
    projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if is_calculated(expr) => {
            expr.to_string().eq_ignore_ascii_case(&text).then(|| alias.clone())
        }
        _ => None,
    })
}

/// Returns the name of a column that was not given one.
pub fn column_name(expr: &Expr) -> Ident {
    match expr {
        Expr::Identifier(name) => name.clone(),
        Expr::CompoundIdentifier(names) if !names.is_empty() => names[names.len() - 1].clone(),
        _ => {
            let text = expr.to_string();
            let is_count = text.eq_ignore_ascii_case(COUNT);
            Ident::with_quote('"', if is_count { POLARS_COUNT } else { &text })
        }
    }
}

/// Whether a column is more than a column of a table.
pub fn is_calculated(expr: &Expr) -> bool {
    !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calculated_columns_without_a_name_are_named_after_themselves() {
        let query = "SELECT kind, min(handle), max(handle) AS last FROM events GROUP BY kind";
        let named = "SELECT kind, min(handle) AS \"min(handle)\", max(handle) AS last FROM events GROUP BY kind";
        assert_eq!(with_names(query).as_deref(), Some(named));
        assert_eq!(with_names("SELECT kind, tid FROM events ORDER BY kind"), None);
        assert_eq!(with_names("SELECT ("), None);
    }

    #[test]
    fn columns_of_one_name_get_names_of_their_own() {
        for (query, named) in [
            ("SELECT 1, 1", r#"SELECT 1 AS "1", 1 AS "1_1""#),
            ("SELECT count(*), count(*)", r#"SELECT count(*) AS "len", count(*) AS "count_1""#),
            (
                "SELECT a.pid, b.pid, tid AS pid_1 FROM a JOIN b ON a.k = b.k",
                "SELECT a.pid, b.pid AS pid_2, tid AS pid_1 FROM a JOIN b ON a.k = b.k",
            ),
            (r#"SELECT "a b" || 'x' FROM t"#, r#"SELECT "a b" || 'x' AS """a b"" || 'x'" FROM t"#),
        ] {
            assert_eq!(with_names(query).as_deref(), Some(named));
        }
    }

    #[test]
    fn calculated_columns_are_sorted_by_their_names() {
        let query =
            "SELECT count(*), max(tid) AS m FROM events ORDER BY COUNT(*), max(tid) - 1 DESC";
        let named =
            "SELECT count(*) AS \"len\", max(tid) AS m FROM events ORDER BY \"len\", m - 1 DESC";
        assert_eq!(with_names(query).as_deref(), Some(named));
    }
}
