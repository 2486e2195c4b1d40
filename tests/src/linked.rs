//! Identity of an image that lld-link linked.

use std::fs;
use std::io;
use std::path::Path;

use crate::bytes::Guid;

/// Properties of an image that traces have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// GUID of its PDB.
    pub guid: Guid,
    /// Age of its PDB.
    pub age: u32,
    /// Mapped size, in bytes.
    pub size: u32,
    /// Time stamp of the file.
    pub timestamp: u32,
}

impl Image {
    /// Reads an image with a PDB.
    ///
    /// # Errors
    /// When it cannot be read, or is not such an image.
    pub fn read(path: &Path) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        Self::parse(&bytes).ok_or_else(|| io::Error::other("no image with a PDB"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let number =
            |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.first_chunk().copied()?));
        let at = bytes.windows(4).position(|bytes| bytes == b"RSDS")?;
        let middle = number(at + 8)?;
        let first = u128::from(number(at + 4)?) << 96 | u128::from(middle.rotate_left(16)) << 64;
        let rest = u64::from_be_bytes(*bytes.get(at + 12..)?.first_chunk()?);
        let header = number(0x3c)? as usize;
        Some(Self {
            guid: Guid::new(first | u128::from(rest)),
            age: number(at + 20)?,
            size: number(header + 80)?,
            timestamp: number(header + 8)?,
        })
    }
}
