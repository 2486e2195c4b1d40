//! Hashes for names of files on disk, and for identities in them. They stay the same whatever compiler built the
//! program; the hashers of std promise that for one version only.

use sha2::{Digest, Sha256};

/// Bytes of the hash in a name.
const NAME_BYTES: usize = 8;

/// Bytes of an identity: enough that no two among billions are equal by chance.
const IDENTITY_BYTES: usize = 16;

/// Returns 64 bits of the SHA-256 of some parts as hexadecimal digits. The boundaries between parts count, too.
pub fn name_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    digits(parts, NAME_BYTES)
}

/// Returns 128 bits of the SHA-256 of some parts, likewise.
pub fn identity_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    digits(parts, IDENTITY_BYTES)
}

fn digits<'a>(parts: impl IntoIterator<Item = &'a [u8]>, bytes: usize) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_the_same_in_every_build() {
        assert_eq!(name_of([&b"/traces"[..]]), "a5b665369ecb23c8");
        assert_eq!(identity_of([&b"/traces"[..]]), "a5b665369ecb23c8acd7aee5a8cd05bb");
        assert_ne!(name_of([&b"ab"[..], b"c"]), name_of([&b"a"[..], b"bc"]));
    }
}
