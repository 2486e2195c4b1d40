//! Symbols from servers: each file is downloaded once per session and by one process at a time, checked, and put into
//! the cache.
//!
//! A server that cannot be reached, is silent for the whole timeout or sends too slowly is given up: it gets no more
//! requests, and threads waiting for its response stop. A session looks for hundreds of modules, so a dead server must
//! cost its timeout only once, wherever it is in the path.

pub mod download_lock;
#[cfg(test)]
mod download_tests;
pub mod install;
pub mod missing;
pub mod partial;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod slow_server_tests;
#[cfg(test)]
pub mod test_server;
mod transfer;
#[cfg(test)]
mod two_tier_tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use rustc_hash::{FxHashMap, FxHashSet};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::OnceCell;

use crate::identity::{PdbIdentity, StoreKey, TWO_TIERS};
use crate::options::{SearchWatch, SymbolizerOptions};
use crate::path::{Server, SymbolPath, without_secrets};
use crate::pdb::PdbFile;
use crate::pointer;
use crate::report::{ErrorChain, MissingAt, SearchFailure, SearchNotes, SymbolFileError};
use crate::server::download_lock::{DownloadLock, Waiting};
use crate::server::install::{FileForm, Install};
use crate::server::missing::{Absence, MissingFiles};
use crate::server::transfer::{Failure, ServerRequest, Transfer};
use handlescope_model::Reason;
use handlescope_model::guard::lock;
use handlescope_model::output::{prepare_folder, temporary_folder};

/// Maximum number of concurrent downloads.
const PARALLEL: usize = 8;
/// Interval at which cancellation is checked.
const TICK: Duration = Duration::from_millis(100);
/// Consecutive failures after which a server is given up.
const MAX_FAILURES: usize = 8;

/// Reasons why no server can be used.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    #[error("{}", Reason(.0))]
    Runtime(#[from] io::Error),
    #[error("{}", ErrorChain(.0))]
    Client(#[from] reqwest::Error),
}

/// Downloads from the servers of a symbol path.
pub struct Downloads {
    servers: Vec<Server>,
    hosts: Vec<String>,
    options: SymbolizerOptions,
    missing: MissingFiles,
    session: Mutex<ServerSession>,
    /// Folder for downloads if no cache is writable.
    spare: OnceLock<Option<TempDir>>,
    /// The client, created for the first download. The downloading thread holds the lock.
    client: Mutex<Option<Client>>,
}

/// What the session has learned so far.
#[derive(Default)]
struct ServerSession {
    fetched: FxHashMap<PdbIdentity, Arc<FetchResult>>,
    /// Servers by address.
    servers: FxHashMap<String, ServerState>,
    /// Hosts that get no more requests, whatever the path.
    given_up_hosts: FxHashSet<String>,
    /// Locks of the downloads in progress.
    locks: Vec<Weak<DownloadLock>>,
    /// Names of files that other processes downloaded while we waited.
    waited_for: Vec<String>,
}

#[derive(Default)]
struct ServerState {
    is_given_up: bool,
    /// Whether its store has two tiers, once known.
    has_two_tiers: Arc<OnceCell<bool>>,
    failures_in_a_row: usize,
}

/// What the servers answered to a request.
#[derive(Default)]
pub struct FetchResult {
    /// The file, and the address of the server it came from.
    pub file: Option<(PathBuf, String)>,
    pub notes: SearchNotes,
}

struct Client {
    transfer: Transfer,
    runtime: Option<Runtime>,
}

/// A request for a PDB to one server.
#[derive(Clone, Copy)]
struct Asking<'a> {
    server: &'a Server,
    transfer: &'a Transfer,
    key: &'a StoreKey,
    pdb: &'a PdbIdentity,
    watch: SearchWatch<'a>,
    /// Folders that the file will be stored in.
    caches: &'a [PathBuf],
    /// The right to download it, if we hold the lock.
    turn: Option<&'a Arc<DownloadLock>>,
}

/// Our turn to download a file.
#[derive(Default)]
struct Turn {
    lock: Option<Arc<DownloadLock>>,
    /// Whether we waited for another process.
    has_waited: bool,
}

/// A PDB and its place in a store.
pub type PdbRequest = (StoreKey, PdbIdentity);

impl Downloads {
    pub fn new(path: &SymbolPath, options: &SymbolizerOptions) -> Self {
        let servers = path.servers();
        let list = servers.iter().find_map(|server| server.caches.first().cloned());
        Self {
            hosts: path.hosts(),
            missing: MissingFiles::new(list, options),
            options: options.clone(),
            servers,
            session: Mutex::default(),
            spare: OnceLock::new(),
            client: Mutex::default(),
        }
    }

