//! Listing of objects and their events.

use std::ops::Range;

use handlescope_model::tables::{ClosedUnseen, Events, ExistingHandles, Names, Objects};
use handlescope_model::{
    ArchiveError, EventKind, Flags, NameIdx, Numbers, ObjectIdx, ProcessIdx, Sparse, StackIdx,
    Texts,
};

use super::context::FileContext;
use super::info::trace_info;
use super::selection::Selection;
use super::stacks::StackSet;
use handlescope_session::cancel::{Cancelled, Poll};
use handlescope_session::trace::unseen_values_at;

/// The columns that printing needs.
pub struct Listing {
    pointer: Sparse<Numbers<u64>>,
    name: Sparse<Numbers<NameIdx>>,
    names: Texts,
    is_multiprocess: Flags,
    is_overlapped: Flags,
    existing_owner: Numbers<ProcessIdx>,
    existing_handle: Numbers<u64>,
    kind: Sparse<Numbers<u32>>,
    time_ns: Sparse<Numbers<i64>>,
    /// Whether these are times, and not only an order.
    has_clock: bool,
    process: Sparse<Numbers<ProcessIdx>>,
    tid: Sparse<Numbers<u32>>,
    stack: Sparse<Numbers<StackIdx>>,
    leaked: Flags,
    closed_at_exit: Flags,
    closed_unseen: Sparse<Numbers<u32>>,
    closed_after_ns: Sparse<Numbers<i64>>,
    closed_before_ns: Sparse<Numbers<i64>>,
    handle: Sparse<Numbers<u64>>,
    ref_delta: Sparse<Numbers<i32>>,
    source_process: Sparse<Numbers<ProcessIdx>>,
    source_handle: Sparse<Numbers<u64>>,
    caller_process: Sparse<Numbers<ProcessIdx>>,
    inherited_by: Sparse<Numbers<ProcessIdx>>,
    view_base: Sparse<Numbers<u64>>,
    view_size: Sparse<Numbers<u64>>,
    byte_offset: Sparse<Numbers<u64>>,
    file_object: Sparse<Numbers<u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRow {
    /// Kind of the event.
    pub kind: EventKind,
    /// Nanoseconds since session start; `None` in a trace without a clock.
    pub time_ns: Option<i64>,
    /// Row of the process that owns the handle, or that acted.
    pub process: ProcessIdx,
    /// Thread; `None` where text of a debugger does not say.
    pub tid: Option<u32>,
    pub stack: Option<StackIdx>,
    /// Whether nothing closes what it opened.
    pub leaked: bool,
    /// Whether the end of the process made this close, or nothing else closes what it opened.
    pub closed_at_exit: bool,
    pub handle: Option<u64>,
}

/// A close that the trace lost; times are nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnseenClose {
    /// Evidence of the close.
    pub evidence: ClosedUnseen,
    /// Time at which it was still open.
    pub after_ns: Option<i64>,
    /// Time by which it was closed.
    pub before_ns: Option<i64>,
}

/// Values that only a duplicate has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateRow {
    /// Row of the process it was duplicated from.
    pub source_process: Option<ProcessIdx>,
    /// The handle there.
    pub source_handle: Option<u64>,
    /// Row of the process that called.
    pub caller_process: Option<ProcessIdx>,
    /// Row of the child that inherited the handle.
    pub inherited_by: Option<ProcessIdx>,
}

