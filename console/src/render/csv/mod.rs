//! The events of objects as a CSV file with ETWAnalyzer's columns.
//!
//! What differs from ETWAnalyzer: values are quoted instead of altered, numbers are the same in
//! every country, mappings stand in the right columns, creation and deletion of objects have rows,
//! and the events of an object come in the order of time, the handles that were open at the end
//! behind them.

mod columns;
mod row;

use std::collections::HashSet;
use std::io::{self, Write};

use self::columns::COLUMNS;
use self::row::{FileFacts, ObjectFacts, Row, What};
use handlescope_model::StackIdx;

use super::text::StackStyle;
use crate::query::{FileAnswer, Listing, ObjectRefAnswer};
use crate::render::style::ObjectRefStyle;
use crate::settings::Display;

/// Says to Excel what separates values; other programs take it for data.
const SEPARATOR_LINE: &[u8] = b"sep = ;\n";

/// What separates values.
const SEPARATOR: u8 = b';';

/// Writes the whole content of the file.
pub(super) fn write(
    answer: &ObjectRefAnswer<'_>,
    args: &ObjectRefStyle<'_>,
    display: &Display,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !args.no_csv_separator {
        out.write_all(SEPARATOR_LINE)?;
    }
    let mut writer = csv::WriterBuilder::new().delimiter(SEPARATOR).from_writer(out);
    writer.write_record(COLUMNS.iter().map(|(header, _)| header))?;
    let mut rows = Rows { writer, args, has_written: false };
    let mut first_stack = 0;
    for file in &answer.files {
        if let Some(listing) = &file.listing {
            rows.write_file(file, listing, first_stack, display)?;
        }
        first_stack += file.stack_count as u64;
    }
    rows.writer.flush()
}

/// Writes rows.
struct Rows<'a, W: Write> {
    writer: csv::Writer<W>,
    args: &'a ObjectRefStyle<'a>,
    has_written: bool,
}

impl<W: Write> Rows<'_, W> {
    fn write_file(
        &mut self,
        file: &FileAnswer<'_>,
        listing: &Listing,
        first_stack: u64,
        display: &Display,
    ) -> io::Result<()> {
        let facts = &FileFacts::new(file, listing, display);
        let mut stacks = StackTexts {
            first_stack,
            seen: HashSet::new(),
            style: StackStyle::of(file, self.args.criteria.stacks),
        };
        for &selected in file.selection.objects() {
            // Nothing is printed meanwhile, so no write would notice.
            file.file.cancel.check().map_err(io::Error::other)?;
            let object = &ObjectFacts::new(facts, selected);
            for event in file.events(selected) {
                let Some(known) = listing.event(event) else { continue };
                let stack = stacks.text(known.stack);
                self.write_row(facts, object, What::Event(event, known), stack)?;
            }
            let existing = file.file.objects.existing(selected.object());
            for (owner, handle) in listing.existing(existing) {
                self.write_row(facts, object, What::Existing { owner, handle }, String::new())?;
            }
        }
        Ok(())
    }

    fn write_row(
        &mut self,
        file: &FileFacts<'_>,
        object: &ObjectFacts<'_>,
        what: What,
        stack: String,
    ) -> io::Result<()> {
        let options = if self.has_written { "" } else { self.args.text };
        self.has_written = true;
        let has_command_line = !self.args.no_command_line;
        let row = Row { options, file, object, what, stack, has_command_line };
        for (_, value) in COLUMNS {
            self.writer.write_field(value(&row).as_bytes())?;
        }
        Ok(self.writer.write_record(None::<&[u8]>)?)
    }
}

/// The texts of the stacks of one trace.
struct StackTexts<'a> {
    /// Added to the rows of stacks, so that stacks of several traces have different numbers, which
    /// are those of `-json`.
    first_stack: u64,
    seen: HashSet<StackIdx>,
    style: StackStyle<'a>,
}

impl StackTexts<'_> {
    /// The number of a stack; in front of its first use also its frames, if they are to be shown.
    fn text(&mut self, stack: Option<StackIdx>) -> String {
        let Some(stack) = stack else { return String::new() };
        let number = self.first_stack + u64::from(stack.0);
        match self.style.lines(stack) {
            Some(lines) if self.seen.insert(stack) => {
                format!("StackId: {number} {}", lines.collect::<Vec<_>>().join("\n"))
            }
            _ => number.to_string(),
        }
    }
}
