//! `dataset schema`: the tables of a dataset, as Markdown.

use std::io::{self, Write};

use polars::prelude::DataType;

use handlescope_fleet::dataset::{DatasetColumn, SCHEMA_VERSION, TABLES};

/// Writes the tables of a dataset with their columns, types and meanings.
///
/// # Errors
/// If `out` cannot be written.
pub fn schema(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# The tables of a dataset\n")?;
    writeln!(
        out,
        "Version {SCHEMA_VERSION}. This page is what `handlescope dataset schema` prints. \
         [fleet.md](../fleet.md) describes datasets.\n"
    )?;
    writeln!(
        out,
        "Every table also has the columns `date` (day of the session start, UTC) and `trace` (id of \
         the trace, 32\nhexadecimal digits), which are in the names of its folders; below `merged`, \
         `trace` is in the files. A value that\nis unknown or does not apply is null. The order of \
         rows has no meaning."
    )?;
    for table in &TABLES {
        writeln!(out, "\n## {}\n\n{}\n", table.name, table.doc)?;
        writeln!(out, "| Column | Type | Meaning |\n|---|---|---|")?;
        for DatasetColumn { name, doc, dtype } in (table.columns)() {
            let dtype = sql_type(&dtype);
            writeln!(out, "| `{name}` | {dtype} | {doc} |")?;
        }
    }
    Ok(())
}

/// Returns the SQL name of a type.
fn sql_type(dtype: &DataType) -> &'static str {
    match dtype {
        DataType::String => "text",
        DataType::Int32 => "int",
        DataType::Int64 => "bigint",
        DataType::Float64 => "double",
        DataType::Boolean => "boolean",
        DataType::Datetime(..) => "timestamp",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_what_is_printed() {
        let document =
            include_str!("../../../docs/reference/fleet-tables.md").replace("\r\n", "\n");
        let mut printed = Vec::new();
        schema(&mut printed).unwrap();
        assert_eq!(String::from_utf8(printed).unwrap(), document);
    }
}
