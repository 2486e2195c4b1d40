//! Flame graphs of the stacks that opened handles; the width is the number of handles.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write};

use handlescope_model::Untrusted;
use inferno::flamegraph::color::{BasicPalette, PaletteMap};
use inferno::flamegraph::{self, Options, Palette, TextTruncateDirection};

use super::folded::{FoldedFile, PictureFrame, unit};
use super::group::{PictureGroup, Weight, allocation_groups, handle_groups};
use super::{Measure, speedscope};
use crate::text::trace_name;
use handlescope_query::{
    Amount, Domain, FileAnswer, PointsDiff, ResourcesAnswer, TraceAnswer, TracesDiff,
};

/// Title that says which handles count.
const TITLE: &str = "Handles and views opened and not closed";

/// Maximum total width of all stacks. Inferno adds them up, and a file may claim any number of bytes.
const MAX_WIDTH: u64 = 1 << 62;

/// Meaning of the colours in a comparison.
const COLOURS: &str = "red: more, blue: fewer";

/// The stacks of some traces.
#[derive(Default)]
pub struct FlameGraph {
    pub title: String,
    pub subtitle: String,
    /// Unit of the counts.
    pub unit: &'static str,
    pub files: Vec<FoldedFile>,
    /// Whether the counts are compared with those before.
    compares: bool,
}

impl FlameGraph {
    /// Creates a graph of traces; allocations are counted in a unit of the measure, handles in one of their types.
    fn from_files(
        measure: Measure,
        files: Vec<FoldedFile>,
        title: String,
        subtitle: String,
    ) -> Self {
        let unit = if measure == Measure::Handles { unit(&files) } else { measure.unit() };
        Self { title, subtitle, unit, files, compares: false }
    }

