//! Open handles of each object by process and slot: the handles a close can be of.

use std::collections::VecDeque;

use hashbrown::HashMap;
use slab::Slab;

use super::attribution::NONE;
use super::objects::HandleAt;

/// An open handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenHandle {
    /// Row of the process that holds it.
    pub process: u32,
    pub slot: u32,
    /// Timeline row that opened it.
    pub row: u32,
}

/// Error: several handles have the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Several;

/// Open handles of one object.
#[derive(Debug, Clone, Copy)]
pub struct HandleList {
    first: u32,
    /// Number of handles in the list.
    listed: u32,
    /// Number of handles beyond these, in [`OpenHandles::more`].
    more: u32,
}

impl HandleList {
    pub fn is_empty(self) -> bool {
        self.listed == 0 && self.more == 0
    }
}

impl Default for HandleList {
    fn default() -> Self {
        Self { first: NONE, listed: 0, more: 0 }
    }
}

/// Maximum handles per object kept in a list. The rest go into a hash table, so that every event takes constant time.
const MAX_LISTED: u32 = 32;

#[derive(Debug)]
struct ListNode {
    handle: OpenHandle,
    next: u32,
}

/// Open handles of all objects.
#[derive(Debug, Default)]
pub struct OpenHandles {
    listed: Slab<ListNode>,
    /// Rows of handles by object, and by process and slot.
    more: HashMap<u32, HashMap<(u32, u32), Vec<u32>>>,
    /// For the handles in `more`: their number by object and slot, and the wrapping sums of their processes and rows.
    /// If only one handle is left, the sums are its own process and row.
    by_slot: HashMap<(u32, u32), (u32, u32, u32)>,
    /// Objects that completed with this handle still open, oldest first.
    of_ended: HashMap<HandleAt, VecDeque<u32>>,
}

impl OpenHandles {
    pub fn add(&mut self, list: &mut HandleList, object: u32, handle: OpenHandle) {
        if list.listed < MAX_LISTED {
            list.first = self.listed.insert(ListNode { handle, next: list.first }) as u32;
            list.listed += 1;
            return;
        }
        list.more += 1;
        let OpenHandle { process, slot, row } = handle;
        self.more.entry(object).or_default().entry((process, slot)).or_default().push(row);
        let (count, processes, rows) = self.by_slot.entry((object, slot)).or_default();
        *count += 1;
        (*processes, *rows) = (processes.wrapping_add(process), rows.wrapping_add(row));
    }

    /// Removes a process's handle; returns whether there was one.
    pub fn remove(&mut self, list: &mut HandleList, object: u32, process: u32, slot: u32) -> bool {
        let (mut before, mut at) = (NONE, list.first);
        while let Some(ListNode { handle, next }) = self.listed.get(at as usize) {
            let next = *next;
            if handle.slot == slot && handle.process == process {
                match self.listed.get_mut(before as usize) {
                    Some(before) => before.next = next,
                    None => list.first = next,
                }
                self.listed.remove(at as usize);
                list.listed -= 1;
                return true;
            }
            (before, at) = (at, next);
        }
        if list.more == 0 {
            return false;
        }
        let more = self.more.get_mut(&object);
        let Some(row) = more.and_then(|more| more.get_mut(&(process, slot))?.pop()) else {
            return false;
        };
        list.more -= 1;
        if let Some((count, processes, rows)) = self.by_slot.get_mut(&(object, slot)) {
            *count -= 1;
            (*processes, *rows) = (processes.wrapping_sub(process), rows.wrapping_sub(row));
        }
        true
    }

    /// Whether a process has a handle with this slot.
    pub fn contains(&self, list: HandleList, object: u32, process: u32, slot: u32) -> bool {
        self.listed(list).any(|handle| handle.slot == slot && handle.process == process)
            || list.more > 0
                && (self.more.get(&object).and_then(|more| more.get(&(process, slot))))
                    .is_some_and(|rows| !rows.is_empty())
    }

