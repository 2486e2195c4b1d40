//! `.dump Events -ShowFields`

use std::io::{self, Write};

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::event_counts::{NO_MATCH, add_names};
use super::index;
use crate::json::JsonMembers;
use crate::no_match::{NoMatchRow, first_no_match};
use crate::table::{AnswerTable, Columns, FileRows, Show};
use crate::text::{ProcessStyle, StackStyle};
use handlescope_query::{CountedEvent, FieldValue, NamedField, ProviderEventsAnswer, SingleEvent};
use handlescope_session::settings::{Display, StackDisplayArgs};
use handlescope_session::values::CountedNoun;

/// An event and its file.
#[derive(Clone, Copy)]
struct ProviderEventRow<'a> {
    answer: &'a ProviderEventsAnswer<'a>,
    event: &'a SingleEvent,
    kind: &'a CountedEvent,
}

/// Declares the columns of an event, including its fields and stack lines if they are shown.
fn columns<'a>(
    has_fields: bool,
    stacks: StackDisplayArgs,
    display: Display,
) -> Columns<'a, ProviderEventRow<'a>> {
    let mut columns = Columns::<ProviderEventRow<'a>>::default();
    columns.add("file", "index of the trace", |row| index(row.answer.index));
    columns.add("time_ns", "time", |row| row.event.time_ns).title("Time").show(Show::Seconds);
    columns.add("pid", "process id; null if unknown", |row| row.event.pid);
    columns
        .add("process", "its name", |row| row.answer.list.process(row.event).name)
        .follows("tid");
    let shown = columns
        .add("shown_process", "process with its start and end", move |row| row.process(&display));
    shown.title("Process").text_only();
    columns.add("tid", "thread; null if unknown", |row| row.event.tid).title("Thread");
    columns.add("provider", "name; null if nothing names it", |row| {
        row.kind.counted.provider.as_deref()
    });
    add_names(&mut columns, |row| row.kind);
    columns
        .add("is_short", "whether its data ends before its last field", |row| row.event.is_short);
    if has_fields {
        columns.nest("fields", "object", "its fields by name", |row| {
            let fields = &row.event.fields;
            JsonMembers(move || fields.iter().map(|field| (&field.name, field)))
        });
    }
    columns
        .add("stack", "number of its stack", |row| row.event.stack.map(|stack| stack.0))
        .title("Stack");
    if has_fields {
        let fields = columns.add("fields", "its fields by name", |row| text(&row.event.fields));
        fields.title("Fields").unknown("").rows_only();
    }
    if stacks.show {
        let text = move |row: &ProviderEventRow<'a>| row.stacks(stacks).text(row.event.stack);
        columns.add("frames", "the frames of its stack, one per line", text).rows_only();
        columns.nest("frames", "array", "the frames of its stack, one per line", move |row| {
            row.lines(stacks).unwrap_or_default()
        });
        columns.row_text(move |row, out| row.write(stacks, &display, out));
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
        answer.list.rows.iter().filter_map(move |event| {
            Some(ProviderEventRow { answer, event, kind: answer.list.kinds.get(event.kind)? })
        })
    });
    let mut document = Columns::<Option<NoMatchRow<'a>>>::default();
    document.kind("always `Events`", "Events");
    document.rows("events", "the events, in time order");
    document.no_match(NO_MATCH, |first| *first);
    let columns = columns(has_fields, stacks, *display);
    let table = AnswerTable::new(columns, rows.collect(), answers.iter().map(file_rows))?;
    Ok(table.within(document, first_no_match(answers)))
}

impl<'a> ProviderEventRow<'a> {
    fn process(self, display: &Display) -> String {
        ProcessStyle::new(&self.answer.info, display).marked(&self.answer.list.process(self.event))
    }

    fn stacks(self, stacks: StackDisplayArgs) -> StackStyle<'a> {
        StackStyle::new(Some(self.answer.list.frames.named()), &self.answer.list.bases, stacks)
    }

    /// Returns a line for each frame.
    fn lines(self, stacks: StackDisplayArgs) -> Option<Vec<String>> {
        Some(self.stacks(stacks).lines(self.event.stack?)?.collect())
    }

    /// Writes a line about the event, then a line for each frame of its stack.
    fn write(
        self,
        stacks: StackDisplayArgs,
        display: &Display,
        mut out: &mut dyn Write,
    ) -> io::Result<()> {
        let seconds = self.event.time_ns as f64 / 1e9;
        let process = self.process(display);
        let (provider, event) = (self.kind.shown_provider(), self.kind.shown_event());
        write!(out, "{seconds:.6} {process} {}/{}", Untrusted(provider), Untrusted(event))?;
        let fields = text(&self.event.fields).unwrap_or_default();
        writeln!(out, " {}", Untrusted(&fields))?;
        let Some(stack) = self.event.stack else { return Ok(()) };
        self.stacks(stacks).write_frames(&mut out, stack, display, 1)?;
        writeln!(out)
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
