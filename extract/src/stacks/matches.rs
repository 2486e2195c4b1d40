//! Events whose stacks get their user part later.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// Most stacks that wait. A user part comes when its thread returns to user mode.
const MAX_WAITING: usize = 4096;

/// Match id and thread.
type Key = (u64, u32);

/// What waits for the user part of its stack, by match id and thread.
pub(super) struct Matches<T> {
    open: FxHashMap<Key, Vec<T>>,
    /// The keys in the order in which they came, so that the oldest gives way.
    order: VecDeque<Key>,
}

impl<T> Default for Matches<T> {
    fn default() -> Self {
        Self { open: FxHashMap::default(), order: VecDeque::new() }
    }
}

impl<T> Matches<T> {
    /// Lets an event wait; the one that has waited longest no longer does when there are too many.
    pub(super) fn wait(&mut self, match_id: u64, tid: u32, event: T) {
        self.order.push_back((match_id, tid));
        self.open.entry((match_id, tid)).or_default().push(event);
        while self.order.len() > MAX_WAITING {
            if let Some(oldest) = self.order.pop_front() {
                self.open.remove(&oldest);
            }
        }
    }

    /// The events that waited for this part.
    pub(super) fn take(&mut self, match_id: u64, tid: u32) -> Vec<T> {
        if self.open.is_empty() {
            return Vec::new();
        }
        self.open.remove(&(match_id, tid)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_thread_are_matched_and_old_ones_give_way() {
        let mut matches = Matches::default();
        matches.wait(7, 1, "a");
        matches.wait(7, 1, "b");
        matches.wait(7, 2, "other thread");
        assert_eq!(matches.take(7, 1), ["a", "b"]);
        assert!(matches.take(7, 1).is_empty());
        for match_id in 100..100 + MAX_WAITING as u64 {
            matches.wait(match_id, 1, "later");
        }
        assert!(matches.take(7, 2).is_empty());
        assert!(matches.open.len() <= MAX_WAITING && matches.order.len() <= MAX_WAITING);
    }
}
