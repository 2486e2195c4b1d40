//! The tool `schema`: the tables that queries can name, of traces or of a dataset.

use handlescope_fleet::dataset::TABLES;

use super::ToolCall;
use crate::answer::AnswerPage;
use crate::error::ToolError;
use crate::rows::{DescribedTable, relation_columns};
use handlescope_session::suggest;
use handlescope_sql::{Relation, Views, dataset_columns};

/// The tables and views of traces.
pub fn of_traces(views: &Views) -> Vec<DescribedTable> {
    let described = |relation: Relation<'_>| DescribedTable {
        name: relation.name().to_owned(),
        is_view: matches!(relation, Relation::View(_)),
        meaning: relation.doc().to_owned(),
        columns: relation.columns(),
    };
    views.relations().map(described).collect()
}

/// The tables of a dataset.
pub fn of_dataset() -> Vec<DescribedTable> {
    TABLES
        .iter()
        .map(|table| DescribedTable {
            name: table.name.to_owned(),
            is_view: false,
            meaning: table.doc.to_owned(),
            columns: dataset_columns(table),
        })
        .collect()
}

/// The tables that the call names, in its order, or all.
///
/// # Errors
/// Names the first that is not there.
pub fn schema(
    call: &ToolCall<'_>,
    mut tables: Vec<DescribedTable>,
) -> Result<AnswerPage, ToolError> {
    let ToolCall { tool, inputs, at, rows, .. } = *call;
    let names = inputs.texts("tables");
    let mut chosen: Vec<DescribedTable> = Vec::new();
    for name in names.iter().flat_map(|names| names.split(',')).map(str::trim) {
        let is_named = |table: &DescribedTable| table.name.eq_ignore_ascii_case(name);
        if chosen.iter().any(is_named) {
            continue;
        }
        let Some(index) = tables.iter().position(is_named) else {
            let known = tables.iter().chain(&chosen).map(|table| table.name.as_str());
            let hint = suggest::nearest(name, known).map(suggest::did_you_mean);
            let hint = hint.unwrap_or_else(|| "; schema without `tables` lists them".to_owned());
            return Err(ToolError::NoTable { name: name.to_owned(), hint });
        };
        chosen.push(tables.remove(index));
    }
    let shown = if chosen.is_empty() { tables } else { chosen };
    Ok(tool.answer(relation_columns(), shown.into_iter(), at, rows)?)
}
