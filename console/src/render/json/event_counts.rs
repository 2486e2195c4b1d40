//! `.dump Events -json`.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Array, NoMatchJson, first_no_match};
use crate::query::{CountedEvent, EventsAnswer};
use crate::render::table::Part;
use crate::values::JsonMode;

pub(in crate::render) fn event_counts(
    answers: &[EventsAnswer<'_>],
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows: Vec<(usize, &CountedEvent)> = super::rows(answers, parts)
        .filter_map(|(answer, row)| Some((answer.index, answer.rows.get(row)?)))
        .collect();
    let no_match = answers.iter().map(|answer| (answer.index, answer.no_match.as_ref()));
    super::write(&Document(&rows, first_no_match(no_match)), mode, out)
}

/// The rows in their order; those of one provider that stand together are one element.
struct Document<'a>(&'a [(usize, &'a CountedEvent)], Option<NoMatchJson<'a>>);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "Events")?;
        map.serialize_entry(
            "providers",
            &Array(|| self.0.chunk_by(stand_together).filter_map(ProviderJson::new)),
        )?;
        if let Some(no_match) = &self.1 {
            map.serialize_entry("no_match", no_match)?;
        }
        map.end()
    }
}

/// Whether two rows are of one provider of one file.
fn stand_together(one: &(usize, &CountedEvent), other: &(usize, &CountedEvent)) -> bool {
    let provider = |row: &CountedEvent| (row.counted.provider.clone(), row.guid.clone());
    one.0 == other.0 && provider(one.1) == provider(other.1)
}

#[derive(Serialize)]
struct ProviderJson<'a> {
    file: usize,
    provider: Option<&'a str>,
    guid: Option<&'a str>,
    count: u64,
    events: Vec<EventJson<'a>>,
}

#[derive(Serialize)]
struct EventJson<'a> {
    name: Option<&'a str>,
    kind: &'a str,
    count: u64,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
}

impl<'a> ProviderJson<'a> {
    fn new(rows: &'a [(usize, &'a CountedEvent)]) -> Option<Self> {
        let (file, first) = rows.first()?;
        let event = |(_, row): &(usize, &'a CountedEvent)| EventJson {
            name: row.counted.name.as_deref(),
            kind: &row.counted.kind,
            count: row.counted.count,
            first_ns: row.counted.first_ns,
            last_ns: row.counted.last_ns,
        };
        Some(Self {
            file: *file,
            provider: first.counted.provider.as_deref(),
            guid: first.guid.as_deref(),
            count: rows.iter().fold(0, |sum, (_, row)| sum.saturating_add(row.counted.count)),
            events: rows.iter().map(event).collect(),
        })
    }
}
