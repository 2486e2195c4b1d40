//! Derives an object's closes, sharing and overlap from its events.

use std::collections::{HashMap, VecDeque};

use super::OPENING_HANDLES;
use crate::index::{ProcessIdx, sentinel};
use crate::tables::EventKind;

/// The events of an object, each identified by a number.
pub trait ObjectEvents {
    /// Returns the kind of the event.
    fn kind(&self, event: u32) -> EventKind;
    /// Returns the process that the event belongs to, if known.
    fn process(&self, event: u32) -> Option<ProcessIdx>;
    /// Returns the [`handle_slot`](super::handle_slot) of a create, duplicate or close.
    fn handle(&self, event: u32) -> u64;
    /// Returns the process that a handle was duplicated from, if known.
    fn source_process(&self, event: u32) -> Option<ProcessIdx>;
    /// Returns the child that inherited the handle of a duplicate.
    fn inherited_by(&self, event: u32) -> Option<ProcessIdx>;
    /// Whether what `opened` opened is known to be closed before `event`, by a close that the trace lost.
    fn is_closed_before(&self, _opened: u32, _event: u32) -> bool {
        false
    }
}

/// Derived properties of one object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectTraits {
    /// Whether more than one process created, duplicated, referenced or mapped it.
    pub is_multiprocess: bool,
    /// Whether two handles were open at once.
    pub is_overlapped: bool,
}

/// Memory that is reused for each object.
#[derive(Default)]
pub struct DeriveScratch {
    /// For each event of the object, the event that closed what it opened, or [`sentinel`].
    pub closing: Vec<u32>,
    few: Vec<(HandleOwner, u32)>,
    many: HashMap<HandleOwner, VecDeque<u32>>,
}

/// Process and handle value, both of which a close must match.
type HandleOwner = (Option<ProcessIdx>, u64);

/// For objects with more events than this, open handles are looked up in a hash table instead of a list.
const MAX_SCANNED: usize = 64;

/// Derives the properties of one object from its events `rows`, given in time order.
pub fn derive(
    events: &impl ObjectEvents,
    rows: &[u32],
    scratch: &mut DeriveScratch,
) -> ObjectTraits {
    pair(events, rows, scratch);
    let closing = scratch.closing.iter().map(|at| Some(*at).filter(|at| *at != sentinel()));
    let paired = (0..).zip(rows).zip(closing);
    ObjectTraits {
        is_multiprocess: is_multiprocess(events, rows),
        is_overlapped: has_overlap(
            paired.map(|((at, row), closing)| (at, events.kind(*row), closing)),
        ),
    }
}

/// Whether two handles of an object were open at once. Events come in time order, each with the later event that closes
/// what it opens.
pub fn has_overlap<E: Copy + Ord>(
    events: impl IntoIterator<Item = (E, EventKind, Option<E>)>,
) -> bool {
    // The last close of anything opened so far, and whether something opened so far is never closed.
    let (mut last_close, mut has_open) = (None, false);
    events.into_iter().filter(|(_, kind, _)| OPENING_HANDLES.contains(*kind)).any(
        |(event, _, closing)| {
            let is_beside = has_open || last_close.is_some_and(|close| close > event);
            has_open |= closing.is_none();
            last_close = last_close.max(closing);
            is_beside
        },
    )
}

fn is_multiprocess(events: &impl ObjectEvents, rows: &[u32]) -> bool {
    let mut first = None;
    let mut differs = |process: Option<ProcessIdx>| *first.get_or_insert(process) != process;
    rows.iter().any(|&row| match events.kind(row) {
        EventKind::HandleDuplicate => {
            differs(events.process(row)) || differs(events.source_process(row))
        }
        EventKind::HandleCreate
        | EventKind::Reference
        | EventKind::Dereference
        | EventKind::Map
        | EventKind::Unmap => differs(events.process(row)),
        _ => false,
    })
}

/// Pairs each create, duplicate and map with the event that closes it.
///
/// A create or duplicate is closed by the first later close of the same value in the same process that closed nothing
/// else; an inherited duplicate by a close in the child. A map is closed by the first later unmap in the same process.
/// What is known to be closed earlier is not closed again.
fn pair(events: &impl ObjectEvents, rows: &[u32], scratch: &mut DeriveScratch) {
    let DeriveScratch { closing, few, many } = scratch;
    closing.clear();
    closing.resize(rows.len(), sentinel());
    few.clear();
    many.clear();
    let is_large = rows.len() > MAX_SCANNED;
    for (at, &row) in rows.iter().enumerate() {
        let at = at as u32;
        match events.kind(row) {
            EventKind::HandleCreate | EventKind::HandleDuplicate => {
                if is_large {
                    add_to(many, owner(events, row), at);
                } else {
                    few.push((owner(events, row), at));
                }
            }
            EventKind::HandleClose => {
                let owner = (events.process(row), events.handle(row));
                let is_open = |at: u32| {
                    rows.get(at as usize).is_some_and(|open| !events.is_closed_before(*open, row))
                };
                let opened = if is_large {
                    let mut open = many.get_mut(&owner);
                    std::iter::from_fn(|| open.as_mut()?.pop_front()).find(|at| is_open(*at))
                } else {
                    let index = few.iter().position(|(open, at)| *open == owner && is_open(*at));
                    index.map(|index| few.remove(index).1)
                };
                if let Some(opened) = opened.and_then(|opened| closing.get_mut(opened as usize)) {
                    *opened = at;
                }
            }
            EventKind::Unmap => {
                for (open, closing) in rows.iter().zip(closing.iter_mut()).take(at as usize) {
                    let is_map = events.kind(*open) == EventKind::Map
                        && events.process(*open) == events.process(row)
                        && !events.is_closed_before(*open, row);
                    if is_map && *closing == sentinel() {
                        *closing = at;
                    }
                }
            }
            _ => {}
        }
    }
}

