//! Fits lines to the width of the terminal.

use std::borrow::Cow;
use std::io::{self, Write};

use console::{AnsiCodeIterator, measure_text_width, truncate_str};

/// Shown where a line was cut.
const CUT: &str = "…";

/// Ends all colours.
const RESET: &str = "\u{1b}[0m";

/// Columns between tab stops.
const TAB: usize = 8;

/// Marks where a line that is too long may continue on the next one, indented further: ASCII's unit separator. Only for
/// a [`Clip`] with a width.
pub const BREAK: &str = "\u{1f}";

/// Extra indentation of continued lines.
const INDENT: usize = 4;

/// A line longer than this is cut, even if its end has not come yet.
const MAX_BYTES: usize = 1 << 16;

/// Passes lines on, fitted to a width. A line that is too long continues on the next one at a [`BREAK`]; without one,
/// it is cut. Colours take no columns and end where a cut line ends; wide characters take two columns.
pub struct Clip<W: Write> {
    out: W,
    /// Columns; `None` passes everything on unchanged.
    width: Option<usize>,
    line: Vec<u8>,
    /// Whether the line was cut, so that the rest of it is dropped.
    is_cut: bool,
}

impl<W: Write> Clip<W> {
    pub fn new(out: W, width: Option<usize>) -> Self {
        Self { out, width, line: Vec::new(), is_cut: false }
    }

    /// Writes the unfinished line, and flushes the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.end_line()?;
        self.out.flush()
    }

    fn add(&mut self, text: &[u8], width: usize) -> io::Result<()> {
        if self.is_cut {
            return Ok(());
        }
        self.line.extend_from_slice(text);
        if self.line.len() > MAX_BYTES {
            self.write_line(width)?;
            self.is_cut = true;
        }
        Ok(())
    }

    /// Writes the line so far, unless it was written when it was cut.
    fn end_line(&mut self) -> io::Result<()> {
        match self.width.filter(|_| !self.line.is_empty()) {
            Some(width) => self.write_line(width),
            None => Ok(()),
        }
    }

    fn write_line(&mut self, width: usize) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.line);
        let text = without_tabs(&text);
        for (index, line) in broken(&text, width).iter().enumerate() {
            if index > 0 {
                self.out.write_all(b"\n")?;
            }
            let cut = cut(line, width);
            self.out.write_all(cut.as_bytes())?;
            if cut.len() < line.len() && cut.contains('\u{1b}') && !cut.ends_with(RESET) {
                self.out.write_all(RESET.as_bytes())?;
            }
        }
        self.line.clear();
        Ok(())
    }
}

impl<W: Write> Write for Clip<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(width) = self.width else { return self.out.write(bytes) };
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                None => self.add(piece, width)?,
                Some(last) => {
                    self.add(last, width)?;
                    self.end_line()?;
                    self.is_cut = false;
                    self.out.write_all(b"\n")?;
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the number of columns of a single line.
pub fn width_of(text: &str) -> usize {
    text.split(BREAK).map(measure_text_width).sum()
}

/// Cuts a line to at most `width` columns, and keeps the beginning.
pub fn cut(line: &str, width: usize) -> Cow<'_, str> {
    truncate_str(line, width, CUT)
}

/// Shortens a name to at most `width` columns, and keeps the end.
fn shortened(name: &str, width: usize) -> Cow<'_, str> {
    if measure_text_width(name) <= width {
        return Cow::Borrowed(name);
    }
    let mut columns = 1; // for the ellipsis
    let kept = name.char_indices().rev().take_while(|(_, character)| {
        columns += measure_text_width(character.encode_utf8(&mut [0; 4]));
        columns <= width
    });
    let start = kept.last().map_or(name.len(), |(start, _)| start);
    Cow::Owned(format!("{CUT}{}", &name[start..]))
}

/// Shortens a name to at most `width` columns, and keeps the beginning and the end.
pub fn cut_in_the_middle(name: &str, width: usize) -> Cow<'_, str> {
    if measure_text_width(name) <= width {
        return Cow::Borrowed(name);
    }
    let start = truncate_str(name, width / 2, "");
    let end = shortened(name, width.saturating_sub(measure_text_width(&start)));
    Cow::Owned(format!("{start}{end}"))
}

