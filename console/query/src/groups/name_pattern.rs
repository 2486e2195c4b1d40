//! Names without what differs from one to the next.

use std::sync::LazyLock;

use regex::Regex;

/// GUIDs, hexadecimal numbers with a prefix, and digits.
static VARYING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let guid = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";
    Regex::new(&format!("{guid}|0[xX][0-9A-Fa-f]+|[0-9]+")).ok()
});

/// Collapses numbers and GUIDs of a name to `#`, so that names which were made from one pattern are equal.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamePattern;

impl NamePattern {
    /// The pattern of a name.
    pub fn of(self, name: &str) -> String {
        VARYING.as_ref().map_or(name.into(), |varying| varying.replace_all(name, "#")).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_guids_collapse() {
        for (name, pattern) in [
            ("SignalEvent_118", "SignalEvent_#"),
            ("Global\\{0B2C1A4E-11D0-9dda-00C0-4FD7BA7C0000}", "Global\\{#}"),
            (
                r"\Sessions\1\BaseNamedObjects\SM0:7316:304:WilStaging_02",
                r"\Sessions\#\BaseNamedObjects\SM#:#:#:WilStaging_#",
            ),
            ("at 0x7FFE1234", "at #"),
            ("plain", "plain"),
            ("", ""),
            ("ä9ö", "ä#ö"),
        ] {
            assert_eq!(NamePattern.of(name), pattern);
        }
    }
}
