//! Text from outside: names from traces and archives, file names, command lines. It may contain anything, including
//! terminal commands and characters that reverse the writing direction.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;

/// Text or a path from outside, printed so that it cannot break lines, control the terminal, or pass for something
/// else. Characters that are [harmful](is_harmful) are escaped as in Rust (`\n`, `\u{1b}`, `\u{202e}`); bytes that are
/// not UTF-8 become U+FFFD.
#[derive(Debug, Clone, Copy)]
pub struct Untrusted<T>(pub T);

impl<T: AsRef<OsStr>> fmt::Display for Untrusted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&escaped(&self.0.as_ref().to_string_lossy()))
    }
}

/// Whether a character has an effect instead of being visible: C0, DEL, C1, the line ends U+2028 and U+2029, controls
/// of the writing direction, and invisible characters, which make two names look the same (Unicode's
/// `Default_Ignorable_Code_Point`, which includes `Bidi_Control`).
pub fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{AD}'
                | '\u{34F}'
                | '\u{61C}'
                | '\u{115F}'..='\u{1160}'
                | '\u{17B4}'..='\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{3164}'
                | '\u{FE00}'..='\u{FE0F}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF0}'..='\u{FFF8}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E0FFF}'
        )
}

fn escaped(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_plain || !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_harmful(character) {
            clean.extend(character.escape_default());
        } else {
            clean.push(character);
        }
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_hostile_name_cannot_talk_to_the_terminal() {
        for (name, expected) in [
            ("a\u{1b}[2J\nb", r"a\u{1b}[2J\nb"),
            ("\u{9b}2J\u{9d}0;x\u{9c}\u{7f}\0", r"\u{9b}2J\u{9d}0;x\u{9c}\u{7f}\u{0}"),
            ("gpj.\u{202e}exe\u{202c}", r"gpj.\u{202e}exe\u{202c}"),
            ("\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}", r"\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}"),
            ("\u{2028}\u{2029}", r"\u{2028}\u{2029}"),
            (
                "no\u{200b}te\u{ad}pad\u{feff}.exe\u{e0041}",
                r"no\u{200b}te\u{ad}pad\u{feff}.exe\u{e0041}",
            ),
            (r"\Sessions\ä 日本 …", r"\Sessions\ä 日本 …"),
        ] {
            assert_eq!(Untrusted(name).to_string(), expected);
            assert_eq!(Untrusted(Path::new(name)).to_string(), expected);
        }
        assert_eq!(format!("{:<4}|", Untrusted("ab")), "ab  |");
    }
}