    /// Whether there is no server to ask.
    pub fn is_offline(&self) -> bool {
        self.servers.is_empty()
    }

    /// Whether some server is not known to lack the file.
    pub fn may_have(&self, key: &StoreKey) -> bool {
        self.servers.iter().any(|server| self.missing.get(&server.url, key).is_none())
    }

    /// Requests the files that were not requested in this session yet, from all servers.
    pub fn fetch(&self, requests: &[PdbRequest], watch: SearchWatch<'_>) {
        if self.is_offline() {
            return;
        }
        let mut slot = lock(&self.client);
        // Checked under the lock, because another thread may have requested the same file.
        let requests: Vec<&PdbRequest> =
            requests.iter().filter(|(_, pdb)| self.fetched(pdb).is_none()).collect();
        if requests.is_empty() {
            return;
        }
        let client = match slot.take().map_or_else(|| self.connect(), Ok) {
            Ok(client) => slot.insert(client),
            Err(error) => return self.fail_all(&requests, &error.to_string()),
        };
        let Some(runtime) = &client.runtime else { return };
        watch.observer.planned(requests.len());
        let downloads = stream::iter(&requests)
            .map(|request| self.fetch_pdb(&client.transfer, request, watch))
            .buffer_unordered(PARALLEL)
            .collect::<()>();
        runtime.block_on(async {
            let mut downloads = std::pin::pin!(downloads);
            while tokio::time::timeout(TICK, downloads.as_mut()).await.is_err() {
                if watch.cancel.is_cancelled() {
                    break;
                }
                self.show_progress();
            }
        });
    }

