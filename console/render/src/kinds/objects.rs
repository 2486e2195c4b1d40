//! `.dump ObjectRef`. It has its own text, document and CSV file, because these are ETWAnalyzer's or nested.

use std::io::Write;

use super::{events, groups::groups, object_ref::write_document};
use crate::{
    ObjectRefStyle, csv,
    output::{OutputError, OutputOptions},
    table::{AnswerTable, Columns, FileRows, ParquetOutput},
    text::{self, TreeColumns},
};
use handlescope_query::{FileAnswer, ListedObject, ObjectRefAnswer};
use handlescope_session::cancel::Cancel;
use handlescope_session::paths::Overwrite;
use handlescope_session::settings::Display;
use handlescope_session::values::Format;

/// Sorts the objects as the options say, and writes the answer.
///
/// # Errors
/// If the options name an unknown column, the output or the file cannot be written, or `cancel` asks to stop.
pub fn object_ref(
    mut answer: ObjectRefAnswer<'_>,
    style: &ObjectRefStyle<'_>,
    options: &OutputOptions,
    display: &Display,
    overwrite: &Overwrite,
    cancel: &Cancel,
    out: &mut dyn Write,
) -> Result<(), OutputError> {
    let criteria = &style.criteria.groups;
    if let Some(column) = options.sort_by.as_ref().filter(|_| criteria.by.is_none()) {
        for file in &mut answer.files {
            sort(file, column)?;
        }
    }
    if let Some(top) = style.criteria.top {
        answer.files.iter_mut().try_for_each(|file| file.cut(top))?;
    }
    let (format, is_grouped) = (options.format(), criteria.by.is_some());
    if is_grouped && format != Format::Text {
        let mut table = groups(&answer, style, options.is_document())?;
        table.choose(options)?;
        return options
            .deliver(overwrite, cancel, out, |out| table.write_as(format, display, cancel, out));
    }
    let columns = match format {
        Format::Text if is_grouped => TreeColumns::new(criteria, &options.columns)?,
        _ => TreeColumns::default(),
    };
    options.deliver(overwrite, cancel, out, |out| match format {
        Format::Text => text::object_ref(&answer, style, &columns, display, out),
        Format::Json(mode) => write_document(&answer, style, mode, out),
        Format::Csv(text) => csv::write(&answer, style, text, display, out),
        Format::NdJson => {
            events::for_each_batch(&answer, style, cancel, &mut |rows| rows.ndjson(cancel, out))
        }
        Format::Parquet => {
            let mut file = ParquetOutput::new(out);
            events::for_each_batch(&answer, style, cancel, &mut |rows| file.add(rows))?;
            file.finish()
        }
    })
}

/// Sorts the objects of a file by a column.
fn sort(file: &mut FileAnswer<'_>, column: &str) -> Result<(), OutputError> {
    if file.listing.is_none() {
        return Ok(());
    }
    let objects: Vec<ListedObject<'_>> = file.objects().collect();
    let rows = [FileRows::rows_of(objects.len())];
    let mut table = AnswerTable::new(object_orders(), objects, rows)?;
    table.sort_by(column)?;
    let objects = file.selection.objects();
    let order = table.rows().filter_map(|row| objects.get(row).copied()).collect();
    drop(table);
    file.selection.objects = order;
    Ok(())
}

/// Declares the columns that objects can be sorted by.
pub fn object_orders<'a>() -> Columns<'a, ListedObject<'a>> {
    let mut columns = Columns::<ListedObject<'a>>::default();
    columns.add("id", "number of the object", |object| object.id());
    columns.add("type", "name of its type", |object| object.type_name());
    columns.add("name", "its name", |object| object.name());
    columns.add("lifetime", "time from creation to end", |object| object.lifetime_ns());
    columns.add("created", "time of its creation", |object| object.left_create_ns());
    columns.add("events", "number of its events", |object| object.kinds().count() as u64);
    columns
}
