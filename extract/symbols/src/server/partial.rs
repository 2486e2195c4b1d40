//! A partially downloaded file, which another session may continue.
//!
//! The bytes are in our cache folder as `NAME.INDEX.partial`, and their source is in `NAME.INDEX.partial.source`. Only
//! one process at a time may write there ([`DownloadLock`](crate::server::download_lock::DownloadLock)). Without such a
//! lock, a process that finds the file locked gets a temporary file instead. Files that are never continued are removed
//! after a while ([`sweep`]).

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use handlescope_model::output::named_in;
use tempfile::{NamedTempFile, TempPath};

use crate::identity::{StoreKey, private_folder};

/// Where the partial bytes came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialSource {
    pub url: String,
    /// `ETag`, else `Last-Modified`; it changes with the file on the server. May be empty.
    pub validator: String,
    /// `Content-Encoding`, usually empty.
    pub encoding: String,
    /// Total bytes, as sent, if the server says so.
    pub total: Option<u64>,
}

/// The file, open for writing at its end.
pub struct Partial {
    file: File,
    location: PartialLocation,
    source: PartialSource,
    len: u64,
}

enum PartialLocation {
    /// Kept if the download is interrupted.
    Kept(PathBuf),
    Temporary(TempPath),
}

/// A complete file under its temporary name, not yet checked.
pub struct ReceivedFile {
    pub source: PartialSource,
    location: PartialLocation,
}

impl Partial {
    /// Opens the remains of an earlier download from this address.
    pub fn left_over(path: &Path, url: &str) -> Option<Self> {
        let path = path.to_owned();
        let source = PartialSource::parse(&fs::read_to_string(source_path(&path)).ok()?)?;
        let file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        if source.url != url || file.try_lock().is_err() {
            return None;
        }
        let mut partial = Self { file, location: PartialLocation::Kept(path), source, len: 0 };
        partial.len = partial.file.seek(SeekFrom::End(0)).ok()?;
        let is_possible = partial.source.total.is_none_or(|total| partial.len <= total);
        (partial.len > 0 && is_possible).then_some(partial)
    }

    /// Creates an empty file at this path.
    pub fn create(path: &Path, source: PartialSource) -> io::Result<Self> {
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        let path = path.to_owned();
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        // The file is gone if another session has finished it meanwhile.
        if file.try_lock().is_err() || !path.exists() {
            let (file, path) = named_in(folder)?.into_parts();
            return Ok(Self { file, location: PartialLocation::Temporary(path), source, len: 0 });
        }
        file.set_len(0)?;
        fs::write(source_path(&path), source.to_text())?;
        Ok(Self { file, location: PartialLocation::Kept(path), source, len: 0 })
    }

    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn source(&self) -> &PartialSource {
        &self.source
    }

    /// Removes a file that cannot be continued.
    pub fn discard(self) {
        self.finish().discard();
    }

    /// Closes the file, which releases the lock; otherwise no other process could read the file on Windows.
    pub fn finish(self) -> ReceivedFile {
        ReceivedFile { source: self.source, location: self.location }
    }
}

impl From<NamedTempFile> for ReceivedFile {
    fn from(file: NamedTempFile) -> Self {
        Self {
            source: PartialSource::default(),
            location: PartialLocation::Temporary(file.into_temp_path()),
        }
    }
}

impl ReceivedFile {
    pub fn path(&self) -> &Path {
        match &self.location {
            PartialLocation::Kept(path) => path,
            PartialLocation::Temporary(path) => path,
        }
    }

    pub fn discard(self) {
        if let PartialLocation::Kept(path) = self.location {
            remove(&path);
        }
    }

    /// Moves the file to the target.
    pub fn persist(self, target: &Path) -> io::Result<()> {
        fs::create_dir_all(target.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
        match self.location {
            PartialLocation::Kept(path) => {
                fs::rename(&path, target)?;
                let _ = fs::remove_file(source_path(&path));
                Ok(())
            }
            PartialLocation::Temporary(path) => Ok(path.persist(target)?),
        }
    }
}

impl PartialSource {
    fn to_text(&self) -> String {
        let total = self.total.map(|total| total.to_string()).unwrap_or_default();
        format!("{}\n{}\n{}\n{total}\n", self.url, self.validator, self.encoding)
    }

