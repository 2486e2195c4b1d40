//! Follows the life of objects by kernel address: how events begin, continue and complete them.

use std::collections::HashMap;

use slab::Slab;

use handlescope_model::rules::{handle_slot, is_kernel_handle};
use handlescope_model::{EventKind, FILE_MAPPING_TYPE, TypeId};

use super::attribution::NONE;
use super::inheritance::DuplicateOwners;
use super::kinds::{Subject, subject};
use super::open_handles::{HandleList, OpenHandle, OpenHandles, Several};
use super::owners::{EventOwners, view_pid};
use crate::collect::Collector;
use crate::etl::WarningKind;
use crate::kernel::{DuplicateRow, Handles};
use crate::raw::{RowKind, UNKNOWN_ID};

/// Address of a kernel object with [`KERNEL`], or pid and address of a view.
type ObjectKey = (u32, u64);

/// Used as the process in keys of kernel objects, which belong to no process. No process has this pid: it marks a
/// header without one.
const KERNEL: u32 = UNKNOWN_ID;

/// Object of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectRow {
    /// Kernel address; for a view `base | pid << 42`, as ETWAnalyzer prints it.
    pub pointer: u64,
    pub type_id: TypeId,
    /// First name, 0 for none.
    pub name: u32,
    /// Number of objects completed before this one, or [`NONE`] if it is not complete.
    pub completed: u32,
}

impl ObjectRow {
    /// Whether the object was closed, deleted or unmapped, so that nothing more is expected of it.
    pub fn is_complete(&self) -> bool {
        self.completed != NONE
    }
}

/// All objects of a trace, in the order of their first event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ObjectList {
    pub rows: Vec<ObjectRow>,
    /// All but the first name of objects with several, in order of arrival.
    pub more_names: HashMap<u32, Vec<u32>>,
    /// Files of views, as numbers in [`Views::files`], where the trace names them.
    ///
    /// [`Views::files`]: crate::kernel::Views::files
    pub files: HashMap<u32, u32>,
    /// Number of completed objects.
    pub completed: u32,
}

impl ObjectList {
    /// Orders objects finally: completed ones by completion, then open ones by first event.
    ///
    /// Returns the position of each object.
    pub fn positions(&self) -> Vec<u32> {
        let mut positions = vec![0; self.rows.len()];
        let mut next_open = self.completed;
        for (position, row) in positions.iter_mut().zip(&self.rows) {
            *position = if row.completed == NONE {
                next_open += 1;
                next_open - 1
            } else {
                row.completed
            };
        }
        positions
    }
}

/// Object while its events are followed. There is one per object, so it holds only the fields of [`ObjectRow`] and what
/// fits beside them.
#[derive(Debug)]
struct TrackedObject {
    pointer: u64,
    type_id: TypeId,
    name: u32,
    completed: u32,
    /// Index of its handles in [`Tracker::open`] while it is open; afterwards the row of the close that completed it,
    /// or [`NONE`].
    open: u32,
}

impl TrackedObject {
    fn row(self) -> ObjectRow {
        let Self { pointer, type_id, name, completed, .. } = self;
        ObjectRow { pointer, type_id, name, completed }
    }
}

/// Object that is not complete.
#[derive(Debug)]
struct OpenObject {
    key: ObjectKey,
    handles: HandleList,
}

impl OpenObject {
    fn new(key: ObjectKey) -> Self {
        Self { key, handles: HandleList::default() }
    }
}

/// Last object of a key.
#[derive(Debug, Clone, Copy)]
struct LastObject {
    object: u32,
    /// Index of its handles in [`Tracker::open`], or [`NONE`] when it is complete.
    open: u32,
}

/// Objects of the events so far.
#[derive(Debug, Default)]
pub struct Tracker {
    objects: Vec<TrackedObject>,
    open: Slab<OpenObject>,
    handles: OpenHandles,
    /// Closes of handles that belong to another process than the closing one, with the process that had the handle.
    foreign: hashbrown::HashMap<u32, u32>,
    /// Closes that could be of handles of several other processes.
    doubtful_closes: hashbrown::HashSet<u32>,
    /// Numbers of the completions that a later event undid.
    reopened: Vec<u32>,
    more_names: HashMap<u32, Vec<u32>>,
    files: HashMap<u32, u32>,
    places: hashbrown::HashMap<ObjectKey, LastObject>,
    completed: u32,
}

/// Evidence about closes by threads of other processes.
pub trait CloseEvidence {
    /// Whether a close by `closer` can be of another process's handle.
    fn allows(&self, close: u32, closer: u32, of: OpenHandle, address: u64) -> bool;
}

/// Handle of the object at an address: address, process and slot.
pub type HandleAt = (u64, u32, u32);

