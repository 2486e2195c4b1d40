//! What an event does to which handle, view and object.

use handlescope_model::EventKind;

use super::How;
use crate::collect::Collector;
use crate::lifecycle::attribution::NONE;
use crate::lifecycle::kinds::{Subject, subject};
use crate::lifecycle::owners::{EventOwners, view_pid};

/// Something that is opened and closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A handle of an object.
    Handle { process: u32, handle: u32, object: u64 },
    /// A handle value, whatever the object.
    Value { process: u32, handle: u32 },
    /// An object, by its kernel address.
    Object(u64),
    /// A view, by its first address.
    View { pid: u32, base: u64 },
}

/// Looks up what events are about; rows are those of the timeline.
pub(super) struct Uses<'a> {
    pub(super) collected: &'a Collector,
    pub(super) owners: &'a EventOwners,
}

impl Uses<'_> {
    /// Whether an event is about an object.
    pub(super) fn is_of_object(&self, row: u32) -> bool {
        subject(self.collected.shared.timeline.kind[row as usize]).is_of_object()
    }

    /// All that an event does; nothing where it is given to no process.
    pub(super) fn of(&self, row: u32) -> impl Iterator<Item = (Key, How)> + use<> {
        self.all(row as usize).into_iter().flatten()
    }

    fn all(&self, row: usize) -> [Option<(Key, How)>; 4] {
        const NOTHING: [Option<(Key, How)>; 4] = [None; 4];
        let Collector { handles, objects, references, views, shared, .. } = self.collected;
        let process = self.owners.process[row];
        if process == NONE {
            return NOTHING;
        }
        let at = shared.timeline.row[row] as usize;
        let of_handle = |how, how_object| {
            let (handle, object) = (handles.handle[at], handles.object[at]);
            [
                Some((Key::Handle { process, handle, object }, how)),
                Some((Key::Value { process, handle }, how)),
                Some((Key::Object(object), how_object)),
                None,
            ]
        };
        let of_one = |key, how| [Some((key, how)), None, None, None];
        let view =
            || Key::View { pid: view_pid(self.collected, row, process), base: views.rows[at].base };
        match subject(shared.timeline.kind[row]) {
            Subject::Object(EventKind::HandleCreate) => of_handle(How::Open, How::Enter),
            Subject::Object(EventKind::HandleClose) => of_handle(How::Close, How::Use),
            Subject::HandleAtEnd => of_handle(How::Use, How::Use),
            Subject::Object(EventKind::HandleDuplicate) => self.of_duplicate(at, process),
            Subject::Object(EventKind::ObjectCreate) => {
                of_one(Key::Object(objects.object[at]), How::Open)
            }
            Subject::Object(EventKind::ObjectDelete) => {
                of_one(Key::Object(objects.object[at]), How::Close)
            }
            Subject::Object(EventKind::Reference | EventKind::Dereference) => {
                of_one(Key::Object(references.object[at]), How::Use)
            }
            Subject::Object(EventKind::Map) => of_one(view(), How::Open),
            Subject::Object(EventKind::Unmap) => of_one(view(), How::Close),
            Subject::Heap(_)
            | Subject::Pages(_)
            | Subject::Acquired(_)
            | Subject::Gui(_)
            | Subject::Unknown => NOTHING,
        }
    }

    /// A duplicate opens a handle of its owner, or of the child that inherits it, and uses the one it is made of.
    fn of_duplicate(&self, at: usize, target: u32) -> [Option<(Key, How)>; 4] {
        let duplicate = &self.collected.duplicates.rows[at];
        let owners = self.owners.duplicates[at];
        let object = duplicate.object;
        let process = if owners.inherited_by == NONE { target } else { owners.inherited_by };
        let handle = duplicate.target_handle;
        let source =
            Key::Handle { process: owners.source, handle: duplicate.source_handle, object };
        [
            Some((Key::Handle { process, handle, object }, How::Open)),
            Some((Key::Value { process, handle }, How::Open)),
            Some((Key::Object(object), How::Enter)),
            (owners.source != NONE).then_some((source, How::Use)),
        ]
    }
}
