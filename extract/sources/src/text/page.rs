//! Reads the text of a saved web page: tags become line breaks and spaces, entities become characters.

use std::io::{self, Read};

/// Bytes read at once.
const CHUNK: usize = 32 << 10;

/// Longest tag or comment in bytes; anything longer is text.
const MAX_TAG: usize = 4 << 10;

/// Longest entity, like `&#x200B;`.
const MAX_ENTITY: usize = 10;

/// Tags that end a line, unless the line is empty.
const BLOCKS: [&str; 24] = [
    "p",
    "div",
    "pre",
    "tr",
    "li",
    "ul",
    "ol",
    "table",
    "tbody",
    "thead",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "blockquote",
    "title",
    "body",
    "head",
    "html",
    "section",
    "article",
];

/// Tags that separate cells.
const CELLS: [&str; 2] = ["td", "th"];

/// Tags within a line.
const INLINE: [&str; 21] = [
    "span", "code", "b", "i", "u", "em", "strong", "font", "a", "img", "tt", "kbd", "samp", "meta",
    "link", "small", "sub", "sup", "mark", "center", "main",
];

/// Tags with content that is not text.
const HIDDEN: [&str; 2] = ["script", "style"];

/// Named entities; others are numbers, or not entities.
const ENTITIES: [(&str, char); 17] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", '\u{A0}'),
    ("shy", '\u{AD}'),
    ("ensp", '\u{2002}'),
    ("emsp", '\u{2003}'),
    ("thinsp", '\u{2009}'),
    ("zwnj", '\u{200C}'),
    ("zwj", '\u{200D}'),
    ("ndash", '\u{2013}'),
    ("mdash", '\u{2014}'),
    ("hellip", '\u{2026}'),
    ("minus", '\u{2212}'),
    ("times", '\u{D7}'),
];

/// Whether a text that starts like this has tags of a web page. Function names like `vector<int>` contain none.
pub fn is_page(start: &[u8]) -> bool {
    let mut tags = start.iter().enumerate().filter(|(_, byte)| **byte == b'<');
    tags.any(|(at, _)| {
        let rest = start.get(at + 1..).unwrap_or_default();
        let is_document = rest.get(..8).is_some_and(|word| word.eq_ignore_ascii_case(b"!doctype"));
        is_document || tag_name(rest).is_some_and(|name| name == "br" || BLOCKS.contains(&&*name))
    })
}

/// Returns the name, in lower case, of the tag after a `<`; `None` if it is not a tag.
fn tag_name(behind: &[u8]) -> Option<String> {
    const MAX_NAME: usize = 10;
    let name = behind.strip_prefix(b"/").unwrap_or(behind);
    let end = name.iter().take(MAX_NAME + 1).position(|byte| !byte.is_ascii_alphanumeric())?;
    let (name, rest) = name.split_at_checked(end)?;
    let is_tag = matches!(rest.first(), Some(b'>' | b'/' | b' ' | b'\t' | b'\r' | b'\n'));
    (end > 0 && is_tag).then(|| String::from_utf8_lossy(name).to_ascii_lowercase())
}

/// The text of a web page in UTF-8.
pub struct PageText<R> {
    inner: R,
    /// Bytes read, and the position of the next one.
    page: Vec<u8>,
    at: usize,
    is_at_end: bool,
    /// Text, and how much of it was handed out.
    text: Vec<u8>,
    position: usize,
    /// The tag that hides the content being skipped.
    hidden: Option<&'static str>,
    is_in_comment: bool,
    /// Whether the line so far has content.
    has_content: bool,
    /// Whether a tag just ended the line, so that the page's own line break must not end it again.
    is_after_break: bool,
}

