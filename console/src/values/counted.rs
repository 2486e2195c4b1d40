//! Numbers of things, as sentences have them.

use std::fmt;

use indicatif::HumanCount;

/// So many of something: with separators between thousands, and the plural that fits.
pub(crate) struct Counted(pub(crate) u64, pub(crate) &'static str);

impl Counted {
    /// What is added to the singular.
    pub(crate) fn plural(&self) -> &'static str {
        match self.1 {
            _ if self.0 == 1 => "",
            what if what.ends_with('s') => "es",
            _ => "s",
        }
    }
}

/// The kind of a warning, as it stands behind a number: archives hold two kinds as plurals.
pub(crate) fn kind_of(count: u64, kind: &str) -> &str {
    match (count, kind) {
        (1, "missing buffers") => "missing buffer",
        (1, "too many overlapping buffers") => "overlap of too many buffers",
        _ => kind,
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", HumanCount(self.0), self.1, self.plural())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let texts = [(0, "free"), (1, "free"), (1200, "free"), (1, "process"), (2, "process")]
            .map(|(count, what)| Counted(count, what).to_string());
        assert_eq!(texts, ["0 frees", "1 free", "1,200 frees", "1 process", "2 processes"]);
    }
}
