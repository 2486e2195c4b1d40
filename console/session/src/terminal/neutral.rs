//! The last step before a terminal or a reader of JSON: makes sure that nothing printed can control it.
//!
//! [`Untrusted`] escapes names where they are put into a text. This catches what was not escaped there, and formats
//! that keep names as they are.

use std::borrow::Cow;
use std::io::{self, Write};

use handlescope_model::{Untrusted, is_harmful};

use super::theme::COLORS;

/// Longest escape sequence recognized as a colour, in bytes.
const MAX_STYLE_LENGTH: usize = 24;

/// Ends all styles.
const RESET: &[u8] = b"\x1b[0m";

/// Sequences that end a style: in text, and in table cells, which have only a colour.
const END_OF_STYLES: [&[u8]; 3] = [RESET, b"\x1b[m", b"\x1b[39m"];

/// Passes text on, and escapes every [`is_harmful`] character.
pub struct Neutral<W: Write> {
    out: W,
    escaping: Escaping,
    /// The start of a character or colour that is not complete yet.
    held: Vec<u8>,
    /// Styles still open. They end with the line and start again on the next one, because a pager shows each line on
    /// its own.
    styles: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escaping {
    /// Everything passes.
    Off,
    /// Lines, tabs and colours pass; the rest is escaped as in Rust.
    Terminal,
    /// Everything that JSON allows raw but a terminal would obey is escaped as in JSON.
    Json,
}

impl Escaping {
    /// Whether a quick check shows that none of these bytes needs escaping.
    fn passes(self, bytes: &[u8]) -> bool {
        self == Escaping::Json && bytes.is_ascii() && !bytes.contains(&0x7F)
    }
}

/// What to do with the first bytes of the input.
enum InputStep {
    /// Pass this number of bytes.
    Pass(usize),
    /// Pass this number of bytes, which start or end a style.
    Style(usize),
    /// End the line.
    Line,
    /// Escape this number of bytes, which encode this character.
    Escape(usize, char),
    /// Wait for more bytes.
    Wait,
}

impl<W: Write> Neutral<W> {
    /// Creates a writer to a terminal; if `is_terminal` is false, everything passes unchanged.
    pub fn terminal(out: W, is_terminal: bool) -> Self {
        let escaping = if is_terminal { Escaping::Terminal } else { Escaping::Off };
        Self { out, escaping, held: Vec::new(), styles: Vec::new() }
    }

    /// Creates a writer of JSON; the document stays equivalent.
    pub fn json(out: W) -> Self {
        Self { out, escaping: Escaping::Json, held: Vec::new(), styles: Vec::new() }
    }

    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (mut start, mut end) = (0, 0);
        while let Some(rest) = bytes.get(end..).filter(|rest| !rest.is_empty()) {
            let plain = rest.iter().take_while(|byte| matches!(byte, b' '..=b'~')).count();
            if plain > 0 {
                end += plain;
                continue;
            }
            match step(self.escaping, rest) {
                InputStep::Pass(count) => end += count,
                InputStep::Style(count) => {
                    let style = rest.get(..count).unwrap_or_default();
                    if END_OF_STYLES.contains(&style) {
                        self.styles.clear();
                    } else {
                        self.styles.extend_from_slice(style);
                    }
                    end += count;
                }
                InputStep::Line if self.styles.is_empty() => end += 1,
                InputStep::Line => {
                    self.out.write_all(bytes.get(start..end).unwrap_or_default())?;
                    self.out.write_all(RESET)?;
                    self.out.write_all(b"\n")?;
                    self.out.write_all(&self.styles)?;
                    end += 1;
                    start = end;
                }
                InputStep::Wait => {
                    self.held.extend_from_slice(rest);
                    break;
                }
                InputStep::Escape(count, character) => {
                    self.out.write_all(bytes.get(start..end).unwrap_or_default())?;
                    match self.escaping {
                        Escaping::Json => {
                            for unit in character.encode_utf16(&mut [0; 2]) {
                                write!(self.out, "\\u{unit:04x}")?;
                            }
                        }
                        _ => write!(self.out, "{}", character.escape_default())?,
                    }
                    end += count;
                    start = end;
                }
            }
        }
        self.out.write_all(bytes.get(start..end).unwrap_or_default())
    }
}

