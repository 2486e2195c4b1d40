//! Placeholders for names. They have the name's length, and are the same for the same name in any case and encoding,
//! and different for different names.

use std::collections::HashMap;

use super::known::{extension, is_known};

/// Letters of placeholders. Without vowels, they form no words.
const LETTERS: &[u8; 20] = b"bcdfghjklmnpqrstvwxz";

/// First letter of placeholders, and the length from which on they have it, so that no placeholder is a real name.
/// There are too few shorter placeholders for that.
const FIRST: (u8, usize) = (b'q', 4);

/// Texts and names replaced so far.
#[derive(Default)]
pub struct Placeholders {
    texts: HashMap<Vec<u16>, Vec<u16>>,
    text: Vec<u16>,
    /// Names in the texts, each with its number among the names of its length.
    names: HashMap<Vec<u16>, u64>,
    /// Number of names by length.
    counts: HashMap<usize, u64>,
}

impl Placeholders {
    /// Returns the placeholder for a text, built per path component.
    pub fn of_text(&mut self, text: impl Iterator<Item = u16>) -> &[u16] {
        let mut units = std::mem::take(&mut self.text);
        units.clear();
        units.extend(text);
        if !self.texts.contains_key(&units) {
            let mut placeholder = units.clone();
            self.components(&mut placeholder);
            self.texts.insert(units.clone(), placeholder);
        }
        self.text = units;
        self.texts.get(&self.text).map_or(&[], Vec::as_slice)
    }

    fn components(&mut self, units: &mut [u16]) {
        units
            .split_mut(|unit| [b'\\', b'/'].map(u16::from).contains(unit))
            .for_each(|component| self.component(component));
    }

    /// Overwrites a path component, unless it belongs to Windows; the extension may stay.
    fn component(&mut self, units: &mut [u16]) {
        // All known names are ASCII.
        let ascii = units.iter().map(|unit| u8::try_from(*unit).ok().filter(u8::is_ascii));
        let lower = ascii
            .map(|byte| byte.map_or('\u{FFFF}', char::from))
            .collect::<String>()
            .to_ascii_lowercase();
        if units.is_empty() || is_known(&lower) {
            return;
        }
        let stem = extension(&lower).map_or(units.len(), |at| lower[..at].chars().count());
        if let Some(stem) = units.get_mut(..stem) {
            self.word(stem);
        }
    }

    /// Overwrites a word. Upper-case letters stay upper-case, so words that differ only in case still do.
    fn word(&mut self, units: &mut [u16]) {
        let is_upper = |unit: u16| u8::try_from(unit).is_ok_and(|byte| byte.is_ascii_uppercase());
        let mut number = self.number(
            units.iter().map(|unit| if is_upper(*unit) { unit + 32 } else { *unit }).collect(),
        );
        let is_long = units.len() >= FIRST.1;
        for (at, unit) in units.iter_mut().enumerate().rev() {
            let digit = LETTERS[(number % LETTERS.len() as u64) as usize];
            let letter = if at == 0 && is_long { FIRST.0 } else { digit };
            number /= LETTERS.len() as u64;
            *unit = (if is_upper(*unit) { letter.to_ascii_uppercase() } else { letter }).into();
        }
    }

    /// Returns the number of a name in lower case. There may be more short names than placeholders, which are then
    /// reused.
    fn number(&mut self, name: Vec<u16>) -> u64 {
        let count = self.counts.entry(name.len()).or_default();
        *self.names.entry(name).or_insert_with(|| {
            *count += 1;
            *count - 1
        })
    }

    /// Overwrites the last values of a binary SID, which identify machine and user.
    pub fn sid(&mut self, values: &mut [u8]) {
        // The key differs from any text, because no text begins with a zero unit.
        let key = [0, 0].into_iter().chain(values.iter().map(|byte| u16::from(*byte))).collect();
        let number = self.number(key);
        values.fill(0);
        let last = values.len().saturating_sub(4);
        for (byte, digit) in values[last..].iter_mut().zip((number as u32).to_le_bytes()) {
            *byte = digit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(names: &mut Placeholders, text: &str) -> String {
        String::from_utf16_lossy(names.of_text(text.encode_utf16()))
    }

    #[test]
    fn equal_names_get_equal_placeholders_of_their_length_and_case() {
        let mut names = Placeholders::default();
        for (text, expected) in [
            (
                r"\Device\HarddiskVolume3\Tools\leaky.exe",
                r"\Device\HarddiskVolume3\Qbbbb\qbbbc.exe",
            ),
            ("leaky.exe", "qbbbc.exe"),
            ("LEAKY.EXE", "QBBBC.EXE"),
            (r"C:\Windows\System32\ntdll.dll", r"C:\Windows\System32\ntdll.dll"),
            ("Leaky_Signal_41", "QbbbbbBbbbbbbbb"),
            ("Leaky_Signal_42", "QbbbbbBbbbbbbbc"),
            ("Jörg", "Qbbb"),
            ("", ""),
        ] {
            assert_eq!(redacted(&mut names, text), expected, "{text}");
        }
    }

    #[test]
    fn more_short_names_than_placeholders_are_no_error() {
        let mut names = Placeholders::default();
        let placeholders: Vec<String> =
            ('!'..='Z').map(|c| redacted(&mut names, &c.to_string())).collect();
        assert!(placeholders.iter().all(|text| text.len() == 1));
    }

    #[test]
    fn a_sid_keeps_its_length_and_stays_itself() {
        let mut names = Placeholders::default();
        let sids = [[7; 8], [8; 8], [7; 8]].map(|mut sid| {
            names.sid(&mut sid);
            sid
        });
        assert_eq!(sids[0], [0; 8]);
        assert_eq!(sids[1], [0, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(sids[2], sids[0]);
        names.sid(&mut []);
    }
}
