//! Stacks of rows that are gathered separately from the rows before them.

use std::ops::Range;

use super::fragments::{FragmentRef, Fragments};
use super::parts::LoggedPart;
use super::stays::LastPart;
use crate::etl::{Event, MAX_REPEATED};
use crate::number_set::NumberSet;
use crate::raw::Timeline;

/// Stacks with only parts that came with their events and have numbers.
#[derive(Default)]
pub struct GatheredStacks {
    /// First and second stack part of each row, up to the last row with any.
    parts: Vec<[FragmentRef; 2]>,
    /// Last part of each row's stack, if other stacks of its thread need it.
    last: Vec<Option<LastPart>>,
    lists: GatheredLists,
}

/// Address lists that the gatherer has not passed on before.
#[derive(Default)]
struct GatheredLists {
    /// Number of each list, and its end, where the next one starts.
    ends: Vec<(u32, usize)>,
    addresses: Vec<[u8; 8]>,
}

/// Whether all stack parts that come with an event have numbers.
pub fn has_numbered_stack(event: &Event<'_>) -> bool {
    let has_number = |number: Option<u32>| number.is_some_and(|number| number < MAX_REPEATED);
    event.parts.is_none_or(|parts| parts.iter(event.time).all(|part| has_number(part.number)))
}

impl GatheredStacks {
    /// Adds the stack of the event in the timeline's last row. `known` has the numbers of lists that the gatherer has
    /// already passed on.
    pub fn take(&mut self, event: &Event<'_>, timeline: &mut Timeline, known: &mut NumberSet) {
        let (Some(parts), Some(row)) = (event.parts, timeline.len().checked_sub(1)) else { return };
        let mut stack = [FragmentRef::NONE; 2];
        let mut last = None;
        for (slot, part) in stack.iter_mut().zip(parts.iter(event.time)) {
            let Some(number) = part.number else { continue };
            if known.insert(number as usize) {
                self.lists.push(number, part.frames.as_chunks().0);
            }
            *slot = FragmentRef::numbered(number, part.is_user);
            timeline.take_ids(row, part.pid, part.tid);
            last =
                LastPart::new(&LoggedPart::with_event(&part, event.processor), *slot, part.written);
        }
        self.parts.resize(row, [FragmentRef::NONE; 2]);
        self.parts.push(stack);
        self.last.resize(row, None);
        self.last.push(last);
    }

    /// Returns the first two stack parts of these rows, up to the last row with any, and what other stacks need of
    /// their last parts.
    pub fn of_rows(&self, rows: Range<usize>) -> (&[[FragmentRef; 2]], &[Option<LastPart>]) {
        let rows = rows.start..rows.end.min(self.parts.len());
        let parts = self.parts.get(rows.clone()).unwrap_or_default();
        (parts, self.last.get(rows).unwrap_or_default())
    }

    /// Passes the lists on.
    pub fn move_lists(&mut self, fragments: &mut Fragments) {
        let GatheredLists { ends, addresses } = &mut self.lists;
        let mut start = 0;
        for (number, end) in ends.drain(..) {
            fragments.keep(number, &addresses[start..end]);
            start = end;
        }
        addresses.clear();
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.last.clear();
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
