//! Turns the events of an object into its acquisitions: which rows the table gets for them, and in which order.

use std::collections::HashMap;

use crate::index::{
    AcquisitionIdx, AllocatorIdx, NameIdx, ObjectIdx, ProcessIdx, RowCount, StackIdx, TypeId,
    sentinel,
};
use crate::rules::{CLOSING, OPENING, REFERENCE_CHANGES, handle_slot};
use crate::tables::{
    Acquisition, AcquisitionKind, Acquisitions, ClosedUnseen, End, Event, EventKind, Object,
    Objects, Origin, ReferenceChange, ReferenceChanges, ResourceEnd, ResourceKind,
};

/// A handle that is open at the end of a trace, as listed by its rundown or a dump. Fields that only dumps have may be
/// missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExistingHandle {
    /// The process that owns the handle.
    pub process: ProcessIdx,
    pub handle: u64,
    /// Granted access rights, a bit mask.
    pub granted_access: Option<u32>,
    /// Attributes, such as 2 for a handle that children inherit.
    pub attributes: Option<u32>,
    /// Number of handles to the object.
    pub handle_count: Option<u32>,
    /// Number of references to the object.
    pub pointer_count: Option<u32>,
}

/// A handle that is open at the start of a trace, as listed by its rundown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartHandle {
    /// Kernel address of the object.
    pub pointer: u64,
    /// The process that owns the handle, if known.
    pub process: Option<ProcessIdx>,
    /// Process id as in the event.
    pub pid: u32,
    pub handle: u64,
    pub type_id: TypeId,
    /// Object name.
    pub name: Option<NameIdx>,
    /// Whether the process closed a handle of this value later in the trace.
    pub closed: bool,
}

/// An allocation, or a part of one that ended separately; times are nanoseconds since session start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resource {
    /// The allocator, which has the process and kind.
    pub allocator: AllocatorIdx,
    /// Address of the block, first address of the allocation, or the handle.
    pub key: u64,
    /// Bytes of the allocation, or of this part if it ended in parts.
    pub size: i64,
    /// Number of the first part of the same allocation; `None` for that part itself and for an allocation that ended as
    /// a whole.
    pub part_of: Option<u32>,
    /// Number of the allocation that was reallocated into this one.
    pub grown_from: Option<u32>,
    pub time_ns: i64,
    /// The thread that allocated it.
    pub tid: Option<u32>,
    /// The process that allocated it, if it is not the owner.
    pub caller: Option<ProcessIdx>,
    pub stack: Option<StackIdx>,
    /// A code of [`ResourceEnd`].
    pub end: u32,
    pub end_time_ns: Option<i64>,
    pub end_tid: Option<u32>,
    pub end_stack: Option<StackIdx>,
    /// Number of the call that freed it, for calls that end several parts.
    pub free_call: Option<u32>,
}

/// One acquisition of an object, given by positions among the object's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// The event that opened it; [`sentinel`] if it was open before the trace.
    pub opened: u32,
    /// The event that closed it; [`sentinel`] if none did.
    pub ended: u32,
}

/// The handles and views of an object. Its memory is reused for each object.
#[derive(Debug, Default)]
pub struct Lives {
    /// First those from before the trace, known only from their close, then the others in the order of their opening.
    pub found: Vec<Life>,
    is_matched: Vec<bool>,
}

impl Lives {
    /// Finds the handles and views of an object. `kinds` has the kinds of its events, `closing` the position of the
    /// event that closes each.
    pub fn find(&mut self, kinds: impl Iterator<Item = EventKind> + Clone, closing: &[u32]) {
        let Self { found, is_matched } = self;
        found.clear();
        is_matched.clear();
        is_matched.resize(closing.len(), false);
        for close in closing {
            if let Some(is_matched) = is_matched.get_mut(*close as usize) {
                *is_matched = true;
            }
        }
        for ((at, kind), is_matched) in (0..).zip(kinds.clone()).zip(is_matched.iter()) {
            if CLOSING.contains(kind) && !is_matched {
                found.push(Life { opened: sentinel(), ended: at });
            }
        }
        for ((at, kind), close) in (0..).zip(kinds).zip(closing) {
            if OPENING.contains(kind) {
                found.push(Life { opened: at, ended: *close });
            }
        }
    }
}

/// Handles of one object that a rundown lists, by process and slot.
#[derive(Debug, Default)]
pub struct RundownHandles(HashMap<(ProcessIdx, u64), Vec<u32>>);

