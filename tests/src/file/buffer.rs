//! One buffer: header and events.

use super::lz77;
use crate::bytes::ByteString;

/// Size of a buffer header, in bytes.
pub const BUFFER_HEADER: usize = 72;
/// Flag of the header buffer and of the last buffer.
pub const FLAG_FLUSH_MARKER: u16 = 1;
const FLAG_WIDE_CPU: u16 = 0x20;
const FLAG_COMPRESSED: u16 = 0x40;
/// Buffer type of the header buffer.
pub const TYPE_HEADER: u16 = 4;
/// Byte after the data.
const FILLER: u8 = 0xff;

/// Fields of a buffer header other than sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferHeader {
    pub time: i64,
    pub sequence: u64,
    pub cpu: u16,
    pub logger_id: u16,
    pub flags: u16,
    pub buffer_type: u16,
    pub wide_cpu_index: bool,
}

impl BufferHeader {
    /// Returns the bytes of a buffer of `size` bytes; the rest after the content is filled up.
    pub fn plain(&self, content: &[u8], size: usize) -> Vec<u8> {
        let filled = BUFFER_HEADER + content.len();
        let mut bytes = self.encode(size, filled, self.flags).raw(content).into_vec();
        bytes.resize(size, FILLER);
        bytes
    }

    /// Returns the bytes of a compressed buffer, which is as long as its compressed content.
    pub fn compressed(&self, content: &[u8]) -> Vec<u8> {
        let stream = lz77::compress(content);
        let flags = self.flags | FLAG_COMPRESSED;
        let (size, filled) = (BUFFER_HEADER + stream.len(), BUFFER_HEADER + content.len());
        self.encode(size, filled, flags).raw(&stream).into_vec()
    }

    fn encode(&self, size: usize, filled: usize, flags: u16) -> ByteString {
        let filled = filled as u32;
        let head = ByteString::new()
            .u32(size as u32)
            .u32(filled) // saved offset
            .u32(filled) // current offset
            .i32(0) // reference count
            .i64(self.time)
            .u64(self.sequence)
            .u64(0); // left over pointer
        let processor = if self.wide_cpu_index {
            head.u16(self.cpu)
        } else {
            head.u8(self.cpu as u8).u8(8) // processor and alignment
        };
        processor
            .u16(self.logger_id)
            .u32(3) // state
            .u32(filled)
            .u16(flags | if self.wide_cpu_index { FLAG_WIDE_CPU } else { 0 })
            .u16(self.buffer_type)
            .zeros(16) // left over pointers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: BufferHeader = BufferHeader {
        time: 0x1122,
        sequence: 5,
        cpu: 3,
        logger_id: 0x1c,
        flags: 0,
        buffer_type: 0,
        wide_cpu_index: true,
    };

    #[test]
    fn the_header_has_72_bytes_and_filled_at_48() {
        let bytes = HEADER.plain(&[0xaa; 8], 128);
        assert_eq!(bytes[0..8], [128, 0, 0, 0, 80, 0, 0, 0]);
        assert_eq!(bytes[16..18], [0x22, 0x11]);
        assert_eq!(bytes[24..32], [5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[40..48], [3, 0, 0x1c, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[48..56], [80, 0, 0, 0, 0x20, 0, 0, 0]);
        assert_eq!(bytes[72..80], [0xaa; 8]);
        assert_eq!(bytes[80..], [0xff; 48]);
    }

    #[test]
    fn the_old_form_has_processor_and_alignment_bytes() {
        let old = BufferHeader { wide_cpu_index: false, flags: 2, buffer_type: 1, ..HEADER };
        let bytes = old.plain(&[], 72);
        assert_eq!(bytes[40..42], [3, 8]);
        assert_eq!(bytes[52..56], [2, 0, 1, 0]);
    }

    #[test]
    fn a_compressed_buffer_states_both_sizes() {
        let bytes = HEADER.compressed(&[7; 1000]);
        assert_eq!(bytes[0..4], (bytes.len() as u32).to_le_bytes());
        assert_eq!(bytes[48..54], [0x30, 4, 0, 0, 0x60, 0]);
        assert!(bytes.len() < 100);
    }
}