    /// Returns and clears the names of files that other processes downloaded while this session waited, each once.
    pub fn take_waited_for(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.session).waited_for)
    }

    /// Returns the result of an earlier request for the PDB.
    pub fn fetched(&self, pdb: &PdbIdentity) -> Option<Arc<FetchResult>> {
        lock(&self.session).fetched.get(pdb).cloned()
    }

    /// Lets all missing files be requested again from every server.
    pub fn forget_missing(&self) {
        self.missing.clear();
        let mut session = lock(&self.session);
        session.fetched.retain(|_, fetched| fetched.file.is_some());
        session.servers.clear();
        session.given_up_hosts.clear();
        self.options.download_budget.renew();
    }

    async fn fetch_pdb(
        &self,
        transfer: &Transfer,
        (key, pdb): &PdbRequest,
        watch: SearchWatch<'_>,
    ) {
        if watch.cancel.is_cancelled() {
            return;
        }
        let mut fetched = FetchResult::default();
        watch.observer.started(pdb);
        for server in &self.servers {
            let caches = &self.caches(server);
            let asking = Asking { server, transfer, key, pdb, watch, caches, turn: None };
            let file = self.ask_server(&asking, &mut fetched.notes);
            if let Some(file) = file.await {
                fetched.file = Some((file, server.shown()));
                break;
            }
        }
        watch.observer.finished(pdb);
        lock(&self.session).fetched.insert(pdb.clone(), Arc::new(fetched));
    }

    async fn ask_server(&self, asking: &Asking<'_>, notes: &mut SearchNotes) -> Option<PathBuf> {
        let Asking { server, key, caches, .. } = *asking;
        if let Some(file) = in_cache(asking) {
            return Some(file);
        }
        if self.is_skipped(server, key, notes) {
            return None;
        }
        let turn = match caches.first() {
            Some(cache) => self.turn(cache, key, asking).await,
            None => Turn::default(),
        };
        let asking = &Asking { turn: turn.lock.as_ref(), ..*asking };
        // Another process may have finished first, even if this one did not wait.
        if let Some(file) = in_cache(asking) {
            if turn.has_waited {
                self.note_wait(key);
            }
            return Some(file);
        }
        self.missing.reload();
        if self.is_skipped(server, key, notes) {
            return None;
        }
        let answer = self.places(asking).await;
        // A suspended process has lost its connection, and others may have continued meanwhile.
        if answer.is_err()
            && let Some(file) = in_cache(asking)
        {
            return Some(file);
        }
        match answer {
            Ok(file) => {
                self.note_answer(&server.url);
                return Some(file);
            }
            Err(Failure::Missing) => {
                self.note_answer(&server.url);
                self.missing.insert(&server.url, key, Absence::Missing);
                let server = server.shown();
                notes.missing.push(MissingAt { server, is_remembered: false, is_refused: false });
            }
            Err(Failure::File(error @ SymbolFileError::TooManyDownloads { .. })) => {
                self.give_up(server, error.to_string(), notes);
            }
            Err(Failure::File(error)) => {
                self.note_answer(&server.url);
                // A local write error is not the server's fault.
                if !matches!(error, SymbolFileError::Io { .. }) {
                    self.missing.insert(&server.url, key, Absence::Refused);
                }
                notes.refused.push(Arc::new(error));
            }
            Err(Failure::Failed(reason)) => {
                let reason = self.note_failure(&server.url, reason);
                notes.failures.push(SearchFailure { location: server.shown(), reason });
            }
            Err(Failure::Silent(reason)) => self.give_up(server, reason, notes),
        }
        None
    }

    /// Whether a server is not asked because it was given up or is known not to have the file.
    fn is_skipped(&self, server: &Server, key: &StoreKey, notes: &mut SearchNotes) -> bool {
        if self.is_given_up(server) {
            notes.skipped.push(server.shown());
            return true;
        }
        let Some(absence) = self.missing.get(&server.url, key) else { return false };
        notes.missing.push(MissingAt {
            server: server.shown(),
            is_remembered: true,
            is_refused: absence == Absence::Refused,
        });
        true
    }

    /// Waits until no other process asks for the file `key`. The turn comes without a lock if files cannot be locked,
    /// or if the process that holds the lock makes no progress.
    async fn turn(&self, cache: &Path, key: &StoreKey, asking: &Asking<'_>) -> Turn {
        let Asking { pdb, watch, .. } = *asking;
        let path = partial::lock_of(cache, key);
        let mut waiting = None;
        loop {
            match DownloadLock::take(&path) {
                Ok(Some(taken)) => {
                    let taken = Arc::new(taken);
                    lock(&self.session).locks.push(Arc::downgrade(&taken));
                    return Turn { lock: Some(taken), has_waited: waiting.is_some() };
                }
                Ok(None) => {}
                Err(_) => return Turn { lock: None, has_waited: waiting.is_some() },
            }
            let waiting = waiting.get_or_insert_with(|| {
                watch.observer.waiting(pdb);
                Waiting::start()
            });
            if waiting.standstill(&path) > self.options.download_timeout {
                return Turn { lock: None, has_waited: true };
            }
            tokio::time::sleep(TICK).await;
        }
    }

    fn note_wait(&self, key: &StoreKey) {
        let waited_for = &mut lock(&self.session).waited_for;
        if !waited_for.contains(&key.name) {
            waited_for.push(key.name.clone());
        }
    }

    /// Signals to other processes that files are being unpacked and checked.
    fn show_progress(&self) {
        lock(&self.session).locks.retain(|lock| {
            let Some(lock) = lock.upgrade() else { return false };
            if lock.is_installing() {
                lock.progress();
            }
            true
        });
    }

    /// Asks a server for the file in every place it may be, until it is found. Whether the store has two tiers is asked
    /// only if the server lacks a file.
    async fn places(&self, asking: &Asking<'_>) -> Result<PathBuf, Failure> {
        let Asking { server, key, .. } = *asking;
        let has_two_tiers = {
            let mut session = lock(&self.session);
            Arc::clone(&session.servers.entry(server.url.clone()).or_default().has_two_tiers)
        };
        if has_two_tiers.get() != Some(&true) {
            match self.forms("", asking).await {
                Err(Failure::Missing) => {}
                answer => return answer,
            }
            if !*has_two_tiers.get_or_try_init(|| self.has_two_tiers(asking)).await? {
                return Err(Failure::Missing);
            }
        }
        // Stores on case-sensitive systems were made by programs that disagree about the case.
        let tier = key.first_tier();
        let small = Some(tier.to_lowercase()).filter(|small| small != tier);
        for tier in [Some(tier), small.as_deref()].into_iter().flatten() {
            match self.forms(tier, asking).await {
                Err(Failure::Missing) => {}
                answer => return answer,
            }
        }
        Err(Failure::Missing)
    }

    /// Asks a server whether its store has two tiers. A negative answer is remembered like a missing file.
    async fn has_two_tiers(&self, asking: &Asking<'_>) -> Result<bool, Failure> {
        let Asking { server, transfer, .. } = *asking;
        let mark = StoreKey { name: TWO_TIERS.to_owned(), index: String::new() };
        // Processes that look for different files have different turns, so this question needs a turn of its own.
        let _turn = match asking.caches.first() {
            Some(cache) => self.turn(cache, &mark, asking).await,
            None => Turn::default(),
        };
        self.missing.reload();
        if self.missing.get(&server.url, &mark).is_some() {
            return Ok(false);
        }
        let url = address(&server.url, &[TWO_TIERS])?;
        let is_given_up = || self.is_given_up(server);
        let request = ServerRequest {
            url: &url,
            shown: &without_secrets(&url),
            partial: Path::new(""),
            magic: b"",
            is_given_up: &is_given_up,
        };
        match transfer.bytes(&request, pointer::MAX_BYTES).await {
            Ok(_) => Ok(true),
            Err(Failure::Missing) => {
                self.missing.insert(&server.url, &mark, Absence::Missing);
                Ok(false)
            }
            Err(Failure::Silent(reason)) => Err(Failure::Silent(reason)),
            Err(Failure::Failed(_) | Failure::File(_)) => Ok(false),
        }
    }

    /// Asks for the file in every form it may have in a tier of a server, until it is found.
    async fn forms(&self, tier: &str, asking: &Asking<'_>) -> Result<PathBuf, Failure> {
        for form in FileForm::ALL {
            // The server may have taken long to report that it lacks the previous form.
            asking.turn.iter().for_each(|turn| turn.progress());
            match self.form(form, tier, asking).await {
                Err(Failure::Missing) => {}
                answer => return answer,
            }
        }
        Err(Failure::Missing)
    }

    /// Asks for the file in one form.
    async fn form(
        &self,
        form: FileForm,
        tier: &str,
        asking: &Asking<'_>,
    ) -> Result<PathBuf, Failure> {
        let Asking { server, transfer, key, pdb, watch, caches, turn } = *asking;
        let Some(name) = form.name(&key.name) else { return Err(Failure::Missing) };
        let url = address(&server.url, &[tier, &key.name, &key.index, &name])?;
        let Some(cache) = caches.first() else {
            return Err(Failure::Failed("there is no folder to keep downloads in".to_owned()));
        };
        let partial = asking.partial_path(cache, &name);
        let progress = |bytes, total| {
            turn.iter().for_each(|turn| turn.progress());
            watch.observer.progress(pdb, bytes, total);
        };
        let is_given_up = || self.is_given_up(server);
        let shown = without_secrets(&url);
        let request = ServerRequest {
            url: &url,
            shown: &shown,
            partial: &partial,
            magic: form.magic(),
            is_given_up: &is_given_up,
        };
        if form == FileForm::Pointer {
            let text = transfer.bytes(&request, pointer::MAX_BYTES).await?;
            let source = pointer::Source::Server { hosts: &self.hosts };
            return pointer::follow(&text, &source).map_err(|reason| {
                Failure::File(SymbolFileError::Pointer { path: PathBuf::from(&shown), reason })
            });
        }
        let received = transfer.file(&request, &progress).await?;
        let install = Install {
            form,
            caches: caches.to_vec(),
            key: key.clone(),
            pdb: pdb.clone(),
            max_bytes: self.options.max_file_bytes,
            budget: Some(self.options.download_budget.clone()),
            shown: PathBuf::from(shown),
        };
        let turn = turn.cloned();
        // Unpacking and checking are slow, so other downloads continue meanwhile. The blocking thread keeps the lock,
        // because it cannot be interrupted.
        let installed = tokio::task::spawn_blocking(move || {
            turn.iter().for_each(|turn| turn.installs());
            install.received(received)
        });
        match installed.await {
            Ok(result) => result.map_err(Failure::File),
            Err(error) => Err(Failure::Failed(ErrorChain(&error).to_string())),
        }
    }

    /// Returns the folders to store downloads from a server in: its caches, preceded by a folder of this session if the
    /// first cannot be written.
    fn caches(&self, server: &Server) -> Vec<PathBuf> {
        let mut caches = server.caches.clone();
        if caches.first().is_none_or(|folder| prepare_folder(folder).is_err()) {
            let spare = self.spare.get_or_init(|| temporary_folder().ok()).as_ref();
            caches.splice(..0, spare.map(|folder| folder.path().to_path_buf()));
        }
        caches
    }

    fn is_given_up(&self, server: &Server) -> bool {
        let session = lock(&self.session);
        session.given_up_hosts.contains(&server.host())
            || session.servers.get(&server.url).is_some_and(|server| server.is_given_up)
    }

    fn note_answer(&self, url: &str) {
        if let Some(server) = lock(&self.session).servers.get_mut(url) {
            server.failures_in_a_row = 0;
        }
    }

    /// Counts a failure and returns its message.
    fn note_failure(&self, url: &str, reason: String) -> String {
        let mut session = lock(&self.session);
        let server = session.servers.entry(url.to_owned()).or_default();
        server.failures_in_a_row += 1;
        if server.failures_in_a_row < MAX_FAILURES || server.is_given_up {
            return reason;
        }
        server.is_given_up = true;
        format!("{reason}, {MAX_FAILURES} times in a row; it is not asked again")
    }

    /// Stops all requests to the host. Of several requests that were waiting, only the first reports it.
    fn give_up(&self, server: &Server, reason: String, notes: &mut SearchNotes) {
        let location = server.shown();
        if lock(&self.session).given_up_hosts.insert(server.host()) {
            notes.failures.push(SearchFailure { location, reason });
        } else {
            notes.skipped.push(location);
        }
    }

    fn fail_all(&self, requests: &[&PdbRequest], reason: &str) {
        let mut session = lock(&self.session);
        for (_, pdb) in requests {
            let mut fetched = FetchResult::default();
            fetched.notes.failures = self
                .servers
                .iter()
                .map(|server| SearchFailure { location: server.shown(), reason: reason.to_owned() })
                .collect();
            session.fetched.insert(pdb.clone(), Arc::new(fetched));
        }
    }

    fn connect(&self) -> Result<Client, ConnectError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let transfer = Transfer::new(&self.options)?;
        let SymbolizerOptions { partial_for, max_file_bytes, .. } = self.options;
        for cache in self.servers.iter().filter_map(|server| server.caches.first()) {
            partial::sweep(cache, partial_for, 2 * max_file_bytes);
        }
        Ok(Client { transfer, runtime: Some(runtime) })
    }
}