    /// Returns the handle with this slot, if any.
    ///
    /// Fails if there are several.
    pub fn only(
        &self,
        list: HandleList,
        object: u32,
        slot: u32,
    ) -> Result<Option<OpenHandle>, Several> {
        let mut of_slot = self.listed(list).filter(|handle| handle.slot == slot);
        let first = of_slot.next();
        let is_only = of_slot.next().is_none();
        let (count, process, row) = match list.more {
            0 => (0, 0, 0),
            _ => self.by_slot.get(&(object, slot)).copied().unwrap_or_default(),
        };
        match (first, count) {
            (Some(handle), 0) if is_only => Ok(Some(handle)),
            (None, 1) => Ok(Some(OpenHandle { process, slot, row })),
            (None, 0) => Ok(None),
            _ => Err(Several),
        }
    }

    /// Ends the list of an object. Handles still open are remembered, because their closes may still come.
    pub fn end(&mut self, list: HandleList, object: u32, address: u64) {
        let mut at = list.first;
        while let Some(ListNode { handle, next }) = self.listed.try_remove(at as usize) {
            self.of_ended
                .entry((address, handle.process, handle.slot))
                .or_default()
                .push_back(object);
            at = next;
        }
        if list.more > 0 {
            for ((process, slot), rows) in self.more.remove(&object).unwrap_or_default() {
                let ended = self.of_ended.entry((address, process, slot)).or_default();
                ended.extend(rows.iter().map(|_| object));
            }
        }
    }

    /// Returns the first object that completed with this handle open.
    pub fn of_ended(&self, handle: HandleAt) -> Option<u32> {
        if self.of_ended.is_empty() {
            return None;
        }
        self.of_ended.get(&handle)?.front().copied()
    }

    /// Forgets that an object completed with this handle open.
    pub fn forget(&mut self, handle: HandleAt, object: u32) {
        let Some(objects) = self.of_ended.get_mut(&handle) else { return };
        if let Some(at) = objects.iter().position(|ended| *ended == object) {
            objects.remove(at);
        }
        if objects.is_empty() {
            self.of_ended.remove(&handle);
        }
    }

    fn listed(&self, list: HandleList) -> impl Iterator<Item = OpenHandle> + '_ {
        let first = self.listed.get(list.first as usize);
        std::iter::successors(first, |listed| self.listed.get(listed.next as usize))
            .map(|listed| listed.handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(process: u32, slot: u32, row: u32) -> OpenHandle {
        OpenHandle { process, slot, row }
    }

    #[test]
    fn a_handle_is_found_among_few_and_among_many() {
        let (mut open, mut list) = (OpenHandles::default(), HandleList::default());
        for process in 0..100 {
            open.add(&mut list, 5, handle(process, 4, 1000 + process));
        }
        assert_eq!(open.only(list, 5, 4), Err(Several));
        for process in (0..100).rev().filter(|process| ![10, 60].contains(process)) {
            assert!(open.contains(list, 5, process, 4), "{process}");
            assert!(open.remove(&mut list, 5, process, 4), "{process}");
            assert!(!open.remove(&mut list, 5, process, 4), "{process}");
        }
        assert!(open.remove(&mut list, 5, 60, 4));
        assert_eq!(open.only(list, 5, 4), Ok(Some(handle(10, 4, 1010))));
        assert_eq!(open.only(list, 5, 8), Ok(None));
    }

    #[test]
    fn handles_that_are_open_at_the_end_of_an_object_are_of_it_until_they_are_closed() {
        let mut open = OpenHandles::default();
        for object in [5, 6] {
            let mut list = HandleList::default();
            for process in 0..100 {
                open.add(&mut list, object, handle(process, 4, process));
            }
            assert!(open.remove(&mut list, object, 7, 4));
            open.end(list, object, 0x1000);
        }
        for process in [0, 50, 99] {
            assert_eq!(open.of_ended((0x1000, process, 4)), Some(5));
            open.forget((0x1000, process, 4), 5);
            assert_eq!(open.of_ended((0x1000, process, 4)), Some(6));
        }
        assert_eq!(open.of_ended((0x1000, 7, 4)), None);
        assert_eq!(open.of_ended((0x2000, 0, 4)), None);
    }
}