/// Adds an open handle of an object with many events. It is not inlined, so that the handles of other objects stay in
/// registers.
#[cold]
#[inline(never)]
fn add_to(many: &mut HashMap<HandleOwner, VecDeque<u32>>, owner: HandleOwner, at: u32) {
    many.entry(owner).or_default().push_back(at);
}

/// Returns the process and handle that a close of the opened handle must match.
// Inlined, because returning in memory would read in one piece what was just written in several, which stalls.
#[inline(always)]
fn owner(events: &impl ObjectEvents, row: u32) -> HandleOwner {
    let inherited_by = match events.kind(row) {
        EventKind::HandleDuplicate => events.inherited_by(row),
        _ => None,
    };
    (inherited_by.or_else(|| events.process(row)), events.handle(row))
}

#[cfg(test)]
mod tests {
    use EventKind::{
        Dereference, HandleClose, HandleCreate, HandleDuplicate, Map, ObjectCreate, Unmap,
    };

    use super::*;

    /// Kind, process, handle, and for a duplicate `source_process` and `inherited_by`.
    type Row = (EventKind, u32, u64, Option<u32>, Option<u32>);

    struct Rows<'a>(&'a [Row]);

    impl ObjectEvents for Rows<'_> {
        fn kind(&self, event: u32) -> EventKind {
            self.0[event as usize].0
        }

        fn process(&self, event: u32) -> Option<ProcessIdx> {
            Some(ProcessIdx(self.0[event as usize].1))
        }

        fn handle(&self, event: u32) -> u64 {
            self.0[event as usize].2
        }

        fn source_process(&self, event: u32) -> Option<ProcessIdx> {
            self.0[event as usize].3.map(ProcessIdx)
        }

        fn inherited_by(&self, event: u32) -> Option<ProcessIdx> {
            self.0[event as usize].4.map(ProcessIdx)
        }
    }

    fn event(kind: EventKind, process: u32, handle: u64) -> Row {
        (kind, process, handle, None, None)
    }

    /// Derives the object, and the close of each event.
    fn derived(rows: &[Row]) -> (ObjectTraits, Vec<Option<u32>>) {
        let mut scratch = DeriveScratch::default();
        let order: Vec<u32> = (0..rows.len() as u32).collect();
        let derived = derive(&Rows(rows), &order, &mut scratch);
        let closing = scratch.closing.into_iter();
        (derived, closing.map(|event| Some(event).filter(|event| *event != sentinel())).collect())
    }

    #[test]
    fn handles_overlap_when_two_are_open() {
        let is_overlapped = |rows: &[Row]| derived(rows).0.is_overlapped;
        let opened = |handle| event(HandleCreate, 1, handle);
        let closed = |handle| event(HandleClose, 1, handle);
        assert!(is_overlapped(&[opened(4), opened(8)]));
        assert!(is_overlapped(&[opened(4), closed(12), opened(8)]));
        assert!(is_overlapped(&[opened(4), opened(8), closed(8), closed(4)]));
        assert!(!is_overlapped(&[opened(4), closed(4), opened(8)]));
        assert!(!is_overlapped(&[event(ObjectCreate, 1, 0), opened(4), event(Map, 1, 0)]));
    }

    #[test]
    fn a_close_fits_the_value_in_the_process_or_in_the_child_that_inherited_it() {
        let inherited = (HandleDuplicate, 1, 4, Some(1), Some(2));
        let rows = [
            event(HandleCreate, 1, 4),
            inherited,
            event(HandleClose, 2, 4),
            event(HandleClose, 1, 8),
            event(HandleClose, 1, 4),
        ];
        let (derived, closing) = derived(&rows);
        assert_eq!(closing, [Some(4), Some(2), None, None, None]);
        assert!(derived.is_overlapped && !derived.is_multiprocess);
    }

    #[test]
    fn objects_with_many_events_are_paired_as_those_with_few() {
        let mut rows: Vec<Row> = (0..70).map(|_| event(HandleCreate, 1, 4)).collect();
        rows.extend([event(HandleClose, 1, 4), event(HandleClose, 1, 4)]);
        let (_, closing) = derived(&rows);
        assert_eq!((closing[0], closing[1], closing[2]), (Some(70), Some(71), None));
    }

    #[test]
    fn an_unmap_closes_every_open_map_of_its_process() {
        let rows = [event(Map, 1, 0), event(Map, 2, 0), event(Map, 1, 0), event(Unmap, 1, 0)];
        assert_eq!(derived(&rows).1, [Some(3), None, Some(3), None]);
    }

    #[test]
    fn an_object_is_shared_when_another_process_works_on_it() {
        let is_shared = |rows: &[Row]| derived(rows).0.is_multiprocess;
        assert!(is_shared(&[event(HandleCreate, 1, 4), event(Dereference, 2, 0)]));
        assert!(is_shared(&[(HandleDuplicate, 1, 4, Some(2), None)]));
        assert!(is_shared(&[(HandleDuplicate, 1, 4, None, None)]), "the source is another one");
        assert!(!is_shared(&[event(HandleCreate, 1, 4), event(HandleClose, 2, 4)]));
    }
}
