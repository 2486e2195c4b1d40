//! Removes from lines what web pages, mail and chat programs add.

use std::borrow::Cow;

/// Restores what web pages and mail replace in a program's output: spaces of other widths, typographic dashes, the
/// multiplication sign in `0×1A`, and table borders. Drops characters without width.
pub fn tidy(line: &str) -> Cow<'_, str> {
    if line.is_ascii() {
        return without_borders(Cow::Borrowed(line));
    }
    let mut text = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => {
                text.push(' ');
            }
            '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' | '\u{AD}' => {}
            '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FF0D}' => text.push('-'),
            '\u{D7}' if text.ends_with('0') => text.push('x'),
            '\u{2502}' | '\u{2503}' => text.push('|'),
            other => text.push(other),
        }
    }
    without_borders(Cow::Owned(text))
}

/// Removes the borders of a table row: `| a | b |`.
fn without_borders(line: Cow<'_, str>) -> Cow<'_, str> {
    let row = line.trim();
    if row.len() > 2 && row.starts_with('|') && row.ends_with('|') {
        return Cow::Owned(line.replace('|', " "));
    }
    line
}

/// Returns a line without its leading line number, chat time stamp, or both; `None` if it has neither.
pub fn without_marks(line: &str) -> Option<&str> {
    /// Maximum number of marks on a line: a time, the name of the writer, and a number.
    const MAX_MARKS: usize = 4;
    let (mut rest, mut has_time) = (line.trim_start(), false);
    for _ in 0..MAX_MARKS {
        let Some((behind, is_time)) = behind_mark(rest) else { break };
        (rest, has_time) = (behind.trim_start(), has_time || is_time);
    }
    if has_time {
        rest = without_name(rest);
    }
    (rest.len() < line.trim_start().len()).then_some(rest)
}

/// Strips the name of the writer from a line: `Bob: `, `<bob> `.
fn without_name(line: &str) -> &str {
    let is_name = |name: &str| {
        let is_marked = name.ends_with(':') || name.starts_with('<') && name.ends_with('>');
        // Addresses and prompts end with a colon, too.
        is_marked && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    let named = line.split_once([' ', '\t']).filter(|(name, _)| is_name(name));
    named.map_or(line, |(_, rest)| rest.trim_start())
}

/// Returns what follows a mark, and whether the mark is a time.
fn behind_mark(line: &str) -> Option<(&str, bool)> {
    let is_of_times = |text: &str| {
        let is_of_time = |c: char| c.is_ascii_digit() || " :./,-TZAPMapm".contains(c);
        text.contains(|c: char| c.is_ascii_digit()) && text.chars().all(is_of_time)
    };
    if let Some((inside, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return is_of_times(inside).then_some((rest, true));
    }
    let (word, rest) = line.split_once([' ', '\t'])?;
    let digits = word.trim_end_matches(['.', ':', ')', '|', ',']);
    let is_time = digits.contains([':', '-', '/', '.']) && is_of_times(digits);
    let is_half = ["AM", "PM", "am", "pm"].contains(&digits);
    if is_time || is_half {
        return Some((rest.trim_start_matches('-'), true));
    }
    let is_number = digits.len() <= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && !digits.is_empty() {
        return Some((rest.trim_start_matches(['|', ' ', '\t']), false));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_dashes_and_signs_become_those_of_a_program() {
        assert_eq!(tidy("Handle\u{A0}= 0\u{D7}34\u{200B} \u{2013} OPEN"), "Handle = 0x34 - OPEN");
        assert_eq!(tidy("\u{2014}\u{2014}"), "--");
        assert_eq!(tidy("| 0x1: a!f+0x2 |"), "  0x1: a!f+0x2  ");
        assert!(matches!(tidy("0x1: a!operator|+0x2"), Cow::Borrowed(_)));
        assert_eq!(tidy("2 \u{D7} 3"), "2 \u{D7} 3");
    }

    #[test]
    fn numbers_and_time_stamps_are_marks() {
        let entry = "Handle = 0x34 - OPEN";
        for mark in [
            "12 ",
            "  7: ",
            "12. ",
            "3) ",
            "[12] ",
            "10:32 ",
            "[10:32:05] ",
            "[10:32 AM] Alice: ",
            "10:32 <bob> ",
            "10:32 PM - Bob: ",
            "2024-05-01 10:32:05.123 ",
            "[2024-05-01T10:32:05Z] ",
            "5/1/2024, 10:32 AM - Bob: ",
            "12 | ",
        ] {
            assert_eq!(without_marks(&format!("{mark}{entry}")), Some(entry), "{mark}");
        }
        let frame = "0x77ca310c: ntdll!NtClose+0xc";
        for mark in ["[10:32 AM] Bob: ", "10:32 ", "7 ", "10:32 <bob> "] {
            assert_eq!(without_marks(&format!("{mark}{frame}")), Some(frame), "{mark}");
        }
        for line in [entry, "0x77ca310c: ntdll!NtClose", "a: b", "0:000> g", "word word", "", "12"]
        {
            assert_eq!(without_marks(line), None, "{line}");
        }
    }
}
