//! Ids of suspects, which choose what these lost.

use std::fmt;

use handlescope_model::stable_hash::name_of;

use super::ranges::ValueError;

/// Hexadecimal digits of an id: so many that no two of a trace with hundred thousand suspects are likely to be equal.
const DIGITS: usize = 10;

/// Digits that the beginning of an id has at least.
const LEAST: usize = 4;

/// The id of a suspect, or how one begins: hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SuspectId(String);

impl SuspectId {
    /// Reads an id, or the beginning of one, in any case.
    ///
    /// # Errors
    /// When it has too few digits or too many, or anything else.
    pub fn new(text: &str) -> Result<SuspectId, ValueError> {
        let is_id = (LEAST..=DIGITS).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match is_id {
            true => Ok(SuspectId(text.to_ascii_lowercase())),
            false => Err(ValueError::NoSuspect { value: text.to_owned() }),
        }
    }

    /// The id of what these parts distinguish from others, the same in every version.
    pub(crate) fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> SuspectId {
        let mut digits = name_of(parts);
        digits.truncate(DIGITS);
        SuspectId(digits)
    }

    /// Whether an id is this one, or begins as this one does.
    pub(crate) fn begins(&self, id: &SuspectId) -> bool {
        id.0.starts_with(&self.0)
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SuspectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_four_to_ten_hexadecimal_digits_in_any_case() {
        for (text, id) in [("3F2a", "3f2a"), ("0123456789", "0123456789")] {
            assert_eq!(SuspectId::new(text).map(|own| own.to_string()), Ok(id.to_owned()));
        }
        for text in ["", "3f2", "3f2g", "0123456789a", "0x3f2a", "3f2é", "-3f2a"] {
            let refused = ValueError::NoSuspect { value: text.to_owned() };
            assert_eq!(SuspectId::new(text), Err(refused), "{text}");
        }
    }

    #[test]
    fn an_id_is_the_same_in_every_build_and_found_by_its_beginning() {
        let id = SuspectId::of_parts([&b"/traces"[..]]);
        assert_eq!(id.text(), "a5b665369e");
        for (text, begins) in [("a5b6", true), ("A5B665369E", true), ("a5b7", false)] {
            assert_eq!(SuspectId::new(text).map(|own| own.begins(&id)), Ok(begins), "{text}");
        }
    }
}
