//! `.dump Events -ShowFields`

use std::io::{self, Write};
use std::rc::Rc;

use handlescope_model::Untrusted;
use indicatif::HumanCount;
use serde::{Serialize, Serializer};

use super::event_counts::{NO_MATCH, add_names};
use super::index;
use super::stack::ListStyle;
use crate::no_match::{NoMatchRow, first_no_match};
use crate::table::{AnswerTable, Columns, FileRows, Show};
use crate::text::StackStyle;
use handlescope_query::{
    CountedEvent, FieldValue, NamedField, ProviderEventList, ProviderEventsAnswer, SingleEvent,
};
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::values::CountedNoun;

/// An event and its file.
struct ProviderEventRow<'a> {
    file: Rc<ListStyle<'a, ProviderEventList<'a>>>,
    event: &'a SingleEvent,
    kind: &'a CountedEvent,
}

/// Declares the columns of an event, including its fields and stack lines if they are shown.
fn columns<'a>(
    has_fields: bool,
    has_stacks: bool,
    display: Display,
) -> Columns<'a, ProviderEventRow<'a>> {
    let mut columns = Columns::<ProviderEventRow<'a>>::default();
    columns.add("file", "index of the trace", |row| index(row.file.answer.index));
    columns.add("time_ns", "time", |row| row.event.time_ns).title("Time").show(Show::Seconds);
    columns.add("pid", "process id; null if unknown", |row| row.event.pid);
    columns
        .add("process", "its name", |row| row.file.answer.list.process(row.event).name)
        .follows("tid");
    columns
        .add("shown_process", "process with its start and end", ProviderEventRow::process)
        .title("Process")
        .text_only();
    columns.add("tid", "thread; null if unknown", |row| row.event.tid).title("Thread");
    columns.add("provider", "name; null if nothing names it", |row| {
        row.kind.counted.provider.as_deref()
    });
    add_names(&mut columns, |row| row.kind);
    columns
        .add("is_short", "whether its data ends before its last field", |row| row.event.is_short);
    if has_fields {
        columns.nest("fields", "object", "its fields by name", |row| FieldsJson(&row.event.fields));
    }
    columns
        .add("stack", "number of its stack", |row| row.event.stack.map(|stack| stack.0))
        .title("Stack");
    if has_fields {
        let fields = columns.add("fields", "its fields by name", |row| text(&row.event.fields));
        fields.title("Fields").unknown("").rows_only();
    }
    if has_stacks {
        const FRAMES: &str = "the frames of its stack, one per line";
        let text = |row: &ProviderEventRow<'a>| row.file.stacks.text(row.event.stack);
        columns.add("frames", FRAMES, text).rows_only();
        columns.nest("frames", "array", FRAMES, |row| row.lines().unwrap_or_default());
        columns.row_text(move |row, out| row.write(&display, out));
    }
    columns
}

/// Returns a row for each event, with its fields if they are shown; with stacks, text lines.
///
/// # Errors
/// None that a caller could do anything about.
pub fn provider_events<'a>(
    answers: &'a [ProviderEventsAnswer<'a>],
    has_fields: bool,
    stacks: StackDisplayArgs,
    display: &Display,
) -> io::Result<AnswerTable<'a>> {
    let rows = answers.iter().flat_map(|answer| {
        let (frames, bases) = (&answer.list.frames, &answer.list.bases);
        let file =
            ListStyle::new(answer, StackStyle::new(Some(frames.named()), bases, stacks), display);
        answer.list.rows.iter().filter_map(move |event| {
            let kind = answer.list.kinds.get(event.kind)?;
            Some(ProviderEventRow { file: Rc::clone(&file), event, kind })
        })
    });
    let mut document = Columns::<Option<NoMatchRow<'a>>>::default();
    document.kind("always `Events`", "Events");
    document.rows("events", "the events, in time order");
    document.no_match(NO_MATCH, |first| *first);
    let columns = columns(has_fields, stacks.show, *display);
    let table = AnswerTable::new(columns, rows.collect(), answers.iter().map(file_rows))?;
    Ok(table.within(document, first_no_match(answers)))
}

impl ProviderEventRow<'_> {
    fn process(&self) -> String {
        self.file.processes.marked(&self.file.answer.list.process(self.event))
    }

    /// Returns a line for each frame.
    fn lines(&self) -> Option<Vec<String>> {
        Some(self.file.stacks.lines(self.event.stack?)?.collect())
    }

    /// Writes a line about the event, then a line for each frame of its stack.
    fn write(&self, display: &Display, mut out: &mut dyn Write) -> io::Result<()> {
        let seconds = self.event.time_ns as f64 / 1e9;
        let process = self.process();
        let (provider, event) = (self.kind.shown_provider(), self.kind.shown_event());
        write!(out, "{seconds:.6} {process} {}/{}", Untrusted(provider), Untrusted(event))?;
        let fields = text(&self.event.fields).unwrap_or_default();
        writeln!(out, " {}", Untrusted(&fields))?;
        let Some(stack) = self.event.stack else { return Ok(()) };
        self.file.stacks.write_frames(&mut out, stack, display, 1)?;
        writeln!(out)
    }
}

/// The fields of an event by name.
struct FieldsJson<'a>(&'a [NamedField]);

impl Serialize for FieldsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|field| (&field.name, field)))
    }
}

fn file_rows(answer: &ProviderEventsAnswer<'_>) -> FileRows {
    let (passed, kept) =
        (CountedNoun(answer.list.passed as u64, "event"), HumanCount(answer.list.kept as u64));
    FileRows::new(answer.path, answer.list.rows.len())
        .counted(format!("of {passed} that passed, of {kept} that the extract keeps"))
}

/// Formats the fields for people; `None` without any.
fn text(fields: &[NamedField]) -> Option<String> {
    let field = |field: &NamedField| {
        let values: Vec<String> = field.values.iter().map(FieldValue::to_string).collect();
        if field.is_list {
            format!("{}=[{}]", field.name, values.join(", "))
        } else {
            format!("{}={}", field.name, values.join(", "))
        }
    };
    let texts: Vec<String> = fields.iter().map(field).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}
