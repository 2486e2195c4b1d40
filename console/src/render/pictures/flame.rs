//! Flame graphs: the stacks that opened handles, as wide as the handles are many.

use std::fmt::Write as _;
use std::io::{self, Write};

use handlescope_model::Untrusted;
use inferno::flamegraph::{self, Options, Palette, TextTruncateDirection, color::BasicPalette};

use super::folded::{FoldedFile, Place, Weight, folded};
use super::speedscope;
use crate::paths::stem;
use crate::query::FileAnswer;

/// What the handles are that count.
const TITLE: &str = "Handles and views that were opened and not closed";

/// The stacks of some traces.
pub(crate) struct FlameGraph {
    pub(super) files: Vec<FoldedFile>,
}

impl FlameGraph {
    /// Weighs the stacks of traces that were asked for groups by process, create stack and type.
    pub(crate) fn of(files: &[FileAnswer<'_>], weight: Weight) -> Self {
        let file = |file: &FileAnswer<'_>| FoldedFile {
            name: Untrusted(&stem(file.path())).to_string(),
            stacks: folded(file, weight),
        };
        Self { files: files.iter().map(file).collect() }
    }

    /// Whether no handle counts.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.iter().all(|file| file.stacks.is_empty())
    }

    /// Writes a picture with a script that zooms and searches. Of several traces each is a frame.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write_svg(&self, out: &mut dyn Write) -> io::Result<()> {
        let lines: Vec<String> = self.files.iter().flat_map(|file| self.lines(file)).collect();
        let names: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        let mut options = Options::default();
        options.title = TITLE.to_owned();
        options.subtitle = Some(names.join(", "));
        options.count_name = "handles".to_owned();
        options.colors = Palette::Basic(BasicPalette::Hot);
        options.text_truncate_direction = TextTruncateDirection::Right;
        // The same picture every time.
        options.hash = true;
        flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
    }

    /// Writes a document for speedscope.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write_speedscope(&self, out: &mut dyn Write) -> io::Result<()> {
        speedscope::write(TITLE, &self.files, out)
    }

    /// Stacks as inferno reads them: frames divided by `;`, then the number before, if there is one, and
    /// the number.
    fn lines<'a>(&self, file: &'a FoldedFile) -> impl Iterator<Item = String> + 'a {
        let has_files = self.files.len() > 1;
        file.stacks.iter().map(move |stack| {
            let root = has_files.then(|| frame(&file.name));
            let frames = stack.frames.iter().map(|place: &Place| frame(&place.name));
            let mut line = root.into_iter().chain(frames).collect::<Vec<_>>().join(";");
            let numbers = stack.before.into_iter().chain([stack.count]);
            for number in numbers {
                // Writing to a string does not fail.
                let _ = write!(line, " {number}");
            }
            line
        })
    }
}

/// A name without what inferno takes for something else: `;` divides frames, and `# ` starts a comment. A
/// number behind a space is a count, but only at the end, where the type has brackets.
fn frame(name: &str) -> String {
    name.replace(';', ":").replace("# ", "#\u{A0}")
}

#[cfg(test)]
mod tests {
    use super::super::folded::Folded;
    use super::*;

    fn graph(stacks: &[(&[&str], Option<u64>, u64)]) -> FlameGraph {
        let stack = |(frames, before, count): &(&[&str], Option<u64>, u64)| Folded {
            frames: frames.iter().map(|name| Place::named(name)).collect(),
            count: *count,
            before: *before,
        };
        let stacks = stacks.iter().map(stack).collect();
        FlameGraph { files: vec![FoldedFile { name: "a".to_owned(), stacks }] }
    }

    fn svg(graph: &FlameGraph) -> String {
        let mut svg = Vec::new();
        graph.write_svg(&mut svg).unwrap();
        String::from_utf8(svg).unwrap()
    }

    #[test]
    fn names_stay_one_frame_whatever_is_in_them() {
        let hostile = "# <script>;alert('1') 7 & ]]>\u{202e}\n\"";
        let svg = svg(&graph(&[(&[hostile, "f 3", "[Event 5]"], None, 2)]));
        let shown = "#\u{A0}&lt;script&gt;:alert(&apos;1&apos;) 7 &amp; ]]&gt;\\u{202e}\\n&quot;";
        assert!(svg.contains(&format!("<title>{shown} (2 handles, 100.00%)")), "{svg}");
        assert!(svg.contains("<title>f 3 (2 handles"), "{svg}");
        assert!(svg.contains("<title>[Event 5] (2 handles"), "{svg}");
        assert_eq!(svg.matches("<script").count(), 1, "the one of inferno");
    }

    #[test]
    fn two_numbers_of_a_stack_are_a_difference() {
        let svg = svg(&graph(&[(&["p", "[Event]"], Some(2), 6), (&["q", "[Event]"], Some(2), 2)]));
        assert!(svg.contains("6 handles, 75.00%; +50.00%"), "{svg}");
        assert!(svg.contains("2 handles, 25.00%; 0.00%"), "{svg}");
    }
}
