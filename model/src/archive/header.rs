//! Checks the size of a 7z file's table of contents before it is read.
//!
//! The table is usually packed, and its reader allocates an entry for every member that it claims. A few kilobytes can
//! claim hundreds of millions of members. So both its sizes are checked before it is unpacked and read, which takes
//! parsing only the two headers of the format.

use std::io::{self, Read, Seek, SeekFrom};

use crate::noting::Reason;

/// Size of the header at the start of a 7z file, bytes.
const START_HEADER: usize = 32;
const SIGNATURE: &[u8] = b"7z\xBC\xAF\x27\x1C";

/// Maximum bytes of a table of contents, packed or not. A member takes about 100 bytes in the table and 150 in memory.
const TABLE_BYTES: u64 = 2 << 20;

/// Maximum number of streams of a packed table of contents; usually there is one.
const MAX_STREAMS: u64 = 32;

mod id {
    pub const END: u8 = 0x00;
    pub const PACK_INFO: u8 = 0x06;
    pub const UNPACK_INFO: u8 = 0x07;
    pub const SIZE: u8 = 0x09;
    pub const CHECKSUMS: u8 = 0x0A;
    pub const FOLDER: u8 = 0x0B;
    pub const UNPACKED_SIZES: u8 = 0x0C;
    pub const PACKED_TABLE: u8 = 0x17;
}

/// Reasons for not reading a table of contents.
#[derive(Debug, thiserror::Error)]
pub enum HeaderProblem {
    #[error("{}", Reason(.0))]
    Io(#[from] io::Error),
    #[error("it is not a 7z archive")]
    NoArchive,
    #[error("it is empty or incomplete")]
    Unfinished,
    #[error("its table of contents has {0} bytes, more than {TABLE_BYTES}")]
    TooLarge(u64),
    #[error("its table of contents is packed in a way this program cannot read")]
    Unknown,
    #[error("unpacking it needs {0} bytes of memory")]
    Memory(u64),
}

/// Refuses a table of contents that costs too much or cannot be judged.
///
/// Other damage is left to the table's reader.
pub fn check(source: &mut (impl Read + Seek), decoder_bytes: u64) -> Result<(), HeaderProblem> {
    source.seek(SeekFrom::Start(0))?;
    let mut start = Vec::new();
    source.by_ref().take(START_HEADER as u64).read_to_end(&mut start)?;
    if !start.starts_with(SIGNATURE) {
        return Err(HeaderProblem::NoArchive);
    }
    let (Some(offset), Some(size)) = (u64_at(&start, 12), u64_at(&start, 20)) else {
        return Ok(());
    };
    if (offset, size) == (0, 0) {
        // Some readers would now look for a table of contents at the end.
        return Err(HeaderProblem::Unfinished);
    }
    if size > TABLE_BYTES {
        return Err(HeaderProblem::TooLarge(size));
    }
    let Some(position) = offset.checked_add(START_HEADER as u64) else { return Ok(()) };
    source.seek(SeekFrom::Start(position))?;
    let mut table = Vec::new();
    source.by_ref().take(size).read_to_end(&mut table)?;
    if table.first() != Some(&id::PACKED_TABLE) {
        return Ok(());
    }
    match packed_table(&table).ok_or(HeaderProblem::Unknown)? {
        packed if packed.size > TABLE_BYTES => Err(HeaderProblem::TooLarge(packed.size)),
        packed if packed.memory > decoder_bytes => Err(HeaderProblem::Memory(packed.memory)),
        _ => Ok(()),
    }
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// A packed table of contents.
#[derive(Debug, PartialEq, Eq)]
struct PackedTable {
    /// Unpacked size in bytes; with several steps, the largest.
    size: u64,
    /// Memory that a decoder requests, bytes.
    memory: u64,
}

/// Parses how a table of contents is packed.
fn packed_table(bytes: &[u8]) -> Option<PackedTable> {
    let mut bytes = HeaderBytes(bytes);
    bytes.expect(&[id::PACKED_TABLE, id::PACK_INFO])?;
    bytes.number()?;
    let streams = bytes.number().filter(|streams| (1..=MAX_STREAMS).contains(streams))?;
    let mut next = bytes.byte()?;
    if next == id::SIZE {
        (0..streams).try_for_each(|_| bytes.number().map(drop))?;
        next = bytes.byte()?;
    }
    if next == id::CHECKSUMS {
        bytes.skip_checksums(streams)?;
        next = bytes.byte()?;
    }
    (next == id::END).then_some(())?;
    bytes.expect(&[id::UNPACK_INFO, id::FOLDER, 1, 0])?;
    let (outputs, memory) = bytes.coders()?;
    bytes.expect(&[id::UNPACKED_SIZES])?;
    let mut size = 0;
    for _ in 0..outputs {
        size = size.max(bytes.number()?);
    }
    Some(PackedTable { size, memory })
}

/// The rest of a header.
struct HeaderBytes<'a>(&'a [u8]);

impl HeaderBytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, count: u64) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn expect(&mut self, expected: &[u8]) -> Option<()> {
        (self.take(expected.len() as u64)? == expected).then_some(())
    }

    /// Reads a number of the format: the leading ones of the first byte count the bytes that follow.
    fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let following = first.leading_ones();
        let mut value = 0;
        for index in 0..following {
            value |= u64::from(self.byte()?) << (8 * index);
        }
        let high = u64::from(first) & (0x7F >> following);
        Some(if following < 8 { value | high << (8 * following) } else { value })
    }

    fn skip_checksums(&mut self, streams: u64) -> Option<()> {
        let known = match self.byte()? {
            0 => self
                .take(streams.div_ceil(8))?
                .iter()
                .map(|bits| u64::from(bits.count_ones()))
                .sum(),
            _ => streams,
        };
        self.take(4 * known).map(drop)
    }

    /// Skips the unpacking steps; returns their number of outputs and the memory of the most expensive one.
    fn coders(&mut self) -> Option<(u64, u64)> {
        let coders = self.number().filter(|coders| (1..=MAX_STREAMS).contains(coders))?;
        let (mut inputs, mut outputs, mut memory) = (0, 0, 0);
        for _ in 0..coders {
            let flags = self.byte()?;
            let method = self.take(u64::from(flags & 0xF))?.to_vec();
            let (input, output) =
                if flags & 0x10 == 0 { (1, 1) } else { (self.number()?, self.number()?) };
            (input.max(output) <= MAX_STREAMS).then_some(())?;
            inputs += input;
            outputs += output;
            if flags & 0x20 != 0 {
                let size = self.number()?;
                memory = decoder_memory(&method, self.take(size)?).max(memory);
            }
        }
        let pairs = outputs.checked_sub(1)?;
        (0..2 * pairs).try_for_each(|_| self.number().map(drop))?;
        let packed = inputs.checked_sub(pairs)?;
        if packed > 1 {
            (0..packed).try_for_each(|_| self.number().map(drop))?;
        }
        Some((outputs, memory))
    }
}

