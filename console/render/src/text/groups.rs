//! `.dump ObjectRef -GroupBy` as text: a tree with the statistics of each group before it.

use std::cell::LazyCell;
use std::io::{self, Write};

use handlescope_model::Untrusted;

use super::stack::StackStyle;
use super::{ObjectRefStyle, counted, grouped, handles_and_views};
use crate::output::{COLUMNS, LEFT_OUT, OutputError};
use crate::time::TraceClock;
use handlescope_query::{
    FileAnswer, GroupCriteria, GroupKey, GroupStats, Groups, GroupsLeftOut, NodeIdx, Stat,
    sparkline,
};
use handlescope_session::settings::Display;
use handlescope_session::terminal::{table, wrapped};
use handlescope_session::values::ColumnChoice;

/// Indentation of a level.
const INDENT: &str = "  ";

/// Like [`INDENT`], for a terminal, where cells are wrapped at spaces.
const FIRM_INDENT: &str = "\u{a0}\u{a0}";

/// Name of a group without a shared value.
const NOTHING: &str = "-";

/// A column before the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreeColumn {
    Stat(Stat),
    Share,
    Ids,
    OpenOverTime,
    Numbers,
    Growth,
}

impl TreeColumn {
    /// Returns every column with its name in files and its title.
    fn all() -> impl Iterator<Item = (Self, &'static str, &'static str)> + Clone {
        Stat::ALL.into_iter().map(|(stat, name, title, _)| (Self::Stat(stat), name, title)).chain([
            (Self::Share, "share", "Share"),
            (Self::Ids, "sample_ids", "Ids"),
            (Self::OpenOverTime, "open_over_time", "Open over time"),
            (Self::Numbers, "outstanding", "Numbers"),
            (Self::Growth, "verdict", "Growth"),
        ])
    }

    /// Whether only `-ShowTime` shows it.
    fn is_of_time(self) -> bool {
        matches!(self, Self::OpenOverTime | Self::Numbers | Self::Growth)
    }
}

/// Returns the names that `-Columns` accepts for columns before the tree.
pub fn tree_columns() -> impl Iterator<Item = &'static str> {
    TreeColumn::all().map(|(_, name, _)| name)
}

