//! Objects and their events as every format prints them.

use std::sync::Arc;

use handlescope_model::rules::{self, OPENING, VIEWS, WITH_HANDLE};
use handlescope_model::tables::{Acquisitions, ClosedUnseen, Names, Objects};
use handlescope_model::{
    ArchiveError, EventColumns, EventHandles, EventKind, EventProcesses, EventTimes, EventValues,
    Flags, NameIdx, Numbers, ObjectIdx, OpenedValues, ProcessIdx, Sparse, StackIdx, Table, Texts,
    ViewValues,
};

use super::context::FileContext;
use super::object_ref::{FileAnswer, ObjectsLeftOut};
use super::selection::{SelectedObject, Selection};
use super::stacks::StackSet;
use super::tables::ProcessInfo;
use super::targets::{PROCESS, THREAD, Target};
use handlescope_session::cancel::{Cancelled, Poll};

/// The columns that printing needs.
pub struct EventListing {
    pointer: Sparse<Numbers<u64>>,
    name: Sparse<Numbers<NameIdx>>,
    names: Texts,
    is_multiprocess: Flags,
    is_overlapped: Flags,
    times: EventTimes,
    /// Owners and values of handles.
    owner: Sparse<Numbers<ProcessIdx>>,
    key: Sparse<Numbers<u64>>,
    /// Whether times are real times rather than just an order.
    has_clock: bool,
    /// Whether the source is a list of handles.
    is_list: bool,
    process: EventProcesses,
    tid: EventValues<u32>,
    stack: EventValues<StackIdx>,
    closed_after_ns: OpenedValues<i64>,
    handle: EventHandles,
    source_process: OpenedValues<ProcessIdx>,
    source_handle: OpenedValues<u64>,
    view_base: ViewValues<u64>,
    view_size: ViewValues<i64>,
    byte_offset: ViewValues<u64>,
    file_object: ViewValues<u64>,
}

/// An object that passed. What is said of it does not depend on filters of its events, except `events` and `kinds`.
#[derive(Clone, Copy)]
pub struct ListedObject<'a> {
    pub file: &'a FileAnswer<'a>,
    selected: SelectedObject,
    listing: &'a EventListing,
}

/// An event of an object.
#[derive(Clone, Copy)]
pub struct ListedEvent<'a> {
    listing: &'a EventListing,
    /// Number of the event in its trace.
    number: usize,
    /// Kind of the event.
    pub kind: EventKind,
    /// Nanoseconds since session start; `None` in a trace without a clock.
    pub time_ns: Option<i64>,
    /// Row of the process that owns the handle or acted.
    pub process: ProcessIdx,
    /// Thread; `None` if debugger text does not name it.
    pub tid: Option<u32>,
    pub stack: Option<StackIdx>,
    /// Whether nothing closes what it opened.
    pub leaked: bool,
    /// Whether process exit made this close, or is the only close of what it opened.
    pub closed_at_exit: bool,
    pub handle: Option<u64>,
}

/// A close that the trace lost; times are nanoseconds since session start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedUnseenClose {
    /// Evidence that it was closed.
    pub evidence: ClosedUnseen,
    /// Time when it was still open.
    pub after_ns: Option<i64>,
    /// Time by which it was closed.
    pub before_ns: Option<i64>,
}

/// Values of duplicates only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedDuplicate {
    /// Row of the process it was duplicated from.
    pub source_process: Option<ProcessIdx>,
    /// The handle in that process.
    pub source_handle: Option<u64>,
    /// Row of the process that made the call.
    pub caller_process: Option<ProcessIdx>,
    /// Row of the child that inherited the handle.
    pub inherited_by: Option<ProcessIdx>,
}

/// Values of maps and unmaps only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedView {
    /// First address.
    pub base: Option<u64>,
    /// Bytes.
    pub size: Option<u64>,
    /// Bytes from the start of the file.
    pub offset: Option<u64>,
    /// Kernel key of the file.
    pub file_object: Option<u64>,
}

impl EventListing {
    /// Loads the columns for the objects that passed and their events.
    pub fn load(file: &FileContext<'_>, selection: &Selection) -> Result<Self, ArchiveError> {
        let (trace, objects) = (file.trace, selection.object_rows(&file.objects));
        let rows = selection.acquisition_rows(&file.objects, trace.height(Table::Acquisitions)?);
        let columns = EventColumns::for_rows(trace, Arc::clone(&rows))?;
        Ok(Self {
            pointer: trace.values_at(Objects::pointer, &objects)?,
            name: trace.values_at(Objects::name, &objects)?,
            names: trace.values(Names::name)?,
            is_multiprocess: trace.values(Objects::is_multiprocess)?,
            is_overlapped: trace.values(Objects::is_overlapped)?,
            times: EventTimes::from_rows(trace, &rows)?,
            owner: trace.values_at(Acquisitions::process, &rows)?,
            key: trace.values_at(Acquisitions::key, &rows)?,
            has_clock: trace.info()?.has_clock(),
            is_list: trace.info()?.is_list(),
            process: columns.processes()?,
            tid: columns.tids()?,
            stack: columns.stacks()?,
            closed_after_ns: columns.of_opened(Acquisitions::ended_after_ns)?,
            handle: columns.handles()?,
            source_process: columns.of_opened(Acquisitions::source_process)?,
            source_handle: columns.of_opened(Acquisitions::source_key)?,
            view_base: columns.view_bases()?,
            view_size: columns.of_views(Acquisitions::size)?,
            byte_offset: columns.of_views(Acquisitions::byte_offset)?,
            file_object: columns.of_views(Acquisitions::file_object)?,
        })
    }

