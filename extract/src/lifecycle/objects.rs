//! The life of objects, by kernel address, and raw events as the rules of objects see them.

use std::collections::{HashMap, VecDeque};

use handlescope_model::{Cancelled, EventKind, FILE_MAPPING_TYPE, Poll, TypeId};

use super::attribution::NONE;
use super::kinds::{Subject, subject};
use super::lifetimes::Lifetimes;
use super::owners::{DuplicateOwners, EventOwners, view_pid};
use super::unseen::{Effect, Reuses};
use crate::collect::Collector;
use crate::etl::{Diagnostics, WarningKind};
use crate::kernel::{DuplicateRow, Handles};
use crate::raw::{RowKind, UNKNOWN_ID};

/// Address of an object, or pid and address of a view.
type Key = (u32, u64);

/// Process in keys of kernel objects, which belong to no process. No process has this pid: it
/// is the pid of a header without one.
const KERNEL: u32 = UNKNOWN_ID;

/// A tracked object.
#[derive(Debug, Clone)]
pub struct ObjectRow {
    /// Kernel address; for a view `base | pid << 42`, as ETWAnalyzer prints it.
    pub pointer: u64,
    pub type_id: TypeId,
    /// First name, 0 for none.
    pub name: u32,
    key: Key,
    opened: u32,
    closed: u32,
    /// Sum over the opened handles less the sum over the closed handles: 0 when they are the same.
    balance: u64,
    completed: u32,
}

impl ObjectRow {
    /// Whether nothing more is expected of it: it was closed, deleted or unmapped.
    pub fn is_complete(&self) -> bool {
        self.completed != NONE
    }
}

/// All objects of a trace, in the order of their first event.
#[derive(Debug, Default)]
pub struct Objects {
    pub rows: Vec<ObjectRow>,
    /// Further names of objects with more than one, in the order they came.
    pub more_names: HashMap<u32, Vec<u32>>,
    /// Names of the files of views, numbers of [`Views::files`], where the trace names them.
    ///
    /// [`Views::files`]: crate::kernel::Views::files
    pub files: HashMap<u32, u32>,
    open: hashbrown::HashMap<Key, u32>,
    last_completed: hashbrown::HashMap<Key, u32>,
    completed: u32,
    /// Addresses of objects that ended with handles open: those from before the trace, or lost events, count as closes.
    unbalanced: hashbrown::HashSet<u64>,
    /// Keys that had another object later, so that closes may be of either.
    doubtful: hashbrown::HashSet<u64>,
    /// The objects whose handles are open at addresses that are known to be doubtful, by handle.
    known: Option<OpenAt>,
}

/// A handle of the object at an address: address, process and handle value.
type HandleAt = (u64, u32, u32);

/// Objects of the open handles at some addresses, the first one first.
#[derive(Debug, Default)]
struct OpenAt {
    addresses: hashbrown::HashSet<u64>,
    objects: HashMap<HandleAt, VecDeque<u32>>,
}

/// Object of each event.
pub struct TrackedEvents {
    pub objects: Objects,
    /// Object of each event, a row of `rows`, or [`NONE`].
    pub object: Vec<u32>,
}

/// Follows all events in time order, unless asked to stop; `order` gives it when it is not the order of
/// the rows. Returns what was opened again, too, if events may be missing.
pub fn track<'a>(
    lifetimes: &Lifetimes<'a>,
    order: Option<&[u32]>,
    diagnostics: &mut Diagnostics,
) -> Result<(TrackedEvents, Option<Reuses<'a>>), Cancelled> {
    let mut findings = Diagnostics::default();
    let mut tracked = follow(Objects::default(), lifetimes, order, &mut findings)?;
    let addresses = std::mem::take(&mut tracked.0.objects.doubtful);
    if !addresses.is_empty() {
        // Few addresses of few traces: only of these it is worth to remember each handle.
        let known = Some(OpenAt { addresses, ..OpenAt::default() });
        findings = Diagnostics::default();
        tracked = follow(Objects { known, ..Objects::default() }, lifetimes, order, &mut findings)?;
    }
    diagnostics.merge(&findings);
    Ok(tracked)
}

