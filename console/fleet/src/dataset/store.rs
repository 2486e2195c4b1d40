//! The storage of a dataset: a folder or, with the feature `object-store`, a bucket in an object store.
//!
//! Names are relative to the dataset, with slashes. In both kinds of storage, a file appears only when it is complete.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use handlescope_model::output::{is_in_use, temporary_folder, working_folder_in};
use handlescope_model::{OutputFile, open_file, read_folder};
use indicatif::HumanBytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

#[cfg(feature = "object-store")]
use super::bucket::Bucket;
use super::error::DatasetError;
use super::is_id;

const STAGING: &str = "_staging";
const LOCKS: &str = "_locks";

/// Maximum size of a file that is read into memory; a manifest has one or two thousand bytes.
const MAX_BYTES: u64 = 16 << 20;

/// How often to try moving a folder into place while other processes remove empty folders.
const ATTEMPTS: usize = 16;

/// The storage of a dataset.
#[derive(Debug, Clone)]
pub enum Store {
    Folder(PathBuf),
    #[cfg(feature = "object-store")]
    Bucket(Bucket),
}

/// A file on this machine, or a copy in a temporary folder if it was fetched.
#[derive(Debug)]
pub struct LocalFile {
    pub path: PathBuf,
    /// Folder of the copy, if it is one; dropping it deletes the copy.
    pub copy: Option<TempDir>,
}

impl Store {
    /// Opens the storage at a path, or at a URL like `s3://bucket/fleet`.
    pub fn at(location: &Path) -> Result<Self, DatasetError> {
        match location.to_str().filter(|text| is_url(text)) {
            None => Ok(Self::Folder(location.to_path_buf())),
            #[cfg(feature = "object-store")]
            Some(url) => Bucket::at(url).map(Self::Bucket),
            #[cfg(not(feature = "object-store"))]
            Some(url) => Err(DatasetError::NoObjectStores(url.to_owned())),
        }
    }

