//! What a search for symbols is asked for besides the path.

use std::path::PathBuf;
use std::time::Duration;

use super::speed::MinSpeed;

/// What is not in the symbol path.
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
    /// How long a server may take to answer, and then to send nothing. One that takes longer is
    /// not asked again in this session.
    pub download_timeout: Duration,
    /// The slowest download that is waited for.
    pub min_speed: MinSpeed,
    /// The largest file that is downloaded or unpacked, in bytes. The PDB format itself allows 4 GiB with
    /// blocks of 4 KiB; the largest that public servers have are below 2 GiB.
    pub max_file_bytes: u64,
    /// How long a server is not asked again for what it did not have.
    pub missing_for: Duration,
    /// How long a server is not asked again for what it sent damaged or of another build.
    pub refused_for: Duration,
    /// How long downloads that broke off are kept, to be continued.
    pub partial_for: Duration,
}

impl Default for SymbolizerOptions {
    fn default() -> Self {
        Self {
            symcache_folder: None,
            beside: Vec::new(),
            closed_folders: Vec::new(),
            download_timeout: Duration::from_secs(20),
            min_speed: MinSpeed::default(),
            max_file_bytes: 2 << 30,
            missing_for: Duration::from_hours(7 * 24),
            refused_for: Duration::from_mins(10),
            partial_for: Duration::from_hours(7 * 24),
        }
    }
}