/// Values that only a map or an unmap has.
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
    /// Reads what objects that passed and their events have in the columns.
    pub fn load(file: &FileContext<'_>, selection: &Selection) -> Result<Self, ArchiveError> {
        let (trace, objects) = (file.trace, selection.object_rows(&file.objects));
        let events = selection.event_rows(&file.objects);
        Ok(Self {
            pointer: trace.values_at(Objects::pointer, &objects)?,
            name: trace.values_at(Objects::name, &objects)?,
            names: trace.values(Names::name)?,
            is_multiprocess: trace.values(Objects::is_multiprocess)?,
            is_overlapped: trace.values(Objects::is_overlapped)?,
            existing_owner: trace.values(ExistingHandles::process)?,
            existing_handle: trace.values(ExistingHandles::handle)?,
            kind: trace.values_at(Events::kind, &events)?,
            time_ns: trace.values_at(Events::time_ns, &events)?,
            has_clock: trace_info(trace)?.has_clock(),
            process: trace.values_at(Events::process, &events)?,
            tid: trace.values_at(Events::tid, &events)?,
            stack: trace.values_at(Events::stack, &events)?,
            leaked: trace.values(Events::leaked)?,
            closed_at_exit: trace.values(Events::closed_at_exit)?,
            closed_unseen: unseen_values_at(trace, Events::closed_unseen, &events)?,
            closed_after_ns: unseen_values_at(trace, Events::closed_after_ns, &events)?,
            closed_before_ns: unseen_values_at(trace, Events::closed_before_ns, &events)?,
            handle: trace.values_at(Events::handle, &events)?,
            ref_delta: trace.values_at(Events::ref_delta, &events)?,
            source_process: trace.values_at(Events::source_process, &events)?,
            source_handle: trace.values_at(Events::source_handle, &events)?,
            caller_process: trace.values_at(Events::caller_process, &events)?,
            inherited_by: trace.values_at(Events::inherited_by, &events)?,
            view_base: trace.values_at(Events::view_base, &events)?,
            view_size: trace.values_at(Events::view_size, &events)?,
            byte_offset: trace.values_at(Events::byte_offset, &events)?,
            file_object: trace.values_at(Events::file_object, &events)?,
        })
    }

    /// Kernel address of an object; `None` where the source does not say.
    pub fn pointer(&self, object: ObjectIdx) -> Option<u64> {
        self.pointer.get(object.row()).filter(|pointer| self.has_clock || *pointer != 0)
    }

    pub fn name(&self, object: ObjectIdx) -> Option<&str> {
        self.names.get(self.name.get(object.row())?.row())
    }

    /// Whether more than one process worked on it.
    pub fn is_multiprocess(&self, object: ObjectIdx) -> bool {
        self.is_multiprocess.get(object.row())
    }

    /// Whether two handles were open at once.
    pub fn is_overlapped(&self, object: ObjectIdx) -> bool {
        self.is_overlapped.get(object.row())
    }

    /// Row of the owner, and the value, of each of some rundown handles.
    pub fn existing(
        &self,
        handles: Range<usize>,
    ) -> impl ExactSizeIterator<Item = (ProcessIdx, u64)> {
        self.existing_owner.range(handles.clone()).zip(self.existing_handle.range(handles))
    }

    /// An event; `None` for a kind that this version does not know.
    pub fn event(&self, event: usize) -> Option<EventRow> {
        Some(EventRow {
            kind: EventKind::from_code(self.kind.get(event)?)?,
            time_ns: self.time_ns(event),
            process: self.process.get(event)?,
            tid: self.tid.get(event).filter(|tid| self.has_clock || *tid != 0),
            stack: self.stack.get(event),
            leaked: self.leaked.get(event),
            closed_at_exit: self.closed_at_exit.get(event),
            handle: self.handle.get(event),
        })
    }

    /// Kind of an event.
    pub fn kind(&self, event: usize) -> Option<EventKind> {
        EventKind::from_code(self.kind.get(event)?)
    }

    /// Row of the child that inherited the handle of a duplicate.
    pub fn inherited_by(&self, event: usize) -> Option<ProcessIdx> {
        self.inherited_by.get(event)
    }

    /// Unseen close of what an event opened, if the trace lost the close.
    pub fn unseen_close(&self, event: usize) -> Option<UnseenClose> {
        Some(UnseenClose {
            evidence: ClosedUnseen::from_code(self.closed_unseen.get(event)?)?,
            after_ns: self.closed_after_ns.get(event),
            before_ns: self.closed_before_ns.get(event),
        })
    }

    /// The process whose thread made an event; of a duplicate the owner of its handle.
    pub fn actor(&self, row: usize, event: &EventRow) -> ProcessIdx {
        let caller = match event.kind {
            EventKind::HandleDuplicate => None,
            _ => self.caller_process.get(row),
        };
        caller.unwrap_or(event.process)
    }

    /// Additional values of a duplicate.
    pub fn duplicate(&self, event: usize) -> DuplicateRow {
        DuplicateRow {
            source_process: self.source_process.get(event),
            source_handle: self.source_handle.get(event),
            caller_process: self.caller_process.get(event),
            inherited_by: self.inherited_by.get(event),
        }
    }

    /// Additional values of a map or unmap.
    pub fn view(&self, event: usize) -> ViewRow {
        ViewRow {
            base: self.view_base.get(event),
            size: self.view_size.get(event),
            offset: self.byte_offset.get(event),
            file_object: self.file_object.get(event),
        }
    }

    /// Change of the reference count.
    pub fn ref_delta(&self, event: usize) -> Option<i32> {
        self.ref_delta.get(event)
    }

    /// Time of an event; `None` in a trace without a clock.
    pub fn time_ns(&self, event: usize) -> Option<i64> {
        self.time_ns.get(event).filter(|_| self.has_clock)
    }

    /// Puts objects into the order of the console: by creation, without one first; then by id.
    pub fn sort(&self, selection: &mut Selection) {
        selection.objects.sort_by_key(|selected| self.time_ns.get(selected.create()?.row()));
    }

    /// The stacks of all events that are left.
    pub fn stacks(
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
                stacks.add(self.stack.get(event));
            }
        }
        Ok(stacks)
    }
}
