//! Which events have a stack that is kept.

use hashbrown::HashSet;

use super::events::EventStacks;
use crate::raw::Timeline;

/// Bits of a word.
const BITS: usize = u64::BITS as usize;

/// Rows of the timeline whose stacks are in a table, a bit for each; in how many tables, is not known.
#[derive(Default)]
pub struct KeptRows {
    words: Vec<u64>,
    count: u64,
}

impl KeptRows {
    pub(super) fn add(&mut self, row: usize) {
        let (word, bit) = (row / BITS, 1 << (row % BITS));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.count += u64::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    fn has(&self, row: usize) -> bool {
        self.words.get(row / BITS).is_some_and(|word| word & (1 << (row % BITS)) != 0)
    }

    /// The number of rows.
    pub fn len(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Those of events that carry their stacks themselves.
    pub fn carried<'s>(&'s self, stacks: &'s EventStacks) -> impl Iterator<Item = usize> + 's {
        stacks.carried().iter().map(|row| *row as usize).filter(|row| self.has(*row))
    }

    /// Raw time and thread of these.
    pub fn carried_events(&self, stacks: &EventStacks, timeline: &Timeline) -> HashSet<(i64, u32)> {
        let rows = self.carried(stacks);
        rows.filter_map(|row| Some((*timeline.time.get(row)?, *timeline.tid.get(row)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_count_once() {
        let mut rows = KeptRows::default();
        for row in [3, 64, 3, 1000, 64] {
            rows.add(row);
        }
        assert_eq!(rows.len(), 3);
        for row in [3, 64, 1000] {
            assert!(rows.has(row) && !rows.has(row + 1) && !rows.has(row + 64), "{row}");
        }
        assert!(!rows.has(5000));
    }
}