impl Drop for Client {
    /// Drops the runtime without waiting for blocked calls, such as name resolution.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns the file in the first cache, if it is the right one. What this process had received of it is then removed.
fn in_cache(asking: &Asking<'_>) -> Option<PathBuf> {
    let Asking { key, pdb, caches, .. } = *asking;
    let cache = caches.first()?;
    let file = cached(cache, key, pdb)?;
    for name in FileForm::ALL.iter().filter_map(|form| form.name(&key.name)) {
        partial::remove(&asking.partial_path(cache, &name));
    }
    Some(file)
}

impl Asking<'_> {
    /// Returns the path at which a file is received.
    fn partial_path(&self, cache: &Path, name: &str) -> PathBuf {
        match self.turn {
            Some(_) => partial::path(cache, self.key, name),
            // Another process may be writing there.
            None => partial::path(cache, self.key, &format!("{name}.{}", std::process::id())),
        }
    }
}

/// Returns the file in a cache, if it is the right one.
fn cached(cache: &Path, key: &StoreKey, pdb: &PdbIdentity) -> Option<PathBuf> {
    let file = install::folder(cache, key).join(&key.name);
    let is_match =
        file.is_file() && PdbFile::open(&file).and_then(|opened| opened.verify(pdb)).is_ok();
    is_match.then_some(file)
}

