//! `.dump ObjectRef -GroupBy` as text: a tree, the figures of a group in front of it.

use std::io::{self, Write};
use std::iter;

use handlescope_model::Untrusted;

use super::numbers::{counted, grouped};
use super::stack::StackStyle;
use crate::query::{
    Figure, Figures, FileAnswer, GroupColumn, GroupKey, Groups, GroupsLeftOut, NodeIdx, sparkline,
};
use crate::render::style::ObjectRefStyle;
use crate::render::time::Clock;
use crate::settings::{Display, StackDisplayArgs};
use crate::terminal::{table, width::LeastWidths, wrapped};

/// What a level is indented by.
const INDENT: &str = "  ";

/// The same on a terminal, where cells are wrapped at spaces.
const FIRM_INDENT: &str = "\u{a0}\u{a0}";

/// What handles have in common that have nothing in a column.
const NOTHING: &str = "-";

/// Columns of `-ShowTime`.
const OVER_TIME: usize = 3;

pub(super) fn write(
    file: &FileAnswer<'_>,
    groups: &Groups,
    style: &ObjectRefStyle<'_>,
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let shown: Vec<NodeIdx> = groups.tree.shown().collect();
    let figures = || shown.iter().map(|node| groups.tree.figures(*node));
    let is_shown = |figure: Figure| figures().any(|own| own.get(figure).is_some_and(|n| n != 0));
    let columns: Vec<_> = Figure::ALL
        .into_iter()
        .filter(|(figure, ..)| *figure == Figure::Leaked || is_shown(*figure))
        .collect();
    let clock = Clock::new(&file.info, display.time_format, display.time_digits);
    let names = StackDisplayArgs { show: true, ..style.criteria.stacks };
    let stacks = StackStyle::of(file, names);
    let titles = columns.iter().map(|(.., title)| *title);
    let buckets = style.criteria.groups.buckets;
    let over_time = buckets.map(|_| ["Open over time", "Numbers", "Growth"]);
    let over_time = over_time.into_iter().flatten();
    let header: Vec<&str> =
        titles.chain(["Share", "Ids"]).chain(over_time).chain(["Group"]).collect();
    let writer = Writer {
        groups,
        columns: columns.iter().map(|(figure, ..)| *figure).collect(),
        clock: clock.without_start_date(),
        stacks,
        has_frames: style.criteria.stacks.show,
        indent: if display.screen.is_terminal() { FIRM_INDENT } else { INDENT },
        buckets,
        has_views: file.totals.map_count + file.totals.unmap_count > 0,
        display,
    };
    let mut rows = Vec::new();
    writer.add(&mut rows, None, 0);
    let texts = rows.iter().map(|row| row.iter().map(String::as_str).collect());
    let least = LeastWidths::of(iter::once(header.clone()).chain(texts));
    if display.screen.width.is_some_and(|width| least.sum() > width) {
        return write_lines(&header, rows, display, out);
    }
    let mut table = table::table(display.screen, &header);
    table::align_right(&mut table, &(0..=columns.len()).collect::<Vec<_>>());
    table.add_rows(rows);
    write!(out, "{}", table::text(table))
}

/// The name of each group, and below and further indented its figures: more of them than fit beside each other.
fn write_lines(
    header: &[&str],
    rows: Vec<Vec<String>>,
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    for mut row in rows {
        let label = row.pop().unwrap_or_default();
        writeln!(out, "{}", wrapped(&label, display.screen.width))?;
        let figures = header.iter().zip(row).filter(|(_, text)| !text.is_empty());
        let figures: Vec<String> =
            figures.map(|(title, text)| format!("{title}: {text}")).collect();
        if !figures.is_empty() {
            // A number stays with its unit.
            let figures = figures.join(", ").replace(" %", "\u{a0}%");
            let level = label.chars().take_while(|char| char.is_whitespace()).count();
            let indent = " ".repeat(level) + &display.indent(2);
            writeln!(out, "{}", wrapped(&format!("{indent}{figures}"), display.screen.width))?;
        }
    }
    Ok(())
}