impl<R: Read> PageText<R> {
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            page: Vec::new(),
            at: 0,
            is_at_end: false,
            text: Vec::new(),
            position: 0,
            hidden: None,
            is_in_comment: false,
            has_content: false,
            is_after_break: false,
        }
    }

    /// Reads on and translates everything except the end, which may continue in the next bytes.
    fn translate(&mut self) -> io::Result<()> {
        self.page.drain(..std::mem::take(&mut self.at));
        let before = self.page.len();
        (&mut self.inner).take(CHUNK as u64).read_to_end(&mut self.page)?;
        self.is_at_end = self.page.len() == before;
        self.text.clear();
        self.position = 0;
        let until = if self.is_at_end { 0 } else { MAX_TAG };
        while self.page.len().saturating_sub(self.at) > until {
            self.step();
        }
        Ok(())
    }

    /// Takes the next tag, entity or run of text.
    fn step(&mut self) {
        if self.is_in_comment {
            return self.comment();
        }
        let rest = self.page.get(self.at..).unwrap_or_default();
        let used = match rest.first() {
            Some(b'<') => self.tag(),
            Some(b'&') if self.hidden.is_none() => self.entity(),
            _ => None,
        };
        self.at += used.unwrap_or_else(|| self.plain());
    }

    /// Skips a comment, as far as it was read.
    fn comment(&mut self) {
        const END: &[u8] = b"-->";
        let rest = rest_of(&self.page, self.at);
        let end = rest.windows(END.len()).position(|bytes| bytes == END);
        self.is_in_comment = end.is_none();
        self.at += match end {
            Some(end) => end + END.len(),
            None if self.is_at_end => rest.len(),
            // The end mark may have begun.
            None => rest.len().saturating_sub(END.len() - 1).max(1),
        };
    }

    /// Takes a line break, or text up to the next possible tag or entity; returns its length in bytes.
    fn plain(&mut self) -> usize {
        let rest = rest_of(&self.page, self.at);
        let is_line_break = rest.first() == Some(&b'\n');
        let more = rest.iter().skip(1).take_while(|byte| !b"<&\n".contains(byte)).count();
        let run = rest.get(..=more).filter(|_| !is_line_break).unwrap_or(b"\n");
        let has_content = run.iter().any(|byte| !byte.is_ascii_whitespace());
        if self.hidden.is_none() && !(is_line_break && self.is_after_break) {
            self.text.extend(run.iter().filter(|byte| **byte != b'\r'));
        }
        if is_line_break || has_content {
            self.has_content = has_content;
            self.is_after_break = false;
        }
        run.len()
    }

    /// Takes a tag or a comment; returns its length in bytes, or `None` if it is text.
    fn tag(&mut self) -> Option<usize> {
        let rest = rest_of(&self.page, self.at);
        let behind = rest.get(1..)?;
        if self.hidden.is_none() && behind.starts_with(b"!--") {
            self.is_in_comment = true;
            return Some("<!--".len());
        }
        let is_declaration = self.hidden.is_none() && behind.starts_with(b"!");
        let name = if is_declaration { String::new() } else { tag_name(behind)? };
        let is_end = behind.starts_with(b"/");
        let inside = behind.iter().take(MAX_TAG).position(|byte| b"<>".contains(byte))?;
        if behind.get(inside) != Some(&b'>') {
            return None;
        }
        if is_declaration {
            return Some(inside + 2);
        }
        if let Some(hidden) = self.hidden {
            self.hidden = self.hidden.filter(|_| !(is_end && name == hidden));
        } else if name == "br" {
            self.end_line();
        } else if BLOCKS.contains(&&*name) {
            if self.has_content {
                self.end_line();
            }
        } else if CELLS.contains(&&*name) {
            self.text.push(b' ');
        } else if let Some(hidden) = HIDDEN.into_iter().find(|hidden| *hidden == name) {
            self.hidden = Some(hidden).filter(|_| !is_end);
        } else if !INLINE.contains(&&*name) {
            return None;
        }
        Some(inside + 2)
    }

    fn end_line(&mut self) {
        self.text.push(b'\n');
        self.has_content = false;
        self.is_after_break = true;
    }

    /// Takes an entity; returns its length in bytes, or `None` if it is text.
    fn entity(&mut self) -> Option<usize> {
        let behind = rest_of(&self.page, self.at).get(1..)?;
        let end = behind.iter().take(MAX_ENTITY).position(|byte| *byte == b';')?;
        let name = std::str::from_utf8(behind.get(..end)?).ok()?;
        let number = name.strip_prefix('#').and_then(|number| {
            let hex = number.strip_prefix(['x', 'X']);
            let code = hex.map_or_else(|| number.parse(), |hex| u32::from_str_radix(hex, 16));
            char::from_u32(code.ok()?).filter(|character| !character.is_control())
        });
        let named = || ENTITIES.iter().find(|(known, _)| *known == name);
        let character = number.or_else(|| named().map(|(_, character)| *character))?;
        self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        self.has_content |= !character.is_whitespace();
        self.is_after_break = false;
        Some(end + 2)
    }
}

