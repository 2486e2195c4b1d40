//! Plans subqueries first and replaces them by tables, because polars would not know our functions in them.

use std::ops::ControlFlow;

use polars::{
    prelude::{PolarsError, PolarsResult, polars_err},
    sql::SQLContext,
};
use sqlparser::{
    ast::{
        Expr, Query, SetExpr, Statement, TableFactor, Visit, VisitMut, Visitor, VisitorMut, With,
    },
    dialect::GenericDialect,
    parser::Parser,
};

/// Plans the subqueries of a statement that calls our functions, and replaces them by the names of their tables.
///
/// # Errors
/// If one of them cannot be planned.
pub fn plan_nested(context: &mut SQLContext, statement: &mut Statement) -> PolarsResult<()> {
    let has_functions = Visit::visit(&*statement, &mut FunctionCalls(context)).is_break();
    match statement {
        Statement::Query(query) if has_functions => {
            NestedPlanner { context, scope: None }.plan(query)
        }
        _ => Ok(()),
    }
}

/// Finds a call of one of our functions.
struct FunctionCalls<'c>(&'c SQLContext);

impl Visitor for FunctionCalls<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function)
                if self.0.registry().contains(&function.name.to_string().to_lowercase()) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

struct NestedPlanner<'c> {
    context: &'c mut SQLContext,
    /// The queries named by WITH around this one; each is a table.
    scope: Option<With>,
}

impl NestedPlanner<'_> {
    /// Plans the subqueries of a query.
    fn plan(&mut self, query: &mut Query) -> PolarsResult<()> {
        let around = self.scope.clone();
        let planned = self.plan_parts(query);
        self.scope = around;
        planned
    }

    fn plan_parts(&mut self, query: &mut Query) -> PolarsResult<()> {
        if let Some(with) = query.with.as_mut().filter(|with| !with.recursive) {
            let mut around = self.scope.clone().unwrap_or_else(|| With {
                with_token: with.with_token.clone(),
                recursive: false,
                cte_tables: Vec::new(),
            });
            for cte in &mut with.cte_tables {
                *cte.query = self.table_query(&mut cte.query)?;
                around.cte_tables.push(cte.clone());
                self.scope = Some(around.clone());
            }
        }
        self.plan_operands(&mut query.body, true)?;
        match VisitMut::visit(&mut *query.body, self) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// Plans the sides of UNION and the like.
    fn plan_operands(&mut self, body: &mut SetExpr, is_whole: bool) -> PolarsResult<()> {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.plan_operands(left, false)?;
                self.plan_operands(right, false)
            }
            SetExpr::Select(_) | SetExpr::Query(_) if !is_whole => {
                let mut query = parsed(&body.to_string())?;
                *body = *self.table_query(&mut query)?.body;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Plans a query, and returns one that takes its rows from a table.
    fn table_query(&mut self, query: &mut Query) -> PolarsResult<Query> {
        parsed(&format!("SELECT * FROM {}", self.table(query)?))
    }

    /// Plans a query, and returns the name of the resulting table.
    fn table(&mut self, query: &mut Query) -> PolarsResult<String> {
        self.plan(query)?;
        let mut whole = query.clone();
        if let Some(scope) = &self.scope {
            let tables = whole.with.take().map(|with| with.cte_tables).unwrap_or_default();
            let mut with = scope.clone();
            with.cte_tables.extend(tables);
            whole.with = Some(with);
        }
        let plan = self.context.execute(&whole.to_string())?;
        let known = self.context.get_tables();
        let name = (known.len()..)
            .map(|number| format!("_query{number}"))
            .find(|name| !known.contains(name))
            .unwrap_or_default();
        self.context.register(&name, plan);
        Ok(name)
    }
}

impl VisitorMut for NestedPlanner<'_> {
    type Break = PolarsError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<PolarsError> {
        let TableFactor::Derived { lateral: false, subquery, alias, sample: None } = factor else {
            return ControlFlow::Continue(());
        };
        if matches!(*subquery.body, SetExpr::Values(_)) {
            return ControlFlow::Continue(());
        }
        let alias = alias.take();
        let planned = self.table(subquery).and_then(|name| {
            let table = Parser::new(&GenericDialect {}).try_with_sql(&name);
            let table = table.and_then(|mut parser| parser.parse_table_factor());
            table.map_err(|error| polars_err!(SQLInterface: "{error}"))
        });
        match planned {
            Ok(mut table) => {
                if let TableFactor::Table { alias: named, .. } = &mut table {
                    *named = alias;
                }
                *factor = table;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<PolarsError> {
        if let Expr::InSubquery { subquery, .. } = expr {
            // A subquery that names columns of the query around it cannot be planned on its own.
            let mut alone = subquery.clone();
            if let Ok(planned) = self.table_query(&mut alone) {
                **subquery = planned;
            }
        }
        ControlFlow::Continue(())
    }
}

fn parsed(text: &str) -> PolarsResult<Query> {
    let parser = Parser::new(&GenericDialect {}).try_with_sql(text);
    let query = parser.and_then(|mut parser| parser.parse_query());
    query.map(|query| *query).map_err(|error| polars_err!(SQLInterface: "{error}"))
}