    /// Returns the name of the storage for people.
    pub fn root(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder,
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => bucket.root(),
        }
    }

    /// Returns path or URL of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.join(name),
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => bucket.url(name).into(),
        }
    }

    /// Reads a file; `None` if it does not exist.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, DatasetError> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name);
                present(read_file(&path)).map_err(DatasetError::io(path))
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => bucket.read(name),
        }
    }

    /// Reads a JSON file; `None` if it does not exist.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, DatasetError> {
        let Some(text) = self.read(name)? else { return Ok(None) };
        let value = serde_json::from_slice(&text);
        value.map(Some).map_err(|error| self.damaged(name, error.to_string()))
    }

    /// Writes a JSON file, which appears when it is complete.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), DatasetError> {
        let text = serde_json::to_vec_pretty(value).unwrap_or_default();
        self.write(name, &mut text.as_slice())
    }

    /// Returns the error for a file with content that no program wrote.
    pub fn damaged(&self, name: &str, reason: String) -> DatasetError {
        DatasetError::Damaged { path: self.path(name), reason }
    }

    /// Returns the size of a file in bytes; `None` if it does not exist. Fails if there is a pipe, device or folder
    /// instead.
    pub fn size(&self, name: &str) -> Result<Option<u64>, DatasetError> {
        match self {
            Self::Folder(folder) => {
                // Polars opens files by their names, so links out of the folders that may be read are refused here.
                let path = folder.join(name);
                let bytes = open(&path).and_then(|file| Ok(file.metadata()?.len()));
                present(bytes).map_err(DatasetError::io(path))
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => bucket.size(name),
        }
    }

    /// Returns the sorted names of files and folders in a folder; none if it does not exist.
    pub fn names(&self, folder: &str) -> Result<Vec<String>, DatasetError> {
        match self {
            Self::Folder(root) => {
                let path = root.join(folder);
                let entries = present(read_folder(&path)).map_err(DatasetError::io(&path))?;
                let mut names = Vec::new();
                for entry in entries.into_iter().flatten() {
                    let entry = entry.map_err(DatasetError::io(&path))?;
                    names.push(entry.file_name().to_string_lossy().into_owned());
                }
                names.sort();
                Ok(names)
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => bucket.names(folder),
        }
    }

    /// Writes a file, which appears when it is complete.
    pub fn write(&self, name: &str, content: &mut dyn Read) -> Result<(), DatasetError> {
        match self {
            Self::Folder(folder) => {
                refuse_links(folder, name)?;
                write_file(&folder.join(name), content)
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => bucket.write(name, content),
        }
    }

    /// Moves a local folder into place. In folder storage, all its files appear at once.
    pub fn place(&self, staged: &Path, name: &str) -> Result<(), DatasetError> {
        match self {
            Self::Folder(folder) => {
                refuse_links(folder, name)?;
                let target = folder.join(name);
                for _ in 0..ATTEMPTS {
                    make_folder_of(&target)?;
                    match fs::rename(staged, &target) {
                        // Another process has just removed the folder of the day because it was empty.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        renamed => return renamed.map_err(DatasetError::io(target)),
                    }
                }
                let source = io::Error::from(io::ErrorKind::NotFound);
                Err(DatasetError::Io { path: target, source })
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => {
                for entry in fs::read_dir(staged).map_err(DatasetError::io(staged))? {
                    let path = entry.map_err(DatasetError::io(staged))?.path();
                    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
                    let mut content = File::open(&path).map_err(DatasetError::io(&path))?;
                    bucket.write(&format!("{name}/{file_name}"), &mut content)?;
                }
                Ok(())
            }
        }
    }

    /// Removes a file or a folder and its content, if it exists. Of a link, removes only the link.
    pub fn remove(&self, name: &str) -> Result<(), DatasetError> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name);
                let data = present(path.symlink_metadata()).map_err(DatasetError::io(&path))?;
                let Some(data) = data else { return Ok(()) };
                refuse_links(folder, name)?;
                let removed =
                    if data.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                present(removed).map(drop).map_err(DatasetError::io(path))
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => bucket.remove(name),
        }
    }

    /// Removes a folder if it is empty.
    pub fn remove_empty(&self, name: &str) {
        if let Some(folder) = self.folder() {
            // Another process may be adding a file to it right now.
            let _ = fs::remove_dir(folder.join(name));
        }
    }

    /// Locks a trace: waits until no other process changes it, and holds the lock while the file is open. An object
    /// store has no locks; processes that add the same trace there write the same files.
    pub fn lock(&self, trace: &str) -> Result<Option<File>, DatasetError> {
        let Some((path, file)) = self.lock_file(trace)? else { return Ok(None) };
        file.lock().map_err(DatasetError::io(path))?;
        Ok(Some(file))
    }

    /// Locks what no process has locked, and makes its file; `None` where one has, or in an object store.
    pub fn lock_if_free(&self, name: &str) -> Result<Option<File>, DatasetError> {
        let Some((path, file)) = self.lock_file(name)? else { return Ok(None) };
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(DatasetError::Io { path, source }),
        }
    }

    /// Waits until no process has locked something for itself alone; others may share it while the file is open. `None` where
    /// its file is not there, or cannot be locked, as on a file system that is only read.
    pub fn lock_shared(&self, name: &str) -> Option<File> {
        let file = File::open(lock_path(self.folder()?, name)).ok()?;
        file.lock_shared().ok()?;
        Some(file)
    }

    /// Opens the file that a lock is on, and makes it where it is not there; `None` in an object store.
    fn lock_file(&self, name: &str) -> Result<Option<(PathBuf, File)>, DatasetError> {
        let Some(folder) = self.folder() else { return Ok(None) };
        let path = lock_path(folder, name);
        make_folder_of(&path)?;
        let file = File::options().append(true).create(true).open(&path);
        let file = file.map_err(DatasetError::io(&path))?;
        Ok(Some((path, file)))
    }

    /// Creates a folder for work in progress, and removes what killed processes left there.
    pub fn staging(&self) -> Result<TempDir, DatasetError> {
        let Some(folder) = self.folder() else {
            return temporary_folder().map_err(DatasetError::io(STAGING));
        };
        let staging = folder.join(STAGING);
        fs::create_dir_all(&staging).map_err(DatasetError::io(&staging))?;
        working_folder_in(&staging).map_err(DatasetError::io(staging))
    }

    /// Returns files and folders of work in progress that belong to processes that have ended.
    pub fn left_behind(&self) -> Result<Vec<PathBuf>, DatasetError> {
        let paths = self.names(STAGING)?.into_iter().map(|name| format!("{STAGING}/{name}"));
        let paths = paths.map(|name| self.path(&name));
        Ok(paths.filter(|path| !is_in_use(path)).collect())
    }

    /// Whether a process ever changed a trace; the trace may be removed now.
    pub fn was_locked(&self, trace: &str) -> Result<bool, DatasetError> {
        let locks = self.names(LOCKS)?.into_iter();
        Ok(locks
            .filter_map(|name| name.strip_suffix(".lock").map(str::to_owned))
            .any(|id| is_id(&id) && id.starts_with(trace)))
    }

    /// Whether it is a folder on this machine or its network.
    pub fn is_folder(&self) -> bool {
        self.folder().is_some()
    }

    /// Returns the folder; `None` for an object store, which has no locks, links or empty folders.
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder),
            #[cfg(feature = "object-store")]
            Self::Bucket(_) => None,
        }
    }

    /// Whether a file or folder is a link to another one.
    pub fn is_link(&self, name: &str) -> bool {
        self.folder().is_some_and(|folder| folder.join(name).is_symlink())
    }

    /// Returns a local file with the content of a file; `None` if it does not exist.
    pub fn local(&self, name: &str) -> Result<Option<LocalFile>, DatasetError> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name);
                Ok(self.size(name)?.map(|_| LocalFile { path, copy: None }))
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => {
                Ok(bucket.fetch(name)?.map(|(folder, path)| LocalFile { path, copy: Some(folder) }))
            }
        }
    }
}

