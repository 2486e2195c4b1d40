//! A `.zip` archive, opened without believing what its directory claims.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use handlescope_model::{ContainerError, refused_name};
use zip::ZipArchive;

/// Bytes that may be read to know what an archive holds. A member takes about 100, and several times
/// as much in memory.
const DIRECTORY_BYTES: u64 = 16 << 20;

/// An open archive: its members are read one after the other.
pub(crate) struct Zip {
    /// Its members.
    pub(crate) archive: ZipArchive<BufReader<Budget<File>>>,
    /// Their names, in the order of the directory.
    pub(crate) names: Vec<String>,
}

impl Zip {
    /// Reads the directory.
    ///
    /// # Errors
    /// When it cannot be read or is larger than 16 MiB, two members have one name, or a name is none for a file.
    pub(crate) fn open(path: &Path, file: File) -> Result<Self, ContainerError> {
        let unreadable =
            |reason: String| ContainerError::Unreadable { path: path.to_path_buf(), reason };
        let left = Rc::new(Cell::new(Some(DIRECTORY_BYTES)));
        let source = BufReader::new(Budget { inner: file, left: Rc::clone(&left) });
        let archive = ZipArchive::new(source).map_err(|error| unreadable(error.to_string()))?;
        left.set(None);
        if archive.has_duplicate_names() {
            return Err(unreadable("two members have the same name".to_owned()));
        }
        let names: Result<Vec<_>, _> = archive.file_names().map(|n| n.map(String::from)).collect();
        let names = names.map_err(|error| unreadable(error.to_string()))?;
        if let Some((member, reason)) = refused_name(names.iter().map(String::as_str)) {
            let (path, member) = (path.to_path_buf(), member.to_owned());
            return Err(ContainerError::Name { path, member, reason });
        }
        Ok(Self { archive, names })
    }
}

/// A reader that fails when its budget is used up, if it has one.
pub(crate) struct Budget<R> {
    inner: R,
    left: Rc<Cell<Option<u64>>>,
}

impl<R: Read> Read for Budget<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(target)?;
        if let Some(left) = self.left.get() {
            let left = left.checked_sub(count as u64).ok_or_else(|| {
                let reason = format!("its directory has more than {DIRECTORY_BYTES} bytes");
                io::Error::new(io::ErrorKind::InvalidData, reason)
            })?;
            self.left.set(Some(left));
        }
        Ok(count)
    }
}

impl<R: Seek> Seek for Budget<R> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.inner.seek(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_and_can_be_lifted() {
        let left = Rc::new(Cell::new(Some(10)));
        let mut reader = Budget { inner: io::repeat(1), left: Rc::clone(&left) };
        let mut buffer = [0; 6];
        assert!(reader.read(&mut buffer).is_ok());
        assert!(reader.read(&mut buffer).is_err());
        left.set(None);
        assert!(reader.read(&mut buffer).is_ok());
    }
}
