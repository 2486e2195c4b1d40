//! Long lines on a narrow screen.

use console::measure_text_width;

/// What lines that go on are indented by, beyond the indentation of the line.
const INDENT: usize = 2;

/// A text whose lines are broken between words where they are longer than `width`; what goes on
/// is indented. A word that is too long stays whole: it is a path, or the like, to be copied.
pub(crate) fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let lines: Vec<String> = text.split('\n').map(|line| wrapped_line(line, width)).collect();
    lines.join("\n")
}

fn wrapped_line(line: &str, width: usize) -> String {
    if measure_text_width(line) <= width {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start_matches(' ').len() + INDENT;
    let mut wrapped = String::with_capacity(line.len() + 2 * indent);
    let mut used = 0;
    let mut has_words = false;
    for word in line.split_inclusive(' ') {
        let bare = measure_text_width(word.trim_end_matches(' '));
        if has_words && used + bare > width {
            wrapped.truncate(wrapped.trim_end_matches(' ').len());
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            used = indent;
        }
        has_words |= bare > 0;
        wrapped.push_str(word);
        used += measure_text_width(word);
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_go_on_indented() {
        for (text, width, expected) in [
            ("one two", 7, "one two"),
            ("one two", 6, "one\n  two"),
            ("one two three four", 9, "one two\n  three\n  four"),
            ("  -a help of it\nnext", 11, "  -a help\n    of it\nnext"),
            ("a-word-that-is-too-long and", 9, "a-word-that-is-too-long\n  and"),
            ("äöü ß", 5, "äöü ß"),
            ("", 3, ""),
        ] {
            assert_eq!(wrapped(text, Some(width)), expected, "{text}");
        }
    }

    #[test]
    fn without_a_width_nothing_changes() {
        let long = "word ".repeat(100);
        assert_eq!(wrapped(&long, None), long);
    }
}
