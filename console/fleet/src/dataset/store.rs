//! Storage of a dataset: a folder or, with the feature `object-store`, a bucket of an object store.
//!
//! Names are those within the dataset, with slashes. A file appears when it is whole, in both.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use handlescope_model::output::{is_in_use, working_folder_in};
use handlescope_model::{OutputFile, open_file};
use indicatif::HumanBytes;
use tempfile::TempDir;

#[cfg(feature = "object-store")]
use super::bucket::Bucket;
use super::error::DatasetError;
use super::is_id;

const STAGING: &str = "_staging";
const LOCKS: &str = "_locks";

/// Bytes of a file that is read at once, at most: a manifest has one or two thousand.
const MAX_BYTES: u64 = 16 << 20;

/// Attempts at moving a folder to its place while other processes remove empty ones.
const ATTEMPTS: usize = 16;

/// Storage of a dataset.
#[derive(Debug, Clone)]
pub enum Store {
    Folder(PathBuf),
    #[cfg(feature = "object-store")]
    Bucket(Bucket),
}

/// A file on this machine; a copy in a temporary folder, where it was fetched.
#[derive(Debug)]
pub struct LocalFile {
    pub path: PathBuf,
    /// Folder of the file, if it is a copy, which goes with it.
    pub copy: Option<TempDir>,
}

impl Store {
    /// Storage at a path, or at a URL like `s3://bucket/fleet`.
    pub fn at(location: &Path) -> Result<Self, DatasetError> {
        match location.to_str().filter(|text| is_url(text)) {
            None => Ok(Self::Folder(location.to_path_buf())),
            #[cfg(feature = "object-store")]
            Some(url) => Bucket::at(url).map(Self::Bucket),
            #[cfg(not(feature = "object-store"))]
            Some(url) => Err(DatasetError::NoObjectStores(url.to_owned())),
        }
    }