impl Tracker {
    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Number of completed objects.
    pub fn completed(&self) -> usize {
        self.completed as usize
    }

    /// Takes the closes of other processes' handles, with the process that had each handle.
    pub fn take_foreign(&mut self) -> hashbrown::HashMap<u32, u32> {
        std::mem::take(&mut self.foreign)
    }

    /// Number of closes that could be of handles of several other processes.
    pub fn doubtful_closes(&self) -> u64 {
        self.doubtful_closes.len() as u64
    }

    /// Numbers of the completions that were undone, ascending.
    pub fn reopened(&mut self) -> &[u32] {
        self.reopened.sort_unstable();
        &self.reopened
    }

    /// Returns the objects after the last event.
    pub fn finish(mut self) -> ObjectList {
        self.reopened.sort_unstable();
        let Self { objects, more_names, files, completed, reopened, .. } = self;
        // Collects in place, in the memory of `objects`.
        let rows = objects.into_iter().map(|tracked| {
            let mut row = tracked.row();
            if row.is_complete() && !reopened.is_empty() {
                row.completed -= reopened.partition_point(|undone| *undone < row.completed) as u32;
            }
            row
        });
        let completed = completed - reopened.len() as u32;
        ObjectList { rows: rows.collect(), more_names, files, completed }
    }

    /// Gives an event to its object and returns the object.
    ///
    /// The error says why the event has no object.
    pub fn event(
        &mut self,
        collected: &Collector,
        owners: &EventOwners,
        row: usize,
        process: u32,
        evidence: &impl CloseEvidence,
    ) -> Result<u32, WarningKind> {
        let Collector { handles, duplicates, objects, references, views, shared, .. } = collected;
        let kind = shared.timeline.kind[row];
        let at = shared.timeline.row[row] as usize;
        match subject(kind) {
            Subject::Object(EventKind::HandleCreate) => {
                let handle = handle_of(handles, at, process);
                let object = self.open_handle(handle, handles.type_id[at], row as u32);
                self.name_if_unnamed(object, handles.name[at]);
                Ok(object)
            }
            Subject::Object(EventKind::HandleDuplicate) => {
                let duplicate = &duplicates.rows[at];
                let handle = duplicated_handle(duplicate, owners.duplicates[at], process);
                let source =
                    (duplicate.object, owners.duplicates[at].source, slot(duplicate.source_handle));
                self.go_on(source, duplicate.type_id, collected, owners);
                Ok(self.open_handle(handle, duplicate.type_id, row as u32))
            }
            Subject::Object(EventKind::HandleClose) => {
                let is_of_kernel = is_kernel_handle(handles.handle[at].into());
                let handle = handle_of(handles, at, process);
                let process =
                    if is_of_kernel { process } else { self.holder(handle, row as u32, evidence) };
                self.close((handle.0, process, handle.2), handles.name[at], row as u32)
            }
            Subject::HandleAtEnd => {
                let address = handles.object[at];
                let type_id = TypeId(handles.type_id[at].into());
                let object = self.open_or_new((KERNEL, address), address, type_id).object;
                if handles.name[at] != 0 {
                    self.object(object).name = handles.name[at];
                    self.more_names.remove(&object);
                }
                Ok(object)
            }
            Subject::Object(EventKind::ObjectCreate) => {
                let address = objects.object[at];
                let key = (KERNEL, address);
                // If the old object is still open, its delete was lost and the address has a new object.
                if let Some(old) = self.open_at(key) {
                    self.complete(old, NONE);
                }
                Ok(self.open_or_new(key, address, TypeId(objects.type_id[at].into())).object)
            }
            Subject::Object(EventKind::ObjectDelete) => {
                self.end((KERNEL, objects.object[at]), WarningKind::DeleteWithoutObject)
            }
            Subject::Object(EventKind::Reference | EventKind::Dereference) => {
                let place = self.open_at((KERNEL, references.object[at]));
                place.map(|place| place.object).ok_or(WarningKind::ReferenceWithoutObject)
            }
            Subject::Object(EventKind::Map) => {
                let (pid, base) = (view_pid(collected, row, process), views.rows[at].base);
                let pointer = base | u64::from(pid).wrapping_shl(42);
                let object = self.open_or_new((pid, base), pointer, FILE_MAPPING_TYPE).object;
                if let Some(name) = views.files.name(views.rows[at].file, shared.timeline.time[row])
                {
                    self.files.entry(object).or_insert(name);
                }
                Ok(object)
            }
            Subject::Object(EventKind::Unmap) => {
                let key = (view_pid(collected, row, process), views.rows[at].base);
                self.end(key, WarningKind::UnmapWithoutMap)
            }
            // Allocations are followed elsewhere.
            Subject::Heap(_)
            | Subject::Pages(_)
            | Subject::Acquired(_)
            | Subject::Gui(_)
            | Subject::Unknown => Ok(NONE),
        }
    }

