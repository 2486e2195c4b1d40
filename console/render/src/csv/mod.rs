//! Writes the events of objects as a CSV file with ETWAnalyzer's columns.
//!
//! Differences from ETWAnalyzer: values are quoted instead of altered (except formulas), numbers look the same in every
//! country, mappings are in the right columns, and creation and deletion of objects have rows. The events of an object
//! come in time order, followed by the handles that were open at the end.

mod columns;
mod row;

use std::io::{self, Write};
use std::mem::take;
use std::path::Path;

use self::columns::{COLUMNS, Column, TARGET_COLUMNS};
use self::row::{CsvRow, FileFacts, ObjectFacts};
use super::event_item::{EventItem, TraceStackTexts};
use crate::text::ObjectRefStyle;
use crate::traces::traces;
use handlescope_query::ObjectRefAnswer;
use handlescope_session::paths::names_apart;
use handlescope_session::settings::Display;
use handlescope_session::values::CsvText;

/// Line that tells Excel the separator; other programs read it as data.
const SEPARATOR_LINE: &[u8] = b"sep = ;\n";

/// Separator of values.
const SEPARATOR: u8 = b';';

/// Writes the whole content of the file.
pub fn write(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefStyle<'_>,
    text: CsvText,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !args.no_csv_separator {
        out.write_all(SEPARATOR_LINE)?;
    }
    let mut writer = csv::WriterBuilder::new().delimiter(SEPARATOR).from_writer(out);
    writer.write_record(columns(args).map(|(header, _)| header))?;
    let traces = traces(&answer.files);
    let paths: Vec<&Path> = answer.files.iter().map(|file| file.about.path).collect();
    let names = names_apart(&paths, |path| path.file_stem().unwrap_or_default().to_owned());
    // Only the first row has the command.
    let mut options = args.text;
    for ((answer, name), trace) in answer.files.iter().zip(&names).zip(traces.iter()) {
        let file = &FileFacts::new(answer, name, !args.no_command_line, display);
        let mut stacks = TraceStackTexts::new(answer, args.criteria.stacks);
        for listed in answer.objects() {
            // An object may have no row, so the writer alone would not notice a cancellation.
            answer.file.cancel.check().map_err(io::Error::other)?;
            let object = &ObjectFacts::new(file, listed);
            for item in EventItem::from_object(listed) {
                let number = item.event().and_then(|event| Some(trace.numbers.of(event.stack?)));
                let stack = match (number, stacks.show(&item)) {
                    (None, _) => String::new(),
                    (Some(number), None) => number.to_string(),
                    (Some(number), Some(text)) => format!("StackId: {number} {text}"),
                };
                let row = CsvRow { options: take(&mut options), file, object, item, stack };
                for (_, value) in columns(args) {
                    writer.write_field(text.cell(&value(&row), SEPARATOR).as_bytes())?;
                }
                writer.write_record(None::<&[u8]>)?;
            }
        }
    }
    writer.flush()
}

/// The columns that are asked for.
fn columns(args: &ObjectRefStyle<'_>) -> impl Iterator<Item = &'static Column> {
    let targets = if args.criteria.show_target { TARGET_COLUMNS } else { &[] };
    COLUMNS.iter().chain(targets)
}
