//! How many events of each kind there are, and which of them matter.

use rustc_hash::FxHashMap;

use crate::etl::{Event, EventId, Selector};
use crate::kernel::{IMAGE_ID_GUID, LOST_EVENT_GUID, SYSTEM_FACTS_GUID, hook};
use crate::managed;

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

    /// Number of events of a hook id.
    pub fn hook(&self, hook: u16) -> u64 {
        self.hooks.get(usize::from(hook)).copied().unwrap_or(0)
    }

    /// Number of events.
    pub fn total(&self) -> u64 {
        self.hooks.iter().sum::<u64>() + self.others.values().sum::<u64>()
    }

    /// Number of stack walks and stack key references.
    pub fn stack_fragments(&self) -> u64 {
        [hook::STACK_WALK, hook::STACK_KEY_KERNEL, hook::STACK_KEY_USER]
            .into_iter()
            .map(|hook| self.hook(hook))
            .sum()
    }
}

/// Counts every event and selects those that [`super::Collector`] takes.
#[derive(Default)]
pub struct KernelSelector {
    /// The counts.
    pub counter: EventCounter,
}

impl Selector for KernelSelector {
    fn select(&mut self, event: &Event<'_>) -> bool {
        self.counter.count(event.id);
        match event.id {
            EventId::Hook(hook) => matches!(
                hook,
                hook::PROCESS_START..=hook::PROCESS_DC_END
                    | hook::IMAGE_LOAD
                    | hook::THREAD_START..=hook::THREAD_DC_END
                    | hook::FILE_MAP
                    | hook::FILE_UNMAP
                    | hook::SYSTEM_CPU
                    | 0x1120..=0x1133
                    | hook::IMAGE_UNLOAD..=hook::IMAGE_DC_END
                    | hook::STACK_WALK
                    | hook::STACK_KEY_DELETE..=hook::STACK_KEY_USER
            ),
            EventId::Classic { guid, .. } => {
                guid == IMAGE_ID_GUID || guid == SYSTEM_FACTS_GUID || guid == LOST_EVENT_GUID
            }
            EventId::Manifest { .. } => managed::wanted(event.id),
            EventId::Message => false,
        }
    }
}
