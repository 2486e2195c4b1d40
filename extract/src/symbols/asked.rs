//! What was asked for so far, for the report.

use std::sync::Mutex;

use handlescope_model::guard::lock;
use rustc_hash::{FxHashMap, FxHashSet};

use super::identity::ModuleIdentity;

/// Modules in the order they were first asked for.
#[derive(Default)]
pub(super) struct AskedModules(Mutex<Modules>);

#[derive(Default)]
struct Modules {
    order: Vec<AskedModule>,
    rows: FxHashMap<ModuleIdentity, usize>,
}

struct AskedModule {
    module: ModuleIdentity,
    rvas: FxHashSet<u64>,
    named: usize,
}

impl AskedModules {
    /// Notes a module, and of frames in it whether they got a name.
    pub(super) fn note(&self, module: &ModuleIdentity, frames: impl Iterator<Item = (u64, bool)>) {
        let mut guard = lock(&self.0);
        let Modules { order, rows } = &mut *guard;
        let row = *rows.entry(module.clone()).or_insert_with(|| {
            let (module, rvas) = (module.clone(), FxHashSet::default());
            order.push(AskedModule { module, rvas, named: 0 });
            order.len() - 1
        });
        let Some(asked) = order.get_mut(row) else { return };
        for (rva, is_named) in frames {
            asked.named += usize::from(asked.rvas.insert(rva) && is_named);
        }
    }

    /// The modules, how many distinct frames of each were wanted, and how many of these were named.
    pub(super) fn all(&self) -> Vec<(ModuleIdentity, usize, usize)> {
        let modules = lock(&self.0);
        let counts = |asked: &AskedModule| (asked.module.clone(), asked.rvas.len(), asked.named);
        modules.order.iter().map(counts).collect()
    }
}
