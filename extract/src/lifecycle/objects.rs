//! The life of objects, by kernel address.

use std::collections::HashMap;

use handlescope_model::{Cancel, Cancelled, EventKind, FILE_MAPPING_TYPE, Poll, TypeId};

use super::attribution::NONE;
use super::kinds::{Subject, subject};
use super::owners::{EventOwners, view_pid};
use super::unseen::{Effect, MissingEvents, Reuses};
use crate::collect::Collector;
use crate::etl::{Diagnostics, WarningKind};
use crate::raw::UNKNOWN_ID;

/// Address of an object, or pid and address of a view.
type Key = (u32, u64);

/// Marks keys of kernel objects, which belong to no process. No process has this pid either: it
/// stands for a header without one.
const KERNEL: u32 = UNKNOWN_ID;

/// One object as tracked.
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
    open: hashbrown::HashMap<Key, u32>,
    last_completed: hashbrown::HashMap<Key, u32>,
    completed: u32,
}

/// Which object each event belongs to.
pub struct TrackedEvents {
    pub objects: Objects,
    /// For each event its object, a row of `rows`, or [`NONE`].
    pub object: Vec<u32>,
}

/// Follows all events in time order, unless asked to stop; `order` gives it when it is not the order of
/// the rows. Returns what was opened again, too, if events may be missing.
pub fn track<'a>(
    collected: &'a Collector,
    owners: &'a EventOwners,
    missing: &'a MissingEvents<'a>,
    order: Option<&[u32]>,
    diagnostics: &mut Diagnostics,
    cancel: &Cancel,
) -> Result<(TrackedEvents, Option<Reuses<'a>>), Cancelled> {
    let mut reuses = (!missing.is_none()).then(|| Reuses::new(collected, owners, missing));
    let mut objects = Objects::default();
    let rows = collected.shared.timeline.len();
    let mut object = vec![NONE; rows];
    let mut poll = Poll::new(cancel);
    for position in 0..rows {
        poll.round()?;
        let row = order.map_or(position, |order| order[position] as usize);
        let process = owners.process[row];
        if process == NONE {
            continue;
        }
        let effect = reuses.as_mut().map_or(Effect::None, |reuses| reuses.event(row));
        let tracked = match effect {
            Effect::None => objects.event(collected, row, process),
            Effect::ClosedBefore(opened) => {
                objects.close_unseen(object[opened as usize]);
                objects.event(collected, row, process)
            }
            Effect::Closes(opened) => {
                let name = collected.handles.name[collected.shared.timeline.row[row] as usize];
                Ok(objects.close_of(object[opened as usize], name))
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
    /// Returns for each object its place.
    pub fn places(&self) -> Vec<u32> {
        let mut places = vec![0; self.rows.len()];
        let mut next_open = self.completed;
        for (place, row) in places.iter_mut().zip(&self.rows) {
            *place = if row.completed == NONE {
                next_open += 1;
                next_open - 1
            } else {
                row.completed
            };
        }
        places
    }

    /// Gives an event to its object; the error says why it has none.
    fn event(
        &mut self,
        collected: &Collector,
        row: usize,
        process: u32,
    ) -> Result<u32, WarningKind> {
        let Collector { handles, duplicates, objects, references, views, shared, .. } = collected;
        let kind = shared.timeline.kind[row];
        let at = shared.timeline.row[row] as usize;
        match subject(kind) {
            Subject::Object(EventKind::HandleCreate) => {
                let object = self.open_handle(handles.object[at], handles.type_id[at]);
                self.name_if_unnamed(object, handles.name[at]);
                Ok(object)
            }
            Subject::Object(EventKind::HandleDuplicate) => {
                let duplicate = &duplicates.rows[at];
                Ok(self.open_handle(duplicate.object, duplicate.type_id))
            }
            Subject::Object(EventKind::HandleClose) => {
                self.close((KERNEL, handles.object[at]), handles.name[at])
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
                Ok(self.open_or_new((pid, base), pointer, FILE_MAPPING_TYPE))
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

    fn open_handle(&mut self, address: u64, type_id: u16) -> u32 {
        let object = self.open_or_new((KERNEL, address), address, TypeId(type_id.into()));
        self.row(object).opened += 1;
        object
    }

    /// Ends an open object; `missing` if there is none.
    fn end(&mut self, key: Key, missing: WarningKind) -> Result<u32, WarningKind> {
        let object = self.open.get(&key).copied().ok_or(missing)?;
        self.complete(key, object);
        Ok(object)
    }

    fn close(&mut self, key: Key, name: u32) -> Result<u32, WarningKind> {
        let open = self.open.get(&key).copied();
        let object = open
            .or_else(|| self.last_completed.get(&key).copied())
            .ok_or(WarningKind::CloseWithoutObject)?;
        self.add_name(object, name);
        let row = self.row(object);
        row.closed += 1;
        if open.is_some() && row.opened == row.closed {
            self.complete(key, object);
        }
        Ok(object)
    }

    /// Counts a close of an object, which may be complete.
    fn close_of(&mut self, object: u32, name: u32) -> u32 {
        self.add_name(object, name);
        self.count_close(object);
        object
    }

    /// Counts a close, or an unmap, that is not in the trace.
    fn close_unseen(&mut self, object: u32) {
        self.count_close(object);
    }

    /// Counts a close of an object, which is complete when it was the last one.
    fn count_close(&mut self, object: u32) {
        let row = self.row(object);
        row.closed += 1;
        if row.completed == NONE && row.opened <= row.closed {
            let key = row.key;
            self.complete(key, object);
        }
    }

    fn open_or_new(&mut self, key: Key, pointer: u64, type_id: TypeId) -> u32 {
        let rows = &mut self.rows;
        *self.open.entry(key).or_insert_with(|| {
            rows.push(ObjectRow {
                pointer,
                type_id,
                name: 0,
                key,
                opened: 0,
                closed: 0,
                completed: NONE,
            });
            rows.len() as u32 - 1
        })
    }

    fn complete(&mut self, key: Key, object: u32) {
        self.open.remove(&key);
        self.last_completed.insert(key, object);
        let place = self.completed;
        self.completed += 1;
        self.row(object).completed = place;
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

    /// A close has the name; a second one is kept beside the first, an empty one says nothing.
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