impl RundownHandles {
    /// Adds a handle under a number.
    pub fn add(&mut self, process: ProcessIdx, handle: u64, number: u32) {
        self.0.entry((process, handle_slot(handle))).or_default().push(number);
    }

    /// Removes a handle and returns its number, if it is listed.
    pub fn take(&mut self, process: ProcessIdx, handle: u64) -> Option<u32> {
        if self.0.is_empty() {
            return None;
        }
        let key = (process, handle_slot(handle));
        let numbers = self.0.get_mut(&key)?;
        let number = numbers.pop();
        if numbers.is_empty() {
            self.0.remove(&key);
        }
        number
    }

    /// Removes and returns the numbers of the remaining handles, ascending.
    pub fn rest(&mut self) -> Vec<u32> {
        let mut rest: Vec<u32> = self.0.drain().flat_map(|(_, numbers)| numbers).collect();
        rest.sort_unstable();
        rest
    }
}

/// The tables of objects and of what processes acquired, built from events, open handles and allocations.
#[derive(Debug, Default)]
pub struct Histories {
    pub objects: Objects,
    pub acquisitions: Acquisitions,
    pub changes: ReferenceChanges,
}

/// The events of an object in time order, and its handles that are open at the end.
#[derive(Debug, Clone, Copy, Default)]
pub struct History<'a> {
    pub events: &'a [Event],
    /// Row of the first event; [`Event::closing_event`] counts from the same origin.
    pub first_event: u32,
    pub existing: &'a [ExistingHandle],
    /// Whether the trace lists all handles that were open at the end.
    pub has_rundown: bool,
}

/// The rows of an object.
#[derive(Debug, Default)]
pub struct ObjectRows {
    pub object: Object,
    pub acquisitions: Vec<Acquisition>,
    pub changes: Vec<ReferenceChange>,
}

impl History<'_> {
    /// Builds the rows of an object; `first` is the row of its first acquisition.
    pub fn rows(&self, row: ObjectIdx, object: Object, first: AcquisitionIdx) -> ObjectRows {
        let kind = |event: &Event| EventKind::from_code(event.kind).unwrap_or(EventKind::Reference);
        let closing: Vec<u32> = self.events.iter().map(|event| self.closing(event)).collect();
        let mut listed = RundownHandles::default();
        for (number, handle) in (0..).zip(self.existing) {
            listed.add(handle.process, handle.handle, number);
        }
        let mut rows = ObjectRows { object, ..ObjectRows::default() };
        let mut open = Vec::new();
        let mut lives = Lives::default();
        lives.find(self.events.iter().map(kind), &closing);
        for life in lives.found {
            if life.ended == sentinel() {
                open.push(rows.acquisitions.len());
            }
            rows.acquisitions.push(self.acquisition(row, life));
        }
        // Of handles with the same value, those opened last are the open ones.
        for at in open.into_iter().rev() {
            let acquisition = &mut rows.acquisitions[at];
            let owner = acquisition.process.unwrap_or(ProcessIdx::NONE);
            if let Some(number) = listed.take(owner, acquisition.key) {
                acquisition.take_listed(&self.existing[number as usize]);
            }
        }
        for number in listed.rest() {
            let handle = &self.existing[number as usize];
            let mut acquisition = Acquisition {
                kind: AcquisitionKind::Handle.code(),
                object: Some(row),
                process: handle.process.known(),
                key: handle.handle,
                origin: Origin::Before.code(),
                end: End::Open.code(),
                ..Acquisition::default()
            };
            acquisition.take_listed(handle);
            rows.acquisitions.push(acquisition);
        }
        for acquisition in &mut rows.acquisitions {
            acquisition.in_rundown =
                acquisition.in_rundown.or_else(|| self.has_rundown.then_some(false));
        }
        for event in self.events {
            let (process, tid) = (event.process.known(), Some(event.tid).filter(|tid| *tid != 0));
            match kind(event) {
                EventKind::ObjectCreate => {
                    rows.object.created_ns = Some(event.time_ns);
                    rows.object.created_tid = tid;
                    rows.object.created_process = process;
                    rows.object.created_stack = event.stack;
                }
                EventKind::ObjectDelete => {
                    rows.object.deleted_ns = Some(event.time_ns);
                    rows.object.deleted_tid = tid;
                    rows.object.deleted_process = process;
                    rows.object.deleted_stack = event.stack;
                }
                kind if REFERENCE_CHANGES.contains(kind) => rows.changes.push(ReferenceChange {
                    object: row,
                    time_ns: event.time_ns,
                    process,
                    tid,
                    stack: event.stack,
                    delta: event.ref_delta.unwrap_or_default(),
                }),
                _ => {}
            }
        }
        let dumped = self.existing.first();
        rows.object.handle_count = dumped.and_then(|handle| handle.handle_count);
        rows.object.pointer_count = dumped.and_then(|handle| handle.pointer_count);
        rows.object.first_acquisition = first;
        rows.object.acquisition_count = RowCount::new(rows.acquisitions.len() as u32);
        rows
    }

    /// Returns the position of the event that closes what an event opened.
    fn closing(&self, event: &Event) -> u32 {
        let position = event.closing_event.and_then(|row| row.0.checked_sub(self.first_event));
        position.filter(|at| (*at as usize) < self.events.len()).unwrap_or(sentinel())
    }

    fn acquisition(&self, object: ObjectIdx, life: Life) -> Acquisition {
        let event = |at: u32| self.events.get(at as usize);
        let mut acquisition = Acquisition {
            object: Some(object),
            origin: Origin::Before.code(),
            end: End::Closed.code(),
            ..Acquisition::default()
        };
        if let Some(opened) = event(life.opened) {
            acquisition.open(opened);
        }
        if let Some(ended) = event(life.ended) {
            acquisition.close(ended, life.opened == sentinel());
        }
        acquisition
    }
}

