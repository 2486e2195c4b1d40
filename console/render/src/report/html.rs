//! The HTML that a page shows before its script runs.

use std::fmt::{self, Display, Formatter, Write as _};

use handlescope_model::Untrusted;
use quick_xml::escape::escape;

/// Returns a text in which nothing has an effect, but markup is left as it is.
pub fn clean(text: &str) -> String {
    Untrusted(text).to_string()
}

/// A text that contains no markup.
pub struct EscapedText<'a>(pub &'a str);

impl Display for EscapedText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(Untrusted(self.0).to_string()))
    }
}

/// A function name that can break after its parts, but not inside words.
pub struct BreakableName<'a>(pub &'a str);

impl Display for BreakableName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, part) in parts(self.0).into_iter().enumerate() {
            let space = if index > 0 { "<wbr>" } else { "" };
            write!(f, "{space}{}", EscapedText(part))?;
        }
        Ok(())
    }
}

/// Splits a name into parts: modules, namespaces, classes, functions, arguments.
fn parts(name: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let mut letters = name.char_indices().peekable();
    let mut last = ' ';
    while let Some((at, letter)) = letters.next() {
        let Some((end, next)) = letters.peek().copied() else { break };
        let is_end = match letter {
            ':' => last == ':',
            '.' => next.is_uppercase(),
            ',' => next.is_alphabetic(),
            letter => "!<\\/".contains(letter),
        };
        if is_end && at >= start {
            parts.extend(name.get(start..end));
            start = end;
        }
        last = letter;
    }
    parts.extend(name.get(start..));
    parts
}

/// Adds a paragraph with a class.
pub fn paragraph(html: &mut String, class: &str, text: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(html, "<p class=\"{class}\">{}</p>", EscapedText(text));
}

/// Adds a table that also looks like one without a style sheet.
fn table<C: Display>(
    html: &mut String,
    titles: &[&str],
    rows: impl IntoIterator<Item = impl IntoIterator<Item = C>>,
) {
    let start = "<table border=\"1\" cellpadding=\"4\" cellspacing=\"0\">\n<thead><tr>";
    html.push_str(start);
    for title in titles {
        let _ = write!(html, "<th>{}</th>", EscapedText(title));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (cell, title) in row.into_iter().zip(titles) {
            let class = title.to_lowercase().replace(' ', "-");
            let title = EscapedText(title);
            let _ = write!(html, "<td class=\"{class}\" data-title=\"{title}\">{cell}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
}

/// Adds the heading and the table of suspects, and the line about those that it leaves out.
pub fn suspects<C: Display>(
    html: &mut String,
    titles: &[&str],
    rows: impl IntoIterator<Item = impl IntoIterator<Item = C>>,
    others: Option<&str>,
) {
    html.push_str("<h2>Suspects</h2>\n<div class=\"suspects\">\n");
    table(html, titles, rows);
    if let Some(others) = others {
        paragraph(html, "dim", &format!("+ {others}"));
    }
    html.push_str("</div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_break_behind_their_parts_and_are_no_markup() {
        for (name, html) in [
            ("a.exe!ns::C<int>::F", "a.exe!<wbr>ns::<wbr>C&lt;<wbr>int&gt;::<wbr>F"),
            ("m!System.Threading.Timer.New", "m!<wbr>System.<wbr>Threading.<wbr>Timer.<wbr>New"),
            ("GetOrCreate_2 leaky.cpp:1,029", "GetOrCreate_2 leaky.cpp:1,029"),
            ("C<int,long> f(a, b)", "C&lt;<wbr>int,<wbr>long&gt; f(a, b)"),
            ("<b>\u{202e}", "&lt;<wbr>b&gt;\\u{202e}"),
            ("a::", "a::"),
            ("", ""),
        ] {
            assert_eq!(BreakableName(name).to_string(), html, "{name}");
        }
    }

    #[test]
    fn a_table_has_the_headings_of_its_cells() {
        let mut html = String::new();
        table(&mut html, &["A", "B"], [[EscapedText("1"), EscapedText("<2>")]]);
        assert!(html.contains("<tr><th>A</th><th>B</th></tr>"), "{html}");
        let row = "<td class=\"a\" data-title=\"A\">1</td><td class=\"b\" data-title=\"B\">&lt;2&gt;</td>";
        assert!(html.contains(row), "{html}");
    }
}