    /// Returns an event; `None` for a kind unknown to this version.
    pub fn event(&self, number: usize) -> Option<ListedEvent<'_>> {
        Some(ListedEvent {
            listing: self,
            number,
            kind: self.kind(number)?,
            time_ns: self.time_ns(number),
            process: self.process.get(number).unwrap_or(ProcessIdx::NONE),
            tid: match self.tid.get(number) {
                None | Some(0) if !self.has_clock => None,
                tid => Some(tid.unwrap_or_default()),
            },
            stack: self.stack.get(number),
            leaked: self.times.table.is_leaked(number),
            closed_at_exit: self.times.table.is_closed_at_exit(number),
            handle: self.handle.get(number),
        })
    }

    /// Returns the kind of an event.
    pub fn kind(&self, event: usize) -> Option<EventKind> {
        self.times.table.kind(event)
    }

    /// Returns the time of an event; `None` in a trace without a clock.
    pub fn time_ns(&self, event: usize) -> Option<i64> {
        self.times.get(event).filter(|_| self.has_clock)
    }

    /// Sorts objects for the console: by creation (those without come first), then by id.
    pub fn sort(&self, selection: &mut Selection) {
        let table = &self.times.table;
        selection.objects.sort_by_key(|selected| self.times.get(selected.create(table)?.row()));
    }

    /// Returns the stacks of all remaining events.
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

impl ListedEvent<'_> {
    /// Returns the process whose thread made it; for a duplicate, the owner of its handle.
    pub fn actor(&self) -> ProcessIdx {
        let caller = match self.kind {
            EventKind::HandleDuplicate => None,
            _ => self.listing.process.caller(self.number),
        };
        caller.unwrap_or(self.process)
    }

    /// Returns the unseen close of what it opened, if the trace lost the close.
    pub fn unseen_close(&self) -> Option<ListedUnseenClose> {
        let EventListing { times, closed_after_ns, .. } = self.listing;
        Some(ListedUnseenClose {
            evidence: times.table.closed_unseen(self.number)?,
            after_ns: closed_after_ns.get(self.number),
            before_ns: times.closed_before_ns(self.number),
        })
    }

    /// Returns the extra values of a duplicate.
    pub fn duplicate(&self) -> Option<ListedDuplicate> {
        let EventListing { process, source_process, source_handle, .. } = self.listing;
        (self.kind == EventKind::HandleDuplicate).then(|| ListedDuplicate {
            source_process: source_process.get(self.number),
            source_handle: source_handle.get(self.number),
            caller_process: process.caller(self.number),
            inherited_by: process.inherited_by(self.number),
        })
    }

    /// Returns the extra values of a map or unmap.
    pub fn view(&self) -> Option<ListedView> {
        let EventListing { view_base, view_size, byte_offset, file_object, .. } = self.listing;
        VIEWS.contains(self.kind).then(|| ListedView {
            base: view_base.get(self.number),
            size: view_size.get(self.number).map(|size| size as u64),
            offset: byte_offset.get(self.number),
            file_object: file_object.get(self.number),
        })
    }

    /// Returns the change of the reference count.
    pub fn ref_delta(&self) -> Option<i32> {
        self.listing.times.table.delta(self.number)
    }
}

impl FileAnswer<'_> {
    /// Returns the objects that are listed, in order; none if only sums or groups were requested.
    pub fn objects(&self) -> impl Iterator<Item = ListedObject<'_>> {
        self.listing.iter().flat_map(move |listing| {
            let listed = move |&selected: &_| ListedObject { file: self, selected, listing };
            self.selection.objects().iter().map(listed)
        })
    }
}

impl<'a> ListedObject<'a> {
    fn object(self) -> ObjectIdx {
        self.selected.object()
    }

    /// Returns the id that users see, from 1.
    pub fn id(self) -> u64 {
        self.selected.id()
    }

    /// Returns the kernel address; `None` if the source does not have it.
    pub fn pointer(self) -> Option<u64> {
        let EventListing { pointer, has_clock, .. } = self.listing;
        pointer.get(self.object().row()).filter(|pointer| *has_clock || *pointer != 0)
    }