fn rest_of(page: &[u8], at: usize) -> &[u8] {
    page.get(at..).unwrap_or_default()
}

impl<R: Read> Read for PageText<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        while self.position == self.text.len() {
            if self.is_at_end && self.at >= self.page.len() {
                return Ok(0);
            }
            self.translate()?;
        }
        let count = self.text.get(self.position..).unwrap_or_default().read(target)?;
        self.position += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(page: &str) -> String {
        let mut text = String::new();
        PageText::new(page.as_bytes()).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn tags_end_lines_and_part_cells_and_entities_are_characters() {
        assert_eq!(
            text("<html><body><p>a &gt; b<br>\nc<br/>d</p>\n<p>e</p></body></html>"),
            "a > b\nc\nd\ne\n"
        );
        assert_eq!(text("<tr><td>0x1:</td><td>a!f&#43;0x2</td></tr>\nx"), " 0x1:  a!f+0x2 \nx");
        assert_eq!(text("<pre>a\n\nb</pre>"), "a\n\nb\n");
        assert_eq!(text("a<br><br>\nb"), "a\n\nb");
        assert_eq!(
            text("&amp;lt; &#x3c; &nbsp;&unknown; & &#0; &"),
            "&lt; < \u{A0}&unknown; & &#0; &"
        );
    }

    #[test]
    fn what_is_no_tag_of_a_page_stays() {
        for plain in
            ["f<int,char>", "a <- b", "<lambda_1>::operator()", "x < y > z", "<", "<b", "<b<b"]
        {
            assert_eq!(text(plain), plain);
        }
    }

    #[test]
    fn scripts_styles_and_comments_are_left_out() {
        assert_eq!(
            text("<style>a { b: c }</style>x<!-- y > --><script>if (a < b) {}</script>z"),
            "xz"
        );
        assert_eq!(text("<!DOCTYPE html>\nx"), "\nx");
        assert_eq!(text("<script>never ends"), "");
        assert_eq!(text("a<!-- never ends -- >"), "a");
        let long = format!("a<!--{}-->b", "<!-- ".repeat(20_000));
        assert_eq!(text(&long), "ab");
    }

    #[test]
    fn a_page_is_known_by_its_tags() {
        for page in ["<!DOCTYPE html>", "  <HTML lang=en>", "Handle = 0x4 - OPEN<br>", "</pre>"] {
            assert!(is_page(page.as_bytes()), "{page}");
        }
        for plain in ["vector<int>", "a <brand> b", "<lambda_1>", "0:000> !htrace", "1 < 2", "<p"] {
            assert!(!is_page(plain.as_bytes()), "{plain}");
        }
    }

    #[test]
    fn parts_of_any_size_are_read_the_same() {
        let line = "<p>x &gt; y<br>\nz <b>w</b></p>\n";
        let page = line.repeat(5_000);
        assert_eq!(text(&page), text(line).repeat(5_000));
        let long = format!("a<b {}>c", "x".repeat(2 * MAX_TAG));
        assert_eq!(text(&long), long, "no tag is that long");
    }
}
