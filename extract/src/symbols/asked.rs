//! What was asked for so far, for the report.

use std::sync::{Arc, Mutex};

use handlescope_model::guard::lock;
use rustc_hash::{FxHashMap, FxHashSet};

use super::frame::FrameChain;
use super::identity::ModuleIdentity;

/// Modules in the order they were first asked for.
#[derive(Default)]
pub(super) struct AskedModules(Mutex<Modules>);

#[derive(Default)]
struct Modules {
    order: Vec<Arc<AskedModule>>,
    rows: FxHashMap<ModuleIdentity, usize>,
}

pub(super) struct AskedModule {
    pub(super) module: ModuleIdentity,
    frames: Mutex<AskedFrames>,
}

#[derive(Default)]
struct AskedFrames {
    rvas: FxHashSet<u64>,
    named: usize,
}

impl AskedModules {
    /// Notes the module.
    pub(super) fn module(&self, module: &ModuleIdentity) -> Arc<AskedModule> {
        let mut guard = lock(&self.0);
        let Modules { order, rows } = &mut *guard;
        if let Some(known) = rows.get(module).and_then(|&row| order.get(row)) {
            return known.clone();
        }
        let asked = Arc::new(AskedModule { module: module.clone(), frames: Mutex::default() });
        rows.insert(module.clone(), order.len());
        order.push(asked.clone());
        asked
    }

    pub(super) fn all(&self) -> Vec<Arc<AskedModule>> {
        lock(&self.0).order.clone()
    }
}

impl AskedModule {
    /// Notes frames and whether they got a name.
    pub(super) fn count(&self, rvas: &[u64], chains: &[FrameChain]) {
        let mut frames = lock(&self.frames);
        for (rva, chain) in rvas.iter().zip(chains) {
            if frames.rvas.insert(*rva) && !chain.is_empty() {
                frames.named += 1;
            }
        }
    }

    /// Distinct frames that were wanted, and those that were named.
    pub(super) fn counts(&self) -> (usize, usize) {
        let frames = lock(&self.frames);
        (frames.rvas.len(), frames.named)
    }
}
