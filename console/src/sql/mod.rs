//! `.sql`: any question, in SQL, over the tables of the loaded traces.
//!
//! Polars reads the query, plans it and carries it out. This says what can be named in it
//! ([`Relation`]) and hands out columns when the plan wants them: a query reads what it touches.

mod functions;
mod relations;
mod scan;
mod stack_texts;
mod stop;
mod tables;
mod views;

use std::{sync::Arc, thread, time::Duration};

use handlescope_model::{ArchiveError, Table, guard::quietly};
use polars::{
    prelude::{DataFrame, LazyFrame, PolarsError},
    sql::{SQLContext, extract_table_identifiers},
};
use thiserror::Error;

use self::{
    functions::Functions,
    scan::scan,
    stack_texts::stack_texts,
    stop::Stop,
    tables::{Part, Tables},
};
use crate::{
    cancel::{Cancel, Cancelled},
    query::FrameNames,
    suggest,
    trace::LoadedTrace,
};

pub(crate) use self::functions::HEX;
pub use self::relations::{Relation, View};

/// How much stack a query gets, of which only what is used takes memory: the planner recurses into each
/// operator of a chain.
const STACK_BYTES: usize = 256 << 20;

/// How long a query may be: the planner takes time and memory with the square of a chain of operators,
/// gigabytes for ten thousand of them.
const MOST_BYTES: usize = 8 << 10;

/// How many texts a query may put together: the threads of polars recurse into each `||`, and have less
/// stack.
const MOST_JOINED: usize = 500;

/// Between two looks at Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A query without an answer.
#[derive(Debug, Error)]
pub enum SqlError {
    /// It means nothing, or cannot be carried out.
    #[error("{reason}{hint}; .help sql lists the tables and has examples")]
    Query {
        /// What polars says.
        reason: String,
        /// What may have been meant.
        hint: String,
    },
    /// An archive is damaged.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The user does not want the answer any more.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Answers a query over some of the loaded traces, each with its number in the session.
///
/// # Errors
/// When the query is wrong, an archive is damaged, or `cancel` asks to stop.
pub fn sql(
    files: &[(usize, &LoadedTrace)],
    query: &str,
    names: &dyn FrameNames,
    cancel: &Cancel,
) -> Result<DataFrame, SqlError> {
    check_length(query)?;
    let text = query.to_owned();
    let named = apart(move || extract_table_identifiers(&text, false, true), cancel)??;
    let is_named = |table: Table| named.iter().any(|name| name.eq_ignore_ascii_case(table.name()));
    let stacks = match is_named(Table::Stacks) {
        true => {
            let traces = files.iter().map(|(_, file)| (&*file.trace, &file.frames));
            Some(stack_texts(traces, names, cancel)?)
        }
        false => None,
    };
    let part = |&(file, loaded): &(usize, &LoadedTrace)| Part {
        file: u32::try_from(file).unwrap_or(u32::MAX),
        trace: Arc::clone(&loaded.trace),
    };
    let stop = Stop::default();
    let parts = files.iter().map(part).collect();
    let tables = Arc::new(Tables { parts, stacks, stop: stop.clone() });
    let mut context = context(&tables, &named)?;
    let text = query.to_owned();
    let answer = apart(move || context.execute(&text)?.collect(), cancel);
    stop.stop();
    Ok(answer??)
}

/// Refuses what would take all memory or stack before it is carried out.
fn check_length(query: &str) -> Result<(), SqlError> {
    let (size, joined) = (query.len(), query.matches("||").count());
    let problem = match () {
        () if size > MOST_BYTES => format!("the query has {size} bytes, more than {MOST_BYTES}"),
        () if joined > MOST_JOINED => format!("the query has {joined} ||, more than {MOST_JOINED}"),
        () => return Ok(()),
    };
    Err(SqlError::failed(problem))
}

/// What the query can name. Names of tables count in any case.
fn context(tables: &Arc<Tables>, named: &[String]) -> Result<SQLContext, SqlError> {
    let context = SQLContext::new().with_function_registry(Arc::new(Functions));
    for relation in Relation::all() {
        let frame: LazyFrame = scan(Arc::clone(tables), relation)?;
        let typed = named.iter().filter(|name| name.eq_ignore_ascii_case(relation.name()));
        for name in typed {
            context.register(name, frame.clone());
        }
        context.register(relation.name(), frame);
    }
    Ok(context)
}

/// Does a part of a query on a thread of its own, with stack enough, while somebody looks at Ctrl-C.
fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    cancel: &Cancel,
) -> Result<T, SqlError> {
    cancel.check()?;
    // A planner that cannot cope with a query must not end the session.
    let work = move || quietly(work);
    let thread = thread::Builder::new().name("sql".into()).stack_size(STACK_BYTES).spawn(work);
    let thread = thread.map_err(|error| SqlError::failed(error.to_string()))?;
    while !thread.is_finished() {
        cancel.check()?;
        thread::sleep(LOOK_EVERY);
    }
    match thread.join() {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) | Err(_) => Err(SqlError::failed("polars gave up on this query".to_owned())),
    }
}

impl SqlError {
    fn failed(reason: String) -> SqlError {
        SqlError::Query { reason, hint: String::new() }
    }
}

impl From<PolarsError> for SqlError {
    fn from(error: PolarsError) -> SqlError {
        let reason = error.to_string();
        // The plan that polars adds names nothing that the query names.
        let reason = reason.split("\n\nResolved plan").next().unwrap_or(&reason).to_owned();
        let hint = unknown_relation(&reason)
            .and_then(|name| suggest::nearest(name, Relation::all().map(Relation::name)))
            .map_or_else(String::new, suggest::did_you_mean);
        SqlError::Query { reason, hint }
    }
}

/// The name in polars' message about a table that is not there.
fn unknown_relation(reason: &str) -> Option<&str> {
    let (before, _) = reason.split_once("' was not found")?;
    before.rsplit_once('\'').map(|(_, name)| name)
}

impl From<crate::query::QueryError> for SqlError {
    fn from(error: crate::query::QueryError) -> SqlError {
        match error {
            crate::query::QueryError::Archive(error) => error.into(),
            crate::query::QueryError::Cancelled(cancelled) => cancelled.into(),
        }
    }
}

#[cfg(test)]
mod tests;
