//! From module and address to function name.
//!
//! Symbolication is late: the extract stores modules and relative addresses (RVAs), and names are
//! looked up when they are shown. A [`Symbolizer`] takes the modules' identities as the trace knows
//! them and resolves batches of RVAs:
//!
//! ```
//! use handlescope_extract::symbols::{
//!     ModuleIdentity, PdbIdentity, SymbolPath, Symbolizer, SymbolizerOptions,
//! };
//!
//! let guid = "0155fe84-c000-1eb1-57c6-858e85d46b4c".parse()?;
//! let module = ModuleIdentity {
//!     name: "ntdll.dll".to_owned(),
//!     path: r"C:\Windows\System32\ntdll.dll".to_owned(),
//!     size: 0x1f_0000,
//!     timestamp: None,
//!     pdb: Some(PdbIdentity { name: "ntdll.pdb".to_owned(), guid, age: 1 }),
//! };
//! let path = SymbolPath::parse("examples/symbols");
//! let symbolizer = Symbolizer::new(path, SymbolizerOptions::default());
//! for chain in symbolizer.resolve(&module, &[0x1350, 0x1720]) {
//!     for frame in chain.iter() {
//!         println!("{}!{}+{:#x}", module.name, frame.function, frame.offset);
//!     }
//! }
//! # Ok::<(), uuid::Error>(())
//! ```
//!
//! For each module, the first that is there wins:
//!
//! 1. a PDB in a local place of the symbol path: a cache, a store or a plain folder;
//! 2. a symcache in the path's cache folder, although its PDB is gone;
//! 3. a PDB from a server, which only a path with `srv*…*https://…` asks. What a server does not
//!    have is remembered for some days; what broke off is continued; a server that is dead or too
//!    slow is given up;
//! 4. the exports of the image, if it lies in a local place, for addresses in exported functions.
//!
//! A PDB counts only if its own GUID and age are those in the trace, wherever it was found, and an
//! image only with the time stamp and size of the trace. A PDB is converted to a symcache, which is
//! kept and serves the next session as long as the PDB stays the same file.
//!
//! Nothing here prints or panics. What happened is in [`Symbolizer::report`].

mod asked;
mod batch;
mod bounds;
#[cfg(test)]
mod download_tests;
mod downloads;
#[cfg(test)]
mod fixture;
mod folders;
mod gate;
mod identity;
mod install;
#[cfg(test)]
mod linked_tests;
mod locate;
mod missing;
mod module;
mod names;
mod observer;
mod pace;
mod partial;
mod path;
mod pdb;
mod pe;
mod pointer;
mod prepare;
mod report;
mod search;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod slow_server_tests;
mod sources;
mod symcache;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;
mod transfer;
mod types;
mod unpack;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use self::identity::{ModuleIdentity, PdbIdentity};
pub use self::module::{FrameChain, ResolvedFrame};
pub use self::observer::{DownloadEnd, NoSymbolObserver, SymbolObserver};
pub use self::pace::MinSpeed;
pub use self::path::SymbolPath;
pub use self::report::{MissingAt, ModuleReport, Origin, Outcome, SearchFailure, SymbolFileError};
pub use self::sources::{ServerChoice, SymbolSources, SymbolSourcesError};

use self::asked::AskedModules;
use self::search::{Effort, Search};

/// Resolves addresses of modules along a symbol path, and remembers what it found.
///
/// May be used from several threads at once; only the same PDB makes them wait for each other. Not
/// to be used from within a tokio runtime, as it runs one for downloads.
pub struct Symbolizer {
    path: SymbolPath,
    search: Search,
    asked: AskedModules,
}

/// What is not in the symbol path.
#[derive(Clone, Debug)]
pub struct SymbolizerOptions {
    /// Folder for converted symcaches; by default the first cache folder of the symbol path, else
    /// `handlescope` in the platform's cache folder.
    pub symcache_folder: Option<PathBuf>,
    /// How long a server may take to answer, and then to send nothing. One that takes longer is
    /// not asked again in this session.
    pub download_timeout: Duration,
    /// The slowest download that is waited for.
    pub min_speed: MinSpeed,
    /// The largest file that is downloaded or unpacked, in bytes.
    pub max_file_bytes: u64,
    /// How long a server is not asked again for what it did not have.
    pub missing_for: Duration,
}

impl Default for SymbolizerOptions {
    fn default() -> Self {
        Self {
            symcache_folder: None,
            download_timeout: Duration::from_secs(20),
            min_speed: MinSpeed::default(),
            max_file_bytes: 4 << 30,
            missing_for: Duration::from_hours(7 * 24),
        }
    }
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

    /// The functions at each of the module's RVAs, in their order.
    ///
    /// The first call for a module finds and converts its PDB, which may take seconds, or downloads
    /// it, which may take minutes. Later ones only look names up, and a failure is remembered.
    pub fn resolve(&self, module: &ModuleIdentity, rvas: &[u64]) -> Vec<FrameChain> {
        let effort = Effort { may_download: true, observer: &NoSymbolObserver };
        let chains = self.resolve_one(module, rvas, effort);
        chains.unwrap_or_else(|| vec![FrameChain::default(); rvas.len()])
    }

    /// The functions at the RVAs of many modules, in the order of the requests.
    ///
    /// Works on as many modules at once as there are processors. What is at hand comes first; only
    /// then are servers asked for the rest, for several files at a time. If cancelled, the rest is
    /// left without names; the next call goes on from there.
    pub fn resolve_all(
        &self,
        requests: &[(ModuleIdentity, Vec<u64>)],
        observer: &dyn SymbolObserver,
    ) -> Vec<Vec<FrameChain>> {
        batch::resolve_all(self, requests, observer)
    }

    /// Downloads the PDBs of modules that are in no local place of the path, several at a time, and
    /// converts none yet. Cancelled downloads are continued by the next call.
    pub fn prepare(&self, modules: &[ModuleIdentity], observer: &dyn SymbolObserver) {
        self.search.prepare(modules, observer);
    }

    /// Looks again for what was not found, also on servers that did not have it or were given up, in
    /// this session and before.
    pub fn forget_missing(&self) {
        self.search.forget_missing();
    }

    /// What happened to every module asked for so far, in the order of asking.
    pub fn report(&self) -> Vec<ModuleReport> {
        let all = self.asked.all();
        all.iter()
            .map(|asked| {
                let (wanted, named) = asked.counts();
                ModuleReport { wanted, named, ..self.search.report(&asked.module) }
            })
            .collect()
    }

    /// `None` if the effort did not suffice.
    fn resolve_one(
        &self,
        module: &ModuleIdentity,
        rvas: &[u64],
        effort: Effort<'_>,
    ) -> Option<Vec<FrameChain>> {
        let asked = self.asked.module(module);
        let found = self.search.symbols(module, effort)?;
        let chains = match &found.symbols {
            Some(symbols) => in_order(rvas, |sorted| symbols.resolve(sorted, module.size)),
            None => vec![FrameChain::default(); rvas.len()],
        };
        asked.count(rvas, &chains);
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
fn in_order(rvas: &[u64], resolve: impl Fn(&[u64]) -> Vec<FrameChain>) -> Vec<FrameChain> {
    if rvas.is_sorted() {
        return resolve(rvas);
    }
    let mut sorted = rvas.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let chains = resolve(&sorted);
    let chain = |rva| sorted.binary_search(rva).ok().and_then(|at| chains.get(at)).cloned();
    rvas.iter().map(|rva| chain(rva).unwrap_or_default()).collect()
}
