//! `.dump ObjectRef`, whose text, document and CSV file are ETWAnalyzer's or nested, and so its own.

use std::io::{self, Write};

use super::events;
use crate::{
    cancel::Cancel,
    command::{StackDisplayArgs, TopN},
    query::{CountBy, FileAnswer, Listing, ObjectRefAnswer, Selected},
    render::{
        csv, json,
        output::{Format, OutputError, OutputOptions},
        table::{Columns, Parquet, Part, Table},
        text,
    },
    settings::Display,
};

/// What is shown of the objects.
#[derive(Debug, Clone, Copy)]
pub struct ObjectView<'a> {
    /// The command as typed.
    pub command: &'a str,
    /// What open handles are counted by, instead of listing objects.
    pub by: Option<CountBy>,
    /// Rows of the tables of open handles.
    pub top: Option<TopN>,
    /// Whether text ends with sums.
    pub has_totals: bool,
    /// Whether and how stacks are shown.
    pub stacks: StackDisplayArgs,
    /// Whether text has changes of reference counts.
    pub shows_references: bool,
    /// Whether a CSV file begins with a line for Excel.
    pub has_separator_line: bool,
    /// Whether a CSV file has command lines.
    pub has_command_line: bool,
}

/// Sorts the objects as the options say, and writes the answer.
///
/// # Errors
/// When the options name a column that is not there, the output or the file cannot be written, or
/// `cancel` asks to stop.
pub fn object_ref(
    mut answer: ObjectRefAnswer<'_>,
    view: &ObjectView<'_>,
    options: &OutputOptions,
    display: &Display,
    cancel: &Cancel,
    out: &mut dyn Write,
) -> Result<(), OutputError> {
    if let Some(column) = &options.sort_by {
        for file in &mut answer.files {
            sort(file, column)?;
        }
    }
    options.deliver(cancel, out, |out| match options.format() {
        Format::Text => text::object_ref(&answer, view, display, out),
        Format::Json(mode) => json::object_ref(&answer, view, mode, out),
        Format::Csv => csv::write(&answer, view, display, out),
        format @ Format::NdJson => events::for_each_batch(&answer, view, cancel, &mut |events| {
            events.write_as(format, display, cancel, out)
        }),
        Format::Parquet => {
            let mut file = Parquet::new(out);
            events::for_each_batch(&answer, view, cancel, &mut |events| file.add(events))?;
            file.finish()
        }
    })
}

/// Puts the objects of a file into the order of a column.
fn sort(file: &mut FileAnswer<'_>, column: &str) -> Result<(), OutputError> {
    let Some(listing) = &file.listing else { return Ok(()) };
    let objects = file.selection.objects();
    let mut table = object_table(file, listing, objects)?;
    table.sort_by(column)?;
    let order: Vec<Selected> = table.rows().filter_map(|row| objects.get(row).copied()).collect();
    file.selection.objects = order;
    Ok(())
}

/// What objects can be sorted by.
fn object_table<'a>(
    file: &FileAnswer<'_>,
    listing: &Listing,
    objects: &[Selected],
) -> io::Result<Table<'a>> {
    let tables = &file.file;
    let mut columns = Columns::of(objects);
    columns.add("id", |object| object.id());
    let kind = |object: &Selected| tables.types.get(tables.objects.type_id(object.object()));
    columns.add("type", kind);
    columns.add("name", |object| listing.name(object.object()));
    columns.add("lifetime", |object| file.lifetime_ns(listing, *object));
    let created = |object: &Selected| object.create().and_then(|event| listing.time_ns(event));
    columns.add("created", created);
    columns.add("events", |object| file.events(*object).count() as u64);
    Table::new("objects", columns, [Part::of(file.path(), objects.len())])
}
