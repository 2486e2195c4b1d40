//! `.dump Events`

use std::io;

use indicatif::HumanCount;

use super::index;
use crate::no_match::{NoMatchRow, first_no_match};
use crate::table::{AnswerTable, Columns, FileRows, Show};
use handlescope_query::{CountedEvent, EventsAnswer};
use handlescope_session::values::CountedNoun;

/// A kind of events, with the number of its file.
pub type EventCountRow<'a> = (u32, &'a CountedEvent);

// The meanings of members that kinds of events and their providers share.
const PROVIDER: &str = "name; `Windows Kernel` for kernel events; null if nothing names it";
const GUID: &str = "its GUID in lower case with dashes; null for kernel events and trace messages";

/// Declares the columns of a kind of events; a document has file and provider once for all events of a provider.
pub fn event_columns<'a>() -> Columns<'a, EventCountRow<'a>> {
    const TIMES: &str = "time of the first and last; null if the extract does not record it";
    let mut columns = Columns::<EventCountRow<'a>>::default();
    columns.add("file", "index of the trace", |(file, _)| *file).rows_only();
    let count = columns
        .add(
            "count",
            "number of such events in the source; with `-pn` and `-MinMaxTime`, among the events \
             that the extract keeps",
            |(_, row)| row.counted.count,
        )
        .title("Count");
    count.show(Show::Grouped).follows("kind");
    columns.add("provider", PROVIDER, |(_, row)| row.counted.provider.as_deref()).rows_only();
    columns.add("guid", GUID, |(_, row)| row.guid.as_deref()).rows_only();
    add_names(&mut columns, |(_, row)| row);
    columns
        .add("first_ns", TIMES, |(_, row)| row.counted.first_ns)
        .title("First")
        .show(Show::Seconds);
    columns.add("last_ns", TIMES, |(_, row)| row.counted.last_ns).title("Last").show(Show::Seconds);
    columns
}

/// Adds the names of an event and, in text, of its provider.
pub fn add_names<'a, R>(
    columns: &mut Columns<'a, R>,
    event: impl Fn(&R) -> &'a CountedEvent + Copy + 'a,
) {
    columns.add(
        "name",
        "task and opcode, or a name built into handlescope; null if nothing names it",
        move |row| event(row).counted.name.as_deref(),
    );
    columns.add(
        "kind",
        "`hook:GGTT`, `classic:{guid}:{opcode}`, `manifest:{guid}:{id}` or `message`",
        move |row| event(row).counted.kind.as_str(),
    );
    columns
        .add("shown_provider", "name or GUID of the provider", move |row| {
            event(row).shown_provider()
        })
        .title("Provider")
        .text_only();
    columns
        .add("shown_event", "name or kind of the event", move |row| event(row).shown_event())
        .title("Event")
        .text_only();
}

/// Returns a row for each kind of event; JSON groups them by provider.
///
/// # Errors
/// None that a caller could do anything about.
pub fn event_counts<'a>(answers: &'a [EventsAnswer<'_>]) -> io::Result<AnswerTable<'a>> {
    let rows = answers
        .iter()
        .flat_map(|answer| answer.list.rows.iter().map(|row| (index(answer.index), row)));
    let file_rows = answers.iter().map(|answer| {
        let passed =
            answer.list.rows.iter().map(|row| row.counted.count).fold(0, u64::saturating_add);
        let (passed, total) = (HumanCount(passed), CountedNoun(answer.list.total, "event"));
        let kinds = answer.list.rows.len();
        let kinds_text = CountedNoun(kinds as u64, "kind");
        let scope = if answer.list.is_of_kept { "that the extract keeps" } else { "of the source" };
        FileRows::new(answer.path, kinds)
            .below(format!("{passed} of {total} {scope}, of {kinds_text}"))
    });
    let table = AnswerTable::new(event_columns(), rows.collect(), file_rows)?;
    Ok(table.arranged_in(event_document(), move |file_rows| {
        let rows: Vec<EventCountRow<'_>> = answers
            .iter()
            .zip(file_rows)
            .flat_map(|(answer, file_rows)| {
                file_rows
                    .relative_rows()
                    .filter_map(|row| answer.list.rows.get(row))
                    .map(|row| (index(answer.index), row))
            })
            .collect();
        let providers = rows.chunk_by(are_of_provider).map(<[_]>::to_vec).collect();
        EventsHead { providers, no_match: first_no_match(answers) }
    }))
}

/// Whether two rows have the same provider and file.
fn are_of_provider(first: &EventCountRow<'_>, second: &EventCountRow<'_>) -> bool {
    let provider = |row: &CountedEvent| (row.counted.provider.clone(), row.guid.clone());
    first.0 == second.0 && provider(first.1) == provider(second.1)
}

/// The rows of a provider.
type ProviderRows<'a> = Vec<EventCountRow<'a>>;

/// The events of an answer, grouped by provider.
pub struct EventsHead<'a> {
    providers: Vec<ProviderRows<'a>>,
    no_match: Option<NoMatchRow<'a>>,
}

/// Declares the document of `.dump Events`.
pub fn event_document<'a>() -> Columns<'a, EventsHead<'a>> {
    let mut document = Columns::<EventsHead<'a>>::default();
    document.kind("always `Events`", "Events");
    document.member("providers", "the providers, by file, most events first", |about| {
        provider_columns().parts_of(about.providers.clone())
    });
    document.no_match(NO_MATCH, |about| about.no_match);
    document
}

/// The meaning of `no_match` in documents of events.
pub const NO_MATCH: &str = "only if nothing matches: the filter that removed everything, as in `.dump ObjectRef`; \
                            `before` counts kinds of events, or single events";

/// Declares the columns of a provider.
pub fn provider_columns<'a>() -> Columns<'a, ProviderRows<'a>> {
    let mut columns = Columns::<ProviderRows<'a>>::default();
    columns.member("file", "index of the trace", |rows| rows.first().map(|(file, _)| *file));
    columns.member("provider", PROVIDER, |rows| {
        rows.first().and_then(|(_, row)| row.counted.provider.as_deref())
    });
    columns.member("guid", GUID, |rows| rows.first().and_then(|(_, row)| row.guid.as_deref()));
    columns.member("count", "sum over `events`", |rows| {
        rows.iter().fold(0_u64, |sum, (_, row)| sum.saturating_add(row.counted.count))
    });
    columns.member("events", "its events that passed the filters, most frequent first", |rows| {
        event_columns().parts_of(rows.clone())
    });
    columns
}
