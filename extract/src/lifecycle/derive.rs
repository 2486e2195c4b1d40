//! What follows from the events of one object: creation, end, leaks, sharing.

use std::collections::{HashMap, VecDeque};

use handlescope_model::EventKind;

use super::{DuplicateOwners, EventOwners, NONE};
use crate::collect::{HandleEvents, RawKind};

/// What has to be known of the events of an object; a row is a number that names an event.
pub trait ObjectEvents {
    /// What the event is.
    fn kind(&self, row: u32) -> RawKind;
    /// The process it belongs to.
    fn process(&self, row: u32) -> u32;
    /// The handle value of a create, duplicate or close.
    fn handle(&self, row: u32) -> u64;
    /// The further processes of a duplicate.
    fn duplicate(&self, row: u32) -> DuplicateOwners;
}

/// The kind an event is stored as; rundown handles are no events and never come here.
pub fn stored_kind(kind: RawKind) -> EventKind {
    match kind {
        RawKind::Create => EventKind::HandleCreate,
        RawKind::Duplicate => EventKind::HandleDuplicate,
        RawKind::Close | RawKind::Rundown => EventKind::HandleClose,
        RawKind::ObjectCreate => EventKind::ObjectCreate,
        RawKind::ObjectDelete => EventKind::ObjectDelete,
        RawKind::Reference => EventKind::Reference,
        RawKind::Dereference => EventKind::Dereference,
        RawKind::Map => EventKind::Map,
        RawKind::Unmap => EventKind::Unmap,
    }
}

/// Raw events of a trace with their processes.
pub struct RawEvents<'a> {
    /// The events.
    pub events: &'a HandleEvents,
    /// Their processes.
    pub owners: &'a EventOwners,
}

impl ObjectEvents for RawEvents<'_> {
    fn kind(&self, row: u32) -> RawKind {
        self.events.kind[row as usize]
    }

    fn process(&self, row: u32) -> u32 {
        self.owners.process[row as usize]
    }

    fn handle(&self, row: u32) -> u64 {
        u64::from(self.events.value[row as usize])
    }

    fn duplicate(&self, row: u32) -> DuplicateOwners {
        self.owners.duplicates[self.events.detail[row as usize] as usize]
    }
}

/// What was derived for one object; events are positions among the object's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Derived {
    /// The event that created it.
    pub create: Option<u32>,
    /// The event that ended it.
    pub destroy: Option<u32>,
    /// Whether more than one process created, duplicated, referenced or mapped it.
    pub is_multiprocess: bool,
    /// Whether two handles were open at once.
    pub is_overlapped: bool,
}

/// Memory that is used again for each object.
#[derive(Default)]
pub struct DeriveScratch {
    /// For each event of the object the event that closed what it opened, or [`NONE`].
    pub closing: Vec<u32>,
    few: Vec<(Owner, u32)>,
    many: HashMap<Owner, VecDeque<u32>>,
}

/// Process and handle value: what a close must agree in.
type Owner = (u32, u64);

/// Objects with more events than this look up open handles in a table.
const FEW: usize = 64;

/// Derives what follows from the events `rows` of one object, given in time order.
pub fn derive(events: &impl ObjectEvents, rows: &[u32], scratch: &mut DeriveScratch) -> Derived {
    let mut derived = Derived { create: creation(events, rows), ..Derived::default() };
    derived.destroy = end(events, rows);
    derived.is_multiprocess = is_multiprocess(events, rows);
    derived.is_overlapped = is_overlapped(events, rows);
    pair(events, rows, scratch);
    derived
}

fn position(
    events: &impl ObjectEvents,
    rows: &[u32],
    wanted: impl Fn(RawKind) -> bool,
) -> Option<usize> {
    rows.iter().position(|row| wanted(events.kind(*row)))
}

