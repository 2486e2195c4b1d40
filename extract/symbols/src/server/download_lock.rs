//! A lock that lets only one process at a time download a file, and a limit on the bytes under way at once.
//!
//! The downloading process holds a lock on `NAME.INDEX.lock` in our cache folder from before the first request until
//! the file is unpacked, checked and renamed. Other processes wait and then take the file from the cache. It is an
//! operating system lock, so it is released however the process ends.
//!
//! A suspended process (Ctrl-Z), or one with a silent server, must not block the others. The lock file grows as long as
//! the download makes progress. Once it stops growing, the others stop waiting and download the file themselves.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use handlescope_model::guard::lock;
use same_file::Handle;

/// How often the lock file grows.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// The right to download a file, held until it is dropped.
pub struct DownloadLock {
    file: File,
    path: PathBuf,
    last_sign: Mutex<Instant>,
    is_installing: AtomicBool,
}

impl DownloadLock {
    /// Takes the lock; returns `None` if another process has it.
    ///
    /// # Errors
    /// If files in this folder cannot be locked.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        fs::create_dir_all(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        // The previous owner may have removed it meanwhile, and another process may have created a new one.
        let is_there = Handle::from_path(path).ok() == Some(Handle::from_file(file.try_clone()?)?);
        if !is_there {
            return Ok(None);
        }
        // A killed process leaves its file behind.
        file.set_len(0)?;
        let (path, last_sign) = (path.to_owned(), Mutex::new(Instant::now()));
        Ok(Some(Self { file, path, last_sign, is_installing: AtomicBool::new(false) }))
    }

    /// Signals progress to waiting processes.
    pub fn progress(&self) {
        let mut last = lock(&self.last_sign);
        if last.elapsed() >= SIGN_OF_LIFE {
            *last = Instant::now();
            let _ = (&self.file).write_all(b".");
        }
    }

    /// Marks the file as received; unpacking and checking it may take a long time.
    pub fn installs(&self) {
        self.is_installing.store(true, Relaxed);
    }

    pub fn is_installing(&self) -> bool {
        self.is_installing.load(Relaxed)
    }
}

impl Drop for DownloadLock {
    /// Removes the lock file while the lock is still held.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Progress of another process, as seen by one that waits for it.
pub struct Waiting {
    len: u64,
    since: Instant,
}

impl Waiting {
    pub fn start() -> Self {
        Self { len: 0, since: Instant::now() }
    }

    /// Returns how long the holder of the lock, or its predecessors, have shown no progress.
    pub fn standstill(&mut self, path: &Path) -> Duration {
        let len = fs::metadata(path).map_or(0, |metadata| metadata.len());
        if len > self.len {
            self.since = Instant::now();
        }
        self.len = len;
        self.since.elapsed()
    }
}

/// A weighted semaphore: the total weight of outstanding permits stays within a limit.
pub struct Semaphore {
    limit: u64,
    inside: Mutex<u64>,
    left: Condvar,
}

/// A permit, returned on drop.
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
    weight: u64,
}

impl Semaphore {
    pub fn new(limit: u64) -> Self {
        Self { limit, inside: Mutex::new(0), left: Condvar::new() }
    }

    /// Waits for a permit. A permit heavier than the limit is granted only while there are no others.
    pub fn acquire(&self, weight: u64) -> Permit<'_> {
        let inside = self.left.wait_while(lock(&self.inside), |inside| {
            *inside != 0 && inside.saturating_add(weight) > self.limit
        });
        *inside.unwrap_or_else(PoisonError::into_inner) += weight;
        Permit { semaphore: self, weight }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *lock(&self.semaphore.inside) -= self.weight;
        self.semaphore.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_lock_is_exclusive_until_it_is_dropped_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("partial/a.pdb.1.lock");
        let take = || DownloadLock::take(&path).expect("a lock");
        let first = take().expect("free");
        assert!(take().is_none());
        drop(first);
        assert!(!path.exists());
        assert!(take().is_some());
    }

    #[test]
    fn the_file_of_a_killed_process_is_no_lock() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("a.pdb.1.lock");
        fs::write(&path, "...").expect("left over");
        let taken = DownloadLock::take(&path).expect("a lock");
        assert!(taken.is_some());
        assert_eq!(fs::metadata(&path).expect("the file").len(), 0);
    }

    #[test]
    fn only_progress_ends_a_standstill() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("a.pdb.1.lock");
        let hour = Duration::from_hours(1);
        let mut waiting =
            Waiting { len: 2, since: Instant::now().checked_sub(hour).expect("a time") };
        for (content, is_standstill) in [("..", true), ("", true), (".", false)] {
            fs::write(&path, content).expect("written");
            assert_eq!(waiting.standstill(&path) >= hour, is_standstill, "{content:?}");
        }
    }

    #[test]
    fn the_limit_holds_and_a_download_beyond_it_runs_alone() {
        let (semaphore, inside) = (Semaphore::new(10), AtomicU64::new(0));
        thread::scope(|scope| {
            for weight in [4, 4, 4, 25, 4, 4, 4, 25, 10] {
                let (semaphore, inside) = (&semaphore, &inside);
                scope.spawn(move || {
                    let _permit = semaphore.acquire(weight);
                    let now = inside.fetch_add(weight, Ordering::SeqCst) + weight;
                    assert!(now <= 10 || now == weight, "{now}");
                    thread::yield_now();
                    inside.fetch_sub(weight, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(*lock(&semaphore.inside), 0);
    }
}
