//! The context in which polars plans queries and views: the tables under their names, our
//! functions, and enough stack.

use std::{
    io,
    ops::ControlFlow,
    sync::Arc,
    thread::{Builder, JoinHandle},
};

use handlescope_model::{Table, guard::quietly};
use polars::{
    prelude::{LazyFrame, PolarsResult, polars_bail},
    sql::SQLContext,
};
use sqlparser::{
    ast::{TableFactor, Visit as _, Visitor},
    dialect::GenericDialect,
    parser::{Parser, ParserOptions},
};

use super::{functions::Functions, scan::scan, tables::Tables};

/// Stack size of a query, of which only the used part takes memory: the planner recurses into each
/// operator of a chain.
const STACK_BYTES: usize = 256 << 20;

/// Maximum length of a query: the planner takes time and memory with the square of a chain of
/// operators, gigabytes for ten thousand of them.
pub(super) const MAX_BYTES: usize = 8 << 10;

/// Maximum number of texts that a query may concatenate: the threads of polars recurse into each
/// `||`, and have less stack.
const MAX_JOINED: usize = 500;

/// Returns the reason why a query would take all memory or stack before it is carried out; `None`
/// if it would not.
pub(super) fn too_long(query: &str) -> Option<String> {
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

/// A context that knows the tables, and no view.
pub(super) fn context(tables: &Arc<Tables>) -> PolarsResult<SQLContext> {
    let functions = Functions { tables: Arc::clone(tables) };
    let context = SQLContext::new().with_function_registry(Arc::new(functions));
    for table in Table::ALL {
        context.register(table.name(), scan(Arc::clone(tables), table)?);
    }
    Ok(context)
}

/// Plans a query, which reads nothing but tables and views: the functions that polars has in their place open any file
/// and any URL.
pub(super) fn execute(context: &mut SQLContext, query: &str) -> PolarsResult<LazyFrame> {
    // Polars reads a query in this way.
    let options = ParserOptions { trailing_commas: true, ..ParserOptions::default() };
    let parser = Parser::new(&GenericDialect {}).with_options(options).try_with_sql(query);
    let statements = parser.and_then(|mut parser| parser.parse_statements()).unwrap_or_default();
    match statements.visit(&mut TableFunctions) {
        ControlFlow::Break(name) => polars_bail!(
            SQLInterface: "FROM takes tables and views, not a function like {name}"
        ),
        ControlFlow::Continue(()) => context.execute(query),
    }
}

/// Finds the first function that stands in place of a table.
struct TableFunctions;

impl Visitor for TableFunctions {
    type Break = String;

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<String> {
        match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                ControlFlow::Break(name.to_string())
            }
            TableFactor::TableFunction { expr, .. } => ControlFlow::Break(expr.to_string()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Runs something on a thread of its own with enough stack. The thread ends with `None` where the
/// planner panicked, which must not end the session.
pub(super) fn with_stack<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<Option<T>>> {
    let work = move || quietly(work).ok();
    Builder::new().name("sql".into()).stack_size(STACK_BYTES).spawn(work)
}
