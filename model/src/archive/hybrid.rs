//! Encodes numbers as runs and bit-packed groups, as Parquet stores levels and dictionary keys.
//!
//! Eight numbers form a group. A group is packed bit by bit; groups that repeat one number become a run
//! (<https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE>). The encoder of polars looks at each
//! number by itself.

use std::ops::Range;

use polars_arrow::bitmap::Bitmap;
use polars_parquet::parquet::encoding::{bitpacked, uleb128};

/// Numbers per group.
const GROUP: usize = 8;

/// Numbers packed at once.
const PACK: usize = 32;

/// From this many packed bytes on, a run is written instead.
const MIN_RUN_BYTES: usize = 8;

/// Adds numbers below `1 << bits`.
pub fn add_numbers(out: &mut Vec<u8>, numbers: &[u32], bits: u32) {
    if bits == 0 {
        return add_run(out, 0, numbers.len(), 0);
    }
    let (groups, _) = numbers.as_chunks::<GROUP>();
    let of_one = |group: usize| {
        let group = &groups[group];
        group.iter().all(|number| *number == group[0]).then_some(group[0])
    };
    let pack = |out: &mut Vec<u8>, packed: Range<usize>| {
        let numbers = &numbers[packed.start * GROUP..numbers.len().min(packed.end * GROUP)];
        for numbers in numbers.chunks(PACK) {
            let mut bytes = [0; PACK * size_of::<u32>()];
            bitpacked::encode_pack(numbers, bits as usize, &mut bytes);
            out.extend_from_slice(&bytes[..numbers.len().div_ceil(GROUP) * bits as usize]);
        }
    };
    add_groups(out, numbers.len(), bits, of_one, pack);
}

/// Adds one level per bit: 1 if the bit is set.
pub fn add_bits(out: &mut Vec<u8>, bits: &Bitmap) {
    if bits.unset_bits() == bits.len() {
        return add_run(out, 0, bits.len(), 1);
    }
    let chunks = bits.chunks::<u64>();
    let rest = chunks.remainder();
    let mut groups = Vec::with_capacity(bits.len().next_multiple_of(64) / GROUP);
    chunks.chain([rest]).for_each(|word| groups.extend_from_slice(&word.to_le_bytes()));
    groups.truncate(bits.len().div_ceil(GROUP));
    let of_one = |group: usize| match groups[group] {
        0 => Some(0),
        u8::MAX => Some(1),
        _ => None,
    };
    let pack = |out: &mut Vec<u8>, packed: Range<usize>| out.extend_from_slice(&groups[packed]);
    add_groups(out, bits.len(), 1, of_one, pack);
}

/// Adds a run of one number below `1 << bits`.
pub fn add_run(out: &mut Vec<u8>, number: u32, length: usize, bits: u32) {
    add_uleb128(out, (length as u64) << 1);
    out.extend_from_slice(&number.to_le_bytes()[..bits.div_ceil(u8::BITS) as usize]);
}

/// Adds the header for this many packed groups.
pub fn add_packed_header(out: &mut Vec<u8>, groups: usize) {
    add_uleb128(out, (groups as u64) << 1 | 1);
}

/// Adds what `add` writes, prefixed with its length.
pub fn with_length(out: &mut Vec<u8>, add: impl FnOnce(&mut Vec<u8>)) {
    let length = out.len()..out.len() + size_of::<u32>();
    out.extend_from_slice(&[0; size_of::<u32>()]);
    add(out);
    let added = (out.len() - length.end) as u32;
    out[length].copy_from_slice(&added.to_le_bytes());
}

/// Adds numbers group by group. `of_one` returns the number that fills a whole group, if it has only one; `pack` adds
/// groups, the last of which may be partial.
fn add_groups(
    out: &mut Vec<u8>,
    numbers: usize,
    bits: u32,
    of_one: impl Fn(usize) -> Option<u32>,
    pack: impl Fn(&mut Vec<u8>, Range<usize>),
) {
    let add_packed = |out: &mut Vec<u8>, groups: Range<usize>| {
        if !groups.is_empty() {
            add_packed_header(out, groups.len());
            pack(out, groups);
        }
    };
    let whole = numbers / GROUP;
    let (mut packed, mut group) = (0, 0);
    while group < whole {
        let start = group;
        group += 1;
        let Some(number) = of_one(start) else { continue };
        while group < whole && of_one(group) == Some(number) {
            group += 1;
        }
        if (group - start) * bits as usize >= MIN_RUN_BYTES {
            add_packed(out, packed..start);
            add_run(out, number, (group - start) * GROUP, bits);
            packed = group;
        }
    }
    add_packed(out, packed..numbers.div_ceil(GROUP));
}

/// Adds a number in as few bytes as possible, seven bits in each.
pub fn add_uleb128(out: &mut Vec<u8>, number: u64) {
    let mut bytes = [0; 10];
    let length = uleb128::encode(number, &mut bytes);
    out.extend_from_slice(&bytes[..length]);
}

#[cfg(test)]
mod tests {
    use polars_parquet::parquet::encoding::hybrid_rle::HybridRleDecoder;

    use super::super::parquet::tests::scattered;
    use super::*;

    /// Decodes the numbers with polars.
    fn read(bytes: &[u8], bits: u32, count: usize) -> Vec<u32> {
        HybridRleDecoder::new(bytes, bits, count).collect().unwrap()
    }

    /// Runs of equal numbers below `1 << bits`, and different ones between them.
    fn runs(bits: u32, seed: u64) -> Vec<u32> {
        let most = u32::MAX.checked_shr(u32::BITS - bits).unwrap_or(0);
        let mut numbers = Vec::new();
        for run in seed..seed + 30 {
            let length = scattered(run) as usize % 70;
            let number = |at: usize| if run % 3 == 0 { at } else { 0 } as u64 * 77 + run;
            numbers.extend((0..length).map(|at| scattered(number(at)) as u32 & most));
        }
        numbers
    }

    #[test]
    fn numbers_of_any_width_come_back() {
        for (bits, seed) in (0..=u32::BITS).flat_map(|bits| (0..20).map(move |seed| (bits, seed))) {
            let numbers = runs(bits, seed);
            let mut bytes = Vec::new();
            add_numbers(&mut bytes, &numbers, bits);
            assert_eq!(read(&bytes, bits, numbers.len()), numbers, "{bits} bits");
        }
    }

    #[test]
    fn bits_at_any_offset_come_back() {
        for skipped in 0..150 {
            let levels = runs(1, skipped as u64);
            let bits: Bitmap = levels.iter().map(|level| *level == 1).collect();
            let bits = bits.sliced(skipped, levels.len() - skipped);
            let mut bytes = Vec::new();
            add_bits(&mut bytes, &bits);
            assert_eq!(read(&bytes, 1, bits.len()), levels[skipped..], "{skipped}");
        }
    }

    #[test]
    fn equal_numbers_take_next_to_nothing() {
        let mut bytes = Vec::new();
        add_numbers(&mut bytes, &[5; 80_000], 3);
        assert!(bytes.len() < 8, "{bytes:?}");
        bytes.clear();
        add_bits(&mut bytes, &Bitmap::new_with_value(true, 80_000));
        assert!(bytes.len() < 8, "{bytes:?}");
    }
}
