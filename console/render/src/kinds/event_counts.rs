//! `.dump Events`

use crate::json::Meanings;
use std::io;
use std::rc::Rc;

use indicatif::HumanCount;

use super::index;
use crate::json::{self, Document};
use crate::table::{Columns, FileRows, Members, RowsOf, Show, Table};
use handlescope_query::{CountedEvent, EventsAnswer};
use handlescope_session::values::Counted;

/// A kind of events, with the number of its file.
pub type EventCountRow<'a> = (u32, &'a CountedEvent);

/// Columns about a kind of events; a document says file and provider once for all events of a provider.
pub fn event_columns<'a>() -> Columns<'a, EventCountRow<'a>> {
    let mut columns = Columns::<EventCountRow<'a>>::default();
    columns.add("file", "index of the trace", |(file, _)| *file).rows_only();
    let count = columns
        .add(
            "count",
            "number of such events in the source; with `-pn` and `-MinMaxTime` among the \
             events that the extract keeps",
            |(_, row)| row.counted.count,
        )
        .title("Count");
    count.show(Show::Grouped).follows("kind");
    columns
        .add(
            "provider",
            "name; `Windows Kernel` for kernel events; null if nothing names it",
            |(_, row)| row.counted.provider.as_deref(),
        )
        .rows_only();
    columns
        .add(
            "guid",
            "its GUID in lower case with dashes; null for kernel events and trace messages",
            |(_, row)| row.guid.as_deref(),
        )
        .rows_only();
    columns.add(
        "name",
        "task and opcode, or a name built into handlescope; null if nothing names it",
        |(_, row)| row.counted.name.as_deref(),
    );
    columns.add(
        "kind",
        "`hook:GGTT`, `classic:{guid}:{opcode}`, `manifest:{guid}:{id}` or `message`",
        |(_, row)| row.counted.kind.as_str(),
    );
    columns
        .add("shown_provider", "name or GUID of the provider", |(_, row)| row.shown_provider())
        .title("Provider")
        .text_only();
    columns
        .add("shown_event", "name or kind of the event", |(_, row)| row.shown_event())
        .title("Event")
        .text_only();
    columns
        .add(
            "first_ns",
            "time of the first and last; null if the extract does not record it",
            |(_, row)| row.counted.first_ns,
        )
        .title("First")
        .show(Show::Seconds);
    columns
        .add(
            "last_ns",
            "time of the first and last; null if the extract does not record it",
            |(_, row)| row.counted.last_ns,
        )
        .title("Last")
        .show(Show::Seconds);
    columns
}

/// A row for each kind of event; JSON has them by provider.
///
/// # Errors
/// None that a caller could do anything about.
pub fn event_counts<'a>(answers: &'a [EventsAnswer<'_>]) -> io::Result<Table<'a>> {
    let rows =
        answers.iter().flat_map(|answer| answer.rows.iter().map(|row| (index(answer.index), row)));
    let file_rows = answers.iter().map(|answer| {
        let counts = answer.rows.iter().map(|row| row.counted.count);
        let passed = counts.fold(0, u64::saturating_add);
        let (passed, total) = (HumanCount(passed), Counted(answer.total, "event"));
        let kinds = answer.rows.len();
        let kinds_text = Counted(kinds as u64, "kind");
        let scope = if answer.is_of_kept { "that the extract keeps" } else { "of the source" };
        FileRows::of(answer.path, kinds)
            .below(format!("{passed} of {total} {scope}, of {kinds_text}"))
    });
    let table = Table::new("providers", event_columns(), rows.collect(), file_rows)?;
    let no_match = || answers.iter().map(|answer| (answer.index, answer.no_match.as_ref()));
    Ok(table.with_document(move |file_rows, mode, out| {
        let files = answers.iter().zip(file_rows).flat_map(|(answer, file_rows)| {
            let rows = file_rows.relative_rows().filter_map(|row| answer.rows.get(row));
            rows.map(|row| (index(answer.index), row))
        });
        let rows: Vec<EventCountRow<'_>> = files.collect();
        let members = Rc::new(event_columns().in_document());
        let providers = rows.chunk_by(are_of_provider).filter_map(|rows| provider(&members, rows));
        let providers: Vec<Document<'_>> = providers.collect();
        let document = Document::of("Events").with("providers", providers);
        json::write(&document.no_match(no_match()), mode, out)
    }))
}

/// Whether two rows are of one provider of one file.
fn are_of_provider(first: &EventCountRow<'_>, second: &EventCountRow<'_>) -> bool {
    let provider = |row: &CountedEvent| (row.counted.provider.clone(), row.guid.clone());
    first.0 == second.0 && provider(first.1) == provider(second.1)
}

/// The rows of a provider.
fn provider<'a>(
    members: &Rc<Members<'a, EventCountRow<'a>>>,
    rows: &[EventCountRow<'a>],
) -> Option<Document<'a>> {
    let (file, first) = *rows.first()?;
    let count = rows.iter().fold(0_u64, |sum, (_, row)| sum.saturating_add(row.counted.count));
    let document = Document::default()
        .with("file", file)
        .with("provider", first.counted.provider.as_deref())
        .with("guid", first.guid.as_deref())
        .with("count", count);
    let rows = rows.to_vec();
    Some(document.with("events", RowsOf(Rc::clone(members), move || rows.clone().into_iter())))
}

/// Meanings of the members of the document of `.dump Events`.
pub const EVENTS_MEMBERS: Meanings = &[
    ("kind", "always `Events`"),
    ("providers", "the providers, by file, the one with the most events first"),
    (
        "no_match",
        "only if nothing matches: the filter that removed everything, as in `.dump ObjectRef`; \
         `before` counts kinds of events, or single events",
    ),
];

/// Meanings of the members of `providers` in `.dump Events`.
pub const PROVIDER_MEMBERS: Meanings = &[
    ("file", "index of the trace"),
    ("provider", "name; `Windows Kernel` for kernel events; null if nothing names it"),
    ("guid", "its GUID in lower case with dashes; null for kernel events and trace messages"),
    ("count", "sum over `events`"),
    ("events", "its events that passed the filters, the most frequent first"),
];
