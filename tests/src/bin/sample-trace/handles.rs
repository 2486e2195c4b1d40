//! Kernel objects and the handle tables of processes.

use std::collections::BTreeMap;

/// Object types of the sample, with their numbers on Windows 10.
pub const TYPES: [(u16, &str); 12] = [
    (2, "Type"),
    (3, "Directory"),
    (5, "Token"),
    (PROCESS, "Process"),
    (THREAD, "Thread"),
    (EVENT, "Event"),
    (17, "Mutant"),
    (19, "Semaphore"),
    (36, "IoCompletion"),
    (FILE, "File"),
    (SECTION, "Section"),
    (KEY, "Key"),
];
pub const PROCESS: u16 = 7;
pub const THREAD: u16 = 8;
pub const EVENT: u16 = 16;
pub const FILE: u16 = 37;
pub const SECTION: u16 = 42;
pub const KEY: u16 = 44;

/// A kernel object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleObject {
    pub pointer: u64,
    pub type_id: u16,
    pub name: String,
}

/// The handles of one process; the last closed value is reused first.
#[derive(Debug, Default)]
pub struct HandleTable {
    last: u32,
    free: Vec<u32>,
    open: BTreeMap<u32, SampleObject>,
}

impl HandleTable {
    pub fn open(&mut self, object: &SampleObject) -> u32 {
        let handle = self.free.pop().unwrap_or(self.last + 4);
        self.open_as(handle, object);
        handle
    }

    /// Opens a handle with this value, as inheritance does.
    pub fn open_as(&mut self, handle: u32, object: &SampleObject) {
        let taken = self.open.insert(handle, object.clone());
        assert!(taken.is_none(), "handle {handle:#x} is open already");
        self.last = self.last.max(handle);
    }

    /// Closes a handle and returns its object.
    pub fn close(&mut self, handle: u32) -> SampleObject {
        self.free.push(handle);
        self.open.remove(&handle).unwrap_or_else(|| panic!("handle {handle:#x} is not open"))
    }

    /// Returns the open handles in the order of their values.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &SampleObject)> {
        self.open.iter().map(|(handle, object)| (*handle, object))
    }
}
