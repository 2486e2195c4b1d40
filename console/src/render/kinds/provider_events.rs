//! `.dump Events -ShowFields`

use std::fmt;
use std::io::{self, Write};

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::index;
use crate::query::{CountedEvent, FieldValue, NamedField, ProviderEventsAnswer, SingleEvent};
use crate::render::json;
use crate::render::table::{Columns, Part, Show, Table};
use crate::render::text::{ProcessStyle, StackStyle};
use crate::settings::{Display, StackDisplayArgs};
use crate::values::Counted;

/// An event with its file.
#[derive(Clone, Copy)]
struct Row<'a> {
    answer: &'a ProviderEventsAnswer<'a>,
    event: &'a SingleEvent,
}

/// A row for each event, with its fields if they were asked for; with stacks, lines of text.
///
/// # Errors
/// None that a caller could do anything about.
pub fn provider_events<'a>(
    answers: &'a [ProviderEventsAnswer<'a>],
    has_fields: bool,
    stacks: StackDisplayArgs,
    display: &Display,
) -> io::Result<Table<'a>> {
    let of_file = |answer: &'a ProviderEventsAnswer<'a>| {
        answer.rows.iter().map(move |event| Row { answer, event })
    };
    let rows: Vec<Row<'a>> = answers.iter().flat_map(of_file).collect();
    let mut columns = Columns::of(&rows);
    columns.add("file", |row| index(row.answer.index));
    columns.add("time_ns", |row| row.event.time_ns).title("Time").show(Show::Seconds);
    columns.add("pid", |row| row.event.pid);
    columns.add("process", |row| row.answer.process(row.event).name);
    columns.add("shown_process", |row| row.process(display)).title("Process").text_only();
    columns.add("tid", |row| row.event.tid).title("Thread");
    columns.add("provider", |row| row.kind()?.counted.provider.as_deref());
    columns.add("name", |row| row.kind()?.counted.name.as_deref());
    columns.add("kind", |row| row.kind().map(|kind| kind.counted.kind.as_str()));
    let provider = |row: &Row<'a>| row.kind().map(CountedEvent::shown_provider);
    columns.add("shown_provider", provider).title("Provider").text_only();
    let event = |row: &Row<'a>| row.kind().map(CountedEvent::shown_event);
    columns.add("shown_event", event).title("Event").text_only();
    columns.add("is_short", |row| row.event.is_short);
    columns.add("stack", |row| row.event.stack.map(|stack| stack.0)).title("Stack");
    if has_fields {
        columns.add("fields", |row| text(&row.event.fields)).title("Fields").unknown("");
    }
    if stacks.show {
        columns.add("frames", |row| row.lines(stacks).map(|lines| lines.join("\n")));
    }
    let table = Table::new("events", columns, answers.iter().map(part))?;
    let table = table.with_document(move |parts, mode, out| {
        let lines = |answer: &ProviderEventsAnswer<'_>, event: &SingleEvent| {
            stacks.show.then(|| Row { answer, event }.lines(stacks).unwrap_or_default())
        };
        json::provider_events(answers, has_fields, &lines, parts, mode, out)
    });
    if !stacks.show {
        return Ok(table);
    }
    let display = *display;
    Ok(table.with_row_text(move |at, out| {
        let Some(row) = rows.get(at) else { return Ok(()) };
        row.write(stacks, &display, out)
    }))
}

impl<'a> Row<'a> {
    fn kind(self) -> Option<&'a CountedEvent> {
        self.answer.kinds.get(self.event.kind)
    }

    fn process(self, display: &Display) -> String {
        ProcessStyle::new(&self.answer.info, display).marked(&self.answer.process(self.event))
    }

    fn stacks(self, stacks: StackDisplayArgs) -> StackStyle<'a> {
        StackStyle::new(Some(self.answer.frames.named()), &self.answer.bases, stacks)
    }

    /// A line for each frame.
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
        let provider = self.kind().map_or("", CountedEvent::shown_provider);
        let event = self.kind().map_or("", CountedEvent::shown_event);
        write!(out, "{seconds:.6} {process} {}/{}", Untrusted(provider), Untrusted(event))?;
        let fields = text(&self.event.fields).unwrap_or_default();
        writeln!(out, " {}", Untrusted(&fields))?;
        match self.event.stack {
            Some(stack) => self.stacks(stacks).write_frames(&mut out, stack, display, 1),
            None => Ok(()),
        }
    }
}

fn part(answer: &ProviderEventsAnswer<'_>) -> Part {
    let (passed, kept) = (Counted(answer.passed as u64, "event"), HumanCount(answer.kept as u64));
    Part::of(answer.path, answer.rows.len())
        .counted(format!("of {passed} that passed, of {kept} that the extract keeps"))
}

/// The fields as people read them; `None` without any.
fn text(fields: &[NamedField]) -> Option<String> {
    let field = |field: &NamedField| {
        let values: Vec<String> = field.values.iter().map(FieldValue::to_string).collect();
        match field.is_list {
            true => format!("{}=[{}]", field.name, values.join(", ")),
            false => format!("{}={}", field.name, values.join(", ")),
        }
    };
    let texts: Vec<String> = fields.iter().map(field).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signed(number) => number.fmt(f),
            Self::Unsigned(number) => number.fmt(f),
            Self::Hex(number) => write!(f, "0x{number:X}"),
            Self::Bool(is_true) => is_true.fmt(f),
            Self::Float(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}