    fn open_handle(&mut self, handle: HandleAt, type_id: u16, row: u32) -> u32 {
        let (address, process, slot) = handle;
        let LastObject { object, open } =
            self.open_or_new((KERNEL, address), address, TypeId(type_id.into()));
        let list = &mut self.open[open as usize].handles;
        self.handles.add(list, object, OpenHandle { process, slot, row });
        object
    }

    /// Ends an open object; fails with `missing` if there is none.
    fn end(&mut self, key: ObjectKey, missing: WarningKind) -> Result<u32, WarningKind> {
        let place = self.open_at(key).ok_or(missing)?;
        self.complete(place, NONE);
        Ok(place.object)
    }

    /// Returns the process whose handle a close ends. That is the closing process, unless it has no such handle and
    /// exactly one open handle of the object has the value.
    pub fn holder(
        &mut self,
        (address, process, slot): HandleAt,
        row: u32,
        evidence: &impl CloseEvidence,
    ) -> u32 {
        let Some(LastObject { object, open }) = self.open_at((KERNEL, address)) else {
            return process;
        };
        let list = self.open[open as usize].handles;
        if self.handles.contains(list, object, process, slot)
            || self.handles.of_ended((address, process, slot)).is_some()
        {
            return process;
        }
        match self.handles.only(list, object, slot) {
            Ok(Some(other)) if evidence.allows(row, process, other, address) => {
                self.foreign.insert(row, other.process);
                other.process
            }
            Ok(_) => process,
            Err(Several) => {
                self.doubtful_closes.insert(row);
                process
            }
        }
    }

    /// Reopens an object whose last handle was just closed, because that handle was passed on. The close comes first if
    /// a duplicate closes its source, or if a message carries the handle.
    fn go_on(
        &mut self,
        (address, process, slot): HandleAt,
        type_id: u16,
        collected: &Collector,
        owners: &EventOwners,
    ) {
        let Some(place) = self.places.get_mut(&(KERNEL, address)) else { return };
        let Some(tracked) = self.objects.get_mut(place.object as usize) else { return };
        if place.open != NONE || tracked.open == NONE || tracked.type_id != TypeId(type_id.into()) {
            return;
        }
        let row = tracked.open;
        let closer = self.foreign.get(&row).copied().unwrap_or(owners.process[row as usize]);
        let at = collected.shared.timeline.row[row as usize] as usize;
        if handle_of(&collected.handles, at, closer) == (address, process, slot) {
            let open = self.open.insert(OpenObject::new((KERNEL, address))) as u32;
            self.reopened.push(tracked.completed);
            (tracked.completed, tracked.open, place.open) = (NONE, open, open);
        }
    }

    /// Ends the handle a close names. If no known handle matches, it is from before the trace: the close then belongs
    /// to the last object at its address, and ends nothing.
    fn close(&mut self, handle: HandleAt, name: u32, row: u32) -> Result<u32, WarningKind> {
        let missing = WarningKind::CloseWithoutObject;
        let last = *self.places.get(&(KERNEL, handle.0)).ok_or(missing)?;
        let object = match self.handles.of_ended(handle) {
            Some(ended) => {
                self.handles.forget(handle, ended);
                ended
            }
            None => {
                self.close_open(last, handle, row);
                last.object
            }
        };
        self.add_name(object, name);
        Ok(object)
    }

    /// Ends a handle of an object by the close in a row. The object may already be complete.
    pub fn close_of(&mut self, object: u32, handle: Option<HandleAt>, name: u32, row: u32) -> u32 {
        self.add_name(object, name);
        self.close_by(object, handle, row);
        object
    }

    /// Ends a handle or view of an object by a close that the trace lost.
    pub fn close_unseen(&mut self, object: u32, handle: Option<HandleAt>) {
        self.close_by(object, handle, NONE);
    }

    fn close_by(&mut self, object: u32, handle: Option<HandleAt>, row: u32) {
        let &mut TrackedObject { open, completed, .. } = self.object(object);
        let place = LastObject { object, open };
        match handle {
            Some(handle) if completed != NONE => self.handles.forget(handle, object),
            Some(handle) => self.close_open(place, handle, row),
            None if completed == NONE => self.complete(place, row),
            None => {}
        }
    }

    /// Ends a handle of an open object, and completes the object if it was the last one.
    fn close_open(&mut self, place: LastObject, (_, process, slot): HandleAt, row: u32) {
        let Some(OpenObject { handles, .. }) = self.open.get_mut(place.open as usize) else {
            return;
        };
        if self.handles.remove(handles, place.object, process, slot) && handles.is_empty() {
            self.complete(place, row);
        }
    }