    /// Weighs the stacks of traces. The answers must have groups by process, create stack and type.
    pub fn new(files: &[FileAnswer<'_>], weight: Weight) -> Self {
        let files = files
            .iter()
            .map(|file| FoldedFile::new(file, handle_groups(file, weight), Measure::Handles));
        let files: Vec<FoldedFile> = files.collect();
        let subtitle = names(&files);
        Self::from_files(Measure::Handles, files, TITLE.to_owned(), subtitle)
    }

    /// Weighs the stacks of allocations by their bytes, or by their number if requested or if nothing has bytes. The
    /// answers must have groups by process, create stack, kind and allocator.
    pub fn from_allocations(answers: &[ResourcesAnswer<'_>], by_count: bool) -> Self {
        let amounts = answers
            .iter()
            .flat_map(|answer| answer.shown_groups())
            .map(|group| group.stats.unreleased());
        let measure = if by_count { Measure::Allocations } else { Measure::new(amounts) };
        let files = answers.iter().map(|answer| {
            let groups =
                answer.shown_groups().filter(|group| group.stats.unreleased() != Amount::default());
            FoldedFile::new(answer, allocation_groups(answer, groups), measure)
        });
        let files: Vec<FoldedFile> = files.collect();
        let (title, subtitle) =
            (format!("Allocated and not freed ({})", measure.unit()), names(&files));
        Self::from_files(measure, files, title, subtitle)
    }

    /// Weighs the allocations or handles at the second of two points, compared with the first.
    pub fn from_points<'a, F: TraceAnswer<'a>>(
        answers: &[PointsDiff<F>],
        points: [&str; 2],
    ) -> Self {
        let amounts = answers
            .iter()
            .flat_map(|answer| &answer.groups)
            .flat_map(|group| [group.between.at_first, group.between.at_second]);
        let measure = measure::<F>(amounts);
        let files = answers.iter().map(|answer| {
            let groups = answer.groups.iter().map(|group| {
                let process = group.process.as_ref().map(|process| process.shown_label(false));
                let site = &group.site;
                let (kind, allocator) = (&site.type_name, site.allocator.as_deref());
                let drawn = PictureGroup::new(process, Some(kind), allocator, site.stack);
                (drawn, [group.between.at_first, group.between.at_second])
            });
            FoldedFile::new(&answer.file, groups, measure)
        });
        let files: Vec<FoldedFile> = files.collect();
        let [from, to] = points.map(Untrusted);
        let title = match measure {
            Measure::Handles => {
                format!("Handles and views open at {to}, compared with {from}")
            }
            _ => format!("Allocated at {to}, compared with {from} ({})", measure.unit()),
        };
        let subtitle = format!("{}; {COLOURS} than at {from}", names(&files));
        Self { compares: true, ..Self::from_files(measure, files, title, subtitle) }
    }

    /// Weighs the leaks of the second of two traces, compared with the number expected if nothing had changed.
    pub fn from_traces<'a, F: TraceAnswer<'a>>(answer: &TracesDiff<F>) -> Self {
        let [before, after] = answer.files.as_slice() else {
            return Self::default();
        };
        let groups = answer.groups.iter();
        let measure = measure::<F>(
            groups.clone().flat_map(|group| group.leaks.sides.map(|side| side.leaked)),
        );
        let groups = groups.map(|group| {
            let (count, bytes) = (group.expected.round(), group.expected_bytes.round());
            let expected = Amount { count: count as u64, bytes: bytes as i64 };
            let site = &group.site;
            let (process, kind) = (site.program.as_deref(), &site.type_name);
            let (allocator, stack) = (site.allocator.as_deref(), group.stacks[1]);
            let drawn = PictureGroup::new(process, Some(kind), allocator, stack);
            (drawn, [expected, group.leaks.sides[1].leaked])
        });
        let file = FoldedFile::new(after, groups, measure);
        let gone =
            answer.groups.iter().filter(|group| group.leaks.sides[1].leaked.count == 0).count();
        let gone = if gone > 0 { format!("; {gone} gone") } else { String::new() };
        let [before, after] = [before, after].map(|file| trace_name(file.about().path));
        let title = match measure {
            Measure::Handles => {
                let basis =
                    if answer.has_lengths() { "in the same time" } else { "by their numbers" };
                format!("Handles and views leaked in {after}, compared with {before} {basis}")
            }
            _ => format!("Leaked in {after}, compared with {before} ({})", measure.unit()),
        };
        let subtitle = format!("{COLOURS} than expected from {before}{gone}");
        Self { compares: true, ..Self::from_files(measure, vec![file], title, subtitle) }
    }

    /// Whether no handle counts.
    pub fn is_empty(&self) -> bool {
        self.files.iter().all(|file| file.stacks.is_empty())
    }

    /// Writes a picture with a script that zooms and searches. If there are several traces, each gets a frame.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_svg(&self, out: &mut dyn Write) -> io::Result<()> {
        let lines = self.lines();
        let mut options = options();
        options.title.clone_from(&self.title);
        options.subtitle = Some(self.subtitle.clone());
        options.count_name = self.unit.to_owned();
        options.text_truncate_direction = TextTruncateDirection::Right;
        flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
    }

    /// Writes a document for speedscope.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_speedscope(&self, out: &mut dyn Write) -> io::Result<()> {
        speedscope::write(&self.title, self.unit, &self.files, out)
    }

    /// Returns stacks in inferno's format: frames separated by `;`, then the number before if there is one, and the
    /// number. Each stack appears once, because inferno would drop the difference of a repeated one.
    fn lines(&self) -> Vec<String> {
        let mut numbers: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for file in &self.files {
            let root = (self.files.len() > 1).then(|| format!("{};", escaped(&file.name)));
            for stack in &file.stacks {
                let text =
                    format!("{}{}", root.as_deref().unwrap_or_default(), line(&stack.frames));
                let [before, count] = numbers.entry(text).or_default();
                *before = before.saturating_add(stack.before);
                *count = count.saturating_add(stack.count);
            }
        }
        let mut room = [MAX_WIDTH; 2];
        let lines = numbers.into_iter().map(|(mut text, [before, count])| {
            let before = self.compares.then_some(before);
            for (number, room) in before.into_iter().chain([count]).zip(&mut room) {
                let number = number.min(*room);
                *room -= number;
                // Writing to a string does not fail.
                let _ = write!(text, " {number}");
            }
            text
        });
        lines.collect()
    }
}

/// Returns the options of every flame graph.
fn options<'a>() -> Options<'a> {
    let mut options = Options::default();
    options.colors = Palette::Basic(BasicPalette::Hot);
    // Makes the picture the same every time.
    options.hash = true;
    options
}