fn follow<'a>(
    mut objects: Objects,
    lifetimes: &Lifetimes<'a>,
    order: Option<&[u32]>,
    diagnostics: &mut Diagnostics,
) -> Result<(TrackedEvents, Option<Reuses<'a>>), Cancelled> {
    let Lifetimes { collected, owners, missing, cancel, .. } = *lifetimes;
    let mut reuses = (!missing.is_none()).then(|| Reuses::new(*lifetimes));
    let mut object = vec![NONE; collected.shared.timeline.len()];
    let mut poll = Poll::new(cancel);
    for row in lifetimes.rows(order) {
        poll.round()?;
        let process = owners.process[row];
        if process == NONE {
            continue;
        }
        let effect = reuses.as_mut().map_or(Effect::None, |reuses| reuses.event(row));
        let tracked = match effect {
            Effect::None => objects.event(collected, owners, row, process),
            Effect::ClosedBefore(opened) => {
                let handle = opened_handle(collected, owners, opened as usize);
                objects.close_unseen(object[opened as usize], handle);
                objects.event(collected, owners, row, process)
            }
            Effect::Closes(opened) => {
                let handle = opened_handle(collected, owners, opened as usize);
                let name = collected.handles.name[collected.shared.timeline.row[row] as usize];
                Ok(objects.close_of(object[opened as usize], handle, name))
            }
        };
        match tracked {
            Ok(index) => object[row] = index,
            Err(kind) => diagnostics.count(kind, None),
        }
    }
    Ok((TrackedEvents { objects, object }, reuses))
}

impl Objects {
    /// Final order: completed objects by completion, then open ones by first event.
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

