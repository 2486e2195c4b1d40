//! Wraps long lines on a narrow screen and in a narrow column.

use std::borrow::Cow;
use std::sync::LazyLock;

use console::measure_text_width;
use regex::Regex;
use textwrap::WordSeparator;
use textwrap::core::{Word, break_words};
use textwrap::wrap_algorithms::wrap_first_fit;

/// A word with the spaces after it. Spaces in a folder name, which a `\` follows, do not end a word.
static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let folder = r#"[^ \\/:*?"<>|]+(?: +[^ \\/:*?"<>|]+)*\\"#;
    Regex::new(&format!(r"[^ \\]*(?:\\(?:{folder})*[^ \\]*)* *")).ok()
});

/// Dividers in a path, and between the module, scopes and arguments of a function.
static DIVIDERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?:[\\/!,]|::)+").ok());

/// What stays on a line, with the spaces after it: short text in parentheses, a number with its unit, or a word.
static PHRASES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:\([^()\n]{1,40}\)[^ ]*|[0-9][0-9.,]* [^ (][^ ]*|[^ ]+) *|^ +").ok()
});

/// Extra indentation of continued lines.
const INDENT: usize = 2;

/// Breaks lines longer than `width` between words, but not after a number or inside short parentheses, and indents the
/// continuation. A word that is too long stays whole, because it is a path or the like, to be copied.
pub fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let lines: Vec<String> = text.split('\n').map(|line| wrapped_line(line, width)).collect();
    lines.join("\n")
}

/// Returns the parts of a text that stay on one line, each with the spaces behind it: together they are the text.
pub fn phrases(text: &str) -> impl Iterator<Item = &str> {
    PHRASES.iter().flat_map(move |phrases| phrases.find_iter(text)).map(|phrase| phrase.as_str())
}

