//! Operations on handles whose order is known and whose times are not, as handle tracing keeps them: text of `!htrace`
//! and minidumps have them. Operations → lifetimes of handles → tables.

mod handles;
mod tables;

pub use self::handles::{Handles, OpenHandle, OpenList};
pub use self::tables::{Tables, event_counts, stack_events};

/// Operation of handle tracing (PROCESS_HANDLE_TRACING_ENTRY, `Type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Open,
    Close,
    /// A reference to a handle that is not open.
    BadReference,
}

/// An operation as its source has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// [`handle_slot`](handlescope_model::rules::handle_slot) of the value: `RegCloseKey` closes with a tag bit set.
    pub handle: u64,
    /// Handle value as the source shows it.
    pub shown_handle: u64,
    pub operation: Operation,
    /// 0 when it is not known.
    pub thread: u32,
    /// Row of the process that has the handle.
    pub process: u32,
    /// Row of the process that the thread belongs to, if that is another one.
    pub caller: Option<u32>,
    /// Row of the stack.
    pub stack: Option<u32>,
    /// Number of the addresses of the stack. Their names depend on the symbols that a debugger had found when
    /// it printed them.
    pub addresses: u32,
}

impl Entry {
    /// Whether two entries of one process are the same event.
    pub fn is_same(&self, entry: &Self) -> bool {
        (self.shown_handle, self.operation, self.thread, self.addresses)
            == (entry.shown_handle, entry.operation, entry.thread, entry.addresses)
    }
}
