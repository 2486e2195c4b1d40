//! The container: buffers, decompression, event framing, clocks and time order.
//!
//! Payloads are not interpreted here. The bytes go through [`EtlFile`] → [`BufferIndex`] → decoded buffers →
//! [`EventReader`] → events in time order.

mod buffer;
mod clock;
mod decode;
mod decoded;
mod diagnostics;
mod event;
mod gather;
mod hand_out;
mod index;
mod losses;
mod lz77;
mod merge;
mod reader;
mod repeated;
mod stack_parts;

use std::fs::File;
use std::io;

pub use self::buffer::{
    BUFFER_HEADER_SIZE, BufferHeader, BufferTimes, FLAG_COMPRESSED, IndexedBuffer, TimeBounds,
    buffer_offset,
};
pub use self::clock::{Clock, ClockKind};
pub use self::decode::{Selector, load};
pub use self::diagnostics::{
    Diagnostics, WarningKind, finding_nouns, is_loss, is_loss_of_provider,
};
pub use self::event::{Event, EventFrame, EventId, Guid, frame, is_end};
pub use self::gather::{Batch, Gatherer, Sink, Spare};
pub use self::index::{BufferIndex, MODE_COMPRESSED, SessionLayout, SkippedRange};
pub use self::losses::{EventLoss, LossSpan, ReadBuffer, SessionClaims, losses};
pub use self::lz77::decompress;
pub use self::reader::{EventReader, MAX_DECODERS};
pub use self::repeated::MAX_REPEATED;
pub use self::stack_parts::{StackPart, StackParts};
use handlescope_model::Cancelled;

/// Open `.etl` file. It is read in pieces, so its size does not matter.
#[derive(Debug)]
pub struct EtlFile {
    file: File,
    len: u64,
}

impl EtlFile {
    /// Wraps an open file.
    ///
    /// # Errors
    /// Fails if the file's size cannot be read.
    pub fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, len })
    }

    /// Returns the size in bytes at the time of opening.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads up to `size` bytes at an offset into `into`, replacing its contents.
    ///
    /// Fewer bytes mean the end of the file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or has become shorter.
    pub fn read_at(&self, offset: u64, size: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let expected = (size as u64).min(self.len.saturating_sub(offset)) as usize;
        // `read_to_end` would read a buffer in four calls. New memory is already zero, so it need not be filled.
        if into.capacity() < expected {
            *into = vec![0; expected];
        }
        into.resize(expected, 0);
        read_exact_at(&self.file, into, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                io::Error::new(error.kind(), "it became shorter while it was read")
            }
            _ => error,
        })
    }

    /// Returns the offset of the next data at or after `offset`; everything before it is a hole in the file, which
    /// reads as zeros. Returns the file size if no data follows, and `offset` if the system cannot find holes.
    pub fn next_data(&self, offset: u64) -> u64 {
        next_data(&self.file, offset, self.len).clamp(offset, self.len.max(offset))
    }
}

/// Why no buffers were found.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

// Concurrent reads share one file cursor, so none may rely on it.
#[cfg(unix)]
fn read_exact_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, into, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut into: &mut [u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !into.is_empty() {
        match file.seek_read(into, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(size) => {
                into = into.get_mut(size..).unwrap_or_default();
                offset += size as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn next_data(file: &File, offset: u64, len: u64) -> u64 {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;
    match seek(file, SeekFrom::Data(offset)) {
        Ok(data) => data,
        // lseek(2): offset is within a hole at the end of the file.
        Err(Errno::NXIO) => len,
        Err(_) => offset,
    }
}

#[cfg(not(target_os = "linux"))]
fn next_data(_: &File, offset: u64, _: u64) -> u64 {
    offset
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_became_shorter_is_an_error_and_its_end_is_none() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        temp.as_file().write_all(&[7; 100]).unwrap();
        let file = EtlFile::new(temp.reopen().unwrap()).unwrap();
        let mut bytes = Vec::new();
        file.read_at(90, 20, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 10]);
        file.read_at(200, 20, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 0]);
        temp.as_file().set_len(95).unwrap();
        let error = file.read_at(90, 20, &mut bytes).unwrap_err();
        assert!(error.to_string().contains("became shorter"), "{error}");
    }

    #[test]
    fn a_hole_is_passed_over_and_data_is_not() {
        let mut temp = tempfile::tempfile().unwrap();
        temp.write_all(&[7; 100]).unwrap();
        temp.set_len(100 << 20).unwrap();
        let file = EtlFile::new(temp).unwrap();
        assert_eq!(file.next_data(50), 50);
        if cfg!(target_os = "linux") {
            assert_eq!(file.next_data(1 << 20), 100 << 20);
        }
        assert_eq!(file.next_data(200 << 20), 200 << 20);
    }
}
