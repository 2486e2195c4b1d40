//! Counts events by kind, and selects the events to collect.

use rustc_hash::FxHashMap;

use super::index::FamilyIndex;
use crate::described::Interest;
use crate::etl::{Event, EventId, Guid, Selector, StackPart};
use crate::intern::ByteInterner;
use crate::mapping::ResourceMapping;
use crate::metadata::{event_name, provider_name, schema_item, traits_item};
use crate::stacks::{KeptStacks, repeated_frames, stack_part};

/// Number and time range of events of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTally {
    pub count: u64,
    /// Raw times of the first and last one.
    pub first: i64,
    pub last: i64,
}

impl EventTally {
    const NONE: Self = Self { count: 0, first: i64::MAX, last: i64::MIN };

    fn add(&mut self, time: i64) {
        self.count += 1;
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }

    fn merge(&mut self, further: Self) {
        self.count += further.count;
        self.first = self.first.min(further.first);
        self.last = self.last.max(further.last);
    }
}

/// Events that are counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventKindCount {
    pub id: EventId,
    /// Name carried by TraceLogging events; their ids may all be 0.
    pub name: Option<String>,
    pub tally: EventTally,
}

/// Counts events by kind.
#[derive(Clone)]
pub struct EventCounter {
    hooks: Box<[EventTally]>,
    /// Events without a hook id, by id.
    by_id: FxHashMap<EventId, EventTally>,
    /// TraceLogging events, by id and name.
    named: FxHashMap<(EventId, u32), EventTally>,
    names: ByteInterner,
    /// Names of TraceLogging providers.
    providers: FxHashMap<Guid, String>,
    /// Maximum number of kinds, of named kinds, and of providers.
    max_kinds: usize,
}

/// Maximum number of kinds counted separately. No real trace has a thousand, but a damaged one may invent them without
/// end. Any further kinds are counted together as [`EventId::Message`].
const MAX_KINDS: usize = 1 << 16;

/// Longest event name, in bytes; names that differ only after that count as one.
const MAX_NAME: usize = 1024;

impl Default for EventCounter {
    fn default() -> Self {
        Self {
            hooks: vec![EventTally::NONE; 1 << 16].into_boxed_slice(),
            by_id: FxHashMap::default(),
            named: FxHashMap::default(),
            names: ByteInterner::default(),
            providers: FxHashMap::default(),
            max_kinds: MAX_KINDS,
        }
    }
}

impl EventCounter {
    pub fn count(&mut self, event: &Event<'_>) {
        match event.id {
            EventId::Hook(hook) => {
                if let Some(tally) = self.hooks.get_mut(usize::from(hook)) {
                    tally.add(event.time);
                }
            }
            EventId::Manifest { guid, .. } => match schema_item(event.extended) {
                Some(schema) => self.trace_logging(guid, schema, event),
                None => self.count_id(event.id, event.time),
            },
            id => self.count_id(id, event.time),
        }
    }

    fn count_id(&mut self, id: EventId, time: i64) {
        self.tally(id).add(time);
    }

    fn tally(&mut self, id: EventId) -> &mut EventTally {
        let is_room = self.by_id.len() < self.max_kinds || self.by_id.contains_key(&id);
        let id = if is_room { id } else { EventId::Message };
        self.by_id.entry(id).or_insert(EventTally::NONE)
    }

    fn trace_logging(&mut self, guid: Guid, schema: &[u8], event: &Event<'_>) {
        let name = event_name(schema).unwrap_or_default();
        let name = name.get(..MAX_NAME).unwrap_or(name);
        self.named_tally(event.id, name).add(event.time);
        if self.providers.len() < self.max_kinds && !self.providers.contains_key(&guid) {
            let name = traits_item(event.extended).and_then(provider_name).unwrap_or_default();
            let name = name.get(..MAX_NAME).unwrap_or(name);
            self.providers.insert(guid, String::from_utf8_lossy(name).into_owned());
        }
    }

