//! `.dump Events`

use std::io;

use indicatif::HumanCount;

use super::index;
use crate::query::{CountedEvent, EventsAnswer};
use crate::render::json;
use crate::render::table::{Columns, Part, Show, Table};
use crate::values::Counted;

/// A row for each kind of event; JSON has them by provider.
///
/// # Errors
/// None that a caller could do anything about.
pub fn event_counts<'a>(answers: &'a [EventsAnswer<'_>]) -> io::Result<Table<'a>> {
    let of_file =
        |answer: &'a EventsAnswer<'_>| answer.rows.iter().map(|row| (index(answer.index), row));
    let rows: Vec<(u32, &CountedEvent)> = answers.iter().flat_map(of_file).collect();
    let mut columns = Columns::of(&rows);
    columns.add("file", |(file, _)| *file);
    columns.add("count", |(_, row)| row.counted.count).title("Count").show(Show::Grouped);
    columns.add("provider", |(_, row)| row.counted.provider.as_deref());
    columns.add("guid", |(_, row)| row.guid.as_deref());
    columns.add("name", |(_, row)| row.counted.name.as_deref());
    columns.add("kind", |(_, row)| row.counted.kind.as_str());
    columns.add("shown_provider", |(_, row)| row.shown_provider()).title("Provider").text_only();
    columns.add("shown_event", |(_, row)| row.shown_event()).title("Event").text_only();
    columns.add("first_ns", |(_, row)| row.counted.first_ns).title("First").show(Show::Seconds);
    columns.add("last_ns", |(_, row)| row.counted.last_ns).title("Last").show(Show::Seconds);
    let parts = answers.iter().map(|answer| {
        let counts = answer.rows.iter().map(|row| row.counted.count);
        let passed = counts.fold(0, u64::saturating_add);
        let (passed, total) = (HumanCount(passed), Counted(answer.total, "event"));
        let kinds = answer.rows.len();
        let kinds_text = Counted(kinds as u64, "kind");
        let of = if answer.is_of_kept { "that the extract keeps" } else { "of the source" };
        Part::of(answer.path, kinds).below(format!("{passed} of {total} {of}, of {kinds_text}"))
    });
    let table = Table::new("providers", columns, parts)?;
    Ok(table.with_document(|parts, mode, out| json::event_counts(answers, parts, mode, out)))
}
