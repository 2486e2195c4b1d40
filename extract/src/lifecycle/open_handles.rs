//! The open handles of each object, by process and slot: what a close can be of.

use hashbrown::HashMap;
use slab::Slab;

use super::attribution::NONE;

/// An open handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenHandle {
    /// Row of the process that has it.
    pub process: u32,
    pub slot: u32,
    /// Row of the timeline that opened it.
    pub row: u32,
}

/// Several handles have one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Several;

/// The open handles of one object.
#[derive(Debug, Clone, Copy)]
pub struct HandleList {
    first: u32,
    /// Number of handles in the list.
    listed: u32,
    /// Number of further ones in [`OpenHandles::more`].
    more: u32,
}

impl Default for HandleList {
    fn default() -> Self {
        Self { first: NONE, listed: 0, more: 0 }
    }
}

/// Handles of one object that are listed; further ones are in a table, so that each event takes the same time.
const MAX_LISTED: u32 = 32;

#[derive(Debug)]
struct Listed {
    handle: OpenHandle,
    next: u32,
}

/// The open handles of all objects.
#[derive(Debug, Default)]
pub struct OpenHandles {
    listed: Slab<Listed>,
    /// Rows of handles by object, process and slot.
    more: HashMap<(u32, u32, u32), Vec<u32>>,
    /// Number of handles by object and slot, and the sums of their processes and rows, which are those of the handle
    /// where there is one.
    by_slot: HashMap<(u32, u32), (u32, u32, u32)>,
}

impl OpenHandles {
    pub fn add(&mut self, list: &mut HandleList, object: u32, handle: OpenHandle) {
        if list.listed < MAX_LISTED {
            list.first = self.listed.insert(Listed { handle, next: list.first }) as u32;
            list.listed += 1;
            return;
        }
        list.more += 1;
        let OpenHandle { process, slot, row } = handle;
        self.more.entry((object, process, slot)).or_default().push(row);
        let (count, processes, rows) = self.by_slot.entry((object, slot)).or_default();
        *count += 1;
        (*processes, *rows) = (processes.wrapping_add(process), rows.wrapping_add(row));
    }

    /// Removes the handle of a process; returns whether it had one.
    pub fn remove(&mut self, list: &mut HandleList, object: u32, process: u32, slot: u32) -> bool {
        let (mut before, mut at) = (NONE, list.first);
        while let Some(Listed { handle, next }) = self.listed.get(at as usize) {
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
        let Some(row) = self.more.get_mut(&(object, process, slot)).and_then(Vec::pop) else {
            return false;
        };
        list.more -= 1;
        if let Some((count, processes, rows)) = self.by_slot.get_mut(&(object, slot)) {
            *count -= 1;
            (*processes, *rows) = (processes.wrapping_sub(process), rows.wrapping_sub(row));
        }
        true
    }

    /// Whether a process has a handle.
    pub fn contains(&self, list: HandleList, object: u32, process: u32, slot: u32) -> bool {
        self.listed(list).any(|handle| handle.slot == slot && handle.process == process)
            || list.more > 0
                && self.more.get(&(object, process, slot)).is_some_and(|rows| !rows.is_empty())
    }

    /// The handle with this slot: an error if there are several.
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

    /// Forgets the listed handles of an object that is complete.
    pub fn clear(&mut self, list: HandleList) {
        let mut at = list.first;
        while let Some(Listed { next, .. }) = self.listed.try_remove(at as usize) {
            at = next;
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
}
