//! Handles that a source lists as open, with types and names of their objects.

use handlescope_extract::intern::ByteInterner;
use handlescope_model::tables::{Name, Names, ObjectType, ObjectTypes};
use handlescope_model::{NameIdx, TypeId};

/// Maximum number of object types distinguished by name. Windows has about seventy.
const MAX_TYPES: u32 = 512;

/// Maximum number of handles made from counts in a text, because a few bytes may claim any number.
const MAX_COUNTED: usize = 1 << 20;

/// A handle listed as open.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListedHandle {
    /// The value; 0 if the source only counts handles.
    pub handle: u64,
    /// Row of the process.
    pub process: u32,
    pub type_id: TypeId,
    pub name: Option<NameIdx>,
    pub granted_access: Option<u32>,
    pub attributes: Option<u32>,
    /// Number of handles of the object, and of references to it.
    pub handle_count: Option<u32>,
    pub pointer_count: Option<u32>,
    /// How many operations had happened when it was listed; `None` for all.
    pub before: Option<u32>,
    /// Whether a later list lacks it, or lists it again.
    pub is_outdated: bool,
}

/// The handles open after the last operation, as far as the source lists them.
#[derive(Debug, Clone, Copy)]
pub struct OpenList<'h> {
    pub handles: &'h [ListedHandle],
    /// Whether the list is complete, so that a missing handle is closed.
    pub is_complete: bool,
}

/// Open handles being read, with the types and names they refer to.
#[derive(Default)]
pub struct OpenHandleList {
    pub handles: Vec<ListedHandle>,
    types: ByteInterner,
    names: ByteInterner,
}

impl OpenHandleList {
    /// Returns the id of a type; `None` if there are too many types.
    pub fn type_id(&mut self, name: &str) -> Option<TypeId> {
        let has_room = self.types.count() < MAX_TYPES;
        let is_known = has_room || self.types.find(name.as_bytes()).is_some();
        is_known.then(|| TypeId(self.types.intern(name.as_bytes()) + 1))
    }

    /// Returns the row of an object's name.
    pub fn name(&mut self, name: &str) -> NameIdx {
        NameIdx(self.names.intern(name.as_bytes()))
    }

    /// Adds handles that were only counted, with their type unless the name is empty. Returns how many were too many.
    pub fn add_counted(&mut self, process: u32, type_name: &str, count: u64) -> u64 {
        let room = MAX_COUNTED.saturating_sub(self.handles.len());
        let added = usize::try_from(count).unwrap_or(usize::MAX).min(room);
        let known = Some(type_name).filter(|name| !name.is_empty());
        let type_id = known.and_then(|name| self.type_id(name)).unwrap_or_default();
        let handle = ListedHandle { process, type_id, ..ListedHandle::default() };
        self.handles.extend(std::iter::repeat_n(handle, added));
        count - added as u64
    }

    pub fn types(&self) -> ObjectTypes {
        let row = |row| ObjectType { type_id: TypeId(row + 1), name: self.types.text(row) };
        (0..self.types.count()).map(row).collect()
    }

    pub fn names(&self) -> Names {
        (0..self.names.count()).map(|row| Name { name: self.names.text(row) }).collect()
    }
}
