//! Everything that is printed of objects and their events.

use std::ops::Range;

use handlescope_model::{ArchiveError, EventKind, Table, Trace};

use super::FileContext;
use super::events::Events;
use super::selection::{Selected, Selection};
use super::stacks::StackSet;
use crate::cancel::Cancelled;
use crate::cancel::Poll;
use crate::trace::columns::{Flags, I32s, I64s, Texts, U32s, U64s};

/// The columns that printing needs.
pub struct Listing {
    pointer: U64s,
    name: U32s,
    names: Texts,
    is_multiprocess: Flags,
    is_overlapped: Flags,
    owner: U32s,
    handle: U64s,
    events: EventColumns,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRow {
    /// What it did.
    pub kind: EventKind,
    /// Nanoseconds since session start.
    pub time_ns: i64,
    /// Row of the process that owns the handle, or that acted.
    pub process: u32,
    /// Thread.
    pub tid: u32,
    /// Row of the stack.
    pub stack: Option<u32>,
    /// Whether nothing closes what it opened.
    pub leaked: bool,
    /// Handle value.
    pub handle: Option<u64>,
}

/// What only a duplicate has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateRow {
    /// Row of the process it was duplicated from.
    pub source_process: Option<u32>,
    /// The handle there.
    pub source_handle: Option<u64>,
    /// Row of the process that called.
    pub caller_process: Option<u32>,
    /// Row of the child that inherited the handle.
    pub inherited_by: Option<u32>,
}

/// What only a map or an unmap has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewRow {
    /// First address.
    pub base: Option<u64>,
    /// Bytes.
    pub size: Option<u64>,
    /// Bytes from the start of the file.
    pub offset: Option<u64>,
    /// Kernel key of the file.
    pub file_object: Option<u64>,
}

impl Listing {
    pub(crate) fn load(trace: &Trace) -> Result<Self, ArchiveError> {
        Ok(Self {
            pointer: U64s::load(trace, Table::Objects, "pointer")?,
            name: U32s::load(trace, Table::Objects, "name")?,
            names: Texts::load(trace, Table::Names, "name")?,
            is_multiprocess: Flags::load(trace, Table::Objects, "is_multiprocess")?,
            is_overlapped: Flags::load(trace, Table::Objects, "is_overlapped")?,
            owner: U32s::load(trace, Table::ExistingHandles, "process")?,
            handle: U64s::load(trace, Table::ExistingHandles, "handle")?,
            events: EventColumns::load(Events(trace))?,
        })
    }

    /// Kernel address of an object.
    pub fn pointer(&self, object: usize) -> u64 {
        self.pointer.get(object).unwrap_or_default()
    }

    /// Name of an object.
    pub fn name(&self, object: usize) -> Option<&str> {
        self.name.get(object).and_then(|name| self.names.get(name as usize))
    }

    /// Whether more than one process worked on it.
    pub fn is_multiprocess(&self, object: usize) -> bool {
        self.is_multiprocess.get(object)
    }

    /// Whether two handles were open at once.
    pub fn is_overlapped(&self, object: usize) -> bool {
        self.is_overlapped.get(object)
    }

    /// Row of the owner, and the value, of each of some rundown handles.
    pub fn existing(&self, handles: Range<usize>) -> impl ExactSizeIterator<Item = (u32, u64)> {
        let owners = self.owner.values().get(handles.clone()).unwrap_or_default();
        let values = self.handle.values().get(handles).unwrap_or_default();
        owners.iter().copied().zip(values.iter().copied())
    }

    /// An event; `None` for a kind that this version does not know.
    pub fn event(&self, event: usize) -> Option<EventRow> {
        let columns = &self.events;
        Some(EventRow {
            kind: EventKind::from_code(columns.kind.get(event)?)?,
            time_ns: columns.time_ns.get(event)?,
            process: columns.process.get(event)?,
            tid: columns.tid.get(event)?,
            stack: columns.stack.get(event),
            leaked: columns.leaked.get(event),
            handle: columns.handle.get(event),
        })
    }

    /// What an event did.
    pub fn kind(&self, event: usize) -> Option<EventKind> {
        EventKind::from_code(self.events.kind.get(event)?)
    }

    /// Row of the child that inherited the handle of a duplicate.
    pub fn inherited_by(&self, event: usize) -> Option<u32> {
        self.events.inherited_by.get(event)
    }

    /// What a duplicate has besides.
    pub fn duplicate(&self, event: usize) -> DuplicateRow {
        let columns = &self.events;
        DuplicateRow {
            source_process: columns.source_process.get(event),
            source_handle: columns.source_handle.get(event),
            caller_process: columns.caller_process.get(event),
            inherited_by: columns.inherited_by.get(event),
        }
    }

    /// What a map or unmap has besides.
    pub fn view(&self, event: usize) -> ViewRow {
        let columns = &self.events;
        ViewRow {
            base: columns.view_base.get(event),
            size: columns.view_size.get(event),
            offset: columns.byte_offset.get(event),
            file_object: columns.file_object.get(event),
        }
    }

    /// Change of the reference count.
    pub fn ref_delta(&self, event: usize) -> Option<i32> {
        self.events.ref_delta.get(event)
    }

    /// Time of an event.
    pub fn time_ns(&self, event: usize) -> Option<i64> {
        self.events.time_ns.get(event)
    }

    /// Puts objects into the order of the console: by creation, without one first; then by id.
    pub(crate) fn sort(&self, selection: &mut Selection) {
        let times = self.events.time_ns.values();
        let created =
            |selected: &Selected| selected.create().and_then(|event| times.get(event).copied());
        selection.objects.sort_by_key(created);
    }

    /// The stacks of all events that are left.
    pub(crate) fn stacks(
        &self,
        file: &FileContext<'_>,
        selection: &Selection,
        height: usize,
    ) -> Result<StackSet, Cancelled> {
        let mut stacks = StackSet::new(height);
        let mut poll = Poll::new(file.cancel);
        for selected in selection.objects() {
            poll.round()?;
            let events = file.objects.events(selected.object());
            for event in events.filter(|&event| selection.events.contains(event)) {
                stacks.add(self.events.stack.get(event));
            }
        }
        Ok(stacks)
    }
}

struct EventColumns {
    kind: U32s,
    time_ns: I64s,
    process: U32s,
    tid: U32s,
    stack: U32s,
    leaked: Flags,
    handle: U64s,
    ref_delta: I32s,
    source_process: U32s,
    source_handle: U64s,
    caller_process: U32s,
    inherited_by: U32s,
    view_base: U64s,
    view_size: U64s,
    byte_offset: U64s,
    file_object: U64s,
}

impl EventColumns {
    fn load(events: Events<'_>) -> Result<Self, ArchiveError> {
        Ok(Self {
            kind: events.kind()?,
            time_ns: events.time()?,
            process: events.u32s("process")?,
            tid: events.u32s("tid")?,
            stack: events.u32s("stack")?,
            leaked: events.leaked()?,
            handle: events.u64s("handle")?,
            ref_delta: events.ref_delta()?,
            source_process: events.u32s("source_process")?,
            source_handle: events.u64s("source_handle")?,
            caller_process: events.u32s("caller_process")?,
            inherited_by: events.u32s("inherited_by")?,
            view_base: events.u64s("view_base")?,
            view_size: events.u64s("view_size")?,
            byte_offset: events.u64s("byte_offset")?,
            file_object: events.u64s("file_object")?,
        })
    }
}
