//! Names within one module: from RVA to function through its symcache.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use symbolic::common::ByteView;
use symbolic::symcache::{SourceLocation, SymCache};

use super::names;

/// The function at an address.
///
/// It is the function whose machine code is there. Functions which the compiler inlined into it at
/// that address are not told yet; the symcache holds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedFrame {
    /// Demangled name without parameters, shared by all frames of the function.
    pub function: Arc<str>,
    /// Distance of the address from the function's start, in bytes.
    pub offset: u64,
    /// Full path of the source file, if the PDB tells it.
    pub file: Option<String>,
    /// Line in that file, counted from 1.
    pub line: Option<u32>,
}

/// The symbols of a module, mapped and remembered.
pub(super) struct ModuleSymbols {
    bytes: ByteView<'static>,
    /// Readable names by the symcache's own.
    names: FxHashMap<String, Arc<str>>,
}

impl ModuleSymbols {
    pub(super) fn new(bytes: ByteView<'static>) -> Self {
        Self { bytes, names: FxHashMap::default() }
    }

    /// The functions at `rvas`. `size` is that of the module, 0 if unknown: a public symbol has no
    /// end, so the last function would otherwise reach on for ever.
    pub(super) fn resolve(&mut self, rvas: &[u64], size: u64) -> Vec<Option<ResolvedFrame>> {
        let Ok(symcache) = SymCache::parse(&self.bytes) else { return vec![None; rvas.len()] };
        let names = &mut self.names;
        let is_inside = |rva| size == 0 || rva < size;
        rvas.iter()
            .map(|&rva| {
                // Locations run from the innermost inlined function to the physical one.
                let location = symcache.lookup(rva).last().filter(|_| is_inside(rva))?;
                Some(frame(&location, rva, names))
            })
            .collect()
    }
}

fn frame(
    location: &SourceLocation<'_, '_>,
    rva: u64,
    names: &mut FxHashMap<String, Arc<str>>,
) -> ResolvedFrame {
    let function = location.function();
    ResolvedFrame {
        function: shared_name(function.name(), names),
        offset: rva.saturating_sub(u64::from(function.entry_pc())),
        file: location.file().map(|file| file.full_path()),
        line: Some(location.line()).filter(|line| *line != 0),
    }
}

/// Demangles every name once.
fn shared_name(name: &str, names: &mut FxHashMap<String, Arc<str>>) -> Arc<str> {
    if let Some(known) = names.get(name) {
        return known.clone();
    }
    let readable: Arc<str> = names::readable(name).into();
    names.insert(name.to_owned(), readable.clone());
    readable
}
