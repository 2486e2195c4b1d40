//! Object names, each once.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use crate::kernel::utf16_text;

/// Interns UTF-16 names without decoding them; id 0 is the empty name.
///
/// Names are compared by content: the hash only finds candidates.
pub struct NameInterner {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Default for NameInterner {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            ends: vec![0],
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl NameInterner {
    /// The id of a name given as UTF-16 bytes without terminator.
    pub fn intern(&mut self, name: &[u8]) -> u32 {
        if name.is_empty() {
            return 0;
        }
        let Self { bytes, ends, table, hasher } = self;
        let hash = hasher.hash_one(name);
        let found = table.find(hash, |id| slice(bytes, ends, *id) == name);
        if let Some(id) = found {
            return *id;
        }
        let id = ends.len() as u32;
        bytes.extend_from_slice(name);
        ends.push(bytes.len());
        table.insert_unique(hash, id, |id| hasher.hash_one(slice(bytes, ends, *id)));
        id
    }

    /// The text of a name.
    pub fn text(&self, id: u32) -> String {
        utf16_text(slice(&self.bytes, &self.ends, id))
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], id: u32) -> &'a [u8] {
    let id = id as usize;
    match (id.checked_sub(1).and_then(|before| ends.get(before)), ends.get(id)) {
        (Some(start), Some(end)) => &bytes[*start..*end],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_an_id_and_keep_their_text() {
        let mut names = NameInterner::default();
        let a = names.intern(b"a\0b\0");
        let b = names.intern(b"c\0");
        assert_eq!(names.intern(b"a\0b\0"), a);
        assert_eq!(names.intern(b""), 0);
        assert_eq!(
            (names.text(a), names.text(b), names.text(0)),
            ("ab".into(), "c".into(), String::new())
        );
    }
}
