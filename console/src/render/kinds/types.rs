//! `.dump Types`

use std::io;

use crate::{
    query::TypesAnswer,
    render::table::{Columns, Part, Table},
};

/// A row for each type.
///
/// # Errors
/// None that a caller could do anything about.
pub fn types<'a>(answers: &[TypesAnswer<'_>]) -> io::Result<Table<'a>> {
    let rows: Vec<_> = answers.iter().flat_map(|answer| &answer.types).collect();
    let mut columns = Columns::of(&rows);
    columns.add("type_id", |row| row.type_id.0).title("Id");
    columns.add("name", |row| row.name.as_str()).title("Name");
    let parts = answers.iter().map(|answer| Part::of(answer.path, answer.types.len()));
    Table::new("types", columns, parts)
}
