//! Code locations, each once.

use hashbrown::HashMap;

use handlescope_model::ModuleIdx;
use handlescope_model::tables::{Frame, Frames};

/// A code location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameKey {
    /// Module row and offset from its base.
    InModule(u32, u64),
    /// An address outside of all modules.
    Address(u64),
}

/// Numbers code locations in the order they are first seen.
#[derive(Default)]
pub struct FrameInterner {
    ids: HashMap<FrameKey, u32>,
    keys: Vec<FrameKey>,
}

impl FrameInterner {
    /// The number of a location.
    pub fn intern(&mut self, key: FrameKey) -> u32 {
        let Self { ids, keys } = self;
        *ids.entry(key).or_insert_with(|| {
            keys.push(key);
            keys.len() as u32 - 1
        })
    }

    /// Number of locations that lie in a module.
    pub fn in_modules(&self) -> u64 {
        self.keys.iter().filter(|key| matches!(key, FrameKey::InModule(..))).count() as u64
    }

    /// The frames table.
    pub fn table(&self) -> Frames {
        let mut table = Frames::default();
        for key in &self.keys {
            table.push(match *key {
                FrameKey::InModule(module, rva) => {
                    Frame { module: Some(ModuleIdx(module)), rva: Some(rva), address: None }
                }
                FrameKey::Address(address) => {
                    Frame { module: None, rva: None, address: Some(address) }
                }
            });
        }
        table
    }
}