impl<W: Write> Write for Neutral<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.escaping == Escaping::Off {
            return self.out.write(bytes);
        }
        match self.held.is_empty() {
            true if self.escaping.passes(bytes) => self.out.write_all(bytes)?,
            true => self.pass(bytes)?,
            false => {
                let mut held = std::mem::take(&mut self.held);
                held.extend_from_slice(bytes);
                self.pass(&held)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn step(escaping: Escaping, bytes: &[u8]) -> InputStep {
    let (Some(&first), is_json) = (bytes.first(), escaping == Escaping::Json) else {
        return InputStep::Wait;
    };
    match first {
        b'\n' if !is_json => InputStep::Line,
        b'\n' | b'\t' => InputStep::Pass(1),
        // JSON strings contain none of these; elsewhere they are its white space.
        0..b' ' if is_json => InputStep::Pass(1),
        0x1B => style(bytes),
        0..b' ' | 0x7F => InputStep::Escape(1, char::from(first)),
        0xC2..=0xDF => character(bytes, 2),
        0xE0..=0xEF => character(bytes, 3),
        0xF0..=0xF4 => character(bytes, 4),
        _ => InputStep::Pass(1),
    }
}

/// Decides what to do with a character of `count` bytes.
fn character(bytes: &[u8], count: usize) -> InputStep {
    let Some(bytes) = bytes.get(..count) else { return InputStep::Wait };
    let character = std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next());
    match character {
        Some(character) if is_harmful(character) => InputStep::Escape(count, character),
        Some(_) => InputStep::Pass(count),
        None => InputStep::Pass(1),
    }
}

/// Recognizes `ESC [ numbers m` if the numbers are of styles that hide nothing: bold, dim, underlined, and text
/// colours, except black and those the theme does not use.
fn style(bytes: &[u8]) -> InputStep {
    let Some(behind) = bytes.get(1..).filter(|rest| !rest.is_empty()) else {
        return InputStep::Wait;
    };
    let Some(rest) = behind.strip_prefix(b"[") else { return InputStep::Escape(1, '\u{1b}') };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
    let numbers = rest.get(..length).unwrap_or_default();
    match rest.get(length) {
        None if length < MAX_STYLE_LENGTH => InputStep::Wait,
        Some(b'm') if is_visible(numbers) => InputStep::Style(length + 3),
        _ => InputStep::Escape(1, '\u{1b}'),
    }
}

fn is_visible(numbers: &[u8]) -> bool {
    let mut numbers = numbers.split(|byte| *byte == b';');
    while let Some(number) = numbers.next() {
        let is_visible = match number {
            b"" | b"0" | b"1" | b"2" | b"4" | [b'3', b'1'..=b'7' | b'9'] | [b'9', b'0'..=b'7'] => {
                true
            }
            // One of 256 colours.
            b"38" => numbers.next() == Some(b"5") && numbers.next().is_some_and(is_visible_color),
            _ => false,
        };
        if !is_visible {
            return false;
        }
    }
    true
}

fn is_visible_color(number: &[u8]) -> bool {
    let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    number.is_some_and(|number: u8| matches!(number, 1..=15) || COLORS.contains(&number))
}

/// Escapes everything in a text except line ends.
pub fn neutral_lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|character| character != '\n' && is_harmful(character)) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<String> = text.split('\n').map(|line| Untrusted(line).to_string()).collect();
    Cow::Owned(lines.join("\n"))
}

/// Escapes everything in a text except lines, tabs and colours.
pub fn neutral(text: &str) -> String {
    let mut clean = Vec::with_capacity(text.len());
    // Writing to memory does not fail. Whatever is still held at the end is not a complete colour.
    let _ = Neutral::terminal(&mut clean, true).write_all(text.as_bytes());
    String::from_utf8_lossy(&clean).into_owned()
}

