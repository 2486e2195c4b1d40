//! How many events of each kind there are, and which of them matter.

use rustc_hash::FxHashMap;

use super::index::FamilyIndex;
use crate::etl::{Event, EventId, Selector};
use crate::stacks::KeptStacks;

/// Counts events by kind.
pub struct EventCounter {
    hooks: Box<[u64]>,
    others: FxHashMap<EventId, u64>,
}

/// Most kinds counted one by one: no real trace has a thousand, but a damaged one might invent
/// them without end. Further ones are counted together as [`EventId::Message`].
const MAX_KINDS: usize = 1 << 16;

impl Default for EventCounter {
    fn default() -> Self {
        Self { hooks: vec![0; 1 << 16].into_boxed_slice(), others: FxHashMap::default() }
    }
}

impl EventCounter {
    /// Counts one event.
    pub fn count(&mut self, id: EventId) {
        match id {
            EventId::Hook(hook) => {
                if let Some(count) = self.hooks.get_mut(usize::from(hook)) {
                    *count += 1;
                }
            }
            other if self.others.len() < MAX_KINDS => *self.others.entry(other).or_insert(0) += 1,
            other => {
                let id = if self.others.contains_key(&other) { other } else { EventId::Message };
                *self.others.entry(id).or_insert(0) += 1;
            }
        }
    }

    /// The kinds that occur, sorted by their text.
    pub fn kinds(&self) -> Vec<(EventId, u64)> {
        let hooks = self.hooks.iter().enumerate().filter(|(_, count)| **count > 0);
        let mut kinds: Vec<_> = hooks
            .map(|(hook, count)| (EventId::Hook(hook as u16), *count))
            .chain(self.others.iter().map(|(id, count)| (*id, *count)))
            .collect();
        kinds.sort_by_cached_key(|(id, _)| id.to_string());
        kinds
    }

    pub fn total(&self) -> u64 {
        self.hooks.iter().sum::<u64>() + self.others.values().sum::<u64>()
    }

    /// Number of stacks and parts of stacks.
    pub fn stack_parts(&self) -> u64 {
        KeptStacks::PARTS.into_iter().map(|id| self.of(id)).sum()
    }

    /// Number of events of a kind.
    pub fn of(&self, id: EventId) -> u64 {
        match id {
            EventId::Hook(hook) => self.hooks.get(usize::from(hook)).copied().unwrap_or(0),
            other => self.others.get(&other).copied().unwrap_or(0),
        }
    }
}

/// Counts every event and selects those of the families.
#[derive(Default)]
pub struct KernelSelector {
    pub counter: EventCounter,
    index: FamilyIndex,
}

impl Selector for KernelSelector {
    fn select(&mut self, event: &Event<'_>) -> bool {
        self.counter.count(event.id);
        self.index.family(event.id).is_some()
    }
}
