//! Carrying out a query.

use std::{sync::Arc, thread, time::Duration};

use handlescope_model::{ColumnSpec, Reason, Table, guard::quietly};
use polars::{
    prelude::{Column, DataFrame, LazyFrame, PolarsResult},
    sql::{SQLContext, extract_table_identifiers},
};

use super::{
    error::SqlError,
    functions::Functions,
    joins::{Refused, TooLarge, limit_joins},
    memory::{Memory, MemoryLimit},
    names::{POLARS_COUNT, with_names},
    relations::{Relation, View},
    scan::scan,
    stack_texts::stack_texts,
    tables::{Part, Tables},
};
use crate::{cancel::Cancel, query::FrameNames, suggest, trace::LoadedTrace};

/// How much stack a query gets, of which only what is used takes memory: the planner recurses into each
/// operator of a chain.
const STACK_BYTES: usize = 256 << 20;

/// How long a query may be: the planner takes time and memory with the square of a chain of operators,
/// gigabytes for ten thousand of them.
pub(super) const MOST_BYTES: usize = 8 << 10;

/// How many texts a query may put together: the threads of polars recurse into each `||`, and have less
/// stack.
const MOST_JOINED: usize = 500;

/// What everybody but polars calls `count(*)`.
const COUNT: &str = "count";

/// Between two looks at Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Looks at Ctrl-C for one at the memory.
const MEMORY_EVERY: u32 = 4;

/// Answers a query over some of the loaded traces, each with its number in the session.
///
/// # Errors
/// When the query is wrong or takes too much memory, an archive is damaged, or `cancel` asks to stop.
pub fn sql(
    files: &[(usize, &LoadedTrace)],
    query: &str,
    limit: MemoryLimit,
    names: &dyn FrameNames,
    cancel: &Cancel,
) -> Result<DataFrame, SqlError> {
    check_length(query)?;
    if let Some(name) = described(query) {
        return describe(name);
    }
    let text = query.to_owned();
    let mut memory = Memory::new(limit);
    let names_tables = move || extract_table_identifiers(&text, false, true);
    let named = apart(names_tables, &mut memory, cancel)??;
    let is_named = |table: Table| named.iter().any(|name| name.eq_ignore_ascii_case(table.name()));
    let is_view_named =
        |view: &View| named.iter().any(|name| name.eq_ignore_ascii_case(view.name()));
    let has_view = View::ALL.iter().any(|view| view.has_stack_text() && is_view_named(view));
    let stacks = match is_named(Table::Stacks) || (has_view && may_name_stack_text(query)) {
        true => {
            let traces = files.iter().map(|(_, file)| (&*file.trace, &file.frames));
            Some(stack_texts(traces, names, &mut memory, cancel)?)
        }
        false => None,
    };
    let part = |&(file, loaded): &(usize, &LoadedTrace)| Part {
        file: u32::try_from(file).unwrap_or(u32::MAX),
        trace: Arc::clone(&loaded.trace),
    };
    // The session's own is reset for the next command, while this query may still look for its end.
    let stop = Cancel::default();
    let parts = files.iter().map(part).collect();
    let tables = Arc::new(Tables { parts, stacks, stop: stop.clone() });
    let mut context = context(&tables, &named)?;
    let (text, refused) = (query.to_owned(), Refused::default());
    let noted = Arc::clone(&refused);
    let answer = apart(
        move || {
            let mut execute = |text: &str| {
                context.execute(text)?._collect_post_opt(|root, plans, expressions, _| {
                    limit_joins(root, plans, expressions, &noted);
                    Ok(())
                })
            };
            let answer = execute(&text);
            let may_be_named = answer.is_err() && noted.get().is_none();
            match may_be_named.then(|| with_names(&text)).flatten() {
                Some(named) => execute(&named).or(answer),
                None => answer,
            }
        },
        &mut memory,
        cancel,
    );
    stop.cancel();
    if let Some(&TooLarge { rows, most }) = refused.get() {
        return Err(SqlError::JoinTooLarge { rows, most });
    }
    let answer = answer?.map_err(|error| SqlError::in_query(&error, &named))?;
    Ok(named_count(answer, query)?)
}

/// Whether a query may want the text of stacks of a view: by its name, or among all columns. Texts of all stacks
/// cost too much to have them in vain.
fn may_name_stack_text(query: &str) -> bool {
    let query = query.to_ascii_lowercase().replace("(*)", "");
    ["stack_text", "*", "columns"].iter().any(|word| query.contains(word))
}

/// What `DESCRIBE` names.
fn described(query: &str) -> Option<&str> {
    let mut words = query.trim().trim_end_matches(';').split_whitespace();
    let is_describe =
        |word: &str| ["describe", "desc"].iter().any(|w| w.eq_ignore_ascii_case(word));
    words.next().filter(|word| is_describe(word))?;
    let name = words.next()?;
    words.next().is_none().then(|| name.trim_matches('"'))
}

/// The columns of a table or view, a row each.
fn describe(name: &str) -> Result<DataFrame, SqlError> {
    let Some(relation) = Relation::named(name) else {
        let names: Vec<&str> = Relation::all().map(Relation::name).collect();
        let hint = suggest::nearest(name, names.iter().copied()).map(suggest::did_you_mean);
        let hint = hint.unwrap_or_else(|| format!("; there are {}", names.join(", ")));
        return Err(SqlError::failed(format!("no table '{name}'{hint}")));
    };
    let columns = relation.columns();
    let texts = |title: &'static str, text: fn(&ColumnSpec) -> String| {
        Column::new(title.into(), columns.iter().map(text).collect::<Vec<String>>())
    };
    let frame = DataFrame::new_infer_height(vec![
        texts("column", |column| column.name.to_owned()),
        texts("type", |column| column.dtype.to_string()),
        texts("unit", |column| column.unit_text().into_owned()),
        texts("meaning", |column| column.doc.trim().to_owned()),
    ]);
    Ok(frame?)
}

/// Polars calls a column `len` that is a `count(*)` without a name of its own.
fn named_count(mut answer: DataFrame, query: &str) -> PolarsResult<DataFrame> {
    let mut words = query.split(|c: char| !c.is_alphanumeric() && c != '_');
    let has = |answer: &DataFrame, name: &str| answer.column(name).is_ok();
    if has(&answer, POLARS_COUNT) && !has(&answer, COUNT) && words.all(|word| word != POLARS_COUNT)
    {
        answer.rename(POLARS_COUNT, COUNT.into())?;
    }
    Ok(answer)
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

/// Does a part of a query on a thread of its own, with stack enough, while this thread looks at Ctrl-C and
/// at its memory.
fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    memory: &mut Memory,
    cancel: &Cancel,
) -> Result<T, SqlError> {
    cancel.check()?;
    // A planner that cannot cope with a query must not end the session.
    let work = move || quietly(work);
    let thread = thread::Builder::new().name("sql".into()).stack_size(STACK_BYTES).spawn(work);
    let thread = thread.map_err(|error| SqlError::failed(Reason(&error).to_string()))?;
    for look in 0_u32.. {
        if thread.is_finished() {
            break;
        }
        let memory_check =
            if look % MEMORY_EVERY == MEMORY_EVERY - 1 { memory.check() } else { Ok(()) };
        if let Err(error) = memory_check.and_then(|()| Ok(cancel.check()?)) {
            memory.wait_for(thread);
            return Err(error);
        }
        thread::sleep(LOOK_EVERY);
    }
    match thread.join() {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) | Err(_) => Err(SqlError::failed("this query could not be executed".to_owned())),
    }
}
