//! A record of what the symbol servers answered, kept through symsrv's observer.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use symsrv::{CabExtractionError, DownloadError, SymsrvObserver};

use super::report::Chain;

/// The downloads of one request, which may ask several servers and for several forms of the file.
pub(super) struct DownloadLog(Mutex<Record>);

struct Record {
    last_sign_of_life: Instant,
    attempts: Vec<Attempt>,
}

struct Attempt {
    id: u64,
    url: String,
    end: End,
}

/// What a server did wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It answered, and not as hoped.
    Failed(String),
    /// It never answered.
    Silent(String),
}

enum End {
    /// Under way, or given up by us.
    Open,
    /// Delivered, or not needed because another attempt delivered.
    Fine,
    /// The server has no such file.
    Missing,
    /// The server answered, and not as hoped.
    Failed(String),
    /// The server could not be reached.
    Silent(String),
}

impl Default for DownloadLog {
    fn default() -> Self {
        Self(Mutex::new(Record { last_sign_of_life: Instant::now(), attempts: Vec::new() }))
    }
}

impl DownloadLog {
    /// Forgets the last request.
    pub(super) fn begin(&self) {
        let mut record = self.record();
        record.last_sign_of_life = Instant::now();
        record.attempts.clear();
    }

    /// Time without any progress.
    pub(super) fn idle(&self) -> Duration {
        self.record().last_sign_of_life.elapsed()
    }

    /// How a server failed in the last request, if it was asked and did.
    pub(super) fn trouble(&self, server: &str, timed_out: bool) -> Option<Trouble> {
        let base = server.trim_end_matches('/');
        let mut trouble = None;
        for attempt in &self.record().attempts {
            let rest = attempt.url.strip_prefix(base);
            if !rest.is_some_and(|rest| rest.starts_with('/')) {
                continue;
            }
            match &attempt.end {
                End::Open if timed_out => {
                    trouble.get_or_insert(Trouble::Silent("no answer in time".to_owned()));
                }
                End::Silent(reason) => {
                    trouble.get_or_insert(Trouble::Silent(reason.clone()));
                }
                End::Failed(reason) => return Some(Trouble::Failed(reason.clone())),
                // One answer shows that the server lives.
                End::Open | End::Fine | End::Missing => return None,
            }
        }
        trouble
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        self.record().last_sign_of_life = Instant::now();
    }

    fn end(&self, id: u64, end: End) {
        let mut record = self.record();
        record.last_sign_of_life = Instant::now();
        if let Some(attempt) = record.attempts.iter_mut().find(|attempt| attempt.id == id) {
            attempt.end = end;
        }
    }
}

impl SymsrvObserver for DownloadLog {
    fn on_new_download_before_connect(&self, id: u64, url: &str) {
        self.touch();
        self.record().attempts.push(Attempt { id, url: url.to_owned(), end: End::Open });
    }

    fn on_download_started(&self, _id: u64) {
        self.touch();
    }

    fn on_download_progress(&self, _id: u64, _bytes: u64, _total: Option<u64>) {
        self.touch();
    }

    fn on_download_completed(&self, id: u64, _size: u64, _headers: Duration, _all: Duration) {
        self.end(id, End::Fine);
    }

    fn on_download_failed(&self, id: u64, reason: DownloadError) {
        let end = match reason {
            // 410 Gone says the same as 404 Not Found.
            DownloadError::StatusError(status) if matches!(status.as_u16(), 404 | 410) => {
                End::Missing
            }
            DownloadError::Timeout => End::Silent(reason.to_string()),
            // symsrv does not name it as the source.
            DownloadError::OpenFailed(error) => End::Silent(Chain(error.as_ref()).to_string()),
            DownloadError::Other(error) => End::Failed(Chain(error.as_ref()).to_string()),
            _ => End::Failed(Chain(&reason).to_string()),
        };
        self.end(id, end);
    }

    // Also called when our time-out drops the request; then the attempt has to stay open.
    fn on_download_canceled(&self, _id: u64) {}

    fn on_new_cab_extraction(&self, _id: u64, _path: &Path) {
        self.touch();
    }

    fn on_cab_extraction_progress(&self, _id: u64, _bytes: u64, _total: u64) {
        self.touch();
    }

    fn on_cab_extraction_completed(&self, _id: u64, _size: u64, _time: Duration) {
        self.touch();
    }

    fn on_cab_extraction_failed(&self, _id: u64, _reason: CabExtractionError) {}

    fn on_cab_extraction_canceled(&self, _id: u64) {}

    fn on_file_created(&self, _path: &Path, _size: u64) {
        self.touch();
    }

    fn on_file_accessed(&self, _path: &Path) {}

    fn on_file_missed(&self, _path: &Path) {}
}
