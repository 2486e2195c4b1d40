//! Text that cannot disturb the terminal.

use std::fmt;

/// Text out of a trace. A name may hold anything: control characters are escaped, so that it
/// cannot break lines or talk to the terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clean<'a>(pub(crate) &'a str);

impl fmt::Display for Clean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains(char::is_control) {
            return f.write_str(self.0);
        }
        for character in self.0.chars() {
            match character.is_control() {
                true => write!(f, "{}", character.escape_default())?,
                false => write!(f, "{character}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_cannot_talk_to_the_terminal() {
        assert_eq!(Clean("a\u{1b}[2J\nb").to_string(), r"a\u{1b}[2J\nb");
        assert_eq!(Clean(r"\Sessions\ä").to_string(), r"\Sessions\ä");
    }
}
