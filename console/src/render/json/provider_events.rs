//! `.dump Events -ShowFields -json`.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Array, Members, NoMatchJson, Shown, first_no_match};
use crate::query::{FieldValue, NamedField, ProviderEventsAnswer, SingleEvent};
use crate::render::table::Part;
use crate::values::JsonMode;

/// The lines of the stack of an event, if stacks are shown.
type Lines<'a> = &'a dyn Fn(&ProviderEventsAnswer<'_>, &SingleEvent) -> Option<Vec<String>>;

pub(in crate::render) fn provider_events(
    answers: &[ProviderEventsAnswer<'_>],
    has_fields: bool,
    lines: Lines<'_>,
    parts: &[Part],
    mode: JsonMode,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows = || {
        super::rows(answers, parts).filter_map(|(answer, row)| {
            let event = answer.rows.get(row)?;
            Some(EventJson { answer, event, has_fields, lines })
        })
    };
    let no_match = answers.iter().map(|answer| (answer.index, answer.no_match.as_ref()));
    super::write(&Document(rows, first_no_match(no_match)), mode, out)
}

struct Document<'a, F>(F, Option<NoMatchJson<'a>>);

impl<F, I> Serialize for Document<'_, F>
where
    F: Fn() -> I,
    I: IntoIterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "Events")?;
        map.serialize_entry("events", &Array(&self.0))?;
        if let Some(no_match) = &self.1 {
            map.serialize_entry("no_match", no_match)?;
        }
        map.end()
    }
}

struct EventJson<'a> {
    answer: &'a ProviderEventsAnswer<'a>,
    event: &'a SingleEvent,
    has_fields: bool,
    lines: Lines<'a>,
}

impl Serialize for EventJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { answer, event, has_fields, lines } = self;
        let kind = answer.kinds.get(event.kind);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("file", &answer.index)?;
        map.serialize_entry("time_ns", &event.time_ns)?;
        map.serialize_entry("pid", &event.pid)?;
        map.serialize_entry("tid", &event.tid)?;
        map.serialize_entry("process", &answer.process(event).name)?;
        map.serialize_entry("provider", &kind.and_then(|kind| kind.counted.provider.as_deref()))?;
        map.serialize_entry("name", &kind.and_then(|kind| kind.counted.name.as_deref()))?;
        map.serialize_entry("kind", &kind.map(|kind| &kind.counted.kind))?;
        map.serialize_entry("is_short", &event.is_short)?;
        if *has_fields {
            let fields = || event.fields.iter().map(|field| (&field.name, field));
            map.serialize_entry("fields", &Members(fields))?;
        }
        map.serialize_entry("stack", &event.stack.map(|stack| stack.0))?;
        if let Some(lines) = lines(answer, event) {
            map.serialize_entry("frames", &lines)?;
        }
        map.end()
    }
}

impl Serialize for NamedField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.values.first().filter(|_| !self.is_list) {
            Some(value) => value.serialize(serializer),
            None => self.values.serialize(serializer),
        }
    }
}

impl Serialize for FieldValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Signed(number) => serializer.serialize_i64(*number),
            Self::Unsigned(number) => serializer.serialize_u64(*number),
            Self::Bool(is_true) => serializer.serialize_bool(*is_true),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Hex(_) | Self::Bytes(_) => Shown(self).serialize(serializer),
        }
    }
}