/// Returns the address of a file on a server, built from path segments; empty ones are skipped.
fn address(server: &str, names: &[&str]) -> Result<String, Failure> {
    let mut url =
        reqwest::Url::parse(server).map_err(|error| Failure::Failed(error.to_string()))?;
    match url.path_segments_mut() {
        Ok(mut segments) => {
            segments.pop_if_empty().extend(names.iter().filter(|name| !name.is_empty()))
        }
        Err(()) => return Err(Failure::Failed("not the address of a server".to_owned())),
    };
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_so_that_no_name_changes_its_meaning() {
        let address = |server, name| address(server, &["", name, "1", name]).ok();
        let plain = Some("https://x/s/a.pdb/1/a.pdb".to_owned());
        assert_eq!(address("https://x/s", "a.pdb"), plain);
        assert_eq!(address("https://x/s/", "a.pdb"), plain);
        let odd = Some("https://x/a%23b%20%C3%A4%2525.pdb/1/a%23b%20%C3%A4%2525.pdb".to_owned());
        assert_eq!(address("https://x", "a#b ä%25.pdb"), odd);
        let query = Some("https://x/a.pdb/1/a.pdb?key=1".to_owned());
        assert_eq!(address("https://x?key=1", "a.pdb"), query);
        assert_eq!(address("https://", "a.pdb"), None);
    }
}