impl Acquisition {
    /// Takes over the fields of the opening event.
    fn open(&mut self, event: &Event) {
        self.take_subject(event);
        let kind = EventKind::from_code(event.kind).unwrap_or(EventKind::HandleCreate);
        self.origin =
            Origin::from_event(kind, event.inherited_by.is_some()).unwrap_or(Origin::Create).code();
        self.process = event.inherited_by.or(event.process.known());
        self.opened_ns = Some(event.time_ns);
        self.opened_tid = Some(event.tid).filter(|tid| *tid != 0);
        self.opened_stack = event.stack;
        self.opened_by = event.caller_process;
        self.source_pid = event.source_pid;
        self.source_key = event.source_handle;
        self.source_process = match event.inherited_by {
            Some(_) => event.source_process.or(event.process.known()),
            None => event.source_process,
        };
        let unseen = event.closed_unseen.and_then(ClosedUnseen::from_code);
        self.end = match unseen {
            Some(unseen) => End::from(unseen),
            None if event.leaked => End::Open,
            None => End::Closed,
        }
        .code();
        self.ended_after_ns = event.closed_after_ns;
        self.ended_ns = event.closed_before_ns;
    }

    /// Takes over the fields of the closing event.
    fn close(&mut self, event: &Event, is_alone: bool) {
        if is_alone {
            self.take_subject(event);
            self.process = event.process.known();
        }
        self.end = if event.closed_at_exit { End::AtExit } else { End::Closed }.code();
        self.ended_ns = Some(event.time_ns);
        self.ended_tid = Some(event.tid).filter(|tid| *tid != 0);
        self.ended_stack = event.stack;
        self.ended_by = event.caller_process;
        self.ended_key = event.handle.filter(|handle| *handle != self.key);
        self.ended_after_ns = None;
    }

    fn take_subject(&mut self, event: &Event) {
        let is_view = event.handle.is_none();
        let kind = if is_view { AcquisitionKind::View } else { AcquisitionKind::Handle };
        self.kind = kind.code();
        self.key = event.handle.or(event.view_base).unwrap_or_default();
        self.size = event.view_size.map(|size| size as i64);
        self.byte_offset = event.byte_offset;
        self.file_object = event.file_object;
    }

    /// Records whether a rundown at the start lists a handle from before the trace, and removes it from that list.
    pub fn take_start(&mut self, pointer: u64, start: &mut StartList) {
        if self.origin == Origin::Before.code() && !start.is_empty() {
            let process = self.process.unwrap_or(ProcessIdx::NONE);
            self.in_start_rundown = start.take(pointer, process, self.key).then_some(true);
        }
    }

    fn take_listed(&mut self, handle: &ExistingHandle) {
        self.in_rundown = Some(true);
        self.granted_access = handle.granted_access;
        self.attributes = handle.attributes;
    }
}

impl Histories {
    /// Adds an object with its history.
    pub fn add(&mut self, object: Object, history: &History<'_>) {
        let row = ObjectIdx::from_row(self.objects.len());
        let first = AcquisitionIdx::from_row(self.acquisitions.len());
        let rows = history.rows(row, object, first);
        self.objects.push(rows.object);
        self.acquisitions.extend(rows.acquisitions);
        self.changes.extend(rows.changes);
    }

