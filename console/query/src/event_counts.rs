//! `.dump Events`: how often which events occur in the source of a trace, kept or not. The table already has one row
//! per event, so only providers need to be summed up.

use std::collections::{BTreeSet, HashMap};

use handlescope_model::TableRows;
use handlescope_model::tables::{EventCount, EventCounts};

use super::context::Source;
use super::criterion::{Criterion, Survivors};
use super::error::QueryError;
use super::list_answer::{FilteredList, ListAnswer, list_answers};
use super::no_match::ListSubject;
use crate::criteria::EventCriteria;
use handlescope_session::cancel::Cancel;
use handlescope_session::filter::Filter;

/// What `.dump Events` says about one trace.
pub type EventsAnswer<'a> = ListAnswer<'a, CountedEvents>;

/// The events of one trace.
pub struct CountedEvents {
    /// Events that passed. Providers with the most events come first, and so do the most frequent events of each.
    pub rows: Vec<CountedEvent>,
    /// Number of events counted in the rows.
    pub total: u64,
    /// Whether these are the single events kept by the extract rather than all events of the source.
    pub is_of_kept: bool,
}

/// A kind of event.
pub struct CountedEvent {
    /// The event with its count from the table.
    pub counted: EventCount,
    /// GUID of the provider; `None` for events of the kernel.
    pub guid: Option<String>,
}

impl CountedEvent {
    pub fn new(counted: EventCount) -> Self {
        let mut parts = counted.kind.split(':');
        let has_guid = matches!(parts.next(), Some("manifest" | "classic"));
        let guid = parts.next().filter(|_| has_guid).map(str::to_owned);
        Self { guid, counted }
    }

    /// Returns the provider for display: its name, or else its GUID.
    pub fn shown_provider(&self) -> &str {
        let name = self.counted.provider.as_deref();
        name.or(self.guid.as_deref()).unwrap_or_default()
    }

    /// Returns the event for display: its name, or else its kind without the provider, which is shown beside it.
    pub fn shown_event(&self) -> &str {
        let kind = self.counted.kind.as_str();
        let id = kind.rsplit(':').next().filter(|_| self.guid.is_some());
        self.counted.name.as_deref().or(id).unwrap_or(kind)
    }

    /// Whether its provider passes, by name or GUID.
    pub fn is_of_provider(&self, filter: &Filter) -> bool {
        let provider = self.counted.provider.as_deref();
        filter.matches_lines(provider.into_iter().chain(self.guid.as_deref()))
    }

    /// Whether it passes by its name, id or kind.
    pub fn matches(&self, filter: &Filter) -> bool {
        let EventCount { name, kind, .. } = &self.counted;
        filter.matches_lines(name.as_deref().into_iter().chain([self.shown_event(), kind]))
    }
}

/// Answers `.dump Events`, one answer for each trace.
///
/// # Errors
/// If an archive is damaged or `cancel` asks to stop.
pub fn event_counts<'a>(
    sources: &[Source<'a>],
    args: &EventCriteria,
    cancel: &Cancel,
) -> Result<Vec<EventsAnswer<'a>>, QueryError> {
    list_answers(sources, args, |source, args| {
        cancel.check()?;
        let table = EventCounts::read(source.trace)?;
        let mut rows: Vec<CountedEvent> = table.rows().map(CountedEvent::new).collect();
        let total = rows.iter().map(|row| row.counted.count).fold(0, u64::saturating_add);
        let mut survivors = Survivors::new(rows.len());
        survivors.keep(Criterion::Provider, &args.provider, &mut rows, |filter, row| {
            row.is_of_provider(filter)
        });
        survivors.keep(Criterion::Event, &args.event, &mut rows, |filter, row| row.matches(filter));
        Ok((CountedEvents::new(rows, total, false), survivors))
    })
}

impl FilteredList for CountedEvents {
    const SUBJECT: ListSubject = ListSubject::EventKind;

    fn names(&self, criterion: Criterion) -> BTreeSet<String> {
        names(self.rows.iter(), criterion)
    }
}

/// Returns the names of providers or events.
pub fn names<'e>(
    events: impl Iterator<Item = &'e CountedEvent>,
    criterion: Criterion,
) -> BTreeSet<String> {
    match criterion {
        Criterion::Provider => events.map(|event| event.shown_provider().to_owned()).collect(),
        Criterion::Event => events.map(|event| event.shown_event().to_owned()).collect(),
        _ => BTreeSet::new(),
    }
}

impl CountedEvents {
    /// Sorts the rows.
    pub fn new(mut rows: Vec<CountedEvent>, total: u64, is_of_kept: bool) -> Self {
        let mut counts: HashMap<String, u64> = HashMap::new();
        for row in &rows {
            let sum = counts.entry(row.shown_provider().to_owned()).or_default();
            *sum = sum.saturating_add(row.counted.count);
        }
        rows.sort_by_cached_key(|row| {
            let provider = row.shown_provider().to_owned();
            let provider_count = counts.get(&provider).copied().unwrap_or_default();
            let EventCount { count, kind, name, .. } = &row.counted;
            let event = (u64::MAX - count, kind.clone(), name.clone());
            (u64::MAX - provider_count, provider, event)
        });
        Self { rows, total, is_of_kept }
    }
}
