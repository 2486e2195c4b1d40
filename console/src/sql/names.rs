//! Names for columns of an answer that have none.

use sqlparser::{
    ast::{Expr, Ident, Query, SelectItem, SetExpr, Statement},
    dialect::GenericDialect,
    parser::Parser,
};

/// What has another name already.
const COUNT: &str = "count(*)";

/// The query with the call of each function named after itself, as in `min(handle)`; `None` when it has none. Polars
/// names a call after its column, so that `min(handle), max(handle)` are two columns of one name.
pub(super) fn with_names(query: &str) -> Option<String> {
    let mut statements = Parser::parse_sql(&GenericDialect {}, query).ok()?;
    let mut is_named = false;
    for statement in &mut statements {
        if let Statement::Query(query) = statement {
            name_calls(query, &mut is_named);
        }
    }
    let statements: Vec<String> = statements.iter().map(Statement::to_string).collect();
    is_named.then(|| statements.join("; "))
}

fn name_calls(query: &mut Query, is_named: &mut bool) {
    let parts = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
    parts.for_each(|part| name_calls(&mut part.query, is_named));
    let SetExpr::Select(select) = &mut *query.body else { return };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(call @ Expr::Function(_)) = item
            && !call.to_string().eq_ignore_ascii_case(COUNT)
        {
            let (expr, alias) = (call.clone(), Ident::with_quote('"', call.to_string()));
            *item = SelectItem::ExprWithAlias { expr, alias };
            *is_named = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_a_name_are_named_after_themselves() {
        let query = "SELECT kind, min(handle), max(handle) AS last FROM events GROUP BY kind";
        let named = "SELECT kind, min(handle) AS \"min(handle)\", max(handle) AS last FROM events GROUP BY kind";
        assert_eq!(with_names(query).as_deref(), Some(named));
        assert_eq!(with_names("SELECT kind, kind FROM events"), None);
        assert_eq!(with_names("SELECT ("), None);
    }
}
