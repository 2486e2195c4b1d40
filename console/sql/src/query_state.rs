//! Whether a query being typed is complete.

use sqlparser::{
    ast::{GroupByExpr, SelectItem, SetExpr, Statement},
    dialect::GenericDialect,
    parser::{Parser, ParserError},
};

use super::{
    planner::parser_options,
    shapes::{contains, is_aggregate, is_column},
};

/// What a query still needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryState {
    Complete,
    /// More may follow.
    Open,
    /// Nothing that follows can make it right.
    Wrong,
}

/// Returns whether a query is complete: it has its last word, it names a table if it names a column, and it has groups
/// if it counts beside a column.
pub fn query_state(query: &str) -> QueryState {
    let query = query.trim_end();
    let parser = Parser::new(&GenericDialect {}).with_options(parser_options()).try_with_sql(query);
    match parser.and_then(|mut parser| parser.parse_statements()) {
        Ok(statements) => {
            let is_open = statements.is_empty()
                || statements.iter().any(lacks_clause)
                // The parser accepts a comma at the end of a list.
                || query.ends_with(',');
            if is_open { QueryState::Open } else { QueryState::Complete }
        }
        Err(ParserError::TokenizerError(reason)) if reason.starts_with("Unterminated") => {
            QueryState::Open
        }
        Err(ParserError::ParserError(reason)) if is_at_end(&reason, query) => QueryState::Open,
        Err(_) => QueryState::Wrong,
    }
}

/// Whether the parser stopped at the end of a query, or at its last word, for example at the first of `GROUP BY`.
fn is_at_end(reason: &str, query: &str) -> bool {
    let last = query.split_whitespace().next_back().unwrap_or_default();
    let found = reason.split(" at Line: ").next().and_then(|reason| reason.split("found: ").nth(1));
    found.is_some_and(|found| found == "EOF" || found == last)
}

fn lacks_clause(statement: &Statement) -> bool {
    match statement {
        Statement::Query(query) => body_lacks_clause(&query.body),
        _ => false,
    }
}

/// Whether the last SELECT has columns but no table, or counts beside a column without groups.
fn body_lacks_clause(body: &SetExpr) -> bool {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { right, .. } => return body_lacks_clause(right),
        SetExpr::Query(query) => return body_lacks_clause(&query.body),
        _ => return false,
    };
    let items = || select.projection.iter();
    let is_wildcard = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
    let counts = |item: &SelectItem| contains(item, is_aggregate);
    let has_column = |item: &SelectItem| contains(item, is_column);
    let lacks_table = select.from.is_empty()
        && items().any(|item| is_wildcard(item) || counts(item) || has_column(item));
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    let lacks_groups = !is_grouped
        && items().any(counts)
        && items().any(|item| !counts(item) && (is_wildcard(item) || has_column(item)));
    lacks_table || lacks_groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_complete_with_its_last_word_and_its_table() {
        for (query, state) in [
            ("SELECT 1", QueryState::Complete),
            ("SELECT type, count(*) FROM leaks GROUP BY type", QueryState::Complete),
            ("SELECT type FROM leaks;", QueryState::Complete),
            ("WITH t AS (SELECT 1 AS a) SELECT a FROM t -- note", QueryState::Complete),
            ("FROM leaks", QueryState::Complete),
            ("DESCRIBE leaks", QueryState::Complete),
            ("SELECT", QueryState::Open),
            ("SELECT type", QueryState::Open),
            ("SELECT count(*)", QueryState::Open),
            ("SELECT *", QueryState::Open),
            ("SELECT type,", QueryState::Open),
            ("SELECT type, count(*) FROM leaks", QueryState::Open),
            ("SELECT max(pid) - min(pid) FROM leaks", QueryState::Complete),
            ("SELECT type, count(*) OVER () FROM leaks", QueryState::Complete),
            ("SELECT type, count(*) FROM leaks GROUP BY ALL", QueryState::Complete),
            ("SELECT type FROM leaks GROUP BY type,", QueryState::Open),
            ("SELECT type FROM leaks WHERE", QueryState::Open),
            ("SELECT type FROM leaks WHERE name = 'a", QueryState::Open),
            ("SELECT type FROM leaks GROUP", QueryState::Open),
            ("SELECT 1 UNION SELECT pid", QueryState::Open),
            ("WITH t AS (SELECT 1", QueryState::Open),
            ("-- why?", QueryState::Open),
            ("SELECT type FROM leaks WHERE = 1", QueryState::Wrong),
            ("SELECT ) FROM leaks", QueryState::Wrong),
        ] {
            assert_eq!(query_state(query), state, "{query}");
        }
    }
}