    /// The name of the storage as people know it.
    pub fn root(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder,
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => bucket.root(),
        }
    }

    /// Path or URL of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.join(name),
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => bucket.url(name).into(),
        }
    }

    /// Content of a file; `None` where it is not there.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, DatasetError> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name);
                present(read_file(&path)).map_err(DatasetError::io(path))
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => bucket.read(name),
        }
    }

    /// Bytes of a file; `None` where it is not there. A pipe, device or folder in its place is an error.
    pub fn size(&self, name: &str) -> Result<Option<u64>, DatasetError> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name);
                let metadata = present(fs::metadata(&path)).map_err(DatasetError::io(&path))?;
                match metadata {
                    Some(data) if data.is_file() => Ok(Some(data.len())),
                    Some(_) => open(&path).map(|_| None).map_err(DatasetError::io(path)),
                    None => Ok(None),
                }
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(bucket) => bucket.size(name),
        }
    }

    /// Names of files and folders in a folder, in order; none where it is not there.
    pub fn names(&self, folder: &str) -> Result<Vec<String>, DatasetError> {
        match self {
            Self::Folder(root) => {
                let path = root.join(folder);
                let entries = present(fs::read_dir(&path)).map_err(DatasetError::io(&path))?;
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

    /// Writes a file, which appears when it is whole.
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

    /// Moves a folder of this machine to its place, in a folder also a file. There all files appear at once.
    pub fn place(&self, staged: &Path, name: &str) -> Result<(), DatasetError> {
        match self {
            Self::Folder(folder) => {
                refuse_links(folder, name)?;
                let target = folder.join(name);
                for _ in 0..ATTEMPTS {
                    make_folder_of(&target)?;
                    match fs::rename(staged, &target) {
                        // Another process has just removed the folder of the day, which was empty.
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

    /// Removes a file or a folder with all in it, if it is there. Of a link only the link goes.
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

    /// Removes a folder if nothing is in it.
    pub fn remove_empty(&self, name: &str) {
        match self {
            // Another process may add a file to it now.
            Self::Folder(folder) => drop(fs::remove_dir(folder.join(name))),
            // Buckets have no folders.
            #[cfg(feature = "object-store")]
            Self::Bucket(_) => {}
        }
    }

    /// Waits until no other process changes a trace; it stays so while the file is open. An object store has no locks:
    /// there processes that add one trace write the same files.
    pub fn lock(&self, trace: &str) -> Result<Option<File>, DatasetError> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(LOCKS).join(format!("{trace}.lock"));
                make_folder_of(&path)?;
                let file = File::options().append(true).create(true).open(&path);
                let file = file.map_err(DatasetError::io(&path))?;
                file.lock().map_err(DatasetError::io(&path))?;
                Ok(Some(file))
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(_) => Ok(None),
        }
    }

    /// Locks what no process has locked, and makes its file; `None` where one has, or in an object store.
    pub fn lock_if_free(&self, name: &str) -> Result<Option<File>, DatasetError> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(LOCKS).join(format!("{name}.lock"));
                make_folder_of(&path)?;
                let file = File::options().append(true).create(true).open(&path);
                let file = file.map_err(DatasetError::io(&path))?;
                match file.try_lock() {
                    Ok(()) => Ok(Some(file)),
                    Err(TryLockError::WouldBlock) => Ok(None),
                    Err(TryLockError::Error(source)) => Err(DatasetError::Io { path, source }),
                }
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(_) => Ok(None),
        }
    }

    /// Waits until no process has locked something for itself alone; others may share it while the file is open. `None` where
    /// its file is not there, or cannot be locked, as on a file system that is only read.
    pub fn lock_shared(&self, name: &str) -> Option<File> {
        match self {
            Self::Folder(folder) => {
                let file = File::open(folder.join(LOCKS).join(format!("{name}.lock"))).ok()?;
                file.lock_shared().ok()?;
                Some(file)
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(_) => None,
        }
    }

    /// A new folder for work in progress; what processes left there that were killed goes.
    pub fn staging(&self) -> Result<TempDir, DatasetError> {
        match self {
            Self::Folder(folder) => {
                let staging = folder.join(STAGING);
                fs::create_dir_all(&staging).map_err(DatasetError::io(&staging))?;
                working_folder_in(&staging).map_err(DatasetError::io(staging))
            }
            #[cfg(feature = "object-store")]
            Self::Bucket(_) => {
                handlescope_model::output::temporary_folder().map_err(DatasetError::io(STAGING))
            }
        }
    }

    /// Files and folders of work in progress whose process is gone.
    pub fn left_behind(&self) -> Result<Vec<PathBuf>, DatasetError> {
        let paths = self.names(STAGING)?.into_iter().map(|name| format!("{STAGING}/{name}"));
        let paths = paths.map(|name| self.path(&name));
        Ok(paths.filter(|path| !is_in_use(path)).collect())
    }

    /// Whether a process once changed a trace, which may be removed now.
    pub fn was_locked(&self, trace: &str) -> Result<bool, DatasetError> {
        let locks = self.names(LOCKS)?.into_iter();
        Ok(locks
            .filter_map(|name| name.strip_suffix(".lock").map(str::to_owned))
            .any(|id| is_id(&id) && id.starts_with(trace)))
    }

    /// Whether it is a folder of this machine or its network.
    pub fn is_folder(&self) -> bool {
        matches!(self, Self::Folder(_))
    }

    /// Whether a file or folder is a link to another one.
    pub fn is_link(&self, name: &str) -> bool {
        match self {
            Self::Folder(folder) => folder.join(name).is_symlink(),
            #[cfg(feature = "object-store")]
            Self::Bucket(_) => false,
        }
    }

    /// A file on this machine with the content of a file; `None` where that is not there.
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

/// Whether a location is a URL, as of an object store.
fn is_url(location: &str) -> bool {
    let scheme = location.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty() && scheme.chars().all(|letter| letter.is_ascii_alphanumeric())
    })
}

/// A result; `None` of what is not there.
fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

fn make_folder_of(path: &Path) -> Result<(), DatasetError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    fs::create_dir_all(folder).map_err(DatasetError::io(folder))
}

/// Writes a file, which appears when it is whole, and makes its folder.
fn write_file(path: &Path, content: &mut dyn Read) -> Result<(), DatasetError> {
    make_folder_of(path)?;
    let mut write = || {
        let mut file = OutputFile::beside(path)?;
        io::copy(content, &mut file)?;
        file.persist(path)
    };
    write().map_err(DatasetError::io(path))
}

/// Refuses a name whose folders include a link: its files may not be those of the dataset.
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

/// Opens a file to read it; a pipe, device or folder is refused.
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