    /// Returns the open object of a key.
    fn open_at(&self, key: ObjectKey) -> Option<LastObject> {
        self.places.get(&key).filter(|place| place.open != NONE).copied()
    }

    /// Returns the open object of a key, after creating it if there is none.
    fn open_or_new(&mut self, key: ObjectKey, pointer: u64, type_id: TypeId) -> LastObject {
        let place = self.places.entry(key).or_insert(LastObject { object: NONE, open: NONE });
        if place.open == NONE {
            let open = self.open.insert(OpenObject::new(key)) as u32;
            *place = LastObject { object: self.objects.len() as u32, open };
            self.objects.push(TrackedObject { pointer, type_id, name: 0, completed: NONE, open });
        }
        *place
    }

    /// Completes an open object; `by` is the row of the close that does it, or [`NONE`].
    fn complete(&mut self, place: LastObject, by: u32) {
        let LastObject { object, open } = place;
        let OpenObject { key, handles } = self.open.remove(open as usize);
        self.handles.end(handles, object, key.1);
        self.places.insert(key, LastObject { object, open: NONE });
        let completed = self.completed;
        self.completed += 1;
        let tracked = self.object(object);
        (tracked.completed, tracked.open) = (completed, by);
    }

    fn object(&mut self, object: u32) -> &mut TrackedObject {
        &mut self.objects[object as usize]
    }

    fn name_if_unnamed(&mut self, object: u32, name: u32) {
        let tracked = self.object(object);
        if tracked.name == 0 {
            tracked.name = name;
        }
    }

    /// Adds the name in a close. A second name is kept beside the first; an empty name is ignored.
    fn add_name(&mut self, object: u32, name: u32) {
        let first = self.object(object).name;
        if name == 0 || name == first {
            return;
        }
        if first == 0 {
            self.object(object).name = name;
            return;
        }
        let more = self.more_names.entry(object).or_default();
        if !more.contains(&name) {
            more.push(name);
        }
    }
}

/// Returns the address of an event's object or view. What becomes of that object depends only on events with the same
/// address.
pub fn event_address(collected: &Collector, row: usize) -> Option<u64> {
    let Collector { handles, duplicates, objects, references, views, shared, .. } = collected;
    let at = shared.timeline.row[row] as usize;
    Some(match subject(shared.timeline.kind[row]) {
        Subject::Object(EventKind::HandleCreate | EventKind::HandleClose)
        | Subject::HandleAtEnd => handles.object[at],
        Subject::Object(EventKind::HandleDuplicate) => duplicates.rows[at].object,
        Subject::Object(EventKind::ObjectCreate | EventKind::ObjectDelete) => objects.object[at],
        Subject::Object(EventKind::Reference | EventKind::Dereference) => references.object[at],
        Subject::Object(EventKind::Map | EventKind::Unmap) => views.rows[at].base,
        Subject::Heap(_)
        | Subject::Pages(_)
        | Subject::Acquired(_)
        | Subject::Gui(_)
        | Subject::Unknown => return None,
    })
}

/// Returns the handle that a create or duplicate opened.
pub fn opened_handle(collected: &Collector, owners: &EventOwners, row: usize) -> Option<HandleAt> {
    let Collector { handles, duplicates, shared, .. } = collected;
    let at = shared.timeline.row[row] as usize;
    let process = owners.process[row];
    match shared.timeline.kind[row] {
        RowKind::HandleCreate => Some(handle_of(handles, at, process)),
        RowKind::HandleDuplicate => {
            Some(duplicated_handle(&duplicates.rows[at], owners.duplicates[at], process))
        }
        _ => None,
    }
}

/// Returns the handle that a close by a process ends, or `None` for a kernel handle, which its value alone identifies.
pub fn closed_handle(collected: &Collector, row: usize, process: u32) -> Option<HandleAt> {
    let Collector { handles, shared, .. } = collected;
    let at = shared.timeline.row[row] as usize;
    let is_close = shared.timeline.kind[row] == RowKind::HandleClose;
    (is_close && !is_kernel_handle(handles.handle[at].into()))
        .then(|| handle_of(handles, at, process))
}

/// Returns the handle of a create or a close.
fn handle_of(handles: &Handles, at: usize, process: u32) -> HandleAt {
    (handles.object[at], process, slot(handles.handle[at]))
}

/// Returns the handle table entry a value refers to.
pub fn slot(value: u32) -> u32 {
    handle_slot(value.into()) as u32
}

/// Returns the handle that a duplicate opened. It belongs to the child if a child inherits it.
fn duplicated_handle(duplicate: &DuplicateRow, owners: DuplicateOwners, process: u32) -> HandleAt {
    let holder = if owners.inherited_by == NONE { process } else { owners.inherited_by };
    (duplicate.object, holder, slot(duplicate.target_handle))
}