/// Splits a line at its breaks into as many lines as needed.
fn broken(line: &str, width: usize) -> Vec<String> {
    let joined = line.replace(BREAK, "");
    if joined.len() == line.len() || measure_text_width(&joined) <= width {
        return vec![joined];
    }
    let indent = line.len() - line.trim_start_matches(' ').len() + INDENT;
    let (mut lines, mut last, mut used) = (Vec::new(), String::new(), 0);
    for mut piece in line.split(BREAK) {
        if used > 0 && used + measure_text_width(piece.trim_end()) > width {
            lines.push(last.trim_end().to_owned());
            (last, used, piece) = (" ".repeat(indent), indent, piece.trim_start());
        }
        last.push_str(piece);
        used += measure_text_width(piece);
    }
    lines.push(last);
    lines
}

/// Expands the tabs of a line to spaces.
fn without_tabs(line: &str) -> Cow<'_, str> {
    if !line.contains('\t') {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len() + TAB);
    let mut column = 0;
    for (piece, is_code) in AnsiCodeIterator::new(line) {
        if is_code {
            text.push_str(piece);
            continue;
        }
        for segment in piece.split_inclusive('\t') {
            let visible = segment.strip_suffix('\t').unwrap_or(segment);
            text.push_str(visible);
            column += measure_text_width(visible);
            if visible.len() < segment.len() {
                let spaces = TAB - column % TAB;
                text.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clipped(text: &str, width: usize) -> String {
        // Byte by byte, so that no character arrives whole.
        let mut bytes = Vec::new();
        let mut clip = Clip::new(&mut bytes, Some(width));
        for byte in text.bytes() {
            clip.write_all(&[byte]).expect("written");
        }
        clip.finish().expect("written");
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_long_line_ends_in_an_ellipsis_and_a_line_that_fits_stays() {
        assert_eq!(clipped("0123456789\n01234\n\nabcdef", 5), "0123…\n01234\n\nabcd…");
    }

    #[test]
    fn a_long_line_goes_on_where_it_may_and_is_cut_where_it_may_not() {
        let line = "  one \u{1f}two \u{1f} three-and-four\u{1f}five\n";
        assert_eq!(clipped(line, 40), "  one two  three-and-fourfive\n");
        assert_eq!(clipped(line, 14), "  one two\n      three-a…\n      five\n");
        let colored = "ab \u{1f}\u{1b}[31mcdef\u{1b}[0m\n";
        assert_eq!(clipped(colored, 6), "ab\n    \u{1b}[31mc…\u{1b}[0m\n");
    }

    #[test]
    fn a_wide_character_takes_two_columns() {
        assert_eq!(clipped("日本語\n日本\n", 5), "日本…\n日本\n");
        assert_eq!(clipped("日本語\n", 4), "日…\n");
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        for (name, width, expected) in [
            (r"\Base\Event_1", 13, r"\Base\Event_1"),
            (r"\Base\Event_1", 8, "…Event_1"),
            ("日本語", 5, "…本語"),
            ("日本語", 4, "…語"),
            ("ab", 1, "…"),
            ("ab", 0, "…"),
        ] {
            assert_eq!(shortened(name, width), expected, "{name} {width}");
        }
    }

    #[test]
    fn a_name_that_is_cut_in_the_middle_keeps_both_ends() {
        assert_eq!(cut_in_the_middle("Cache::GetOrCreate", 10), "Cache…eate");
        assert_eq!(cut_in_the_middle("日本語日本語", 8), "日本…語");
        assert_eq!(cut_in_the_middle("ab", 2), "ab");
    }

    #[test]
    fn colors_take_no_column_and_end_with_the_line() {
        let line = "ab\u{1b}[31mcdef\u{1b}[0m\n";
        assert_eq!(clipped(line, 6), line);
        assert_eq!(clipped(line, 4), "ab\u{1b}[31mc…\u{1b}[0m\n");
    }

    #[test]
    fn a_tab_goes_to_the_next_eighth_column() {
        assert_eq!(clipped("\tab\n", 10), "        ab\n");
        assert_eq!(clipped("abc\tde\n", 9), "abc     …\n");
    }

    #[test]
    fn a_line_without_end_is_cut_in_bounded_memory() {
        let mut bytes = Vec::new();
        let mut clip = Clip::new(&mut bytes, Some(10));
        for _ in 0..100_000 {
            clip.write_all("\u{1b}[31mäöü".as_bytes()).expect("written");
            assert!(clip.line.len() <= MAX_BYTES + 11);
        }
        clip.write_all(b"\nnext\n").expect("written");
        clip.finish().expect("written");
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(console::strip_ansi_codes(&text), "äöüäöüäöü…\nnext\n");
    }

    #[test]
    fn without_a_width_everything_passes() {
        let mut bytes = Vec::new();
        let mut clip = Clip::new(&mut bytes, None);
        clip.write_all(b"a\tb").expect("written");
        clip.finish().expect("written");
        assert_eq!(bytes, b"a\tb");
    }
}
