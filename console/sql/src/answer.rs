//! Executes queries.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use handlescope_model::Reason;
use polars::{
    prelude::{DataFrame, PolarsError, PolarsResult},
    sql::extract_table_identifiers,
};

use super::{
    columns::{RelationColumn, described_columns},
    error::SqlError,
    hex::with_literals,
    joins::{RefusedJoin, TooLarge, collect},
    memory::{MemoryLimit, QueryMemory},
    names::{POLARS_COUNT, names_of_with, with_names},
    planner::{context, execute, too_long, with_stack},
    relations::Relation,
    stack_texts::stack_texts,
    tables::{QueriedTables, QueriedTrace},
    views::{View, Views},
};
use handlescope_query::{FrameNames, QueryNames, polars_reason};
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::SystemModules;
use handlescope_session::trace::LoadedTrace;

/// The name of `count(*)` everywhere except in polars.
const COUNT: &str = "count";

/// Time between two checks for Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Number of checks for Ctrl-C per check of memory.
const MEMORY_EVERY: u32 = 4;

/// Answers a query over some of the loaded traces, each with its number in the session.
///
/// # Errors
/// If the query is wrong or takes too much memory, an archive is damaged, or `cancel` is set.
pub fn sql(
    files: &[(usize, &LoadedTrace)],
    query: &str,
    views: &Arc<Views>,
    limit: MemoryLimit,
    names: &dyn FrameNames,
    system: &SystemModules,
    cancel: &Cancel,
) -> Result<DataFrame, SqlError> {
    Queries::new(files, views, names, system).answer(query, limit, cancel)
}

/// Queries over the same traces; the texts of stacks are computed only once.
pub struct Queries<'a> {
    files: &'a [(usize, &'a LoadedTrace)],
    views: &'a Arc<Views>,
    names: &'a dyn FrameNames,
    system: &'a SystemModules,
    texts: RefCell<Option<DataFrame>>,
}

impl<'a> Queries<'a> {
    pub fn new(
        files: &'a [(usize, &'a LoadedTrace)],
        views: &'a Arc<Views>,
        names: &'a dyn FrameNames,
        system: &'a SystemModules,
    ) -> Queries<'a> {
        Queries { files, views, names, system, texts: RefCell::default() }
    }

    /// Answers a query.
    ///
    /// # Errors
    /// Those of [`sql`].
    pub fn answer(
        &self,
        query: &str,
        limit: MemoryLimit,
        cancel: &Cancel,
    ) -> Result<DataFrame, SqlError> {
        let Queries { files, views, names, system, ref texts } = *self;
        let describe = |name: &str| {
            let names: Vec<&str> = views.relations().map(Relation::name).collect();
            described_columns(name, views.relation(name).map(Relation::columns), &names)
        };
        let traces = files.iter().map(|(file, loaded)| QueriedTrace {
            file: u32::try_from(*file).unwrap_or(u32::MAX),
            trace: Arc::clone(&loaded.trace),
        });
        let (stacks, requests) = mpsc::channel();
        let (traces, stacks, known) = (traces.collect(), Some(stacks), Arc::clone(views));
        let plan = move |query: &str, refused: &RefusedJoin, stop: &Cancel| {
            let tables = Arc::new(QueriedTables { traces, stacks, stop: stop.clone() });
            planned(query, &tables, &known, refused)
        };
        let wait = |memory: &mut QueryMemory| {
            let answer = match requests.recv_timeout(LOOK_EVERY) {
                Ok(answer) => answer,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    thread::sleep(LOOK_EVERY);
                    return Ok(());
                }
            };
            let texts = match &mut *texts.borrow_mut() {
                Some(texts) => texts.clone(),
                none => {
                    let traces = files.iter().map(|(_, file)| (&*file.trace, &file.frames));
                    none.insert(stack_texts(traces, names, system, memory, cancel)?).clone()
                }
            };
            // The query may have ended in the meantime.
            let _ = answer.send(texts);
            Ok(())
        };
        answered(query, describe, plan, wait, limit, cancel)
    }
}

/// Answers a query by `plan`, on its own thread, or `DESCRIBE` by `describe`.
///
/// # Errors
/// If the query is too long, a join is too large, `plan` fails, it takes too much memory, or `cancel` is set.
pub fn answered(
    query: &str,
    describe: impl FnOnce(&str) -> Result<DataFrame, SqlError>,
    plan: impl FnOnce(&str, &RefusedJoin, &Cancel) -> Result<DataFrame, SqlError> + Send + 'static,
    wait: impl FnMut(&mut QueryMemory) -> Result<(), SqlError>,
    limit: MemoryLimit,
    cancel: &Cancel,
) -> Result<DataFrame, SqlError> {
    if let Some(problem) = too_long(query) {
        return Err(SqlError::failed(problem));
    }
    if let Some(name) = described(query) {
        return describe(name);
    }
    // The session resets its flag for the next command while this query may still check it.
    let stop = Cancel::default();
    let refused = RefusedJoin::default();
    let work = {
        let (query, refused, stop) = (query.to_owned(), refused.clone(), stop.clone());
        move || plan(&query, &refused, &stop)
    };
    let answer = apart(work, wait, limit, cancel);
    stop.cancel();
    let answer = answer?;
    if let Some(&TooLarge { rows, most }) = refused.get() {
        return Err(SqlError::JoinTooLarge { rows, most });
    }
    Ok(named_count(answer?, query)?)
}

