//! Operations on handles whose order is known and whose times are not, as handle tracing keeps them: text of `!htrace`
//! and minidumps have them. Operations → lifetimes of handles → tables.

mod handles;
mod tables;

pub(crate) use self::handles::{Handles, OpenHandle, OpenList};
pub(crate) use self::tables::{Tables, event_counts, stack_events};

/// Operation of handle tracing (PROCESS_HANDLE_TRACING_ENTRY, `Type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Open,
    Close,
    /// A reference to a handle that is not open.
    BadReference,
}

/// An operation as its source has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// [`handle_slot`](handlescope_model::rules::handle_slot) of the value: `RegCloseKey` closes with a tag bit set.
    pub(crate) handle: u64,
    /// Handle value as the source shows it.
    pub(crate) shown_handle: u64,
    pub(crate) operation: Operation,
    /// 0 when it is not known.
    pub(crate) thread: u32,
    /// Row of the process that has the handle.
    pub(crate) process: u32,
    /// Row of the process that the thread belongs to, if that is another one.
    pub(crate) caller: Option<u32>,
    /// Row of the stack.
    pub(crate) stack: Option<u32>,
    /// Number of the addresses of the stack. Their names depend on the symbols that a debugger had found when
    /// it printed them.
    pub(crate) addresses: u32,
}

impl Entry {
    /// Whether two entries of one process are the same event.
    pub(crate) fn is_same(&self, entry: &Self) -> bool {
        (self.shown_handle, self.operation, self.thread, self.addresses)
            == (entry.shown_handle, entry.operation, entry.thread, entry.addresses)
    }
}