    pub fn name(self) -> Option<&'a str> {
        self.listing.names.get(self.listing.name.get(self.object().row())?.row())
    }

    pub fn type_name(self) -> &'a str {
        let tables = &self.file.file;
        tables.types.get(tables.objects.type_id(self.object()))
    }

    pub fn is_mapping(self) -> bool {
        self.file.file.objects.is_mapping(self.object())
    }

    /// Whether more than one process used it.
    pub fn is_multiprocess(self) -> bool {
        self.listing.is_multiprocess.get(self.object().row())
    }

    /// Whether two handles were open at once.
    pub fn is_overlapped(self) -> bool {
        self.listing.is_overlapped.get(self.object().row())
    }

    /// Returns when it was created and ended; `None` if unknown.
    pub fn ends_ns(self) -> [Option<i64>; 2] {
        let EventListing { times, .. } = self.listing;
        let ends = [times.table.create_event(self.object()), times.destroy_event(self.object())];
        ends.map(|event| self.listing.time_ns(event?.row()))
    }

    /// Returns its lifetime; `None` if its creation or end is unknown.
    pub fn lifetime_ns(self) -> Option<i64> {
        let [created_ns, ended_ns] = self.ends_ns();
        rules::lifetime_ns(created_ns, ended_ns)
    }

    /// Returns the time of the creation that filters left.
    pub fn left_create_ns(self) -> Option<i64> {
        let create = self.selected.create(&self.file.file.objects.table)?;
        self.listing.time_ns(create.row())
    }

    /// Whether the trace has the event that created it.
    pub fn has_create(self) -> bool {
        self.file.file.objects.table.create_event(self.object()).is_some()
    }

    /// Whether the trace has the event that ended it.
    pub fn has_end(self) -> bool {
        self.file.file.objects.table.has_destroy_event(self.object())
    }

    /// Returns the process that created it, if the trace has its creation.
    pub fn creator(self) -> Option<&'a ProcessInfo> {
        let create = self.file.file.objects.table.create_event(self.object())?;
        Some(self.file.file.processes.get(self.listing.event(create.row())?.process))
    }

    /// Returns the process or thread that handles to it refer to, if that was asked for: `Some(None)` if it is unknown,
    /// and `None` for objects of other types.
    pub fn target(self) -> Option<Option<&'a Target>> {
        let targets = self.file.targets.as_ref()?;
        [PROCESS, THREAD].contains(&self.type_name()).then(|| targets.of_object(self.object()))
    }

    /// Returns owner row and value of each of its handles in the final rundown. A list that only counts handles has no
    /// values.
    pub fn existing(self) -> impl Iterator<Item = (ProcessIdx, Option<u64>)> + 'a {
        let EventListing { times, owner, key, is_list, .. } = self.listing;
        times.table.listed(self.object()).map(move |row| {
            let owner = owner.get(row).unwrap_or(ProcessIdx::NONE);
            (owner, key.get(row).filter(|key| *key != 0 || !is_list))
        })
    }

    /// Returns its remaining events in time order.
    pub fn events(self) -> impl Iterator<Item = ListedEvent<'a>> {
        self.numbers().filter_map(move |number| self.listing.event(number))
    }

    /// Returns the kinds of its remaining events in time order.
    pub fn kinds(self) -> impl Iterator<Item = EventKind> + 'a {
        self.numbers().filter_map(move |number| self.listing.kind(number))
    }

    /// Returns the events of duplicates that a child inherited, in no particular order, and whom by.
    pub fn inherited(self) -> impl Iterator<Item = (ListedEvent<'a>, ProcessIdx)> {
        self.file.file.objects.events(self.object()).filter_map(move |number| {
            let child = self.listing.process.inherited_by(number)?;
            Some((self.listing.event(number)?, child))
        })
    }

    /// Returns the highest reference count that the trace shows, counting from 0.
    pub fn max_ref_count(self) -> i64 {
        let events = self.file.file.objects.events(self.object());
        let counts = events.filter_map(|event| self.listing.times.table.delta(event)).scan(
            0,
            |sum, delta| {
                *sum += i64::from(delta);
                Some(*sum)
            },
        );
        counts.max().unwrap_or_default().max(0)
    }

    /// Counts it as an object that is not printed.
    pub fn left_out(self) -> ObjectsLeftOut {
        let opened = self.kinds().filter(|kind| OPENING.contains(*kind)).count();
        let existing =
            if self.kinds().any(|kind| WITH_HANDLE.contains(kind) || VIEWS.contains(kind)) {
                0
            } else {
                // Handles that were open all the time have no events.
                self.file.file.objects.table.listed(self.object()).count()
            };
        let (handles, views) = if self.is_mapping() { (0, opened) } else { (opened, 0) };
        ObjectsLeftOut { objects: 1, handles, views, existing }
    }

    fn numbers(self) -> impl Iterator<Item = usize> + 'a {
        let mut events = Vec::new();
        self.listing.times.in_order(self.file.file.trace, self.object(), &mut events);
        events.into_iter().filter(move |event| self.file.selection.events.contains(*event))
    }
}