    fn parse(text: &str) -> Option<Self> {
        let [url, validator, encoding, total, ""] = text.split('\n').collect::<Vec<_>>()[..] else {
            return None;
        };
        let total = if total.is_empty() { None } else { Some(total.parse().ok()?) };
        let [url, validator, encoding] = [url, validator, encoding].map(str::to_owned);
        Some(Self { url, validator, encoding, total })
    }
}

/// Returns the folder of a cache for partial files.
pub fn folder(cache: &Path) -> PathBuf {
    private_folder(cache).join("partial")
}

/// Returns the path of the lock for a file of a store.
pub fn lock_of(cache: &Path, key: &StoreKey) -> PathBuf {
    folder(cache).join(format!("{}.{}.lock", key.name, key.index))
}

/// Returns the path for the received bytes of a file of a store, in one of its forms.
pub fn path(cache: &Path, key: &StoreKey, name: &str) -> PathBuf {
    folder(cache).join(format!("{name}.{}.partial", key.index))
}

/// Removes what was received at a path.
pub fn remove(partial: &Path) {
    let _ = fs::remove_file(source_path(partial));
    let _ = fs::remove_file(partial);
}

fn source_path(partial: &Path) -> PathBuf {
    let mut path = OsString::from(partial);
    path.push(".source");
    path.into()
}

/// Removes files that were not written to for a while, then the oldest ones beyond a total size. Files being written
/// are kept.
pub fn sweep(cache: &Path, max_age: Duration, max_bytes: u64) {
    let entries = fs::read_dir(folder(cache)).into_iter().flatten().flatten();
    let file = |entry: fs::DirEntry| {
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((metadata.modified().ok()?, metadata.len(), entry.path()))
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries.filter_map(file).collect();
    files.sort_unstable_by(|a, b| b.cmp(a));
    let (now, mut bytes) = (SystemTime::now(), 0_u64);
    for (modified, len, path) in files {
        bytes = bytes.saturating_add(len);
        let is_old = now.duration_since(modified).is_ok_and(|age| age > max_age);
        // The lock keeps other sessions from using the file until it is removed.
        if (is_old || bytes > max_bytes)
            && let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> PartialSource {
        let url = "http://x/a.pdb".to_owned();
        PartialSource {
            url,
            validator: "\"1\"".to_owned(),
            encoding: String::new(),
            total: Some(9),
        }
    }

    fn key() -> StoreKey {
        StoreKey { name: "a.pdb".to_owned(), index: "1".to_owned() }
    }

    #[test]
    fn old_files_go_and_the_oldest_of_too_many_but_none_that_is_written_to() {
        let cache = tempfile::tempdir().expect("temporary folder");
        let hours = |hours| SystemTime::now() - Duration::from_hours(hours);
        let keep = ["a", "b", "c", "d"].map(|name| {
            let mut partial = Partial::create(&path(cache.path(), &key(), name), source());
            let partial = partial.as_mut().expect("partial file");
            partial.append(&[0; 1000]).expect("written");
            partial.file.try_clone().expect("a handle")
        });
        for (file, age) in keep.iter().zip([30, 3, 2, 40]) {
            file.set_modified(hours(age)).expect("a time");
        }
        let left = || {
            let names = fs::read_dir(folder(cache.path())).expect("folder").flatten();
            let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
            names.retain(|name| !name.to_string_lossy().ends_with(".source"));
            names.sort_unstable();
            names
        };
        let [_a, _b, _c, d] = keep;
        // Dropping the remaining files releases their locks.
        drop((_a, _b, _c));
        let notes = 1000;
        sweep(cache.path(), Duration::from_hours(24), 1000 + notes);
        assert_eq!(left(), ["c.1.partial", "d.1.partial"]);
        drop(d);
        sweep(cache.path(), Duration::from_hours(24), 10_000);
        assert_eq!(left(), ["c.1.partial"]);
    }

    #[test]
    fn a_broken_download_is_continued_for_the_same_address_only() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let target = folder.path().join("a.pdb/1/a.pdb");
        let path = path(folder.path(), &key(), "a.pdb");
        let mut partial = Partial::create(&path, source()).expect("partial file");
        partial.append(b"abc").expect("written");
        assert!(Partial::left_over(&path, &source().url).is_none(), "it is being written");
        drop(partial);
        assert!(Partial::left_over(&path, "http://y/a.pdb").is_none());
        let mut partial = Partial::left_over(&path, &source().url).expect("left over");
        assert_eq!((partial.len(), partial.source()), (3, &source()));
        partial.append(b"def").expect("written");
        partial.finish().persist(&target).expect("persisted");
        assert_eq!(fs::read(&target).expect("target"), b"abcdef");
        for (folder, files) in [(target.parent(), 1), (path.parent(), 0)] {
            let folder = folder.expect("has a parent");
            assert_eq!(fs::read_dir(folder).expect("folder").count(), files);
        }
    }

    #[test]
    fn a_second_writer_gets_a_separate_file() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let target = folder.path().join("a.pdb");
        let path = path(folder.path(), &key(), "a.pdb");
        let mut first = Partial::create(&path, source()).expect("partial file");
        let mut second = Partial::create(&path, source()).expect("partial file");
        first.append(b"first").expect("written");
        second.append(b"second").expect("written");
        second.finish().persist(&target).expect("persisted");
        assert_eq!(fs::read(&target).expect("target"), b"second");
        first.finish().persist(&target).expect("persisted");
        assert_eq!(fs::read(&target).expect("target"), b"first");
    }

    #[test]
    fn a_damaged_note_of_the_source_leaves_nothing_to_go_on_with() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = path(folder.path(), &key(), "a.pdb");
        let mut partial = Partial::create(&path, source()).expect("partial file");
        partial.append(&[0; 9]).expect("written");
        drop(partial);
        assert!(Partial::left_over(&path, &source().url).is_some());
        for text in ["", "http://x/a.pdb", "http://x/a.pdb\n\n\nnine\n", "http://x/a.pdb\n\n\n8\n"]
        {
            fs::write(source_path(&path), text).expect("note");
            assert!(Partial::left_over(&path, &source().url).is_none(), "{text:?}");
        }
    }
}