fn wrapped_line(line: &str, width: usize) -> String {
    if measure_text_width(line) <= width {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start_matches(' ').len() + INDENT;
    let mut wrapped = String::with_capacity(line.len() + 2 * indent);
    let mut used = 0;
    let mut has_words = false;
    for word in phrases(line) {
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

/// Breaks a name longer than `width` after its dividers, and indents what follows.
pub fn wrapped_name(name: &str, width: Option<usize>) -> Cow<'_, str> {
    let Some(width) = width.filter(|width| measure_text_width(name) > *width) else {
        return Cow::Borrowed(name);
    };
    let lines = cell_lines(name, width.saturating_sub(INDENT).max(1));
    Cow::Owned(lines.join(&format!("\n{}", " ".repeat(INDENT))))
}

/// Wraps the lines of a cell that are wider than the column. They break between words. A word that is itself too wide
/// breaks after its dividers, so that copied text is complete; elsewhere only if a part of it is too wide.
pub fn wrapped_cell(text: &str, width: usize) -> String {
    let lines: Vec<String> = text.split('\n').flat_map(|line| cell_lines(line, width)).collect();
    lines.join("\n")
}

fn cell_lines(line: &str, width: usize) -> Vec<String> {
    let words = WORDS
        .iter()
        .flat_map(|words| words.find_iter(line))
        .map(|word| Word::from(word.as_str()))
        .flat_map(|word| split_word(word, width));
    let words = break_words(words, width);
    wrap_first_fit(&words, &[width as f64])
        .into_iter()
        .map(|words| {
            let text: String = words.iter().flat_map(|word| [word.word, word.whitespace]).collect();
            text.trim_end_matches(' ').to_owned()
        })
        .collect()
}

/// Splits a word that is too wide into parts, each with its divider at the end.
fn split_word(word: Word<'_>, width: usize) -> Vec<Word<'_>> {
    if word.width <= width {
        return vec![word];
    }
    let dividers = DIVIDERS.iter().flat_map(|dividers| dividers.find_iter(word.word));
    let mut pieces = Vec::new();
    let (mut rest, mut start) = (word.word, 0);
    for divider in dividers {
        let (piece, after) = rest.split_at(divider.end() - start);
        match Word::from(piece) {
            piece if piece.width <= width => pieces.push(piece),
            _ => pieces.extend(WordSeparator::AsciiSpace.find_words(piece)),
        }
        (rest, start) = (after, divider.end());
    }
    pieces.push(Word { whitespace: word.whitespace, ..Word::from(rest) });
    pieces
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
            ("closed after 732 ms", 16, "closed after\n  732 ms"),
            ("about 3 (95 %: 2 to 4); x", 14, "about 3\n  (95 %: 2 to 4);\n  x"),
            ("", 3, ""),
        ] {
            assert_eq!(wrapped(text, Some(width)), expected, "{text}");
        }
    }

    #[test]
    fn a_long_name_goes_on_indented_behind_what_divides_it() {
        let frame = "app.exe!one::Cache::GetOrCreate a.cpp:29";
        for (width, expected) in [
            (None, frame),
            (Some(40), frame),
            (Some(39), "app.exe!one::Cache::GetOrCreate\n  a.cpp:29"),
            (Some(30), "app.exe!one::Cache::\n  GetOrCreate a.cpp:29"),
        ] {
            assert_eq!(wrapped_name(frame, width), expected);
        }
    }

    #[test]
    fn cells_break_between_words_then_behind_dividers_then_anywhere() {
        for (text, width, expected) in [
            (r"C:\Windows\System32\ntdll.dll", 12, "C:\\Windows\\\nSystem32\\\nntdll.dll"),
            (r"from C:\Windows\x", 12, "from\nC:\\Windows\\x"),
            (r"\\server\share", 9, "\\\\server\\\nshare"),
            ("/usr/lib/x86_64", 9, "/usr/lib/\nx86_64"),
            (
                r"C:\Program Files (x86)\My Tool\a.exe",
                22,
                "C:\\\nProgram Files (x86)\\\nMy Tool\\a.exe",
            ),
            (
                r"C:\Program Files\a.exe -o D:\My Files\b",
                26,
                "C:\\Program Files\\a.exe -o\nD:\\My Files\\b",
            ),
            (r"C:\Program Files\a.exe", 9, "C:\\\nProgram\nFiles\\\na.exe"),
            ("C:\\Windows.old -k x", 9, "C:\\\nWindows.o\nld -k x"),
            ("https://a.example/x", 9, "https://\na.example\n/x"),
            (
                "app.exe!std::vector<int>::push(int,char)",
                12,
                "app.exe!\nstd::\nvector<int>:\n:push(int,\nchar)",
            ),
            ("abcdefgh", 3, "abc\ndef\ngh"),
            ("a:b:c", 3, "a:b\n:c"),
            (r"日本\日本語", 6, "日本\\\n日本語"),
            ("one two\n  three four", 8, "one two\n  three\nfour"),
            ("\u{a0}\u{a0}a bc", 5, "\u{a0}\u{a0}a\nbc"),
            ("", 3, ""),
        ] {
            assert_eq!(wrapped_cell(text, width), expected, "{text}");
        }
    }

    #[test]
    fn text_copied_from_a_cell_is_complete() {
        let path =
            r"\Device\HarddiskVolume3\Program Files (x86)\日本語\App Data\Local\a,b!c::d.tmp";
        let widest = measure_text_width(r"Program Files (x86)\");
        for width in 1..100 {
            let cell = wrapped_cell(path, width);
            assert!(cell.lines().all(|line| measure_text_width(line) <= width.max(2)), "{cell}");
            let without = |text: &str| text.replace(['\n', ' '], "");
            assert_eq!(without(&cell), without(path), "{width}");
            assert!(width < widest || cell.replace('\n', "") == path, "{width}: {cell}");
        }
    }

    #[test]
    fn without_a_width_nothing_changes() {
        let long = "word ".repeat(100);
        assert_eq!(wrapped(&long, None), long);
    }
}
