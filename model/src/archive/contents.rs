//! What an archive may claim before anything of it is believed.

use std::collections::HashSet;

/// The first member whose name leads out of the archive or is there twice, and what is wrong.
pub fn refused_name<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Option<(&'a str, &'static str)> {
    let mut seen = HashSet::new();
    names.into_iter().find_map(|name| {
        let reason = suspicion(name).or((!seen.insert(name)).then_some("is there twice"))?;
        Some((name, reason))
    })
}

/// What is wrong with the name of a member, if it leads out of the archive.
fn suspicion(name: &str) -> Option<&'static str> {
    let mut parts = name.split(['/', '\\']);
    if name.starts_with(['/', '\\']) || name.as_bytes().get(1) == Some(&b':') {
        return Some("has an absolute name");
    }
    if parts.any(|part| part == "..") {
        return Some("leads out of the archive by \"..\"");
    }
    None
}

/// Memory that a decoder asks for, as its properties in the archive say.
pub(super) fn decoder_memory(method: &[u8], properties: &[u8]) -> u64 {
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
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_noticed() {
        for bad in ["/etc/x.json", "\\x.json", "C:\\x.json", "../x.json", "a/../../x", "a\\..\\x"] {
            assert!(suspicion(bad).is_some(), "{bad}");
        }
        for good in ["x.json", "a/x.json", "..x.json", "a..b"] {
            assert!(suspicion(good).is_none(), "{good}");
        }
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
