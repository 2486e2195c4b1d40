//! Names within one module: resolves RVAs to functions through its symcache, or else its exports.

use std::cell::LazyCell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;
use symbolic::symcache::SourceLocation;

use super::pdb::pe::ExportTable;
use super::pdb::source_server::SourceServer;
use super::pdb::symcache::{Lookup, Symcaches};
use super::pdb::{PdbFile, names};
use handlescope_model::guard::lock;

/// The functions at an address, innermost first: inlined functions, then the function that owns the machine code. Empty
/// if no function is known.
pub type FrameChain = Arc<[ResolvedFrame]>;

/// An address in a module whose function is to be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeAddress {
    /// Relative virtual address.
    pub rva: u64,
    /// Whether it is a return address, which belongs to the function of the instruction before it. Otherwise it may be
    /// an instruction pointer, and at the start of a function it belongs to that function.
    pub is_return: bool,
}

impl From<u64> for CodeAddress {
    /// Creates an address from an RVA that may be an instruction pointer.
    fn from(rva: u64) -> Self {
        Self { rva, is_return: false }
    }
}

/// A function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedFrame {
    /// Demangled name without parameters, shared by all frames of the function.
    pub function: Arc<str>,
    /// Distance in bytes from the start of the function that owns the machine code. It is the same for all functions of
    /// a chain, because an inlined function has no start.
    pub offset: u64,
    /// Full path of the source file, if the PDB has it.
    pub file: Option<Arc<str>>,
    /// Where the file can be fetched, if the PDB says so: its address, or a source server command.
    pub source: Option<Arc<str>>,
    /// Line in that file, counted from 1. It is the line of the instruction before the address, which in all frames but
    /// the innermost is the call.
    pub line: Option<u32>,
    /// Whether the function is inlined into the next function of the chain.
    pub inlined: bool,
}

/// The source of a module's function names.
pub enum ModuleSymbols {
    Symcache(SymcacheNames),
    Exports(ExportTable),
}

impl ModuleSymbols {
    /// Resolves addresses to functions. `size` is the module's size, or 0 if unknown. It limits the last function,
    /// because public symbols have no end.
    pub fn resolve(&self, addresses: &[CodeAddress], size: u64) -> Vec<FrameChain> {
        let is_inside = |address: &CodeAddress| size == 0 || address.rva < size;
        match self {
            Self::Symcache(symcache) => symcache.resolve(addresses, is_inside),
            Self::Exports(exports) => addresses
                .iter()
                .map(|&address| exports.at(address).filter(|_| is_inside(&address)))
                .map(|frame| frame.map_or_else(FrameChain::default, |frame| Arc::new([frame])))
                .collect(),
        }
    }
}

/// Mapped symcaches and the texts made from them.
pub struct SymcacheNames {
    pub symcaches: Symcaches,
    /// The PDB the symcaches were made from. It is read for the locations of source files when one is first requested.
    pdb: Option<PathBuf>,
    source_server: OnceLock<SourceServer>,
    texts: Mutex<FrameTextPool>,
}

/// Texts that many frames share.
#[derive(Default)]
struct FrameTextPool {
    /// Readable names, keyed by address and length of the name in the symcache, which does not move.
    names: FxHashMap<(usize, usize), Arc<str>>,
    files: FxHashMap<String, SourceFile>,
}

/// The path of a source file and the location to fetch it from.
#[derive(Clone)]
struct SourceFile {
    path: Arc<str>,
    source: Option<Arc<str>>,
}

impl SymcacheNames {
    pub fn new(symcaches: Symcaches, pdb: Option<PathBuf>) -> Self {
        Self { symcaches, pdb, source_server: OnceLock::new(), texts: Mutex::default() }
    }

    fn source_server(&self) -> &SourceServer {
        self.source_server.get_or_init(|| {
            let pdb = self.pdb.as_deref().and_then(|path| PdbFile::open(path).ok());
            pdb.map(|pdb| pdb.source_server()).unwrap_or_default()
        })
    }

    fn resolve(
        &self,
        addresses: &[CodeAddress],
        is_inside: impl Fn(&CodeAddress) -> bool,
    ) -> Vec<FrameChain> {
        let functions = self.symcaches.lookup();
        let mut texts = lock(&self.texts);
        let sources = LazyCell::new(|| self.source_server().locations());
        // The list is reused, because most addresses are in one function only.
        let mut locations = Vec::new();
        addresses
            .iter()
            .map(|address| {
                locations.clear();
                if is_inside(address) {
                    find(&functions, *address, &mut locations);
                }
                chain(&locations, address.rva, &mut texts, &|file| sources.of(file))
            })
            .collect()
    }
}

/// Resolves a return address by the call before it, which carries the right function, line and inlined frames. After
/// the call the next statement begins, or the next function if the call does not return.
///
/// An address that is not a return address belongs to the function that starts there. If none does, it is resolved by
/// the instruction before it, or else by itself.
fn find<'f>(
    functions: &'f Lookup<'f>,
    address: CodeAddress,
    locations: &mut Vec<SourceLocation<'f, 'f>>,
) {
    let CodeAddress { rva, is_return } = address;
    if let Some(call) = rva.checked_sub(1)
        && (is_return || functions.at(rva).last().is_none_or(|function| start_of(&function) != rva))
    {
        locations.extend(functions.at(call));
    }
    if locations.is_empty() && !is_return {
        locations.extend(functions.at(rva));
    }
}

fn start_of(location: &SourceLocation<'_, '_>) -> u64 {
    location.function().entry_pc().into()
}

/// Builds the chain of frames; `locations` run from the innermost inlined function to the physical one.
fn chain(
    locations: &[SourceLocation<'_, '_>],
    rva: u64,
    texts: &mut FrameTextPool,
    source_of: &dyn Fn(&str) -> Option<String>,
) -> FrameChain {
    let Some((physical, inlined)) = locations.split_last() else { return FrameChain::default() };
    let offset = rva.saturating_sub(start_of(physical));
    let frames = locations.iter().enumerate().map(|(at, location)| {
        let file = location.file().map(|file| texts.file(file.full_path(), source_of));
        ResolvedFrame {
            function: texts.name(location.function().name()),
            offset,
            source: file.as_ref().and_then(|file| file.source.clone()),
            file: file.map(|file| file.path),
            line: Some(location.line()).filter(|line| *line != 0),
            inlined: at < inlined.len(),
        }
    });
    frames.collect()
}

impl FrameTextPool {
    /// Returns the readable name; each name is demangled once.
    fn name(&mut self, name: &str) -> Arc<str> {
        let key = (name.as_ptr() as usize, name.len());
        self.names.entry(key).or_insert_with(|| names::readable(name).into()).clone()
    }

    fn file(&mut self, path: String, source_of: &dyn Fn(&str) -> Option<String>) -> SourceFile {
        if let Some(known) = self.files.get(&path) {
            return known.clone();
        }
        let source = source_of(&path).map(Arc::from);
        let file = SourceFile { path: path.as_str().into(), source };
        self.files.insert(path, file.clone());
        file
    }
}
