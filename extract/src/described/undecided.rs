//! Events that nothing describes yet.

use rustc_hash::FxHashMap;

use crate::etl::{Event, EventId};

/// Bytes that waiting events take at most, with their rows.
const MAX_BYTES: usize = 64 << 20;

/// What an event takes beside its bytes: its row of the timeline and its entry here.
const EVENT_COST: usize = 96;

/// Most kinds of events that are counted one by one when they are too many.
const MAX_KINDS: usize = 1 << 12;

/// An event without its payload.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    id: EventId,
    version: u8,
    pointer_size: u8,
    pid: Option<u32>,
    /// Row of the timeline.
    row: u32,
    /// Where its payload ends, which begins where that of the event before ends.
    end: u32,
}

/// Events with their payloads until their description comes.
#[derive(Default)]
pub(super) struct Undecided {
    events: Vec<Waiting>,
    payloads: Vec<u8>,
    used: usize,
    left_out: UndescribedKinds,
}

/// Numbers of events that nothing describes, by kind.
#[derive(Debug, Clone, Default)]
pub struct UndescribedKinds(FxHashMap<(EventId, u8), u64>);

impl UndescribedKinds {
    /// Counts an event, unless there are too many kinds.
    pub(crate) fn count(&mut self, event: &Event<'_>) {
        let key = (event.id, event.version);
        if self.0.len() < MAX_KINDS || self.0.contains_key(&key) {
            *self.0.entry(key).or_default() += 1;
        }
    }

    /// An event of each kind, as far as a description needs it, with their number.
    pub(super) fn events(&self) -> impl Iterator<Item = (Event<'_>, u64)> {
        let kind = |id, version| Event { id, version, ..Event::default() };
        self.0.iter().map(move |((id, version), count)| (kind(*id, *version), *count))
    }
}

impl Undecided {
    /// Keeps an event that gets this row of the timeline. Returns whether there is room; if not, it is counted.
    pub(super) fn keep(&mut self, event: &Event<'_>, row: usize) -> bool {
        let cost = EVENT_COST + event.payload.len() + event.extended.len();
        if self.used + cost > MAX_BYTES {
            self.left_out.count(event);
            return false;
        }
        self.used += cost;
        self.payloads.extend_from_slice(event.payload);
        self.events.push(Waiting {
            id: event.id,
            version: event.version,
            pointer_size: event.pointer_size as u8,
            pid: event.pid,
            row: row as u32,
            end: self.payloads.len() as u32,
        });
        true
    }

    /// The events with their rows of the timeline, as far as a description needs them.
    pub(super) fn events(&self) -> impl Iterator<Item = (usize, Event<'_>)> {
        let mut start = 0;
        self.events.iter().map(move |waiting| {
            let end = waiting.end as usize;
            let payload = self.payloads.get(start..end).unwrap_or_default();
            start = end;
            let Waiting { id, version, pointer_size, pid, .. } = *waiting;
            let pointer_size = pointer_size.into();
            (
                waiting.row as usize,
                Event { id, version, pid, pointer_size, payload, ..Event::default() },
            )
        })
    }

    /// Kinds of events that there was no room for.
    pub(super) fn left_out(&self) -> &UndescribedKinds {
        &self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etl::Guid;

    #[test]
    fn what_there_is_no_room_for_is_counted_by_kind() {
        let mut undecided = Undecided::default();
        let payload = vec![7; 1 << 16];
        let id = EventId::Manifest { guid: Guid([2; 16]), id: 3 };
        let event = Event { id, payload: &payload, ..Event::default() };
        let kept = (0..2000).filter(|row| undecided.keep(&event, *row)).count();
        assert_eq!(kept, MAX_BYTES / (payload.len() + EVENT_COST));
        let (row, last) = undecided.events().last().unwrap();
        assert_eq!((row, last.payload), (kept - 1, payload.as_slice()));
        let left: Vec<u64> = undecided.left_out().events().map(|(_, count)| count).collect();
        assert_eq!(left, [2000 - kept as u64]);
    }
}