/// Whether a location is a URL, such as that of an object store.
fn is_url(location: &str) -> bool {
    let scheme = location.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty() && scheme.chars().all(|letter| letter.is_ascii_alphanumeric())
    })
}

/// Turns "not found" into `None`.
fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Returns the file that a lock is on.
fn lock_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(LOCKS).join(format!("{name}.lock"))
}

fn make_folder_of(path: &Path) -> Result<(), DatasetError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    fs::create_dir_all(folder).map_err(DatasetError::io(folder))
}

/// Writes a file, which appears when it is complete, and creates its folder.
fn write_file(path: &Path, content: &mut dyn Read) -> Result<(), DatasetError> {
    make_folder_of(path)?;
    let mut write = || {
        let mut file = OutputFile::beside(path)?;
        io::copy(content, &mut file)?;
        file.persist(path)
    };
    write().map_err(DatasetError::io(path))
}

/// Rejects a name if one of its folders is a link: the files behind it may not be the dataset's.
fn refuse_links(root: &Path, name: &str) -> Result<(), DatasetError> {
    let mut folder = root.to_path_buf();
    let (folders, _) = name.rsplit_once('/').unwrap_or_default();
    for part in folders.split('/').filter(|part| !part.is_empty()) {
        folder.push(part);
        if folder.is_symlink() {
            return Err(DatasetError::Link(folder));
        }
    }
    Ok(())
}

/// Opens a file for reading; rejects pipes, devices and folders.
pub fn open(path: &Path) -> io::Result<File> {
    let file = open_file(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(file)
}

/// Reads a small file.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.take(MAX_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_BYTES {
        let reason = format!("it has more than {}", HumanBytes(MAX_BYTES));
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_no_path() {
        for (location, expected) in [
            ("s3://bucket/fleet", true),
            ("fleet", false),
            (r"C:\fleet", false),
            ("://x", false),
            ("a b://x", false),
        ] {
            assert_eq!(is_url(location), expected, "{location}");
        }
    }

    #[cfg(not(feature = "object-store"))]
    #[test]
    fn a_url_needs_the_feature() {
        let error = Store::at(Path::new("s3://bucket/fleet")).unwrap_err().to_string();
        assert!(error.contains("--features object-store"), "{error}");
    }
}
