//! What is remembered of the names of a trace's frames.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};

use handlescope_extract::symbols::{FrameChain, ModuleIdentity};
use handlescope_model::guard::lock;
use handlescope_model::{ArchiveError, FrameIdx, Trace};

use super::stored_names::{StoredNames, stored_names};

/// Names by row of the frames table; an empty chain has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownNames(Vec<Option<FrameChain>>);

impl KnownNames {
    /// The names of a frame, if they were asked for.
    pub(crate) fn get(&self, frame: FrameIdx) -> Option<&FrameChain> {
        self.0.get(frame.row())?.as_ref()
    }

    /// The frames whose names were asked for, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FrameIdx, &FrameChain)> {
        let rows = self.0.iter().enumerate();
        rows.filter_map(|(row, chain)| Some((FrameIdx::of(row), chain.as_ref()?)))
    }

    fn add(&mut self, frame: FrameIdx, chain: FrameChain) {
        if self.0.len() <= frame.row() {
            self.0.resize(frame.row() + 1, None);
        }
        if let Some(known) = self.0.get_mut(frame.row()) {
            *known = Some(chain);
        }
    }
}

/// The names of frames that were asked for, by row of the frames table; an empty chain has none.
///
/// Belongs to one loaded trace and one symbol path: make a new one when either changes.
#[derive(Debug, Default)]
pub struct FrameNameCache {
    names: Mutex<Arc<KnownNames>>,
    /// What the extract holds itself.
    stored: OnceLock<StoredNames>,
    /// Modules with frames whose names come from the extract.
    served: Mutex<HashSet<ModuleIdentity>>,
}

impl FrameNameCache {
    /// The names that are known now. More can be found while they are held.
    pub(crate) fn known(&self) -> Arc<KnownNames> {
        Arc::clone(&lock(&self.names))
    }

    pub(crate) fn add(&self, names: Vec<(FrameIdx, FrameChain)>) {
        let mut known = lock(&self.names);
        let known = Arc::make_mut(&mut known);
        names.into_iter().for_each(|(frame, chain)| known.add(frame, chain));
    }

    pub(crate) fn load(&self, trace: &Trace) -> Result<&StoredNames, ArchiveError> {
        match self.stored.get() {
            Some(stored) => Ok(stored),
            None => {
                let stored = stored_names(trace)?;
                Ok(self.stored.get_or_init(|| stored))
            }
        }
    }

    /// Notes that the extract had a name for a frame of a module.
    pub(crate) fn note_served(&self, module: &ModuleIdentity) {
        lock(&self.served).insert(module.clone());
    }

    /// Whether the extract had names for frames of a module, and better ones than symbol files.
    pub fn has_served(&self, module: &ModuleIdentity) -> bool {
        lock(&self.served).contains(module)
    }
}
