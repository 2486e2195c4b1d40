//! Queries over the tables of a dataset. Polars streams them, so that neither tables nor joins have to fit into memory.

use std::{fmt::Display, sync::Arc};

use handlescope_model::{guard::quietly, innermost};
use polars::{
    prelude::{DataFrame, Engine, IntoLazy, LazyFrame, PolarsError, PolarsResult},
    sql::{SQLContext, extract_table_identifiers},
};

use super::{
    answer::{answered, run_named},
    columns::{RelationColumn, described_columns},
    error::SqlError,
    functions::Functions,
    joins::{RefusedJoin, collect},
    memory::MemoryLimit,
    names::names_of_with,
    planner::execute,
};
use handlescope_fleet::dataset::{
    COMPARED_BYTES, Dataset, DatasetError, DatasetTable, PARTITIONS, Partition, TABLES,
};
use handlescope_query::{QueryNames, polars_reason};
use handlescope_session::cancel::Cancel;

/// Returns the columns of a dataset's table in queries.
pub fn dataset_columns(table: &DatasetTable) -> Vec<RelationColumn> {
    let stored = (table.columns)().into_iter().map(|column| (column, true));
    stored
        .chain(PARTITIONS.into_iter().map(|column| (column, false)))
        .map(|(column, nullable)| RelationColumn {
            name: column.name.into(),
            dtype: column.dtype,
            nullable,
            unit: "".into(),
            doc: column.doc.into(),
        })
        .collect()
}

/// Answers a query over the tables of a dataset.
///
/// # Errors
/// If the query is wrong or takes too much memory, a file is damaged, or `cancel` is set.
pub fn sql_over_dataset(
    dataset: &Dataset,
    query: &str,
    limit: MemoryLimit,
    cancel: &Cancel,
) -> Result<DataFrame, SqlError> {
    let describe = |name: &str| {
        let columns = handlescope_fleet::table(name).map(dataset_columns);
        Ok(described_columns(name, columns, &table_names())?.drop("unit")?)
    };
    let dataset = dataset.clone();
    let plan = move |query: &str, refused: &RefusedJoin, stop: &Cancel| {
        planned(&dataset, query, refused, stop)
    };
    answered(query, describe, plan, |_| Ok(()), limit, cancel)
}

/// Whether a query may be able to skip files, because it uses columns derived from folder names.
fn may_skip_files(query: &str) -> bool {
    query
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .any(|word| PARTITIONS.iter().any(|column| word.eq_ignore_ascii_case(column.name)))
}

/// Plans a query and runs it.
fn planned(
    dataset: &Dataset,
    query: &str,
    refused: &RefusedJoin,
    stop: &Cancel,
) -> Result<DataFrame, SqlError> {
    let named = extract_table_identifiers(query, false, true)?;
    let tables: Vec<&DatasetTable> =
        named.iter().filter_map(|name| handlescope_fleet::table(name)).collect();
    let _reading = dataset.reading();
    let traces = dataset.complete_traces(|_| true);
    let traces = traces.map_err(of_dataset)?;
    let compared = if may_skip_files(query) { COMPARED_BYTES } else { u64::MAX };
    let functions = Functions::new(None);
    let mut context = SQLContext::new().with_function_registry(Arc::new(functions));
    for table in &TABLES {
        let spellings: Vec<&str> = named
            .iter()
            .filter(|typed| typed.eq_ignore_ascii_case(table.name))
            .map(String::as_str)
            .collect();
        if spellings.is_empty() {
            // Only error messages list its name.
            context.register(table.name, DataFrame::empty().lazy());
            continue;
        }
        let frame = handlescope_fleet::scan(dataset, table, traces.iter(), compared, stop);
        let frame = frame.map_err(of_dataset)?;
        for name in spellings.into_iter().chain([table.name]) {
            context.register(name, frame.clone());
        }
    }
    for name in names_of_with(query) {
        context.unregister(&name);
    }
    let mut run = |text: &str| streamed(execute(&mut context, text)?, refused);
    // When streaming, ORDER BY count(*) of an unnamed column would sort nothing, and report no error.
    run_named(query, refused, &mut run).map_err(|error| {
        if let Some(damage) = damage(&error, dataset, &tables, &traces, stop) {
            return of_dataset(damage);
        }
        let columns: Vec<RelationColumn> =
            tables.iter().flat_map(|table| dataset_columns(table)).collect();
        let names = QueryNames {
            tables: table_names(),
            columns: columns.iter().map(|column| &*column.name).collect(),
            query,
        };
        SqlError::failed(polars_reason(&error, &names))
    })
}

fn table_names() -> Vec<&'static str> {
    TABLES.iter().map(|table| table.name).collect()
}

fn of_dataset(error: impl Display) -> SqlError {
    SqlError::Dataset { reason: error.to_string() }
}

/// Finds a damaged file of the named tables that may explain why a query failed.
fn damage(
    error: &PolarsError,
    dataset: &Dataset,
    tables: &[&DatasetTable],
    traces: &[Partition],
    stop: &Cancel,
) -> Option<DatasetError> {
    // Other errors are about the query.
    let is_of_files = matches!(
        innermost(error),
        PolarsError::IO { .. } | PolarsError::ComputeError(_) | PolarsError::OutOfBounds(_)
    );
    let mut tables = tables.iter().filter(|_| is_of_files);
    tables.find_map(|table| dataset.first_damage(table.name, traces.iter(), stop))
}

/// Executes a plan by streaming; what polars cannot stream runs in memory.
fn streamed(plan: LazyFrame, refused: &RefusedJoin) -> PolarsResult<DataFrame> {
    let in_memory = plan.clone();
    let streamed = quietly(|| plan.collect_with_engine(Engine::Streaming));
    match streamed {
        Ok(answer) => Ok(answer?.unwrap_single()),
        Err(_) => collect(in_memory, refused),
    }
}
