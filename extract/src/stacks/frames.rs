//! Code locations, each once.

use hashbrown::HashMap;

use handlescope_model::tables::{Frame, Frames};
use handlescope_model::{MethodIdx, ModuleIdx};

/// A code location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameKey {
    /// Module row and offset from its base.
    InModule(u32, u64),
    /// Row of a method that was compiled at run time, and the address in its code.
    InMethod(u32, u64),
    /// An address outside of all modules.
    Address(u64),
}

/// Numbers code locations in the order they are first seen.
#[derive(Default)]
pub struct FrameInterner {
    /// Places in modules, packed into one number: hashing it is much of the work of a stack.
    packed: HashMap<u64, u32>,
    others: HashMap<FrameKey, u32>,
    keys: Vec<FrameKey>,
    /// Methods of managed code in modules, by the number of the location.
    methods: HashMap<u32, u32>,
}

impl FrameInterner {
    /// Notes the managed method at a location in a module.
    pub fn note_method(&mut self, id: u32, method: u32) {
        self.methods.entry(id).or_insert(method);
    }

    /// The number of a location.
    pub fn intern(&mut self, key: FrameKey) -> u32 {
        let Self { packed, others, keys, .. } = self;
        let next = keys.len() as u32;
        let id = match pack(key) {
            Some(place) => *packed.entry(place).or_insert(next),
            None => *others.entry(key).or_insert(next),
        };
        if id == next {
            keys.push(key);
        }
        id
    }

    /// Number of locations that lie in a module.
    pub fn in_modules(&self) -> u64 {
        self.keys.iter().filter(|key| matches!(key, FrameKey::InModule(..))).count() as u64
    }

    /// The methods that any location lies in, some of them several times.
    pub fn methods(&self) -> impl Iterator<Item = u32> + '_ {
        let at_run_time = self.keys.iter().filter_map(|key| match key {
            FrameKey::InMethod(method, _) => Some(*method),
            _ => None,
        });
        let mut in_modules: Vec<(u32, u32)> =
            self.methods.iter().map(|(id, method)| (*id, *method)).collect();
        in_modules.sort_unstable();
        at_run_time.chain(in_modules.into_iter().map(|(_, method)| method))
    }

    /// The frames table; `row_of` knows where a method is in the methods table.
    pub fn table(&self, row_of: impl Fn(u32) -> Option<MethodIdx>) -> Frames {
        let mut table = Frames::default();
        for (id, key) in (0..).zip(&self.keys) {
            let method = self.methods.get(&id).and_then(|method| row_of(*method));
            table.push(match *key {
                FrameKey::InModule(module, rva) => {
                    Frame { module: Some(ModuleIdx(module)), rva: Some(rva), address: None, method }
                }
                FrameKey::InMethod(method, address) => Frame {
                    module: None,
                    rva: None,
                    address: Some(address),
                    method: row_of(method),
                },
                FrameKey::Address(address) => {
                    Frame { module: None, rva: None, address: Some(address), method: None }
                }
            });
        }
        table
    }
}

/// Module and offset side by side; images are smaller than 4 GiB.
fn pack(key: FrameKey) -> Option<u64> {
    match key {
        FrameKey::InModule(module, rva) => {
            let rva = u32::try_from(rva).ok()?;
            Some(u64::from(module) << 32 | u64::from(rva))
        }
        FrameKey::InMethod(..) | FrameKey::Address(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_and_each_address_has_its_own_number() {
        let mut frames = FrameInterner::default();
        let keys = [
            FrameKey::InModule(1, 2),
            FrameKey::InModule(2, 1),
            FrameKey::InModule(0, 1 << 33),
            FrameKey::Address(1 << 32 | 2),
        ];
        assert_eq!(keys.map(|key| frames.intern(key)), [0, 1, 2, 3]);
        assert_eq!(keys.map(|key| frames.intern(key)), [0, 1, 2, 3]);
        assert_eq!((frames.in_modules(), frames.table(|_| None).len()), (3, 4));
    }
}
