//! Plain LZ77, the compression of `.etl` buffers ([MS-XCA] 2.3 and 2.4, without Huffman coding).

/// Why a stream does not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lz77Error {
    /// The stream ends in the middle of a token.
    #[error("compressed data ends in the middle of a match")]
    Truncated,
    /// A match reaches back before the start of the output.
    #[error("compressed data refers to a place before its start")]
    BadDistance,
}

/// Largest size that buffers usually expand to.
const USUAL_SIZE: usize = 1 << 20;

/// Appends the expansion of `input` to `output`, until `output` has grown by `limit` bytes or the input ends.
///
/// On an error, `output` has what was expanded before it.
///
/// # Errors
/// Fails if the stream is damaged.
pub fn decompress(input: &[u8], limit: usize, output: &mut Vec<u8>) -> Result<(), Lz77Error> {
    let start = output.len();
    let end = start + limit;
    // A buffer may claim more than it holds.
    output.reserve(limit.min(USUAL_SIZE));
    let mut reader = BitReader { input, at: 0, nibble: None };
    let mut flags = 0u32;
    let mut flags_left = 0;
    while output.len() < end {
        if flags_left == 0 {
            let Some(next) = reader.u32() else { return Ok(()) };
            flags = next;
            flags_left = 32;
        }
        flags_left -= 1;
        if flags & (1 << flags_left) == 0 {
            let Some(literal) = reader.u8() else { return Ok(()) };
            output.push(literal);
            continue;
        }
        if reader.is_at_end() {
            return Ok(());
        }
        let (distance, length) = reader.a_match().ok_or(Lz77Error::Truncated)?;
        if distance > output.len() - start {
            return Err(Lz77Error::BadDistance);
        }
        copy_match(output, distance, length.min(end - output.len()));
    }
    Ok(())
}

/// Copies from `distance` bytes back. The source may overlap what is written.
fn copy_match(output: &mut Vec<u8>, distance: usize, mut length: usize) {
    let from = output.len() - distance;
    // A block as long as the distance repeats itself; copying whole blocks is fast.
    while length > 0 {
        let block = length.min(output.len() - from);
        output.extend_from_within(from..from + block);
        length -= block;
    }
}

struct BitReader<'a> {
    input: &'a [u8],
    at: usize,
    /// Byte with its low half used and its high half left for the next long match.
    nibble: Option<u8>,
}

impl BitReader<'_> {
    fn is_at_end(&self) -> bool {
        self.at >= self.input.len()
    }

    fn u8(&mut self) -> Option<u8> {
        let byte = *self.input.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn u16(&mut self) -> Option<u16> {
        let bytes = self.input.get(self.at..)?.first_chunk::<2>()?;
        self.at += 2;
        Some(u16::from_le_bytes(*bytes))
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.input.get(self.at..)?.first_chunk::<4>()?;
        self.at += 4;
        Some(u32::from_le_bytes(*bytes))
    }

    /// Reads the distance and length of a match.
    fn a_match(&mut self) -> Option<(usize, usize)> {
        let word = self.u16()?;
        let distance = usize::from(word >> 3) + 1;
        let mut length = u32::from(word & 7);
        if length == 7 {
            length += self.half_byte()?;
            if length == 7 + 15 {
                length = match self.u8()? {
                    255 => self.long_length()?,
                    byte => length + u32::from(byte),
                };
            }
        }
        Some((distance, length as usize + 3))
    }

    fn half_byte(&mut self) -> Option<u32> {
        match self.nibble.take() {
            Some(byte) => Some(u32::from(byte >> 4)),
            None => {
                let byte = self.u8()?;
                self.nibble = Some(byte);
                Some(u32::from(byte & 0x0F))
            }
        }
    }

    /// Reads a length written in full. It is at least what a byte could not hold.
    fn long_length(&mut self) -> Option<u32> {
        let length = match self.u16()? {
            0 => self.u32()?,
            short => u32::from(short),
        };
        (length >= 15 + 7).then_some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(input: &[u8], limit: usize) -> Result<Vec<u8>, Lz77Error> {
        let mut output = Vec::new();
        decompress(input, limit, &mut output).map(|()| output)
    }

    #[test]
    fn the_examples_of_the_specification_expand() {
        // [MS-XCA] 3.1, the plain LZ77 examples: the alphabet, and "abc" 100 times.
        let mut alphabet = vec![0x3F, 0x00, 0x00, 0x00];
        alphabet.extend(b'a'..=b'z');
        assert_eq!(expand(&alphabet, 26).unwrap(), (b'a'..=b'z').collect::<Vec<_>>());
        let abc = [0xFF, 0xFF, 0xFF, 0x1F, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0F, 0xFF, 0x26, 0x01];
        assert_eq!(expand(&abc, 900).unwrap(), b"abc".repeat(100));
    }

    #[test]
    fn a_match_before_the_start_is_an_error() {
        assert_eq!(expand(&[0, 0, 0, 0x80, 0x00, 0x00], 10), Err(Lz77Error::BadDistance));
    }

    #[test]
    fn a_cut_match_is_an_error_and_cut_literals_are_the_end() {
        assert_eq!(expand(&[0, 0, 0, 0x40, b'a', 0x07], 99), Err(Lz77Error::Truncated));
        assert_eq!(expand(&[0, 0, 0, 0, b'a', b'b'], 99).unwrap(), b"ab");
    }

    #[test]
    fn output_never_exceeds_the_limit() {
        let abc = [0xFF, 0xFF, 0xFF, 0x1F, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0F, 0xFF, 0x26, 0x01];
        assert_eq!(expand(&abc, 100).unwrap().len(), 100);
    }
}
