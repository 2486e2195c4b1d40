//! Queries over the tables of a dataset, which polars carries out in a stream: neither tables nor joins have to fit into
//! memory.

use std::sync::Arc;

use handlescope_model::guard::quietly;
use polars::{
    prelude::{Column, DataFrame, DataType, Engine, IntoLazy, LazyFrame, PolarsResult},
    sql::{SQLContext, extract_table_identifiers},
};

use super::{
    answer::{apart, described, named_count},
    columns::RelationColumn,
    error::SqlError,
    functions::Functions,
    joins::{Refused, TooLarge, collect},
    memory::MemoryLimit,
    names::{names_of_with, with_names},
    planner::{execute, too_long},
};
use crate::{
    cancel::Cancel,
    dataset::{Dataset, DatasetTable, Partition, TABLES},
    fleet,
    query::{KnownNames, polars_reason},
    suggest,
};

/// Columns that the names of folders have, with their meanings.
const PARTITIONS: [(&str, DataType, &str); 2] = [
    ("date", DataType::Date, "Day of the session start, UTC."),
    ("trace", DataType::String, "Id of the trace: 32 hexadecimal digits."),
];

/// The columns of a table of a dataset in queries.
pub(crate) fn dataset_columns(table: &DatasetTable) -> Vec<RelationColumn> {
    let schema = (table.schema)();
    let columns = (table.docs)()
        .into_iter()
        .filter_map(|(name, doc)| Some((name, schema.get(name)?.clone(), doc, true)));
    let partitions = PARTITIONS.into_iter().map(|(name, dtype, doc)| (name, dtype, doc, false));
    let columns = columns.chain(partitions).map(|(name, dtype, doc, nullable)| RelationColumn {
        name: name.into(),
        dtype,
        nullable,
        unit: "".into(),
        doc: doc.into(),
    });
    columns.collect()
}

/// Answers a query over the tables of a dataset.
///
/// # Errors
/// When the query is wrong or takes too much memory, a file is damaged, or `cancel` asks to stop.
pub(crate) fn sql_over_dataset(
    dataset: &Dataset,
    query: &str,
    limit: MemoryLimit,
    cancel: &Cancel,
) -> Result<DataFrame, SqlError> {
    if let Some(problem) = too_long(query) {
        return Err(SqlError::failed(problem));
    }
    if let Some(name) = described(query) {
        return describe(name);
    }
    let traces = dataset.traces().map_err(|error| SqlError::failed(error.to_string()))?;
    let refused = Refused::default();
    let work = {
        let (dataset, query, refused) = (dataset.clone(), query.to_owned(), refused.clone());
        move || planned(&dataset, &traces, &query, &refused)
    };
    let answer = apart(work, |_| Ok(()), limit, cancel)?;
    if let Some(&TooLarge { rows, most }) = refused.get() {
        return Err(SqlError::JoinTooLarge { rows, most });
    }
    Ok(named_count(answer?, query)?)
}

/// Plans a query and runs it.
fn planned(
    dataset: &Dataset,
    traces: &[Partition],
    query: &str,
    refused: &Refused,
) -> Result<DataFrame, SqlError> {
    let named = extract_table_identifiers(query, false, true)?;
    let functions = Functions::new(None);
    let mut context = SQLContext::new().with_function_registry(Arc::new(functions));
    for table in &TABLES {
        let spellings = named.iter().filter(|typed| typed.eq_ignore_ascii_case(table.name));
        let spellings: Vec<&str> = spellings.map(String::as_str).collect();
        if spellings.is_empty() {
            // Errors only list its name.
            context.register(table.name, DataFrame::empty().lazy());
            continue;
        }
        let frame = fleet::scan(dataset, table, traces.iter())
            .map_err(|error| SqlError::failed(error.to_string()))?;
        for name in spellings.into_iter().chain([table.name]) {
            context.register(name, frame.clone());
        }
    }
    for name in names_of_with(query) {
        context.unregister(&name);
    }
    let mut run = |text: &str| streamed(execute(&mut context, text)?, refused);
    // In a stream, ORDER BY count(*) of a column without a name would order nothing, and report no error.
    let answer = match with_names(query) {
        Some(renamed) => run(&renamed).or_else(|_| run(query)),
        None => run(query),
    };
    answer.map_err(|error| {
        let tables = named.iter().filter_map(|name| fleet::table(name));
        let columns: Vec<RelationColumn> = tables.flat_map(dataset_columns).collect();
        let names = KnownNames {
            tables: TABLES.iter().map(|table| -> &str { table.name }).collect(),
            columns: columns.iter().map(|column| &*column.name).collect(),
        };
        SqlError::failed(polars_reason(&error, &names))
    })
}

/// Carries a plan out in a stream; what polars cannot stream, it does in memory.
fn streamed(plan: LazyFrame, refused: &Refused) -> PolarsResult<DataFrame> {
    let in_memory = plan.clone();
    let streamed = quietly(|| plan.collect_with_engine(Engine::Streaming));
    match streamed {
        Ok(answer) => Ok(answer?.unwrap_single()),
        Err(_) => collect(in_memory, refused),
    }
}

/// The columns of a table, a row each.
fn describe(name: &str) -> Result<DataFrame, SqlError> {
    let Some(table) = fleet::table(name) else {
        let names: Vec<&str> = TABLES.iter().map(|table| -> &str { table.name }).collect();
        let hint = suggest::nearest(name, names.iter().copied()).map(suggest::did_you_mean);
        let hint = hint.unwrap_or_else(|| format!("; there are {}", names.join(", ")));
        return Err(SqlError::failed(format!("no table '{name}'{hint}")));
    };
    let columns = dataset_columns(table);
    let texts = |title: &'static str, text: fn(&RelationColumn) -> String| {
        Column::new(title.into(), columns.iter().map(text).collect::<Vec<String>>())
    };
    let frame = DataFrame::new_infer_height(vec![
        texts("column", |column| column.name.to_string()),
        texts("type", RelationColumn::dtype_text),
        texts("meaning", |column| column.doc.to_string()),
    ]);
    Ok(frame?)
}