/// Replaces each [`is_harmful`] character of a typed line by a harmless one of the same length, because an editor
/// counts the bytes up to the cursor.
pub fn same_length(text: &str) -> Cow<'_, str> {
    let acts = |character| !['\n', '\t'].contains(&character) && is_harmful(character);
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().map(|character| match character.len_utf8() {
        _ if !acts(character) => character,
        1 => '?',
        2 => '·',
        3 => '□',
        _ => '🞎',
    });
    Cow::Owned(shown.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character that acts instead of being shown.
    fn all_harmful() -> impl Iterator<Item = char> {
        ('\0'..=char::MAX).filter(|character| is_harmful(*character))
    }

    /// Returns the text as written in pieces of at most `pieces` bytes.
    fn written(
        text: &str,
        pieces: usize,
        new: impl Fn(&mut Vec<u8>) -> Neutral<&mut Vec<u8>>,
    ) -> String {
        let mut bytes = Vec::new();
        let mut out = new(&mut bytes);
        for piece in text.as_bytes().chunks(pieces) {
            out.write_all(piece).expect("written");
        }
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn nothing_but_lines_tabs_and_colors_reaches_a_terminal() {
        let harmful: String = all_harmful().flat_map(|character| [character, 'x']).collect();
        for pieces in [1, 2, 3, 1000] {
            let text = written(&harmful, pieces, |out| Neutral::terminal(out, true));
            let left: Vec<char> = text.chars().filter(|c| is_harmful(*c)).collect();
            assert_eq!(left, ['\t', '\n'], "pieces of {pieces}");
            assert_eq!(text.matches('x').count(), harmful.matches('x').count());
        }
        let plain = "ä日本…┆ \u{1b}[1;33mwarning\u{1b}[0m\t\u{1b}[90mdim\u{1b}[m \u{1b}[38;5;14mcyan\u{1b}[39m\n";
        for pieces in [1, 2, 5, 1000] {
            assert_eq!(written(plain, pieces, |out| Neutral::terminal(out, true)), plain);
        }
    }

    #[test]
    fn hiding_moving_and_title_sequences_are_no_colors() {
        for (text, expected) in [
            ("\u{1b}[8mhidden", r"\u{1b}[8mhidden"),
            ("\u{1b}[30;40m", r"\u{1b}[30;40m"),
            ("\u{1b}[38;5;0m", r"\u{1b}[38;5;0m"),
            ("\u{1b}[38;5;16m", r"\u{1b}[38;5;16m"),
            ("\u{1b}[1;38;5;16m", r"\u{1b}[1;38;5;16m"),
            ("\u{1b}[38;5m", r"\u{1b}[38;5m"),
            ("\u{1b}[38;5;14;8m", r"\u{1b}[38;5;14;8m"),
            ("\u{1b}[2J\u{1b}[1A", r"\u{1b}[2J\u{1b}[1A"),
            ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
            ("\u{9b}2J", r"\u{9b}2J"),
            ("a\rb", r"a\rb"),
        ] {
            for pieces in [1, 1000] {
                assert_eq!(written(text, pieces, |out| Neutral::terminal(out, true)), expected);
            }
        }
        let digits = format!("\u{1b}[{}", "1".repeat(100));
        assert!(neutral(&digits).starts_with(r"\u{1b}[11"));
    }

    #[test]
    fn a_style_goes_on_in_the_next_line() {
        for color in COLORS {
            let style = format!("\u{1b}[1;38;5;{color}m");
            let text = format!("{style}one\n  two\u{1b}[0m\nthree\n");
            let expected = format!("{style}one\u{1b}[0m\n{style}  two\u{1b}[0m\nthree\n");
            for pieces in [1, 3, 1000] {
                let shown = written(&text, pieces, |out| Neutral::terminal(out, true));
                assert_eq!(shown, expected);
            }
        }
        let cell = "\u{1b}[38;5;63ma\u{1b}[39m b\nc\n";
        assert_eq!(written(cell, 1000, |out| Neutral::terminal(out, true)), cell);
    }

    #[test]
    fn json_is_the_same_json_and_cannot_talk_to_a_terminal() {
        let harmful: String = all_harmful().collect();
        let json = serde_json::to_string_pretty(&[&harmful]).expect("json");
        for pieces in [1, 2, 1000] {
            let text = written(&json, pieces, |out| Neutral::json(out));
            assert!(!text.contains(|c| c != '\n' && is_harmful(c)), "{text:?}");
            let read: Vec<String> = serde_json::from_str(&text).expect("json");
            assert_eq!(read, [harmful.as_str()]);
        }
    }

    #[test]
    fn a_pipe_gets_everything_as_it_is() {
        let text = "a\u{1b}[2J\u{202e}\u{200b}";
        assert_eq!(written(text, 1, |out| Neutral::terminal(out, false)), text);
    }

    #[test]
    fn a_typed_line_keeps_its_length() {
        let line = ".load a\u{1b}]0;x\u{9c}\u{202e}\u{e0041}\n ä";
        let shown = same_length(line);
        assert_eq!(shown.len(), line.len());
        assert_eq!(shown, ".load a?]0;x·□🞎\n ä");
    }
}