/// Returns the memory a decoder allocates according to its properties in the archive.
pub fn decoder_memory(method: &[u8], properties: &[u8]) -> u64 {
    const LZMA: &[u8] = &[3, 1, 1];
    const LZMA2: &[u8] = &[0x21];
    const PPMD: &[u8] = &[3, 4, 1];
    match (method, properties) {
        (LZMA | PPMD, [_, a, b, c, d, ..]) => u64::from(u32::from_le_bytes([*a, *b, *c, *d])),
        (LZMA2, [bits, ..]) => match bits & 0x3F {
            bits @ 0..40 => (2 | u64::from(bits & 1)) << (bits / 2 + 11),
            _ => u64::from(u32::MAX),
        },
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const LZMA: [u8; 9] = [0x23, 3, 1, 1, 5, 0x5D, 0, 0, 1];

    /// A packed table of contents with this unpacked size, as 7-Zip writes it.
    fn table(unpacked: &[u8], coder: &[u8]) -> Vec<u8> {
        let packed = [&[0x17, 6, 0, 1, 9, 0x80, 0xF0, 0, 7, 0x0B, 1, 0, 1], coder].concat();
        [&packed, &[0x0C][..], unpacked, &[0x0A, 1, 1, 2, 3, 4, 0, 0]].concat()
    }

    fn file(table: &[u8]) -> Cursor<Vec<u8>> {
        let size = (table.len() as u64).to_le_bytes();
        let start = [SIGNATURE, &[0, 4, 1, 2, 3, 4], &[0; 8], &size, &[0; 4]].concat();
        Cursor::new([&start, table].concat())
    }

    fn refused(table: &[u8]) -> Option<String> {
        check(&mut file(table), 1 << 30).err().map(|problem| problem.to_string())
    }

    #[test]
    fn numbers_have_1_to_9_bytes() {
        for (bytes, number) in [
            (&[0x7F][..], 0x7F),
            (&[0x80, 0xF0], 0xF0),
            (&[0x81, 0xF0], 0x1F0),
            (&[0xC1, 0, 2], 0x1_0200),
            (&[0xFF, 1, 0, 0, 0, 0, 0, 0, 0x80], 0x8000_0000_0000_0001),
        ] {
            assert_eq!(HeaderBytes(bytes).number(), Some(number), "{bytes:?}");
        }
        assert_eq!(HeaderBytes(&[0x81]).number(), None);
    }

    #[test]
    fn a_table_of_usual_size_is_read() {
        let usual = table(&[0xC1, 0, 2], &[&LZMA[..], &[0]].concat());
        assert_eq!(packed_table(&usual), Some(PackedTable { size: 0x1_0200, memory: 1 << 16 }));
        assert_eq!(refused(&usual), None);
        assert_eq!(refused(&[1, 5, 0, 0, 0]), None, "a table may be unpacked");
    }

    #[test]
    fn a_table_that_claims_too_much_is_not_unpacked() {
        let large = table(&[0xF0, 0, 0, 0, 0x10], &[&LZMA[..], &[0]].concat());
        assert!(refused(&large).is_some_and(|reason| reason.contains("has 268435456 bytes")));
        let hungry = table(&[0x10], &[0x23, 3, 1, 1, 5, 0x5D, 0, 0, 0, 0xF0]);
        assert!(refused(&hungry).is_some_and(|reason| reason.contains("needs 4026531840 bytes")));
        assert!(refused(&vec![1; 3 << 20]).is_some_and(|reason| reason.contains("has 3145728")));
    }

    #[test]
    fn a_table_that_cannot_be_judged_is_not_unpacked() {
        let usual = table(&[0x10], &[&LZMA[..], &[0]].concat());
        for length in 1..22 {
            assert!(refused(&usual[..length]).is_some(), "{length}");
        }
        assert!(refused(&[]).is_some(), "not written to its end");
    }

    #[test]
    fn the_memory_of_a_decoder_is_in_its_properties() {
        assert_eq!(decoder_memory(&[3, 1, 1], &[0x5D, 0, 0, 0, 2]), 32 << 20);
        assert_eq!(decoder_memory(&[0x21], &[24]), 16 << 20);
        assert_eq!(decoder_memory(&[0x21], &[39]), 3 << 30);
        assert_eq!(decoder_memory(&[0x21], &[40]), u64::from(u32::MAX));
        assert_eq!(decoder_memory(&[0], &[]), 0);
    }
}