    /// Adds allocations, which refer to each other by numbers counted from 0. `allocator` returns the kind and process
    /// of an allocator.
    pub fn add_allocations(
        &mut self,
        resources: impl IntoIterator<Item = Resource>,
        allocator: impl Fn(AllocatorIdx) -> (ResourceKind, Option<ProcessIdx>),
    ) {
        let first = self.acquisitions.len() as u32;
        self.acquisitions.extend(resources.into_iter().map(|resource| {
            let row = |number: Option<u32>| number.map(|number| AcquisitionIdx(first + number));
            let (grown_from, part_of) = (row(resource.grown_from), row(resource.part_of));
            let end = ResourceEnd::from_code(resource.end).map_or(End::Open, End::from);
            let (kind, process) = allocator(resource.allocator);
            Acquisition {
                kind: AcquisitionKind::from(kind).code(),
                allocator: Some(resource.allocator),
                process,
                key: resource.key,
                size: Some(resource.size),
                origin: allocation_origin(grown_from.is_some()).code(),
                opened_ns: Some(resource.time_ns),
                opened_tid: resource.tid,
                opened_stack: resource.stack,
                opened_by: resource.caller,
                end: end.code(),
                ended_ns: resource.end_time_ns,
                ended_tid: resource.end_tid,
                ended_stack: resource.end_stack,
                part_of,
                grown_from,
                free_call: resource.free_call,
                ..Acquisition::default()
            }
        }));
    }
}

/// Returns the origin of an allocation.
pub fn allocation_origin(is_grown: bool) -> Origin {
    if is_grown { Origin::Reallocate } else { Origin::Allocate }
}

/// Numbered handles that a rundown at the start lists and that no event has accounted for yet. They are keyed by the
/// address of their object, process and slot.
#[derive(Debug, Default)]
pub struct StartList {
    handles: HashMap<(u64, ProcessIdx, u64), u32>,
    /// Handles that no event can identify, because their process is unknown or another one is listed with the same key.
    others: Vec<u32>,
}

impl StartList {
    /// Adds a handle.
    pub fn add(&mut self, pointer: u64, process: Option<ProcessIdx>, handle: u64, number: u32) {
        match process {
            Some(process) => {
                let before = self.handles.insert((pointer, process, handle_slot(handle)), number);
                self.others.extend(before);
            }
            None => self.others.push(number),
        }
    }

    /// Whether no handle is left that an event could identify.
    pub fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }

    /// Removes a handle of an object; returns whether it was listed.
    pub fn take(&mut self, pointer: u64, process: ProcessIdx, handle: u64) -> bool {
        self.handles.remove(&(pointer, process, handle_slot(handle))).is_some()
    }

    /// Returns the numbers of the remaining handles, ascending.
    pub fn rest(self) -> Vec<u32> {
        let mut rest: Vec<u32> = self.handles.into_values().chain(self.others).collect();
        rest.sort_unstable();
        rest
    }
}

/// Builds the objects and acquisitions of handles that only the rundown at the start has. There is one object per
/// address and type, in the order of the first handle; `first_object` and `first` are the first rows.
pub fn start_objects(
    handles: impl IntoIterator<Item = StartHandle>,
    first_object: ObjectIdx,
    first: AcquisitionIdx,
) -> (Objects, Acquisitions) {
    let mut numbers: HashMap<(u64, TypeId), usize> = HashMap::new();
    let mut objects: Vec<Vec<StartHandle>> = Vec::new();
    for handle in handles {
        let next = objects.len();
        let number = *numbers.entry((handle.pointer, handle.type_id)).or_insert(next);
        if number == next {
            objects.push(Vec::new());
        }
        objects[number].push(handle);
    }
    let (mut table, mut rows) = (Objects::default(), Acquisitions::default());
    for handles in objects {
        let object = ObjectIdx(first_object.0 + table.len() as u32);
        table.push(Object {
            pointer: handles.first().map_or(0, |handle| handle.pointer),
            type_id: handles.first().map_or(TypeId(0), |handle| handle.type_id),
            name: handles.iter().find_map(|handle| handle.name),
            first_acquisition: AcquisitionIdx(first.0 + rows.len() as u32),
            acquisition_count: RowCount::new(handles.len() as u32),
            ..Object::default()
        });
        rows.extend(handles.into_iter().map(|handle| Acquisition {
            kind: AcquisitionKind::Handle.code(),
            object: Some(object),
            process: handle.process,
            key: handle.handle,
            origin: Origin::Before.code(),
            end: if handle.closed { End::Closed } else { End::Open }.code(),
            in_start_rundown: Some(true),
            ..Acquisition::default()
        }));
    }
    (table, rows)
}