    fn named_tally(&mut self, id: EventId, name: &[u8]) -> &mut EventTally {
        let is_room = self.named.len() < self.max_kinds;
        let number = if is_room { Some(self.names.intern(name)) } else { self.names.find(name) };
        let key = number.map(|number| (id, number));
        match key.filter(|key| is_room || self.named.contains_key(key)) {
            Some(key) => self.named.entry(key).or_insert(EventTally::NONE),
            None => self.tally(id),
        }
    }

    /// Sums up the counts of counters that each counted some of the buffers.
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = parts.into_iter();
        let mut sum = Self { max_kinds: MAX_KINDS, ..parts.next().unwrap_or_default() };
        parts.for_each(|part| sum.add(part));
        sum
    }

    fn add(&mut self, further: Self) {
        let hooks = self.hooks.iter_mut().zip(&further.hooks);
        // Nearly all hooks have no events.
        hooks.filter(|(_, more)| more.count > 0).for_each(|(tally, more)| tally.merge(*more));
        for (id, more) in further.by_id {
            self.tally(id).merge(more);
        }
        for ((id, name), more) in further.named {
            self.named_tally(id, further.names.get(name)).merge(more);
        }
        for (guid, name) in further.providers {
            if self.provider(guid).is_none()
                && (self.providers.len() < self.max_kinds || self.providers.contains_key(&guid))
            {
                self.providers.insert(guid, name);
            }
        }
    }

    /// Returns the kinds that occur, sorted by their text, then by name.
    pub fn kinds(&self) -> Vec<EventKindCount> {
        let hooks = self
            .hooks
            .iter()
            .enumerate()
            .filter(|(_, tally)| tally.count > 0)
            .map(|(hook, tally)| (EventId::Hook(hook as u16), *tally));
        let by_id = self.by_id.iter().map(|(id, tally)| (*id, *tally));
        let plain = hooks.chain(by_id).map(|(id, tally)| EventKindCount { id, name: None, tally });
        let named = self.named.iter().map(|((id, name), tally)| EventKindCount {
            id: *id,
            name: Some(self.names.text(*name)).filter(|name| !name.is_empty()),
            tally: *tally,
        });
        let mut kinds: Vec<EventKindCount> = plain.chain(named).collect();
        kinds.sort_by_cached_key(|kind| (kind.id.to_string(), kind.name.clone()));
        kinds
    }

    /// Returns the name of a TraceLogging provider, as carried by its events.
    pub fn provider(&self, guid: Guid) -> Option<&str> {
        self.providers.get(&guid).map(String::as_str).filter(|name| !name.is_empty())
    }

    pub fn total(&self) -> u64 {
        let by_id = self.by_id.values().chain(self.named.values());
        self.hooks.iter().chain(by_id).map(|tally| tally.count).sum()
    }

    /// Returns the number of stacks and stack parts.
    pub fn stack_parts(&self) -> u64 {
        KeptStacks::PARTS.into_iter().map(|id| self.of(id)).sum()
    }

    /// Returns the number of events of a kind, not counting TraceLogging events.
    pub fn of(&self, id: EventId) -> u64 {
        let tally = match id {
            EventId::Hook(hook) => self.hooks.get(usize::from(hook)),
            id => self.by_id.get(&id),
        };
        tally.map_or(0, |tally| tally.count)
    }
}

/// Counts every event, and selects events of the families, events that may acquire or release a resource and, on
/// request, events of providers.
#[derive(Clone, Default)]
pub struct KernelSelector {
    pub counter: EventCounter,
    index: FamilyIndex,
    interest: Interest,
    has_providers: bool,
    joins_stacks: bool,
}

impl KernelSelector {
    /// Also selects events of all providers: a provider's name is known only in time order.
    pub fn with_providers() -> Self {
        Self { has_providers: true, ..Self::default() }
    }

    /// Hands out stack parts with their event if the event comes before them in the same buffer.
    #[must_use]
    pub fn joining_stacks(self) -> Self {
        Self { joins_stacks: true, ..self }
    }

