//! Finding the PDB of a module along the symbol path: local places first, then the servers.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use symsrv::SymsrvDownloader;
use tokio::runtime::{Builder, Runtime};

use super::downloads::{DownloadLog, Trouble};
use super::folders::LocalFolders;
use super::identity::StoreKey;
use super::path::{self, SymbolPath};
use super::report::{Chain, SearchFailure};

const NO_ANSWER: &str = "no answer in time";

/// Drives symsrv, which knows the symbol path's order, its caches and its servers.
///
/// A server that can not be reached, or stays silent for the whole time-out, is not asked again:
/// a session looks for hundreds of modules and must not wait for each of them.
pub(super) struct Locator {
    path: SymbolPath,
    timeout: Duration,
    folders: LocalFolders,
    log: Arc<DownloadLog>,
    /// Servers that are not asked again, and why.
    given_up: Vec<SearchFailure>,
    /// Made for the first module; made anew without a server that was given up.
    client: Option<Client>,
}

struct Client {
    downloader: SymsrvDownloader,
    runtime: Option<Runtime>,
}

/// How a request to symsrv ended.
enum Answer {
    Found(PathBuf),
    NotFound,
    TimedOut,
    Failed(String),
}

impl Locator {
    pub(super) fn new(path: SymbolPath, timeout: Duration) -> Self {
        Self {
            timeout,
            folders: LocalFolders::new(path.folders()),
            path,
            log: Arc::default(),
            given_up: Vec::new(),
            client: None,
        }
    }

    /// Files in the local places of the path which may be the PDB, best first. What is found
    /// compressed is unpacked into a cache.
    pub(super) fn find(&mut self, key: &StoreKey) -> (Vec<PathBuf>, Vec<SearchFailure>) {
        let (exact, failure) = match self.ask(key, false) {
            Answer::Found(file) => (Some(file), None),
            Answer::NotFound => (None, None),
            Answer::TimedOut => (None, Some(NO_ANSWER.to_owned())),
            Answer::Failed(reason) => (None, Some(reason)),
        };
        let mut files = self.folders.find(key);
        if let Some(exact) = exact {
            files.retain(|file| *file != exact);
            files.insert(0, exact);
        }
        (files, failure.map(|reason| self.failure(reason)).into_iter().collect())
    }

    /// Gets the PDB from the first server on the path that has it.
    pub(super) fn download(&mut self, key: &StoreKey) -> (Option<PathBuf>, Vec<SearchFailure>) {
        let mut failures = self.given_up.clone();
        while self.path.servers().any(|server| !self.is_given_up(server)) {
            let answer = self.ask(key, true);
            let known = self.given_up.len();
            failures.extend(self.judge_servers(matches!(answer, Answer::TimedOut)));
            match answer {
                Answer::Found(file) => return (Some(file), failures),
                // The time-out ended the whole request; without its culprits others may deliver.
                Answer::TimedOut if self.given_up.len() > known => {}
                Answer::TimedOut => {
                    failures.push(self.failure(NO_ANSWER.to_owned()));
                    break;
                }
                Answer::Failed(reason) => {
                    failures.push(self.failure(reason));
                    break;
                }
                Answer::NotFound => break,
            }
        }
        (None, failures)
    }

    /// Which servers failed in the last request; those that were silent are given up.
    fn judge_servers(&mut self, timed_out: bool) -> Vec<SearchFailure> {
        let mut failures = Vec::new();
        for server in self.path.servers() {
            let failure = |reason| SearchFailure { place: server.to_owned(), reason };
            match self.log.trouble(server, timed_out) {
                Some(Trouble::Failed(reason)) => failures.push(failure(reason)),
                Some(Trouble::Silent(reason)) => {
                    failures.push(failure(reason));
                    self.given_up.push(failure("not asked again, it gave no answer".to_owned()));
                    self.client = None;
                }
                None => {}
            }
        }
        failures
    }

    fn is_given_up(&self, server: &str) -> bool {
        self.given_up.iter().any(|failure| failure.place == server)
    }

    fn failure(&self, reason: String) -> SearchFailure {
        SearchFailure { place: self.path.to_string(), reason }
    }

    /// One request to symsrv, which may last as long as it makes progress.
    fn ask(&mut self, key: &StoreKey, may_download: bool) -> Answer {
        let client = match self.client.take().map_or_else(|| self.connect(), Ok) {
            Ok(client) => self.client.insert(client),
            Err(error) => return Answer::Failed(Chain(&error).to_string()),
        };
        let Some(runtime) = &client.runtime else { return Answer::NotFound };
        self.log.begin();
        // symsrv takes the extension in lower case only.
        let name = match key.name.rsplit_once('.') {
            Some((stem, extension)) => format!("{stem}.{}", extension.to_ascii_lowercase()),
            None => key.name.clone(),
        };
        let request = async {
            if may_download {
                client.downloader.get_file(&name, &key.index).await
            } else {
                client.downloader.get_file_no_download(&name, &key.index).await
            }
        };
        match runtime.block_on(while_alive(request, &self.log, self.timeout)) {
            None => Answer::TimedOut,
            Some(Ok(file)) => Answer::Found(file),
            Some(Err(symsrv::Error::NotFound)) => Answer::NotFound,
            // A PDB of another name can lie in a folder, but symsrv has no place for it.
            Some(Err(symsrv::Error::NoExtension | symsrv::Error::UnrecognizedExtension)) => {
                Answer::NotFound
            }
            Some(Err(error)) => Answer::Failed(Chain(&error).to_string()),
        }
    }

    fn connect(&self) -> io::Result<Client> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let given_up: Vec<_> = self.given_up.iter().map(|failure| failure.place.clone()).collect();
        let mut downloader = SymsrvDownloader::new(self.path.entries_without(&given_up));
        downloader.set_default_downstream_store(path::default_store());
        downloader.set_observer(Some(self.log.clone()));
        Ok(Client { downloader, runtime: Some(runtime) })
    }
}

impl Drop for Client {
    /// Does not wait for what still blocks, such as the resolution of a server's name.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a request until it ends or `limit` passes without a sign of life in the log.
async fn while_alive<T>(
    request: impl Future<Output = T>,
    log: &DownloadLog,
    limit: Duration,
) -> Option<T> {
    let mut request = pin!(request);
    loop {
        let patience = limit.checked_sub(log.idle())?;
        if let Ok(result) = tokio::time::timeout(patience, request.as_mut()).await {
            return Some(result);
        }
    }
}
