//! Options of a search for symbols besides the path, and its observers.

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
    /// Folder for converted symcaches; by default the first cache folder of the symbol path, else
    /// `handlescope` in the platform's cache folder.
    pub symcache_folder: Option<PathBuf>,
    /// Folders and archives that are searched before the symbol path, as
    /// [`symbols_beside`](super::symbols_beside) finds them; nothing may lead out of them.
    pub beside: Vec<PathBuf>,
    /// Plain folders of the symbol path, as it names them, out of which neither a link nor a `file.ptr` may
    /// lead.
    pub closed_folders: Vec<PathBuf>,
    /// Caches of programs that are searched after the places of the symbol path and before any server.
    pub usual_caches: Vec<PathBuf>,
    /// Timeout of a server for its first answer and between bytes. One that takes longer is not
    /// asked again in this session.
    pub download_timeout: Duration,
    /// The slowest download that is waited for.
    pub min_speed: MinSpeed,
    /// The largest file that is downloaded or unpacked, in bytes. The PDB format itself allows 4 GiB with
    /// blocks of 4 KiB; the largest that public servers have are below 2 GiB.
    pub max_file_bytes: u64,
    /// The largest PDB that is converted as a whole, in bytes; of larger ones only the object files
    /// whose functions are requested.
    pub whole_pdb_bytes: u64,
    /// Budget for all downloads together.
    pub download_budget: DownloadBudget,
    /// Time for which a server is not asked again for a file it did not have.
    pub missing_for: Duration,
    /// Time for which a server is not asked again for a file that it sent damaged or of another
    /// build.
    pub refused_for: Duration,
    /// Time for which interrupted downloads are kept, to be continued.
    pub partial_for: Duration,
}

/// Bytes that all downloads together may take, received and unpacked. Clones have one budget, so that it is that of
/// a run, whatever symbol paths it has.
#[derive(Clone, Debug)]
pub struct DownloadBudget {
    limit: u64,
    spent: Arc<AtomicU64>,
}

impl DownloadBudget {
    /// Smallest budget, so that a small limit of a file does not limit the number of files.
    const MIN_BYTES: u64 = 4 << 30;

    /// Creates a budget for two files of the largest size.
    pub fn for_files_of(max_file_bytes: u64) -> Self {
        Self::of(max_file_bytes.saturating_mul(2).max(Self::MIN_BYTES))
    }

    pub fn of(limit: u64) -> Self {
        Self { limit, spent: Arc::default() }
    }

    /// Spends bytes; fails when the budget is exceeded.
    pub fn spend(&self, bytes: u64) -> Result<(), SymbolFileError> {
        let spent = self.spent.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        match spent > self.limit {
            true => Err(SymbolFileError::TooManyDownloads { limit: self.limit }),
            false => Ok(()),
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
/// [`Symbolizer::resolve_all`](super::Symbolizer::resolve_all), which calls it from several threads.
///
/// Several downloads are under way at once; the PDB identifies the download.
pub trait SymbolObserver: Sync {
    /// Called with the number of PDBs that are not available locally and will be requested.
    fn planned(&self, _files: usize) {}

    /// Called when a PDB is requested of a server.
    fn started(&self, _pdb: &PdbIdentity) {}

    /// Called when another process downloads the PDB, which is waited for.
    fn waiting(&self, _pdb: &PdbIdentity) {}

    /// Bytes of a PDB are there, of so many if the server says; fewer than before when a download
    /// had to start again.
    fn progress(&self, _pdb: &PdbIdentity, _bytes: u64, _total: Option<u64>) {}

    /// Called when the search for a PDB ended; the report has the outcome.
    fn finished(&self, _pdb: &PdbIdentity) {}

    /// Called when the frames of a module are resolved, if they can be; with the number of finished modules and of all.
    fn resolved(&self, _module: &ModuleIdentity, _done: usize, _of: usize) {}
}

/// An observer that ignores all calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSymbolObserver;

impl SymbolObserver for NoSymbolObserver {}

/// Observers of a search, which can cancel it.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    pub observer: &'a dyn SymbolObserver,
    pub cancel: &'a Cancel,
}
