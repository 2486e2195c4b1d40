//! Plain LZ77 compression ("XPRESS" without Huffman coding, [MS-XCA] 2.3 and 2.4).

/// Matches reach back at most this far: the distance has 13 bits.
const WINDOW: usize = 8192;
const MIN_MATCH: usize = 3;
const HASH_BITS: u32 = 14;

/// Compresses `data`; the result is larger if the data does not shrink.
#[must_use]
pub fn compress(data: &[u8]) -> Vec<u8> {
    let mut output = Output::new(data.len());
    // Last position of each three-byte hash, plus one; 0 means none.
    let mut last_seen = vec![0usize; 1 << HASH_BITS];
    let mut position = 0;
    while position < data.len() {
        let (distance, length) = find_match(data, position, &mut last_seen);
        if length >= MIN_MATCH {
            output.copy(distance, length);
            // Remember only the first position of the match: cheap, and long runs still match.
            position += length;
        } else {
            output.literal(data[position]);
            position += 1;
        }
    }
    output.finish()
}

/// Returns the match at `position` as (distance, length); length 0 means no match.
fn find_match(data: &[u8], position: usize, last_seen: &mut [usize]) -> (usize, usize) {
    let Some([a, b, c]) = data[position..].first_chunk::<3>() else { return (0, 0) };
    let key = u32::from_le_bytes([*a, *b, *c, 0]);
    let slot = (key.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize;
    let candidate = std::mem::replace(&mut last_seen[slot], position + 1);
    let Some(start) = candidate.checked_sub(1) else { return (0, 0) };
    let distance = position - start;
    if distance > WINDOW {
        return (0, 0);
    }
    let pairs = data[position..].iter().zip(&data[start..]);
    (distance, pairs.take_while(|(a, b)| a == b).count())
}

/// The compressed stream. A flag word is reserved before the items it describes.
struct Output {
    bytes: Vec<u8>,
    flags: u32,
    flag_count: u32,
    flags_at: usize,
    /// A byte with its high half still free for a length.
    half_byte_at: Option<usize>,
}

impl Output {
    fn new(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity);
        bytes.extend_from_slice(&[0; 4]);
        Self { bytes, flags: 0, flag_count: 0, flags_at: 0, half_byte_at: None }
    }

    fn literal(&mut self, byte: u8) {
        self.bytes.push(byte);
        self.flag(0);
    }

    fn copy(&mut self, distance: usize, length: usize) {
        let length = length - MIN_MATCH;
        let word = ((distance - 1) << 3 | length.min(7)) as u16;
        self.bytes.extend_from_slice(&word.to_le_bytes());
        if length >= 7 {
            self.long_length(length);
        }
        self.flag(1);
    }

    /// Writes the parts of a length that does not fit into the 3 bits of the word.
    fn long_length(&mut self, length: usize) {
        self.half_byte((length - 7).min(15) as u8);
        if length < 7 + 15 {
            return;
        }
        self.bytes.push((length - 7 - 15).min(255) as u8);
        if length < 7 + 15 + 255 {
            return;
        }
        match u16::try_from(length) {
            Ok(short) => self.bytes.extend_from_slice(&short.to_le_bytes()),
            Err(_) => {
                self.bytes.extend_from_slice(&[0, 0]);
                self.bytes.extend_from_slice(&(length as u32).to_le_bytes());
            }
        }
    }

    fn half_byte(&mut self, value: u8) {
        match self.half_byte_at.take() {
            Some(at) => self.bytes[at] |= value << 4,
            None => {
                self.half_byte_at = Some(self.bytes.len());
                self.bytes.push(value);
            }
        }
    }

    fn flag(&mut self, bit: u32) {
        self.flags = self.flags << 1 | bit;
        self.flag_count += 1;
        if self.flag_count == 32 {
            self.write_flags();
            self.flags_at = self.bytes.len();
            self.bytes.extend_from_slice(&[0; 4]);
            (self.flags, self.flag_count) = (0, 0);
        }
    }

    fn write_flags(&mut self) {
        self.bytes[self.flags_at..self.flags_at + 4].copy_from_slice(&self.flags.to_le_bytes());
    }

    /// Fills the last flag word with ones: a copy without more input ends the stream.
    fn finish(mut self) -> Vec<u8> {
        while self.flag_count < 32 {
            self.flags = self.flags << 1 | 1;
            self.flag_count += 1;
        }
        self.write_flags();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::compress;
    use crate::rng::Rng;

    /// Decoder written from the format description, for this test only.
    fn decompress(input: &[u8]) -> Vec<u8> {
        let mut out: Vec<u8> = Vec::new();
        let (mut at, mut flags, mut left, mut half) = (0, 0u32, 0, None);
        let number = |at: &mut usize, size: usize| {
            let bytes = &input[*at..*at + size];
            *at += size;
            bytes.iter().rev().fold(0usize, |value, byte| value << 8 | usize::from(*byte))
        };
        loop {
            if left == 0 {
                flags = number(&mut at, 4) as u32;
                left = 32;
            }
            left -= 1;
            if flags >> left & 1 == 0 {
                out.push(number(&mut at, 1) as u8);
                continue;
            }
            if at == input.len() {
                return out;
            }
            let word = number(&mut at, 2);
            let (distance, mut length) = ((word >> 3) + 1, word & 7);
            if length == 7 {
                length = match half.take() {
                    Some(byte) => byte >> 4,
                    None => {
                        let byte = number(&mut at, 1);
                        half = Some(byte);
                        byte & 15
                    }
                };
                if length == 15 {
                    length = number(&mut at, 1);
                    if length == 255 {
                        length = number(&mut at, 2);
                        if length == 0 {
                            length = number(&mut at, 4);
                        }
                        length -= 22;
                    }
                    length += 15;
                }
                length += 7;
            }
            for _ in 0..length + 3 {
                out.push(out[out.len() - distance]);
            }
        }
    }

    fn assert_round_trip(data: &[u8]) {
        assert_eq!(decompress(&compress(data)), data);
    }

    #[test]
    fn the_examples_of_the_format_description_come_out() {
        // Both streams are from [MS-XCA] 3.2.
        let expected = [&[0x3f, 0, 0, 0][..], b"abcdefghijklmnopqrstuvwxyz"].concat();
        assert_eq!(compress(b"abcdefghijklmnopqrstuvwxyz"), expected);
        let repeated: Vec<u8> = b"abc".repeat(100);
        let expected = [0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0, 0x0f, 0xff, 0x26, 0x01];
        assert_eq!(compress(&repeated), expected);
    }

    #[test]
    fn every_length_encoding_comes_back() {
        for length in [3, 9, 10, 24, 25, 26, 278, 279, 280, 281, 65_537, 65_538, 65_539, 200_000] {
            let mut data = vec![b'x'; length + 1];
            data.extend_from_slice(b"end");
            assert_round_trip(&data);
        }
    }

    #[test]
    fn both_halves_of_a_length_byte_are_used() {
        let mut data = Vec::new();
        for n in 0..40u8 {
            data.extend_from_slice(b"0123456789abcdef");
            data.push(n);
        }
        assert_round_trip(&data);
    }

    #[test]
    fn data_of_any_length_comes_back() {
        let mut rng = Rng::new(1);
        for length in (0..200).chain([8191, 8192, 8193, 65_464]) {
            let noise: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
            let mixed: Vec<u8> = (0..length).map(|_| rng.below(3) as u8).collect();
            assert_round_trip(&noise);
            assert_round_trip(&mixed);
            assert_round_trip(&[noise.clone(), mixed, noise].concat());
        }
    }
}
