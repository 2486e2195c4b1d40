//! What is open among what is doubtful.

use hashbrown::HashSet;

use super::uses::{How, Key};
use crate::collect::Collector;
use crate::lifecycle::attribution::ProcessIndex;

/// Which of the doubtful handles, views and objects are there.
pub(super) struct OpenKeys<'a> {
    doubtful: &'a HashSet<Key>,
    open: HashSet<Key>,
}

impl<'a> OpenKeys<'a> {
    /// Those of the rundown at the start.
    pub(super) fn of_start(
        collected: &Collector,
        index: &ProcessIndex,
        doubtful: &'a HashSet<Key>,
    ) -> Self {
        let handles = collected.handles.start.iter().filter_map(|start| {
            let process = index.find(start.pid, start.time)?;
            Some(Key::Handle { process, handle: start.handle, object: start.object })
        });
        let open = handles.filter(|key| doubtful.contains(key)).collect();
        Self { doubtful, open }
    }

    pub(super) fn is_doubtful(&self, key: &Key) -> bool {
        self.doubtful.contains(key)
    }

    pub(super) fn note(&mut self, key: Key, how: How) {
        if !self.doubtful.contains(&key) {
            return;
        }
        match how {
            How::Close => self.open.remove(&key),
            How::Open | How::Enter | How::Use => self.open.insert(key),
        };
    }

    /// Puts back what was there.
    pub(super) fn restore(&mut self, states: Vec<(Key, bool)>) {
        for (key, is_open) in states {
            match is_open {
                true => self.open.insert(key),
                false => self.open.remove(&key),
            };
        }
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        self.open.contains(key)
    }
}