/// The columns before the tree.
#[derive(Default)]
pub struct TreeColumns {
    /// The columns with their titles, from left to right.
    columns: Vec<(TreeColumn, &'static str)>,
    /// Whether the user selected them; selected columns are shown even if they are 0 in every group.
    are_selected: bool,
    /// Titles of the columns to drop, in this order, if the screen is too narrow for all.
    spare: Vec<&'static str>,
}

impl TreeColumns {
    /// # Errors
    /// If a selected column does not exist.
    pub fn new(criteria: &GroupCriteria, choice: &ColumnChoice) -> Result<Self, OutputError> {
        let has_times = criteria.buckets.is_some();
        let available =
            TreeColumn::all().filter(move |(column, ..)| has_times || !column.is_of_time());
        let ColumnChoice::Named(names) = choice else {
            let order = criteria.order.map(TreeColumn::Stat);
            let columns: Vec<_> = available.map(|(column, _, title)| (column, title)).collect();
            let spare = LEFT_OUT.into_iter().filter(|title| {
                *choice == ColumnChoice::Fitting
                    && !order.is_some_and(|order| columns.contains(&(order, title)))
            });
            return Ok(Self { spare: spare.collect(), columns, are_selected: false });
        };
        let mut columns = Vec::new();
        for text in names {
            let is = |name: &str| name.eq_ignore_ascii_case(text);
            let column = available.clone().find(|(_, name, title)| is(name) || is(title));
            let Some((column, _, title)) = column else {
                let names = available.map(|(_, name, _)| name);
                return Err(OutputError::unknown_column(COLUMNS, text, names));
            };
            if !columns.contains(&(column, title)) {
                columns.push((column, title));
            }
        }
        Ok(Self { columns, are_selected: true, spare: Vec::new() })
    }
}

pub fn write(
    file: &FileAnswer<'_>,
    groups: &Groups,
    style: &ObjectRefStyle<'_>,
    columns: &TreeColumns,
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    let shown: Vec<NodeIdx> = groups.tree.shown().collect();
    let stats = || shown.iter().map(|node| groups.tree.stats(*node));
    let shown = columns.columns.iter().copied().filter(|(column, _)| match *column {
        TreeColumn::Stat(stat) if !columns.are_selected && stat != Stat::Leaked => {
            stats().any(|counts| counts.get(stat).is_some_and(|count| count != 0))
        }
        _ => true,
    });
    let (shown, titles): (Vec<TreeColumn>, Vec<&str>) = shown.unzip();
    let clock = TraceClock::new(&file.about.info, display.time_format, display.time_digits);
    let writer = TreeWriter {
        groups,
        columns: shown,
        clock: clock.without_start_date(),
        stacks: StackStyle::for_groups(file, style.criteria.stacks),
        has_frames: style.criteria.stacks.show,
        indent: if display.screen.is_terminal() { FIRM_INDENT } else { INDENT },
        buckets: style.criteria.groups.buckets.unwrap_or_default(),
        has_views: file.totals.map_count + file.totals.unmap_count > 0,
        display,
    };
    let (mut rows, mut frames) = (Vec::new(), Vec::new());
    writer.add(&mut rows, &mut frames, None, 0)?;
    let header: Vec<&str> = titles.into_iter().chain(["Group"]).collect();
    // Names of groups are shortened; `-NoClip` shows them whole.
    let clipped = |column| if display.clip { vec![column] } else { Vec::new() };
    let names = clipped(header.len() - 1);
    let fitting = table::fitting(display.screen, &header, &rows, &columns.spare, &names);
    let Some(fitting) = fitting else {
        return write_lines(&header, rows, &frames, display, out);
    };
    let header: Vec<&str> = fitting.columns.iter().map(|index| header[*index]).collect();
    let mut table = table::table(display.screen, &header);
    let is_number = |index: &usize| {
        matches!(writer.columns.get(*index), Some(TreeColumn::Stat(_) | TreeColumn::Share))
    };
    let numbers = fitting.columns.iter().enumerate().filter(|(_, index)| is_number(index));
    table::align_right(&mut table, &numbers.map(|(index, _)| index).collect::<Vec<_>>());
    table.add_rows(
        rows.iter().map(|row| fitting.columns.iter().map(|index| &row[*index]).collect::<Vec<_>>()),
    );
    let names = clipped(header.len() - 1);
    write!(out, "{}{}", table::text_with(table, &names, &frames), fitting.left_out)
}

/// Writes the name of each group, and indented below it its statistics and frames. Used if the statistics do not fit
/// next to each other.
fn write_lines(
    header: &[&str],
    rows: Vec<Vec<String>>,
    frames: &[String],
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    for (mut row, frames) in rows.into_iter().zip(frames) {
        let label = row.pop().unwrap_or_default();
        writeln!(out, "{}", wrapped(&label, display.screen.width))?;
        let stats: Vec<String> = header
            .iter()
            .zip(row)
            .filter(|(_, text)| !text.is_empty())
            .map(|(title, text)| format!("{title}: {text}"))
            .collect();
        if !stats.is_empty() {
            // Keeps a number and its unit on one line.
            let stats = stats.join(", ").replace(" %", "\u{a0}%");
            let level = label.chars().take_while(|char| char.is_whitespace()).count();
            let indent = " ".repeat(level) + &display.indent(2);
            writeln!(out, "{}", wrapped(&format!("{indent}{stats}"), display.screen.width))?;
        }
        out.write_all(frames.as_bytes())?;
    }
    Ok(())
}

struct TreeWriter<'a> {
    groups: &'a Groups,
    columns: Vec<TreeColumn>,
    clock: TraceClock,
    stacks: StackStyle<'a>,
    /// Whether some counts may include views.
    has_views: bool,
    /// Whether stacks are shown with all frames.
    has_frames: bool,
    indent: &'static str,
    /// Number of time buckets, with `-ShowTime`.
    buckets: usize,
    display: &'a Display,
}

