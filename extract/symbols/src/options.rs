//! Options of a symbol search other than the path, and its observers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use handlescope_model::Cancel;

use super::identity::{ModuleIdentity, PdbIdentity};
use super::path::usual_caches;
use super::report::SymbolFileError;
use super::speed::MinSpeed;

/// Options that are not in the symbol path.
#[derive(Clone, Debug)]
pub struct SymbolizerOptions {
    /// Folder for converted symcaches; defaults to the first cache folder of the symbol path, else `handlescope` in the
    /// platform's cache folder.
    pub symcache_folder: Option<PathBuf>,
    /// Folders and archives searched before the symbol path, as found by [`symbols_beside`](super::symbols_beside);
    /// nothing in them may lead outside.
    pub beside: Vec<PathBuf>,
    /// Plain folders of the symbol path, spelled as in the path, which neither a link nor a `file.ptr` may lead out of.
    pub closed_folders: Vec<PathBuf>,
    /// Caches of other programs, searched after the symbol path's own folders and before any server.
    pub usual_caches: Vec<PathBuf>,
    /// Timeout for a server's first answer and between bytes. A server that takes longer is not asked again in this
    /// session.
    pub download_timeout: Duration,
    /// Downloads slower than this are given up.
    pub min_speed: MinSpeed,
    /// Maximum size of a file to download or unpack, in bytes. The PDB format itself allows 4 GiB with blocks of 4 KiB;
    /// the largest on public servers are below 2 GiB.
    pub max_file_bytes: u64,
    /// Maximum size of a PDB that is converted as a whole, in bytes. For larger ones only the object files whose
    /// functions are requested are converted.
    pub whole_pdb_bytes: u64,
    /// Budget for all downloads together.
    pub download_budget: DownloadBudget,
    /// How long a server is not asked again for a file it did not have.
    pub missing_for: Duration,
    /// How long a server is not asked again for a file that it sent damaged or from another build.
    pub refused_for: Duration,
    /// How long interrupted downloads are kept so that they can be continued.
    pub partial_for: Duration,
}

/// Bytes that all downloads together may take, counting both received and unpacked bytes. Clones share the budget, so
/// that it holds for a whole run, whatever symbol paths it uses.
#[derive(Clone, Debug)]
pub struct DownloadBudget {
    limit: u64,
    spent: Arc<AtomicU64>,
}

impl DownloadBudget {
    /// Minimum budget, so that a small limit per file does not limit the number of files.
    const MIN_BYTES: u64 = 4 << 30;

    /// Creates a budget for two files of the maximum size.
    pub fn for_files_of(max_file_bytes: u64) -> Self {
        Self::new(max_file_bytes.saturating_mul(2).max(Self::MIN_BYTES))
    }

    pub fn new(limit: u64) -> Self {
        Self { limit, spent: Arc::default() }
    }

    /// Spends bytes; fails once the budget is exceeded.
    pub fn spend(&self, bytes: u64) -> Result<(), SymbolFileError> {
        let spent = self.spent.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if spent > self.limit {
            Err(SymbolFileError::TooManyDownloads { limit: self.limit })
        } else {
            Ok(())
        }
    }

    pub fn renew(&self) {
        self.spent.store(0, Ordering::Relaxed);
    }
}

impl Default for SymbolizerOptions {
    fn default() -> Self {
        let max_file_bytes = 2 << 30;
        Self {
            symcache_folder: None,
            beside: Vec::new(),
            closed_folders: Vec::new(),
            usual_caches: usual_caches(),
            download_timeout: Duration::from_secs(20),
            min_speed: MinSpeed::default(),
            max_file_bytes,
            whole_pdb_bytes: 128 << 20,
            download_budget: DownloadBudget::for_files_of(max_file_bytes),
            missing_for: Duration::from_hours(7 * 24),
            refused_for: Duration::from_mins(10),
            partial_for: Duration::from_hours(7 * 24),
        }
    }
}

/// Follows [`Symbolizer::prepare`](super::Symbolizer::prepare) and
/// [`Symbolizer::resolve_all`](super::Symbolizer::resolve_all), which call it from several threads.
///
/// Several downloads may run at once; the PDB tells them apart.
pub trait SymbolObserver: Sync {
    /// Called with the number of PDBs that are not available locally and will be requested.
    fn planned(&self, _files: usize) {}

    /// Called when a PDB is requested from a server.
    fn started(&self, _pdb: &PdbIdentity) {}

    /// Called when another process is downloading the PDB and we wait for it.
    fn waiting(&self, _pdb: &PdbIdentity) {}

    /// Called with the bytes received so far, and the total if the server says it. The number drops if a download had
    /// to start again.
    fn progress(&self, _pdb: &PdbIdentity, _bytes: u64, _total: Option<u64>) {}

    /// Called when the search for a PDB has ended; the report has the outcome.
    fn finished(&self, _pdb: &PdbIdentity) {}

    /// Called when the frames of a module have been resolved, as far as possible, with the number of finished modules
    /// and of all modules.
    fn resolved(&self, _module: &ModuleIdentity, _done: usize, _of: usize) {}
}

/// An observer that ignores all calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSymbolObserver;

impl SymbolObserver for NoSymbolObserver {}

/// Observers of a search, which can cancel it.
#[derive(Clone, Copy)]
pub struct SearchWatch<'a> {
    pub observer: &'a dyn SymbolObserver,
    pub cancel: &'a Cancel,
}
