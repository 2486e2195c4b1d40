//! The symbolizer: resolves addresses of one module, or of many in parallel, and reports the outcome.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::{fmt, iter, thread};

use handlescope_model::Cancel;
use handlescope_model::guard::lock;
use rustc_hash::{FxHashMap, FxHashSet};

use super::identity::ModuleIdentity;
use super::module::{CodeAddress, FrameChain};
use super::options::{NoSymbolObserver, SearchWatch, SymbolObserver, SymbolizerOptions};
use super::path::SymbolPath;
use super::report::ModuleReport;
use super::search::{Search, SearchLimits, SearchStop};

/// Resolves addresses of modules along a symbol path and remembers what it found.
///
/// It may be used from several threads at once, which wait for each other only if they need the same PDB. It must not
/// be used within a tokio runtime, because it runs one for downloads.
pub struct Symbolizer {
    path: SymbolPath,
    pub search: Search,
    requested: RequestedModules,
}

impl Symbolizer {
    /// Creates a symbolizer; nothing is looked up yet.
    pub fn new(path: SymbolPath, options: SymbolizerOptions) -> Self {
        Self { search: Search::new(&path, options), path, requested: RequestedModules::default() }
    }

    /// Returns the path on which symbols are searched.
    pub fn path(&self) -> &SymbolPath {
        &self.path
    }

    /// Resolves RVAs of a module, in the given order, to functions. Each RVA may be an instruction pointer.
    ///
    /// The first call for a module finds and converts its PDB, which may take seconds, or downloads it, which may take
    /// minutes. Later calls only look up names; failures are remembered.
    pub fn resolve(&self, module: &ModuleIdentity, rvas: &[u64]) -> Vec<FrameChain> {
        let watch = SearchWatch { observer: &NoSymbolObserver, cancel: &Cancel::default() };
        let limits = SearchLimits { may_download: true, watch };
        let addresses: Vec<CodeAddress> = rvas.iter().copied().map(CodeAddress::from).collect();
        let chains = self.resolve_module(module, &addresses, limits);
        chains.unwrap_or_else(|_| vec![FrameChain::default(); rvas.len()])
    }

    /// Downloads, but does not convert, the PDBs of modules that are in no local place, several at a time. The next
    /// call continues cancelled downloads.
    pub fn prepare(
        &self,
        modules: &[ModuleIdentity],
        observer: &dyn SymbolObserver,
        cancel: &Cancel,
    ) {
        self.search.prepare(modules, SearchWatch { observer, cancel });
    }

    /// Returns how many PDBs of modules would be requested from servers: those that are in no local place, except those
    /// that recently no server had.
    pub fn downloadable(&self, modules: &[ModuleIdentity]) -> usize {
        self.search.downloadable(modules)
    }

    /// Allows another search for everything that was not found, even on servers that lacked it or were given up, in
    /// this session or before.
    pub fn forget_missing(&self) {
        self.search.forget_missing();
    }

    /// Returns the names of files that other processes downloaded while this one waited, since the last call.
    pub fn take_waited_for(&self) -> Vec<String> {
        self.search.downloads.take_waited_for()
    }

    /// Reports on all modules requested so far, in the order of the requests.
    pub fn report(&self) -> Vec<ModuleReport> {
        let report = |(module, requested, named): (ModuleIdentity, usize, usize)| ModuleReport {
            requested,
            named,
            ..self.search.report(&module)
        };
        self.requested.all().into_iter().map(report).collect()
    }

    /// Resolves addresses of a module.
    fn resolve_module(
        &self,
        module: &ModuleIdentity,
        addresses: &[CodeAddress],
        limits: SearchLimits<'_>,
    ) -> Result<Vec<FrameChain>, SearchStop> {
        self.requested.note(module, iter::empty());
        let result = self.search.symbols(module, addresses, limits)?;
        let chains = match &result.symbols {
            Some(symbols) => in_order(addresses, |sorted| symbols.resolve(sorted, module.size)),
            None => vec![FrameChain::default(); addresses.len()],
        };
        let is_named = chains.iter().map(|chain| !chain.is_empty());
        self.requested.note(module, addresses.iter().map(|address| address.rva).zip(is_named));
        Ok(chains)
    }
}

impl fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbolizer").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Resolves addresses in ascending order, so that a symcache is read in one direction, but returns the results in the
/// given order.
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
    addresses
        .iter()
        .map(|address| sorted.binary_search(address).ok())
        .map(|index| chains.get(index?).cloned())
        .map(Option::unwrap_or_default)
        .collect()
}

