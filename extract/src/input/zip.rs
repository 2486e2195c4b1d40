//! A trace in a `.zip` archive.

use std::cell::Cell;
use std::env;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use handlescope_model::{ContainerError, ContainerLimits, refused_name};
use zip::ZipArchive;

use super::choose::choose;
use crate::error::ExtractError;
use crate::members::{Watch, copy, temporary};

/// Bytes that may be read to know what an archive holds. A member takes about 100, and several times
/// as much in memory.
const DIRECTORY_BYTES: u64 = 16 << 20;

/// Unpacks the trace into an unnamed temporary file; returns its name, too.
pub(super) fn unpack(
    path: &Path,
    file: File,
    limits: &ContainerLimits,
    watch: Watch<'_>,
) -> Result<(File, String), ExtractError> {
    let unreadable =
        |reason: String| ContainerError::Unreadable { path: path.to_path_buf(), reason };
    let packed = file.metadata().map_err(|error| unreadable(error.to_string()))?.len();
    let left = Rc::new(Cell::new(Some(DIRECTORY_BYTES)));
    let source = BufReader::new(Budget { inner: file, left: Rc::clone(&left) });
    let mut archive = ZipArchive::new(source).map_err(|error| unreadable(error.to_string()))?;
    left.set(None);
    if archive.has_duplicate_names() {
        return Err(unreadable("two members have the same name".to_owned()).into());
    }
    let names: Result<Vec<_>, _> = archive.file_names().map(|n| n.map(String::from)).collect();
    let names = names.map_err(|error| unreadable(error.to_string()))?;
    if let Some((member, reason)) = refused_name(names.iter().map(String::as_str)) {
        let (path, member) = (path.to_path_buf(), member.to_owned());
        return Err(ContainerError::Name { path, member, reason }.into());
    }
    let name = choose(path, &names)?;
    let damaged = |reason: String| ContainerError::Member {
        path: path.to_path_buf(),
        member: name.clone(),
        reason,
    };
    let mut member = archive.by_name(&name).map_err(|error| damaged(error.to_string()))?;
    let size = member.size();
    limits.check_size(path, &name, size)?;
    limits.check_content(path, packed, size)?;
    let mut target = temporary(path, &env::temp_dir())?;
    copy(&mut member, &mut target, size, watch).map_err(|error| damaged(error.to_string()))?;
    drop(member);
    Ok((target, name))
}

/// A reader that fails when its budget is used up, if it has one.
struct Budget<R> {
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