    /// Divides into `parts` selectors, each for some of the buffers. Together they keep no more kinds than one.
    #[must_use]
    pub fn divided(self, parts: usize) -> Vec<Self> {
        let max_kinds = MAX_KINDS / parts.max(1);
        let counter = EventCounter { max_kinds, ..self.counter };
        vec![Self { counter, ..self }; parts]
    }

    /// Also selects these events, which acquire and release resources.
    #[must_use]
    pub fn following(self, resources: Vec<ResourceMapping>) -> Self {
        Self { interest: Interest::new(resources), ..self }
    }
}

impl Selector for KernelSelector {
    fn select(&mut self, event: &Event<'_>) -> bool {
        self.counter.count(event);
        let is_of_provider = matches!(event.id, EventId::Manifest { .. } | EventId::Classic { .. });
        self.index.family(event.id).is_some()
            || is_of_provider && (self.has_providers || self.interest.may_be(event))
    }

    fn repeated<'a>(&self, event: &Event<'a>) -> Option<&'a [u8]> {
        repeated_frames(event)
    }

    fn stack_part<'a>(&self, event: &Event<'a>) -> Option<StackPart<'a>> {
        if self.joins_stacks { stack_part(event) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::encoded_item;

    const GUID: Guid = Guid([3; 16]);

    /// Counts a TraceLogging event of id 0 with a schema of this name and the traits of a provider.
    fn count(counter: &mut EventCounter, name: &str, time: i64) {
        let item = |kind, body: &[u8], more| {
            let size = (body.len() as u16 + 2).to_le_bytes();
            encoded_item(kind, &[&size, body].concat(), more)
        };
        let schema = [&[0], name.as_bytes(), &[0]].concat();
        let extended = [item(12, b"Contoso\0", true), item(11, &schema, false)].concat();
        let id = EventId::Manifest { guid: GUID, id: 0 };
        counter.count(&Event { id, time, extended: &extended, ..Event::default() });
    }

    #[test]
    fn events_with_equal_ids_are_distinguished_by_their_names() {
        let mut counter = EventCounter::default();
        for (name, time) in [("Go", 5), ("Stop", 7), ("Go", 3)] {
            count(&mut counter, name, time);
        }
        let counts: Vec<_> =
            counter.kinds().into_iter().map(|kind| (kind.name.unwrap(), kind.tally)).collect();
        let tally = |count, first, last| EventTally { count, first, last };
        assert_eq!(
            counts,
            [("Go".to_owned(), tally(2, 3, 5)), ("Stop".to_owned(), tally(1, 7, 7))]
        );
        assert_eq!((counter.total(), counter.provider(GUID)), (3, Some("Contoso")));
    }

    #[test]
    fn counts_of_divided_buffers_are_those_of_all() {
        let mut parts = [EventCounter::default(), EventCounter::default()];
        let mut whole = EventCounter::default();
        let ids = [EventId::Hook(0x1120), EventId::Manifest { guid: GUID, id: 4 }];
        for (at, time) in [7, 3, 9, 5, 4].into_iter().enumerate() {
            for counter in [&mut parts[at % 2], &mut whole] {
                count(counter, ["Go", "Stop", "Wait"][at % 3], time);
                counter.count(&Event { id: ids[at / 2 % 2], time, ..Event::default() });
            }
        }
        let sum = EventCounter::sum(parts);
        assert_eq!(sum.kinds(), whole.kinds());
        assert_eq!((sum.total(), sum.provider(GUID)), (10, Some("Contoso")));
    }

    #[test]
    fn names_without_end_are_counted_together() {
        let mut counter = EventCounter::default();
        for number in 0..MAX_KINDS + 10 {
            count(&mut counter, &number.to_string(), 1);
        }
        assert_eq!(counter.kinds().len(), MAX_KINDS + 1);
        assert_eq!(counter.total(), MAX_KINDS as u64 + 10);
    }
}
