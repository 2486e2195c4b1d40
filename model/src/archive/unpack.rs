//! Streams members of an archive into files, and opens a `.zip` archive without believing what its directory claims.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::rc::Rc;

use sevenz_rust::{BlockDecoder, Password};
use zip::ZipArchive;

use super::container::{Container, ContainerError, ContainerLimits, refused_name, unpack_reason};
use crate::noting::Reason;
use crate::untrusted::Untrusted;

/// Bytes unpacked at a time.
const BUFFER: usize = 256 << 10;

/// Receives the number of bytes unpacked since the last call; an error stops the work.
pub type UnpackWatch<'a> = &'a dyn Fn(u64) -> io::Result<()>;

/// Members of a 7z archive that the limits allow to be unpacked.
pub struct SevenZipMembers<'a> {
    path: &'a Path,
    container: Container,
    indexes: Vec<usize>,
    blocks: Vec<usize>,
}

impl<'a> SevenZipMembers<'a> {
    /// Selects the members at these indexes of the table of contents, if the limits allow unpacking them.
    pub fn choose(
        path: &'a Path,
        container: Container,
        indexes: Vec<usize>,
        limits: &ContainerLimits,
    ) -> Result<Self, ContainerError> {
        let archive = &container.archive;
        for entry in indexes.iter().filter_map(|index| archive.files.get(*index)) {
            limits.check_size(path, &entry.name, entry.size)?;
        }
        let block_of =
            |index: usize| archive.stream_map.file_block_index.get(index).copied().flatten();
        let mut blocks: Vec<usize> = indexes.iter().filter_map(|index| block_of(*index)).collect();
        blocks.sort_unstable();
        blocks.dedup();
        // Unpacking a member also unpacks the members before it in its block.
        let content = archive
            .files
            .iter()
            .enumerate()
            .filter(|(index, _)| block_of(*index).is_some_and(|block| blocks.contains(&block)))
            .fold(0u64, |sum, (_, entry)| sum.saturating_add(entry.size));
        limits.check_content(path, container.packed, content)?;
        let blocks_read = blocks.iter().filter_map(|block| archive.blocks.get(*block));
        limits.check_decoders(path, blocks_read)?;
        Ok(Self { path, container, indexes, blocks })
    }

    /// Returns the names and sizes of the members.
    pub fn entries(&self) -> impl Iterator<Item = (&str, u64)> {
        let entry = |index: &usize| self.container.archive.files.get(*index);
        self.indexes.iter().filter_map(entry).map(|entry| (entry.name.as_str(), entry.size))
    }

    /// Unpacks the members into `files`, one file per member in the order of [`Self::entries`].
    pub fn unpack(mut self, files: &[File], watch: UnpackWatch<'_>) -> Result<(), ContainerError> {
        let Container { archive, source, .. } = &mut self.container;
        let names = self.indexes.iter().map(|index| archive.files.get(*index));
        let mut left: Vec<(&str, &File)> =
            names.flatten().map(|entry| entry.name.as_str()).zip(files).collect();
        let password = Password::empty();
        for block in self.blocks {
            let mut current = String::new();
            let decoder = BlockDecoder::new(1, block, archive, &password, source);
            let unpacked = decoder.for_each_entries(&mut |entry, reader| {
                current.clone_from(&entry.name);
                match left.iter().position(|(name, _)| *name == entry.name) {
                    None => copy(reader, &mut io::sink(), entry.size, watch)?,
                    Some(position) => {
                        let (_, mut file) = left.swap_remove(position);
                        copy(reader, &mut file, entry.size, watch)?;
                    }
                }
                Ok(!left.is_empty())
            });
            unpacked.map_err(|error| damaged(self.path, &current, &error))?;
        }
        // Members still left have no content, or are not where the archive says.
        let sizes = archive.files.iter().filter(|entry| entry.size > 0);
        match sizes.map(|entry| &entry.name).find(|name| left.iter().any(|(l, _)| l == name)) {
            Some(member) => Err(damaged(self.path, member, &sevenz_rust::Error::FileNotFound)),
            None => Ok(()),
        }
    }
}

/// Creates an unnamed file in `folder` for content unpacked from the archive at `path`.
pub fn temporary(path: &Path, folder: &Path) -> Result<File, ContainerError> {
    tempfile::tempfile_in(folder).map_err(|error| {
        let reason = format!("no temporary file in {}: {}", Untrusted(folder), Reason(&error));
        ContainerError::Unreadable { path: path.to_path_buf(), reason }
    })
}

/// Returns the error for a member that cannot be unpacked, or for the archive if no member is known yet.
fn damaged(path: &Path, member: &str, error: &sevenz_rust::Error) -> ContainerError {
    let (path, member) = (path.to_path_buf(), member.to_owned());
    let reason = unpack_reason(error);
    if member.is_empty() {
        return ContainerError::Unreadable { path, reason };
    }
    ContainerError::Member { path, member, reason }
}

/// Unpacks a member of this size to its end, where its checksum is compared.
pub fn copy(
    reader: &mut dyn Read,
    target: &mut dyn Write,
    size: u64,
    watch: UnpackWatch<'_>,
) -> io::Result<()> {
    let copied = copy_at_most(size, reader, target, watch).map_err(|error| match error {
        CopyError::Read(error) | CopyError::Stopped(error) => error,
        CopyError::Write(error) => {
            io::Error::new(error.kind(), format!("no temporary file could take it: {error}"))
        }
        CopyError::TooLong => {
            io::Error::other(format!("it has more than the {size} bytes it claims"))
        }
    })?;
    if copied < size {
        return Err(io::Error::other(format!("{copied} of {size} bytes, then it ends")));
    }
    Ok(())
}

/// Reasons why bytes were not copied.
pub enum CopyError {
    Read(io::Error),
    Write(io::Error),
    /// There are more bytes than the limit.
    TooLong,
    /// The [`UnpackWatch`] stopped the copy.
    Stopped(io::Error),
}

/// Copies all bytes, up to the limit, and returns their number.
pub fn copy_at_most(
    most: u64,
    reader: &mut dyn Read,
    target: &mut dyn Write,
    watch: UnpackWatch<'_>,
) -> Result<u64, CopyError> {
    let mut buffer = vec![0; BUFFER];
    let mut copied = 0;
    loop {
        watch(0).map_err(CopyError::Stopped)?;
        let count = match reader.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result.map_err(CopyError::Read)?,
        };
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            return Ok(copied);
        };
        copied += count as u64;
        if copied > most {
            return Err(CopyError::TooLong);
        }
        target.write_all(bytes).map_err(CopyError::Write)?;
        watch(count as u64).map_err(CopyError::Stopped)?;
    }
}

/// Maximum bytes read to learn what an archive holds. A member takes about 100 bytes of the directory, and several
/// times as much in memory.
const DIRECTORY_BYTES: u64 = 16 << 20;

/// An open archive whose members are read in sequence.
pub struct Zip {
    /// The archive itself.
    pub archive: ZipArchive<BufReader<Budget<File>>>,
    /// Names of the members, in the order of the directory.
    pub names: Vec<String>,
}

impl Zip {
    /// Reads the directory.
    ///
    /// # Errors
    /// If the directory cannot be read or is larger than 16 MiB, two members have the same name, or a name is not valid
    /// for a file.
    pub fn open(path: &Path, file: File) -> Result<Self, ContainerError> {
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

/// A reader that fails once its budget is used up, if it has one.
pub struct Budget<R> {
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
