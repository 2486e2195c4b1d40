//! The file as bytes at offsets.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// An opened `.etl` file that is read in pieces, so that its size does not matter.
#[derive(Debug)]
pub struct EtlFile {
    file: File,
    len: u64,
}

impl EtlFile {
    /// Takes an opened file.
    ///
    /// # Errors
    /// When its size cannot be read.
    pub fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, len })
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