    /// Gives an event to its object; the error is the reason that it has none.
    fn event(
        &mut self,
        collected: &Collector,
        owners: &EventOwners,
        row: usize,
        process: u32,
    ) -> Result<u32, WarningKind> {
        let Collector { handles, duplicates, objects, references, views, shared, .. } = collected;
        let kind = shared.timeline.kind[row];
        let at = shared.timeline.row[row] as usize;
        match subject(kind) {
            Subject::Object(EventKind::HandleCreate) => {
                let object = self.open_handle(handle_of(handles, at, process), handles.type_id[at]);
                self.name_if_unnamed(object, handles.name[at]);
                Ok(object)
            }
            Subject::Object(EventKind::HandleDuplicate) => {
                let duplicate = &duplicates.rows[at];
                let handle = duplicated_handle(duplicate, owners.duplicates[at], process);
                Ok(self.open_handle(handle, duplicate.type_id))
            }
            Subject::Object(EventKind::HandleClose) => {
                self.close(handle_of(handles, at, process), handles.name[at])
            }
            Subject::HandleAtEnd => {
                let address = handles.object[at];
                let type_id = TypeId(handles.type_id[at].into());
                let object = self.open_or_new((KERNEL, address), address, type_id);
                if handles.name[at] != 0 {
                    self.row(object).name = handles.name[at];
                    self.more_names.remove(&object);
                }
                Ok(object)
            }
            Subject::Object(EventKind::ObjectCreate) => {
                let address = objects.object[at];
                let key = (KERNEL, address);
                // Still open: its delete was lost, the address has a new object now.
                if let Some(old) = self.open.get(&key).copied() {
                    self.complete(key, old);
                }
                Ok(self.open_or_new(key, address, TypeId(objects.type_id[at].into())))
            }
            Subject::Object(EventKind::ObjectDelete) => {
                self.end((KERNEL, objects.object[at]), WarningKind::DeleteWithoutObject)
            }
            Subject::Object(EventKind::Reference | EventKind::Dereference) => {
                let open = self.open.get(&(KERNEL, references.object[at])).copied();
                open.ok_or(WarningKind::ReferenceWithoutObject)
            }
            Subject::Object(EventKind::Map) => {
                let (pid, base) = (view_pid(collected, row, process), views.rows[at].base);
                let pointer = base | u64::from(pid).wrapping_shl(42);
                let object = self.open_or_new((pid, base), pointer, FILE_MAPPING_TYPE);
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

    fn open_handle(&mut self, handle: HandleAt, type_id: u16) -> u32 {
        let (address, ..) = handle;
        let object = self.open_or_new((KERNEL, address), address, TypeId(type_id.into()));
        let row = self.row(object);
        row.opened += 1;
        row.balance = row.balance.wrapping_add(weight(handle));
        if let Some(known) = self.known.as_mut().filter(|known| known.addresses.contains(&address))
        {
            known.objects.entry(handle).or_default().push_back(object);
        }
        object
    }

    /// Ends an open object; `missing` if there is none.
    fn end(&mut self, key: Key, missing: WarningKind) -> Result<u32, WarningKind> {
        let object = self.open.get(&key).copied().ok_or(missing)?;
        self.complete(key, object);
        Ok(object)
    }

    fn close(&mut self, handle: HandleAt, name: u32) -> Result<u32, WarningKind> {
        let key = (KERNEL, handle.0);
        let open = self.open.get(&key).copied();
        let object = self
            .known
            .as_mut()
            .and_then(|known| known.objects.get_mut(&handle)?.pop_front())
            .or(open)
            .or_else(|| self.last_completed.get(&key).copied())
            .ok_or(WarningKind::CloseWithoutObject)?;
        self.add_name(object, name);
        let row = self.row(object);
        row.closed += 1;
        row.balance = row.balance.wrapping_sub(weight(handle));
        if open == Some(object) && row.opened == row.closed {
            self.complete(key, object);
        }
        Ok(object)
    }

    /// Counts the close of a handle of an object, which may be complete.
    fn close_of(&mut self, object: u32, handle: Option<HandleAt>, name: u32) -> u32 {
        self.add_name(object, name);
        self.close_unseen(object, handle);
        object
    }

    /// Counts a close of a handle, or an unmap, of an object, which is complete when it was the last one.
    fn close_unseen(&mut self, object: u32, handle: Option<HandleAt>) {
        if let Some(handle) = handle {
            let open = self.known.as_mut().and_then(|known| known.objects.get_mut(&handle));
            if let Some(open) = open
                && let Some(at) = open.iter().position(|of| *of == object)
            {
                open.remove(at);
            }
            let row = self.row(object);
            row.balance = row.balance.wrapping_sub(weight(handle));
        }
        let row = self.row(object);
        row.closed += 1;
        if row.completed == NONE && row.opened <= row.closed {
            let key = row.key;
            self.complete(key, object);
        }
    }

    fn open_or_new(&mut self, key: Key, pointer: u64, type_id: TypeId) -> u32 {
        let Self { rows, unbalanced, doubtful, .. } = self;
        *self.open.entry(key).or_insert_with(|| {
            if !unbalanced.is_empty() && unbalanced.contains(&key.1) {
                doubtful.insert(key.1);
            }
            rows.push(ObjectRow {
                pointer,
                type_id,
                name: 0,
                key,
                opened: 0,
                closed: 0,
                balance: 0,
                completed: NONE,
            });
            rows.len() as u32 - 1
        })
    }

    fn complete(&mut self, key: Key, object: u32) {
        self.open.remove(&key);
        self.last_completed.insert(key, object);
        let position = self.completed;
        self.completed += 1;
        let row = self.row(object);
        row.completed = position;
        if row.balance != 0 {
            self.unbalanced.insert(key.1);
        }
    }

    fn row(&mut self, object: u32) -> &mut ObjectRow {
        &mut self.rows[object as usize]
    }

    fn name_if_unnamed(&mut self, object: u32, name: u32) {
        let row = self.row(object);
        if row.name == 0 {
            row.name = name;
        }
    }

    /// Adds the name that a close has: a second name is kept beside the first, an empty name is ignored.
    fn add_name(&mut self, object: u32, name: u32) {
        let first = self.row(object).name;
        if name == 0 || name == first {
            return;
        }
        if first == 0 {
            self.row(object).name = name;
            return;
        }
        let more = self.more_names.entry(object).or_default();
        if !more.contains(&name) {
            more.push(name);
        }
    }
}

/// A number for a handle; sums of equal handles are equal.
fn weight((_, process, handle): HandleAt) -> u64 {
    // Odd, near 2^64 divided by the golden ratio: the factor of Fibonacci hashing.
    let number = u64::from(process) << 32 | u64::from(handle);
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The handle that a create or a duplicate opened.
fn opened_handle(collected: &Collector, owners: &EventOwners, row: usize) -> Option<HandleAt> {
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

/// The handle of a create or a close.
fn handle_of(handles: &Handles, at: usize, process: u32) -> HandleAt {
    (handles.object[at], process, handles.handle[at])
}

/// The handle that a duplicate opened, which is of the child if one inherits it.
fn duplicated_handle(duplicate: &DuplicateRow, owners: DuplicateOwners, process: u32) -> HandleAt {
    let holder = if owners.inherited_by == NONE { process } else { owners.inherited_by };
    (duplicate.object, holder, duplicate.target_handle)
}