/// A batch of requests and its progress.
struct ResolveBatch<'a> {
    symbolizer: &'a Symbolizer,
    requests: &'a [(ModuleIdentity, Vec<CodeAddress>)],
    watch: SearchWatch<'a>,
    answers: Vec<OnceLock<Vec<FrameChain>>>,
    done: AtomicUsize,
}

impl Symbolizer {
    /// Resolves addresses of many modules to functions, in the order of the requests.
    ///
    /// Works on as many modules at once as there are processors. Whatever is available locally comes first; only then
    /// are servers asked for the rest, several files at a time. If cancelled, the rest stays without names; the next
    /// call continues from there.
    pub fn resolve_all(
        &self,
        requests: &[(ModuleIdentity, Vec<CodeAddress>)],
        observer: &dyn SymbolObserver,
        cancel: &Cancel,
    ) -> Vec<Vec<FrameChain>> {
        let watch = SearchWatch { observer, cancel };
        let batch = ResolveBatch {
            symbolizer: self,
            requests,
            watch,
            answers: requests.iter().map(|_| OnceLock::new()).collect(),
            done: AtomicUsize::new(0),
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        // Largest first, so that no thread is left with a large module when the others are done.
        let mut indexes: Vec<usize> = (0..requests.len()).collect();
        indexes.sort_by_key(|&index| {
            requests.get(index).map_or(0, |(_, addresses)| usize::MAX - addresses.len())
        });
        batch.work(&indexes, threads, false);
        let missing: Vec<usize> =
            indexes.into_iter().filter(|&index| batch.is_open(index)).collect();
        let open = missing.iter().filter_map(|&index| requests.get(index));
        self.search.prepare(open.map(|(module, _)| module), watch);
        batch.work(&missing, threads, true);
        let answers = batch.answers.into_iter().zip(requests);
        answers
            .map(|(answer, (_, addresses))| {
                answer.into_inner().unwrap_or_else(|| vec![FrameChain::default(); addresses.len()])
            })
            .collect()
    }
}

impl ResolveBatch<'_> {
    fn work(&self, indexes: &[usize], threads: usize, may_download: bool) {
        let next = AtomicUsize::new(0);
        let run = || {
            while let Some(&index) = indexes.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.watch.cancel.is_cancelled() {
                    return;
                }
                self.resolve(index, may_download);
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads.min(indexes.len()) {
                scope.spawn(run);
            }
            run();
        });
    }

    fn is_open(&self, index: usize) -> bool {
        self.answers.get(index).is_some_and(|answer| answer.get().is_none())
    }

    fn resolve(&self, index: usize, may_download: bool) {
        let (Some((module, addresses)), Some(slot)) =
            (self.requests.get(index), self.answers.get(index))
        else {
            return;
        };
        let limits = SearchLimits { may_download, watch: self.watch };
        if let Ok(chains) = self.symbolizer.resolve_module(module, addresses, limits) {
            // Each index is handed out only once.
            let _ = slot.set(chains);
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            self.watch.observer.resolved(module, done, self.requests.len());
        }
    }
}

/// Modules in the order of their first request.
#[derive(Default)]
pub struct RequestedModules(Mutex<Modules>);

#[derive(Default)]
struct Modules {
    order: Vec<RequestedModule>,
    rows: FxHashMap<ModuleIdentity, usize>,
}

struct RequestedModule {
    module: ModuleIdentity,
    rvas: FxHashSet<u64>,
    named: usize,
}

impl RequestedModules {
    /// Notes that a module was requested, and for frames in it whether they got a name.
    pub fn note(&self, module: &ModuleIdentity, frames: impl Iterator<Item = (u64, bool)>) {
        let mut guard = lock(&self.0);
        let Modules { order, rows } = &mut *guard;
        let row = *rows.entry(module.clone()).or_insert_with(|| {
            let (module, rvas) = (module.clone(), FxHashSet::default());
            order.push(RequestedModule { module, rvas, named: 0 });
            order.len() - 1
        });
        let Some(entry) = order.get_mut(row) else { return };
        for (rva, is_named) in frames {
            entry.named += usize::from(entry.rvas.insert(rva) && is_named);
        }
    }

    /// Returns the modules with their numbers of distinct frames requested and named.
    pub fn all(&self) -> Vec<(ModuleIdentity, usize, usize)> {
        let modules = lock(&self.0);
        let entries = modules.order.iter();
        entries.map(|entry| (entry.module.clone(), entry.rvas.len(), entry.named)).collect()
    }
}
