//! Writes the events of objects as a CSV file with ETWAnalyzer's columns.
//!
//! Differences from ETWAnalyzer: values are quoted instead of altered (except formulas), numbers look the same in every
//! country, mappings are in the right columns, and creation and deletion of objects have rows. The events of an object
//! come in time order, followed by the handles that were open at the end.

mod columns;
mod row;

use std::io::{self, Write};
use std::path::Path;

use self::columns::{COLUMNS, Column, TARGET_COLUMNS};
use self::row::{CsvRow, FileFacts, ObjectFacts};
use super::event_item::{EventItem, TraceStackTexts};
use crate::text::ObjectRefStyle;
use crate::traces::{StackOffset, traces};
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
    let mut rows = CsvRowWriter { writer, args, text, has_written: false };
    let traces = traces(&answer.files);
    let paths: Vec<&Path> = answer.files.iter().map(|file| file.about.path).collect();
    let names = names_apart(&paths, |path| path.file_stem().unwrap_or_default().to_owned());
    for ((file, name), trace) in answer.files.iter().zip(&names).zip(traces.iter()) {
        let facts = FileFacts::new(file, name, !args.no_command_line, display);
        rows.write_file(&facts, trace.numbers)?;
    }
    rows.writer.flush()
}

/// The columns that are asked for.
fn columns(args: &ObjectRefStyle<'_>) -> impl Iterator<Item = &'static Column> {
    let targets = if args.criteria.show_target { TARGET_COLUMNS } else { &[] };
    COLUMNS.iter().chain(targets)
}

/// Writes rows.
struct CsvRowWriter<'a, W: Write> {
    writer: csv::Writer<W>,
    args: &'a ObjectRefStyle<'a>,
    text: CsvText,
    has_written: bool,
}

impl<W: Write> CsvRowWriter<'_, W> {
    fn write_file(&mut self, facts: &FileFacts<'_>, numbers: StackOffset) -> io::Result<()> {
        let file = facts.answer;
        let mut stacks = TraceStackTexts::new(file, self.args.criteria.stacks);
        for listed in file.objects() {
            // An object may have no row, so the writer alone would not notice a cancellation.
            file.file.cancel.check().map_err(io::Error::other)?;
            let object = &ObjectFacts::new(facts, listed);
            for item in EventItem::from_object(listed) {
                let number = item.event().and_then(|event| Some(numbers.of(event.stack?)));
                let stack = match (number, stacks.show(&item)) {
                    (None, _) => String::new(),
                    (Some(number), None) => number.to_string(),
                    (Some(number), Some(text)) => format!("StackId: {number} {text}"),
                };
                self.write_row(facts, object, item, stack)?;
            }
        }
        Ok(())
    }

    fn write_row(
        &mut self,
        file: &FileFacts<'_>,
        object: &ObjectFacts<'_>,
        item: EventItem<'_>,
        stack: String,
    ) -> io::Result<()> {
        let options = if self.has_written { "" } else { self.args.text };
        self.has_written = true;
        let row = CsvRow { options, file, object, item, stack };
        for (_, value) in columns(self.args) {
            self.writer.write_field(self.text.cell(&value(&row), SEPARATOR).as_bytes())?;
        }
        Ok(self.writer.write_record(None::<&[u8]>)?)
    }
}