/// Runs a query with names for its calculated columns, or as typed where that fails.
pub fn run_named(
    query: &str,
    refused: &RefusedJoin,
    run: &mut impl FnMut(&str) -> PolarsResult<DataFrame>,
) -> PolarsResult<DataFrame> {
    let Some(renamed) = with_names(query) else { return run(query) };
    // Errors should be about the query as typed.
    run(&renamed).or_else(|error| if refused.get().is_some() { Err(error) } else { run(query) })
}

/// Plans a query and runs it.
fn planned(
    query: &str,
    tables: &Arc<QueriedTables>,
    views: &Views,
    refused: &RefusedJoin,
) -> Result<DataFrame, SqlError> {
    let named = extract_table_identifiers(query, false, true)?;
    let mut context = context(tables)?;
    views.register(&mut context, &named)?;
    // Table names ignore case.
    for typed in &named {
        if let Some(name) = views.relation(typed).map(Relation::name).filter(|name| name != typed) {
            let frame = execute(&mut context, &format!("SELECT * FROM {name}"))?;
            context.register(typed, frame);
        }
    }
    for name in names_of_with(query) {
        context.unregister(&name);
    }
    let columns: Vec<RelationColumn> =
        named.iter().filter_map(|name| views.relation(name)).flat_map(Relation::columns).collect();
    let mut run = |text: &str| {
        let converted = with_literals(text, &columns);
        collect(execute(&mut context, converted.as_deref().unwrap_or(text))?, refused)
    };
    run_named(query, refused, &mut run).map_err(|error| {
        let failing = match refused.get() {
            None => failing_view(&error, views.of_user(&named), &mut run),
            Some(_) => None,
        };
        match failing {
            Some((view, error)) => SqlError::in_view(&error, view, views),
            None => SqlError::in_query(&error, query, &named, views),
        }
    })
}

/// Finds a user's view that, on its own, fails in the same way as the query that uses it. Polars plans both together,
/// and its errors do not tell which of them they are about.
fn failing_view<'v>(
    error: &PolarsError,
    views: Vec<&'v View>,
    run: &mut impl FnMut(&str) -> PolarsResult<DataFrame>,
) -> Option<(&'v View, PolarsError)> {
    // The query may drop rows, so numbers and values in its error may differ.
    let kind = |error: &PolarsError| -> String {
        let reason = polars_reason(error, &QueryNames::default());
        let reason = reason.split(['[', '"']).next().unwrap_or_default();
        reason.chars().filter(|c| !c.is_ascii_digit()).collect()
    };
    views.into_iter().find_map(|view| {
        let failure = run(&format!("SELECT * FROM \"{}\"", view.file.name)).err()?;
        (kind(&failure) == kind(error)).then_some((view, failure))
    })
}

/// Returns the name after `DESCRIBE`.
fn described(query: &str) -> Option<&str> {
    let mut words = query.trim().trim_end_matches(';').split_whitespace();
    let first = words.next()?;
    ["describe", "desc"].iter().find(|word| word.eq_ignore_ascii_case(first))?;
    let name = words.next()?;
    words.next().is_none().then(|| name.trim_matches('"'))
}

/// Renames polars' column `len` if it is a `count(*)` without a name of its own.
fn named_count(mut answer: DataFrame, query: &str) -> PolarsResult<DataFrame> {
    let mut words = query.split(|c: char| !c.is_alphanumeric() && c != '_');
    let has = |answer: &DataFrame, name: &str| answer.column(name).is_ok();
    if has(&answer, POLARS_COUNT) && !has(&answer, COUNT) && words.all(|word| word != POLARS_COUNT)
    {
        answer.rename(POLARS_COUNT, COUNT.into())?;
    }
    Ok(answer)
}

/// Runs a query on its own thread, while this thread checks for Ctrl-C and memory, and calls `wait` in between.
fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    mut wait: impl FnMut(&mut QueryMemory) -> Result<(), SqlError>,
    limit: MemoryLimit,
    cancel: &Cancel,
) -> Result<T, SqlError> {
    cancel.check()?;
    let thread = with_stack(work).map_err(|error| SqlError::failed(Reason(&error).to_string()))?;
    // The addresses of the stack do not count.
    let mut memory = QueryMemory::new(limit);
    for look in 0_u32.. {
        if thread.is_finished() {
            break;
        }
        let memory_check =
            if look % MEMORY_EVERY == MEMORY_EVERY - 1 { memory.check() } else { Ok(()) };
        let checked =
            memory_check.and_then(|()| Ok(cancel.check()?)).and_then(|()| wait(&mut memory));
        if let Err(error) = checked {
            memory.wait_for(thread);
            return Err(error);
        }
    }
    let result = thread.join().ok().flatten();
    result.ok_or_else(|| SqlError::failed("this query could not be executed".to_owned()))
}
