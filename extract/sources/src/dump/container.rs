//! The container of a minidump: its header, the directory of its streams, and texts. Nothing is read but what is asked for,
//! and nothing that the file says about places and lengths is believed.

use std::collections::HashMap;

use handlescope_extract::etl::{Diagnostics, WarningKind};
use minidump_common::format::{
    MINIDUMP_DIRECTORY, MINIDUMP_HEADER, MINIDUMP_SIGNATURE, MINIDUMP_STREAM_TYPE, MINIDUMP_VERSION,
};
use scroll::ctx::TryFromCtx;
use scroll::{Endian, LE, Pread};

/// Streams of a directory that are looked at. Dumps of Windows have some twenty.
const MAX_STREAMS: usize = 1 << 12;

/// Bytes of the longest text: those of a UNICODE_STRING, whose length is a number of 16 bits.
const MAX_TEXT: usize = 0xFFFE;

/// Texts of a dump, of which only so many bytes are read in all: texts that overlap can be longer than the file, each of
/// them as long as a text may be.
pub struct TextReader<'d> {
    dump: &'d Minidump<'d>,
    /// Bytes that further texts may have.
    rest: usize,
}

impl<'d> TextReader<'d> {
    pub fn new(dump: &'d Minidump<'d>, bytes: usize) -> Self {
        Self { dump, rest: bytes }
    }

    /// A MINIDUMP_STRING; `None` where there is none, or no room for it.
    pub fn text(&mut self, rva: u32) -> Option<String> {
        if self.rest == 0 {
            return None;
        }
        let text = self.dump.text(rva)?;
        let rest = self.rest.checked_sub(text.len());
        self.rest = rest.unwrap_or_default();
        rest.map(|_| text)
    }
}

/// A minidump whose directory is known.
pub struct Minidump<'d> {
    bytes: &'d [u8],
    pub header: MINIDUMP_HEADER,
    streams: HashMap<u32, MINIDUMP_DIRECTORY>,
}

/// A reason why a file is not read as a minidump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    pub reason: &'static str,
    /// Bytes from the start of the file.
    pub offset: u64,
}

/// The bytes of a stream, as far as the file has them.
#[derive(Debug, Clone, Copy)]
pub struct DumpStream<'d> {
    pub bytes: &'d [u8],
    /// Bytes from the start of the file.
    pub offset: u64,
}

impl<'d> Minidump<'d> {
    /// Reads header and directory; a cut directory is counted.
    pub fn open(bytes: &'d [u8], findings: &mut Diagnostics) -> Result<Self, Refusal> {
        let header: MINIDUMP_HEADER = bytes
            .pread_with(0, LE)
            .map_err(|_| Refusal { reason: "no complete header", offset: 0 })?;
        if header.signature != MINIDUMP_SIGNATURE {
            return Err(Refusal { reason: "no signature MDMP", offset: 0 });
        }
        if header.version & 0xFFFF != MINIDUMP_VERSION {
            return Err(Refusal { reason: "unknown version of the format", offset: 4 });
        }
        let directory = header.stream_directory_rva as usize;
        let count = header.stream_count as usize;
        let mut container = Self { bytes, header, streams: HashMap::new() };
        for index in 0..count.min(MAX_STREAMS) {
            let place = directory.saturating_add(index * size_of::<MINIDUMP_DIRECTORY>());
            let Some(entry) = container.read::<MINIDUMP_DIRECTORY>(place) else {
                findings.count(WarningKind::CutStream, Some(place as u64));
                break;
            };
            container.streams.entry(entry.stream_type).or_insert(entry);
        }
        if count > MAX_STREAMS {
            findings.count(WarningKind::CutStream, Some(directory as u64));
        }
        Ok(container)
    }

    pub fn has(&self, kind: MINIDUMP_STREAM_TYPE) -> bool {
        self.streams.contains_key(&(kind as u32))
    }

    /// A stream; where the file ends in it, that is counted.
    pub fn stream(
        &self,
        kind: MINIDUMP_STREAM_TYPE,
        findings: &mut Diagnostics,
    ) -> Option<DumpStream<'d>> {
        let location = self.streams.get(&(kind as u32))?.location;
        let (start, length) = (location.rva as usize, location.data_size as usize);
        let rest = self.bytes.get(start..).unwrap_or_default();
        if rest.len() < length {
            findings.count(WarningKind::CutStream, Some(start as u64));
        }
        let bytes = rest.get(..length).unwrap_or(rest);
        Some(DumpStream { bytes, offset: start as u64 })
    }

    /// A structure at a place of the file.
    pub fn read<T>(&self, place: usize) -> Option<T>
    where
        T: TryFromCtx<'d, Endian, [u8], Error = scroll::Error>,
    {
        read(self.bytes, place)
    }

    /// Some bytes at a place of the file.
    pub fn slice(&self, place: u64, length: u64) -> Option<&'d [u8]> {
        let start = usize::try_from(place).ok()?;
        self.bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    }

    /// A MINIDUMP_STRING: the number of its bytes, then UTF-16.
    fn text(&self, rva: u32) -> Option<String> {
        let length = self.read::<u32>(rva as usize)? as usize;
        if length > MAX_TEXT {
            return None;
        }
        Some(utf16(self.slice(u64::from(rva) + 4, length as u64)?))
    }
}

impl<'d> DumpStream<'d> {
    /// A structure at a place of the stream.
    pub fn read<T>(&self, place: usize) -> Option<T>
    where
        T: TryFromCtx<'d, Endian, [u8], Error = scroll::Error>,
    {
        read(self.bytes, place)
    }

    /// Start and number of the entries of a list that begins with their number. Some writers align entries to 8 bytes.
    pub fn list(&self, size: usize) -> Option<(usize, u32)> {
        let count: u32 = self.read(0)?;
        let is_aligned = self.bytes.len() == 8 + count as usize * size;
        Some((if is_aligned { 8 } else { 4 }, count))
    }

    /// The entries of equal size from `start` on, with their places in the file: as many as `count`, and as the stream has.
    /// Missing ones are counted.
    pub fn entries(
        self,
        start: usize,
        size: usize,
        count: u32,
        findings: &mut Diagnostics,
    ) -> impl Iterator<Item = DumpStream<'d>> + use<'d> {
        let rest = self.bytes.get(start..).unwrap_or_default();
        let entries = rest.chunks_exact(size.max(1));
        let present = entries.len().min(count as usize);
        let missing = u64::from(count) - present as u64;
        let end = self.offset + (start + present * size) as u64;
        findings.add(WarningKind::MissingEntries, missing, Some(end));
        entries.take(present).enumerate().map(move |(index, bytes)| DumpStream {
            bytes,
            offset: self.offset + (start + index * size) as u64,
        })
    }
}

fn read<'d, T>(bytes: &'d [u8], place: usize) -> Option<T>
where
    T: TryFromCtx<'d, Endian, [u8], Error = scroll::Error>,
{
    bytes.pread_with(place, LE).ok()
}

/// Text in UTF-16 up to its end, or to a NUL.
pub fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|unit| u16::from_le_bytes(*unit))
        .take_while(|unit| *unit != 0)
        .collect();
    String::from_utf16_lossy(&units)
}
