//! The symbolizer: what it was asked and what it found.

use std::{fmt, iter};

use handlescope_model::Cancel;

use super::asked::AskedModules;
use super::frame::{CodeAddress, FrameChain};
use super::identity::ModuleIdentity;
use super::observer::{NoSymbolObserver, SymbolObserver, Watch};
use super::options::SymbolizerOptions;
use super::path::SymbolPath;
use super::report::ModuleReport;
use super::search::{Search, SearchLimits};

/// Resolves addresses of modules along a symbol path, and remembers what it found.
///
/// May be used from several threads at once; only the same PDB makes them wait for each other. Not
/// to be used from within a tokio runtime, as it runs one for downloads.
pub struct Symbolizer {
    path: SymbolPath,
    pub(super) search: Search,
    asked: AskedModules,
}

impl Symbolizer {
    /// Looks nothing up yet.
    pub fn new(path: SymbolPath, options: SymbolizerOptions) -> Self {
        Self { search: Search::new(&path, options), path, asked: AskedModules::default() }
    }

    /// The path that symbols are looked for on.
    pub fn path(&self) -> &SymbolPath {
        &self.path
    }

    /// The functions at each of the module's RVAs, in their order. Each may be an instruction pointer.
    ///
    /// The first call for a module finds and converts its PDB, which may take seconds, or downloads
    /// it, which may take minutes. Later ones only look names up, and a failure is remembered.
    pub fn resolve(&self, module: &ModuleIdentity, rvas: &[u64]) -> Vec<FrameChain> {
        let watch = Watch { observer: &NoSymbolObserver, cancel: &Cancel::default() };
        let limits = SearchLimits { may_download: true, watch };
        let addresses: Vec<CodeAddress> = rvas.iter().copied().map(CodeAddress::from).collect();
        let chains = self.resolve_one(module, &addresses, limits);
        chains.unwrap_or_else(|| vec![FrameChain::default(); rvas.len()])
    }

    /// Downloads the PDBs of modules that are in no local place of the path, several at a time, and
    /// converts none yet. Cancelled downloads are continued by the next call.
    pub fn prepare(
        &self,
        modules: &[ModuleIdentity],
        observer: &dyn SymbolObserver,
        cancel: &Cancel,
    ) {
        self.search.prepare(modules, Watch { observer, cancel });
    }

    /// Looks again for what was not found, also on servers that did not have it or were given up, in
    /// this session and before.
    pub fn forget_missing(&self) {
        self.search.forget_missing();
    }

    /// Names of the files that other processes downloaded while this one waited for them, since the last call.
    pub fn take_waited_for(&self) -> Vec<String> {
        self.search.downloads.take_waited_for()
    }

    /// What happened to every module asked for so far, in the order of asking.
    pub fn report(&self) -> Vec<ModuleReport> {
        let report = |(module, wanted, named): (ModuleIdentity, usize, usize)| ModuleReport {
            wanted,
            named,
            ..self.search.report(&module)
        };
        self.asked.all().into_iter().map(report).collect()
    }

    /// `None` if the limits do not allow what it takes.
    pub(super) fn resolve_one(
        &self,
        module: &ModuleIdentity,
        addresses: &[CodeAddress],
        limits: SearchLimits<'_>,
    ) -> Option<Vec<FrameChain>> {
        self.asked.note(module, iter::empty());
        let found = self.search.symbols(module, limits)?;
        let chains = match &found.symbols {
            Some(symbols) => in_order(addresses, |sorted| symbols.resolve(sorted, module.size)),
            None => vec![FrameChain::default(); addresses.len()],
        };
        let is_named = chains.iter().map(|chain| !chain.is_empty());
        self.asked.note(module, addresses.iter().map(|address| address.rva).zip(is_named));
        Some(chains)
    }
}

impl fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbolizer").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Resolves addresses in ascending order, so that a symcache is read in one direction, and gives
/// the answers in the order of the addresses.
fn in_order(
    addresses: &[CodeAddress],
    resolve: impl Fn(&[CodeAddress]) -> Vec<FrameChain>,
) -> Vec<FrameChain> {
    if addresses.is_sorted() {
        return resolve(addresses);
    }
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let chains = resolve(&sorted);
    let chain = |address| sorted.binary_search(address).ok().and_then(|at| chains.get(at)).cloned();
    addresses.iter().map(|address| chain(address).unwrap_or_default()).collect()
}
