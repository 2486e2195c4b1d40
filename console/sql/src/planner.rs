//! The context in which polars plans queries and views: the tables by name, our functions, and enough stack.

use std::{
    io,
    ops::ControlFlow,
    sync::Arc,
    thread::{Builder, JoinHandle},
};

use handlescope_model::{Table, guard::quietly};
use polars::{
    prelude::{Column, DataFrame, IntoLazy as _, LazyFrame, PolarsResult, polars_bail},
    sql::SQLContext,
};
use sqlparser::{
    ast::{
        BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator,
        Value, Visit as _, Visitor,
    },
    dialect::GenericDialect,
    parser::{Parser, ParserOptions},
};

use super::{
    dialect::{ONE_ROW, translate},
    functions::Functions,
    nested::plan_nested,
    relations::table_name,
    scan::scan,
    tables::QueriedTables,
};

/// Stack size of a query. Only the part used takes memory. The planner recurses into each operator of a chain.
const STACK_BYTES: usize = 256 << 20;

/// Maximum length of a query. The planner needs time and memory quadratic in the length of a chain of operators:
/// gigabytes for ten thousand.
pub const MAX_BYTES: usize = 8 << 10;

/// Maximum number of texts a query may concatenate. Polars' threads recurse into each `||`, and have less stack.
const MAX_JOINED: usize = 500;

/// Functions that make texts of a given length.
const PADDING: [&str; 2] = ["lpad", "rpad"];

/// Longest text they may make, because polars makes it letter by letter and cannot be stopped.
const MAX_PADDED: f64 = 1e6;

/// Returns why a query would use up memory or stack before it is executed; `None` if it would not.
pub fn too_long(query: &str) -> Option<String> {
    let (size, joined) = (query.len(), query.matches("||").count());
    match () {
        () if size > MAX_BYTES => {
            Some(format!("the query has {size} bytes, more than {MAX_BYTES}"))
        }
        () if joined > MAX_JOINED => {
            Some(format!("the query has {joined} ||, more than {MAX_JOINED}"))
        }
        () => None,
    }
}

/// Creates a context with the tables, and without views.
pub fn context(tables: &Arc<QueriedTables>) -> PolarsResult<SQLContext> {
    let functions = Functions::new(Some(Arc::clone(tables)));
    let context = SQLContext::new().with_function_registry(Arc::new(functions));
    for table in Table::queried() {
        context.register(table_name(table), scan(Arc::clone(tables), table)?);
    }
    Ok(context)
}

/// The options with which polars parses a query.
pub fn parser_options() -> ParserOptions {
    ParserOptions { trailing_commas: true, ..ParserOptions::default() }
}

/// Plans a query in the SQL that [`translate`] understands.
pub fn execute(context: &mut SQLContext, query: &str) -> PolarsResult<LazyFrame> {
    let parser = Parser::new(&GenericDialect {}).with_options(parser_options()).try_with_sql(query);
    // Polars reports what is wrong if a text is not a query, or more than one.
    let Ok(statements) = parser.and_then(|mut parser| parser.parse_statements()) else {
        return context.execute(query);
    };
    let [statement] = statements.as_slice() else { return context.execute(query) };
    if let ControlFlow::Break(reason) = statement.visit(&mut LongTexts) {
        polars_bail!(SQLInterface: "{reason}");
    }
    let mut translated = statement.clone();
    if let Err(reason) = translate(&mut translated) {
        polars_bail!(SQLInterface: "{reason}");
    }
    if translated.to_string().contains(ONE_ROW) {
        let row = DataFrame::new_infer_height(vec![Column::new("_".into(), [0])])?;
        context.register(ONE_ROW, row.lazy());
    }
    plan_nested(context, &mut translated)?;
    if translated == *statement {
        context.execute(query)
    } else {
        context.execute(&translated.to_string())
    }
}

/// Finds the first function that would fill memory with a single text.
struct LongTexts;

impl Visitor for LongTexts {
    type Break = String;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let name = function.name.to_string().to_lowercase();
        if !PADDING.contains(&name.trim_matches('"')) {
            return ControlFlow::Continue(());
        }
        let FunctionArguments::List(arguments) = &function.args else {
            return ControlFlow::Continue(());
        };
        let numbers = arguments.args.iter().filter_map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => number(argument),
            _ => None,
        });
        if numbers.fold(0.0, f64::max) > MAX_PADDED {
            ControlFlow::Break(format!("{name} makes at most {MAX_PADDED} characters"))
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Returns the value of an expression made of numbers only.
fn number(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse().ok(),
            _ => None,
        },
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => number(inner),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => number(expr),
        Expr::BinaryOp { left, op, right } => {
            let (left, right) = (number(left)?, number(right)?);
            match op {
                BinaryOperator::Plus => Some(left + right),
                BinaryOperator::Minus => Some(left - right),
                BinaryOperator::Multiply => Some(left * right),
                BinaryOperator::Divide => Some(left / right),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Runs something on its own thread with enough stack. The thread returns `None` if the planner panicked, because that
/// must not end the session.
pub fn with_stack<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<Option<T>>> {
    let work = move || quietly(work).ok();
    Builder::new().name("sql".into()).stack_size(STACK_BYTES).spawn(work)
}
