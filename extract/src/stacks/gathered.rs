//! Stacks of events of a part of the trace, whose rows follow those before.

use std::ops::Range;

use super::fragments::{FragmentRef, Fragments};
use crate::etl::{Event, MAX_REPEATED};
use crate::number_set::NumberSet;
use crate::raw::Timeline;

/// Stacks all parts of which came with their events and have numbers.
#[derive(Default)]
pub(crate) struct GatheredStacks {
    /// First and second part of the stack of each row; rows at the end may have none.
    pub(super) parts: Vec<[FragmentRef; 2]>,
    lists: GatheredLists,
}

/// Lists of addresses that are new to the thread that gathers.
#[derive(Default)]
struct GatheredLists {
    /// The number of each list, and its end, which is the start of the next.
    ends: Vec<(u32, usize)>,
    addresses: Vec<[u8; 8]>,
}

/// Whether all parts of the stack of an event that come with it have numbers.
pub(crate) fn has_gathered_stack(event: &Event<'_>) -> bool {
    let has_number = |number: Option<u32>| number.is_some_and(|number| number < MAX_REPEATED);
    event.parts.is_none_or(|parts| parts.iter(event.time).all(|part| has_number(part.number)))
}

impl GatheredStacks {
    /// Takes the stack of the event of the last row. `known` has the numbers of all lists that the thread gathered.
    pub(crate) fn take(
        &mut self,
        event: &Event<'_>,
        timeline: &mut Timeline,
        known: &mut NumberSet,
    ) {
        let (Some(parts), Some(row)) = (event.parts, timeline.len().checked_sub(1)) else { return };
        let mut stack = [FragmentRef::NONE; 2];
        for (slot, part) in stack.iter_mut().zip(parts.iter(event.time)) {
            let Some(number) = part.number else { continue };
            if known.insert(number as usize) {
                self.lists.push(number, part.frames.as_chunks().0);
            }
            *slot = FragmentRef::numbered(number, part.is_user);
            timeline.take_ids(row, part.pid, part.tid);
        }
        self.parts.resize(row, [FragmentRef::NONE; 2]);
        self.parts.push(stack);
    }

    /// The parts of rows; those at the end may lack.
    pub(super) fn of(&self, rows: Range<usize>) -> &[[FragmentRef; 2]] {
        let end = rows.end.min(self.parts.len());
        self.parts.get(rows.start..end).unwrap_or_default()
    }

    /// Moves the lists to where they are kept.
    pub(super) fn move_lists(&mut self, fragments: &mut Fragments) {
        let GatheredLists { ends, addresses } = &mut self.lists;
        let mut start = 0;
        for (number, end) in ends.drain(..) {
            fragments.keep(number, &addresses[start..end]);
            start = end;
        }
        addresses.clear();
    }

    /// Removes all rows.
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
        self.lists.ends.clear();
        self.lists.addresses.clear();
    }
}

impl GatheredLists {
    fn push(&mut self, number: u32, list: &[[u8; 8]]) {
        self.addresses.extend_from_slice(list);
        self.ends.push((number, self.addresses.len()));
    }
}
