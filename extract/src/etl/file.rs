//! The file as bytes at offsets.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An opened `.etl` file that is read in pieces, so that its size does not matter.
#[derive(Debug)]
pub struct EtlFile {
    path: PathBuf,
    file: File,
    len: u64,
}

impl EtlFile {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::new(path, File::open(path)?)
    }

    /// Takes an opened file; `path` is what it is called in messages.
    ///
    /// # Errors
    /// When its size cannot be read.
    pub fn new(path: &Path, file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { path: path.to_path_buf(), file, len })
    }

    /// The path it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads up to `size` bytes at an offset into `into`, which is emptied first.
    ///
    /// Fewer bytes mean that the file ends.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_at(&mut self, offset: u64, size: usize, into: &mut Vec<u8>) -> io::Result<()> {
        into.clear();
        self.file.seek(SeekFrom::Start(offset))?;
        (&mut self.file).take(size as u64).read_to_end(into)?;
        Ok(())
    }
}