impl TreeWriter<'_> {
    /// Adds the rows within a group, and the frame lines below each.
    fn add(
        &self,
        rows: &mut Vec<Vec<String>>,
        frames: &mut Vec<String>,
        parent: Option<NodeIdx>,
        level: usize,
    ) -> io::Result<()> {
        let indent = self.indent.repeat(level);
        for node in self.groups.tree.children(parent) {
            let stats = self.groups.tree.stats(*node);
            let open = || self.groups.outstanding(*node, self.buckets).unwrap_or_default();
            let open = LazyCell::new(open);
            let cells = self.columns.iter().map(|column| self.cell(*column, *node, &stats, &open));
            rows.push(cells.chain([self.label(*node, level, &indent)]).collect());
            frames.push(self.frames(*node)?);
            self.add(rows, frames, Some(*node), level + 1)?;
        }
        let GroupsLeftOut { groups, handles } = self.groups.tree.left_out(parent);
        if groups > 0 {
            let mut row = vec![String::new(); self.columns.len()];
            let groups = counted(groups as u64, "more group");
            let handles = handles_and_views(handles, self.has_views, false);
            row.push(format!("{indent}+ {groups}, {handles}"));
            rows.push(row);
            frames.push(String::new());
        }
        Ok(())
    }

    /// Returns a cell. `open` has the open handles in each time bucket; more than one column shows them.
    fn cell(
        &self,
        column: TreeColumn,
        node: NodeIdx,
        stats: &GroupStats,
        open: &LazyCell<Vec<u32>, impl FnOnce() -> Vec<u32>>,
    ) -> String {
        match column {
            TreeColumn::Stat(stat) => self.stat(stats, stat),
            TreeColumn::Share => format!("{:.1} %", self.groups.share(node) * 100.0),
            TreeColumn::Ids => {
                let ids: Vec<String> = stats.sample_ids().map(|id| id.to_string()).collect();
                ids.join(" ")
            }
            TreeColumn::OpenOverTime => sparkline(open),
            TreeColumn::Numbers => {
                let numbers: Vec<String> = open.iter().map(u32::to_string).collect();
                // On a terminal the numbers stay on one line, or the column is dropped.
                let gap = if self.display.screen.is_terminal() { "\u{a0}" } else { " " };
                numbers.join(gap)
            }
            TreeColumn::Growth => {
                let growth = self.groups.growth(node);
                let text = growth.map(|growth| match growth.evidence.rate {
                    Some(rate) => format!("{} {rate}", growth.verdict.word()),
                    None => growth.verdict.word().to_owned(),
                });
                text.unwrap_or_default()
            }
        }
    }

    fn stat(&self, stats: &GroupStats, stat: Stat) -> String {
        match stats.get(stat) {
            Some(time) if stat.is_time() => self.clock.at(time).to_string(),
            Some(count) => {
                grouped(u64::try_from(count).unwrap_or_default(), self.display.digit_separator)
            }
            None => NOTHING.to_owned(),
        }
    }

    /// Returns the frame lines of a group's stack, with `-ShowStack`. They may use the whole width of the screen,
    /// because statistics appear only before names.
    fn frames(&self, node: NodeIdx) -> io::Result<String> {
        let mut lines = Vec::new();
        if let (true, GroupKey::Stack(stack)) = (self.has_frames, self.groups.key(node)) {
            self.stacks.write_frames(&mut lines, stack, self.display, 2)?;
        }
        Ok(String::from_utf8_lossy(&lines).into_owned())
    }

    /// Returns the name of a group.
    fn label(&self, node: NodeIdx, level: usize, indent: &str) -> String {
        let column = self.groups.by.get(level);
        match self.groups.key(node) {
            GroupKey::Text(text) => format!("{indent}{}", Untrusted(text)),
            GroupKey::Number(number) => {
                format!("{indent}{} {number}", column.map_or("", |column| column.word()))
            }
            GroupKey::None => {
                let none = column.and_then(|column| column.none()).unwrap_or(NOTHING);
                format!("{indent}{none}")
            }
            GroupKey::Stack(stack) => {
                let representative = self.stacks.representative_line(stack).unwrap_or_default();
                format!("{indent}Stack {stack}: {}", Untrusted(&representative))
            }
        }
    }
}