/// Object create, else the first map or handle create, else the first duplicate.
fn creation(events: &impl ObjectEvents, rows: &[u32]) -> Option<u32> {
    position(events, rows, |kind| kind == RawKind::ObjectCreate)
        .or_else(|| position(events, rows, |kind| matches!(kind, RawKind::Create | RawKind::Map)))
        .or_else(|| position(events, rows, |kind| kind == RawKind::Duplicate))
        .map(|at| at as u32)
}

/// Object delete, else the last unmap, else the last close if everything opened was closed.
fn end(events: &impl ObjectEvents, rows: &[u32]) -> Option<u32> {
    let last = |wanted: RawKind| rows.iter().rposition(|row| events.kind(*row) == wanted);
    let count = |wanted: RawKind| rows.iter().filter(|row| events.kind(**row) == wanted).count();
    last(RawKind::ObjectDelete)
        .or_else(|| last(RawKind::Unmap))
        .or_else(|| {
            let opened = count(RawKind::Create) + count(RawKind::Duplicate);
            (opened == count(RawKind::Close)).then(|| last(RawKind::Close)).flatten()
        })
        .map(|at| at as u32)
}

fn is_multiprocess(events: &impl ObjectEvents, rows: &[u32]) -> bool {
    let mut first = None;
    let mut differs = |process: u32| *first.get_or_insert(process) != process;
    rows.iter().any(|&row| match events.kind(row) {
        RawKind::Duplicate => {
            let source = events.duplicate(row).source;
            differs(events.process(row)) || differs(source)
        }
        RawKind::Create
        | RawKind::Reference
        | RawKind::Dereference
        | RawKind::Map
        | RawKind::Unmap => differs(events.process(row)),
        _ => false,
    })
}

fn is_overlapped(events: &impl ObjectEvents, rows: &[u32]) -> bool {
    let mut open = 0i64;
    rows.iter().any(|row| {
        match events.kind(*row) {
            RawKind::Create | RawKind::Duplicate => open += 1,
            RawKind::Close => open -= 1,
            _ => {}
        }
        open > 1
    })
}

/// Pairs each create, duplicate and map with what closes it.
///
/// A create or duplicate is closed by the first later close of the same value in the same process
/// that closed nothing else; an inherited duplicate by a close in the child. A map is closed by
/// the first later unmap of the same process.
fn pair(events: &impl ObjectEvents, rows: &[u32], scratch: &mut DeriveScratch) {
    let DeriveScratch { closing, few, many } = scratch;
    closing.clear();
    closing.resize(rows.len(), NONE);
    few.clear();
    many.clear();
    let is_large = rows.len() > FEW;
    for (at, &row) in rows.iter().enumerate() {
        let at = at as u32;
        match events.kind(row) {
            RawKind::Create | RawKind::Duplicate => {
                let owner = owner(events, row);
                if is_large {
                    many.entry(owner).or_default().push_back(at);
                } else {
                    few.push((owner, at));
                }
            }
            RawKind::Close => {
                let owner = (events.process(row), events.handle(row));
                let opened = if is_large {
                    many.get_mut(&owner).and_then(VecDeque::pop_front)
                } else {
                    let found = few.iter().position(|(open, _)| *open == owner);
                    found.map(|found| few.remove(found).1)
                };
                if let Some(opened) = opened {
                    closing[opened as usize] = at;
                }
            }
            RawKind::Unmap => {
                for (open, closing) in closing[..at as usize].iter_mut().enumerate() {
                    let open = rows[open];
                    let is_map = events.kind(open) == RawKind::Map
                        && events.process(open) == events.process(row);
                    if is_map && *closing == NONE {
                        *closing = at;
                    }
                }
            }
            _ => {}
        }
    }
}

/// Who has to close what an event opened.
fn owner(events: &impl ObjectEvents, row: u32) -> Owner {
    let process = match events.kind(row) {
        RawKind::Duplicate => {
            let child = events.duplicate(row).inherited_by;
            if child == NONE { events.process(row) } else { child }
        }
        _ => events.process(row),
    };
    (process, events.handle(row))
}