/// Returns the colours that flame graphs give to frames with these names, as in `#ff8000`; the empty name is the frame
/// of all stacks together.
///
/// # Errors
/// If the flame graph that assigns the colours cannot be written.
pub fn colors<'n>(
    names: impl IntoIterator<Item = &'n str>,
) -> io::Result<HashMap<&'n str, String>> {
    let names: Vec<&str> = names.into_iter().collect();
    // A type frame at the end protects a number at the end of a name.
    let lines: Vec<String> = names.iter().map(|name| format!("{};[] 1", escaped(name))).collect();
    if lines.is_empty() {
        return Ok(HashMap::new());
    }
    let (mut palette, mut options) = (PaletteMap::default(), options());
    options.min_width = 0.0;
    options.palette_map = Some(&mut palette);
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), io::sink())?;
    let color = |name| {
        let color = palette.get(&escaped(name))?;
        Some((name, format!("#{:02x}{:02x}{:02x}", color.r, color.g, color.b)))
    };
    Ok(names.into_iter().chain([""]).filter_map(color).collect())
}

/// Returns the frames of a stack as the text by which flame graphs order stacks.
pub fn line(frames: &[PictureFrame]) -> String {
    frames.iter().map(|frame| escaped(&frame.name)).collect::<Vec<String>>().join(";")
}

/// Joins the names of traces.
fn names(files: &[FoldedFile]) -> String {
    files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns the measure of groups with these amounts.
fn measure<'a, F: TraceAnswer<'a>>(amounts: impl Iterator<Item = Amount>) -> Measure {
    match F::DOMAIN {
        Domain::Handles => Measure::Handles,
        Domain::Allocations => Measure::new(amounts),
    }
}

/// Replaces characters in a name that inferno misreads: `;` separates frames, and `# ` starts a comment. A number after
/// a space is a count, but only at the end, where the type has brackets.
fn escaped(name: &str) -> String {
    name.replace(';', ":").replace("# ", "#\u{A0}")
}

#[cfg(test)]
mod tests {
    use super::super::folded::FoldedStack;
    use super::*;

    fn graph(stacks: &[(&[&str], Option<u64>, u64)]) -> FlameGraph {
        let compares = stacks.iter().any(|(_, before, _)| before.is_some());
        let stacks = stacks.iter().map(|(frames, before, count)| FoldedStack {
            frames: frames.iter().map(|name| PictureFrame::named(name)).collect(),
            count: *count,
            before: before.unwrap_or_default(),
        });
        let (title, subtitle) = (TITLE.to_owned(), "a".to_owned());
        let files = vec![FoldedFile { name: "a".to_owned(), stacks: stacks.collect() }];
        FlameGraph { title, subtitle, unit: unit(&files), files, compares }
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
    fn colours_by_name_are_those_of_the_picture() {
        let names = ["a.exe!f;g", "a 7", "[Event]", "# x"];
        let svg = svg(&graph(&[(&names, None, 1)]));
        let colors = colors(names).unwrap();
        for name in names.into_iter().chain([""]) {
            let hex = colors[name].trim_start_matches('#');
            let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            let fill = format!("fill=\"rgb({},{},{})\"", part(0), part(2), part(4));
            let shown = if name.is_empty() { "all" } else { &escaped(name) };
            let (_, frame) = svg.split_once(&format!("<title>{shown} (1 handles")).unwrap();
            let (frame, _) = frame.split_once("<text").unwrap();
            assert!(frame.contains(&fill), "{name}: {fill} in {frame}");
        }
    }

    #[test]
    fn file_mappings_are_counted_by_views() {
        let (handles, views) =
            ((&["p", "[Event]"][..], None, 2), (&["p", "[FileMapping]"][..], None, 1));
        for (stacks, expected) in [
            (&[handles][..], "all (2 handles,"),
            (&[views], "all (1 views,"),
            (&[handles, views], "all (3 handles and views,"),
        ] {
            assert!(svg(&graph(stacks)).contains(expected), "{expected}");
        }
    }

    #[test]
    fn two_numbers_of_a_stack_are_a_difference() {
        let svg = svg(&graph(&[(&["p", "[Event]"], Some(2), 6), (&["q", "[Event]"], Some(2), 2)]));
        assert!(svg.contains("6 handles, 75.00%; +50.00%"), "{svg}");
        assert!(svg.contains("2 handles, 25.00%; 0.00%"), "{svg}");
    }

    #[test]
    fn stacks_with_the_same_names_are_one_difference() {
        let stack: &[&str] = &["p", "[Event]"];
        let svg = svg(&graph(&[(stack, Some(1), 4), (stack, Some(2), 4)]));
        assert!(svg.contains("[Event] (8 handles, 100.00%; +62.50%)"), "{svg}");
    }
}