struct Writer<'a> {
    groups: &'a Groups,
    columns: Vec<Figure>,
    clock: Clock,
    stacks: StackStyle<'a>,
    /// Whether some of what is counted may be views.
    has_views: bool,
    /// Whether stacks are shown with all frames.
    has_frames: bool,
    indent: &'static str,
    /// With `-ShowTime`, into how many parts time is divided.
    buckets: Option<usize>,
    display: &'a Display,
}

impl Writer<'_> {
    /// Adds what is within a group.
    fn add(&self, rows: &mut Vec<Vec<String>>, parent: Option<NodeIdx>, level: usize) {
        let indent = self.indent.repeat(level);
        for node in self.groups.tree.children(parent) {
            let figures = self.groups.tree.figures(*node);
            let mut row: Vec<String> =
                self.columns.iter().map(|figure| self.figure(&figures, *figure)).collect();
            row.push(share(self.groups.share(*node)));
            row.push(figures.sample_ids().map(|id| id.to_string()).collect::<Vec<_>>().join(" "));
            row.extend(self.buckets.into_iter().flat_map(|buckets| self.over_time(*node, buckets)));
            row.push(self.label(*node, level, &indent));
            rows.push(row);
            self.add(rows, Some(*node), level + 1);
        }
        let GroupsLeftOut { groups, handles } = self.groups.tree.left_out(parent);
        if groups > 0 {
            let over_time = self.buckets.map_or(0, |_| OVER_TIME);
            let mut row = vec![String::new(); self.columns.len() + 2 + over_time];
            let groups = counted(groups as u64, "more group");
            let handles = match (self.has_views, handles) {
                (false, _) => counted(handles, "handle"),
                (true, 1) => "1 handle or view".to_owned(),
                (true, _) => format!("{handles} handles and views"),
            };
            row.push(format!("{indent}+ {groups}, {handles}"));
            rows.push(row);
        }
    }

    /// What was open in each part of time, as bars and as numbers, and how the group grows.
    fn over_time(&self, node: NodeIdx, buckets: usize) -> [String; OVER_TIME] {
        let open = self.groups.outstanding(node, buckets).unwrap_or_default();
        let numbers: Vec<String> = open.iter().map(u32::to_string).collect();
        let growth = self.groups.growth(node).map(|growth| match growth.evidence.rate {
            Some(rate) => format!("{} {rate}", growth.verdict.word()),
            None => growth.verdict.word().to_owned(),
        });
        [sparkline(&open), numbers.join(" "), growth.unwrap_or_default()]
    }

    fn figure(&self, figures: &Figures, figure: Figure) -> String {
        match figures.get(figure) {
            Some(time) if figure.is_time() => self.clock.at(time).to_string(),
            Some(count) => {
                grouped(u64::try_from(count).unwrap_or_default(), self.display.digit_separator)
            }
            None => NOTHING.to_owned(),
        }
    }

    /// What a group is called, with the frames of its stack below.
    fn label(&self, node: NodeIdx, level: usize, indent: &str) -> String {
        let column = self.groups.by.get(level);
        match self.groups.key(node) {
            GroupKey::Text(text) => format!("{indent}{}", Untrusted(text)),
            GroupKey::Number(thread) => format!("{indent}thread {thread}"),
            GroupKey::None => match column {
                Some(GroupColumn::CloseStack) => format!("{indent}not closed, or no stack"),
                Some(GroupColumn::CreateStack) => format!("{indent}no stack"),
                Some(GroupColumn::Name | GroupColumn::NamePattern) => format!("{indent}no name"),
                _ => format!("{indent}{NOTHING}"),
            },
            GroupKey::Stack(stack) => {
                let trims = self.groups.stacks.as_ref();
                let frames = self.stacks.trimmed_lines(stack, trims).into_iter().flatten();
                let representative =
                    self.stacks.trimmed_representative_line(stack, trims).unwrap_or_default();
                let mut label = format!("{indent}Stack {stack}: {}", Untrusted(&representative));
                for line in frames.take_while(|_| self.has_frames) {
                    label.push_str(&format!("\n{indent}{}{}", self.indent, Untrusted(&line)));
                }
                label
            }
        }
    }
}

fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
