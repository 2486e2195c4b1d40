//! Object names, each once.

use crate::intern::ByteInterner;
use crate::payload::utf16_text;

/// Interns UTF-16 names without decoding them; id 0 is the empty name.
pub struct NameInterner(ByteInterner);

impl Default for NameInterner {
    fn default() -> Self {
        let mut names = ByteInterner::default();
        names.intern(b"");
        Self(names)
    }
}

impl NameInterner {
    /// The id of a name given as UTF-16 bytes without terminator.
    pub fn intern(&mut self, name: &[u8]) -> u32 {
        // Most events have no name; they need no look-up.
        if name.is_empty() { 0 } else { self.0.intern(name) }
    }

    pub fn text(&self, id: u32) -> String {
        utf16_text(self.0.get(id))
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
