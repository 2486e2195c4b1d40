//! Rows that no command of the console prints: loaded files, and tables that queries can name.

use serde_json::json;

use handlescope_render::Columns;
use handlescope_sql::RelationColumn;

/// A loaded trace.
pub struct LoadedFile {
    pub number: u32,
    /// Its path, below a root if it is there.
    pub path: String,
    /// Whether it was extracted for this session only.
    pub is_temporary: bool,
    /// Number of the traces of a dataset.
    pub dataset_traces: Option<u64>,
}

/// Columns about a loaded trace.
pub fn file_columns<'a>() -> Columns<'a, LoadedFile> {
    let mut columns = Columns::<LoadedFile>::default();
    columns.add("file", "number of the trace", |file| file.number);
    columns.add("path", "its path below a root", |file| file.path.clone());
    columns.add("temporary_extract", "whether it was extracted for this session only", |file| {
        file.is_temporary
    });
    columns.add("dataset_traces", "of a dataset: number of its traces", |file| file.dataset_traces);
    columns
}

/// A table or view that queries can name.
pub struct DescribedTable {
    pub name: String,
    pub is_view: bool,
    /// What its rows are.
    pub meaning: String,
    pub columns: Vec<RelationColumn>,
}

/// Columns about a table or view.
pub fn relation_columns<'a>() -> Columns<'a, DescribedTable> {
    let mut columns = Columns::<DescribedTable>::default();
    columns.add("name", "name of the table or view", |table| table.name.clone());
    columns.add("is_view", "whether it is a view", |table| table.is_view).detail();
    columns.add("meaning", "what its rows are", |table| table.meaning.clone());
    let described = |column: &RelationColumn| {
        json!({
            "name": column.name,
            "type": column.type_text(),
            "unit": column.unit,
            "meaning": column.doc,
        })
    };
    columns
        .nest("columns", "array", "its columns", move |table| {
            table.columns.iter().map(described).collect::<Vec<_>>()
        })
        .detail();
    columns
}
