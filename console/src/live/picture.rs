//! Draws the table of open handles, or a text.

use console::measure_text_width;
use handlescope_model::Untrusted;
use indicatif::HumanCount;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};

use handlescope_query::{OpenGroup, Verdict};
use handlescope_session::terminal::clip::{cut, cut_in_the_middle};
use handlescope_session::terminal::{Role, neutral};

/// The titles of the table.
pub const TITLES: [&str; 6] = ["Open", "Opened", "Growth", "Process", "Type", "Opened by"];

/// Maximum width of every column but the last, because names may be long.
const WIDEST: usize = 40;

/// Sort order of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TableOrder {
    #[default]
    Open,
    Growth,
    Process,
    Type,
}

impl TableOrder {
    /// Returns the order that a key selects.
    pub fn from_letter(letter: char) -> Option<TableOrder> {
        Some(match letter {
            'o' => TableOrder::Open,
            'g' => TableOrder::Growth,
            'p' => TableOrder::Process,
            't' => TableOrder::Type,
            _ => return None,
        })
    }

    /// Returns the titles, with an arrow at the column that groups are sorted by.
    fn titles(self) -> [String; 6] {
        let (column, arrow) = match self {
            TableOrder::Open => (0, '▼'),
            TableOrder::Growth => (2, '▼'),
            TableOrder::Process => (3, '▲'),
            TableOrder::Type => (4, '▲'),
        };
        let mut titles = TITLES.map(str::to_owned);
        titles[column] += &format!(" {arrow}");
        titles
    }

    /// Sorts groups; equal ones are sorted by what is open.
    pub fn sort(self, groups: &mut [OpenGroup]) {
        groups.sort_by_key(|group| std::cmp::Reverse(group.open));
        match self {
            TableOrder::Open => {}
            TableOrder::Growth => groups.sort_by(|a, b| rate(b).total_cmp(&rate(a))),
            TableOrder::Process => groups.sort_by(|a, b| a.process.cmp(&b.process)),
            TableOrder::Type => groups.sort_by(|a, b| a.type_name.cmp(&b.type_name)),
        }
    }
}

/// Returns the handles that a group leaks per minute; 0 if it does not leak steadily.
fn rate(group: &OpenGroup) -> f64 {
    let rate = group.growth.and_then(|growth| growth.evidence.rate);
    rate.map_or(0.0, |rate| rate.per_minute)
}

/// Describes the growth of a group by a word or a rate.
fn growth(group: &OpenGroup) -> String {
    match group.growth.map(|growth| growth.verdict) {
        None => "unknown".to_owned(),
        Some(Verdict::Steady) if rate(group) > 0.0 => rate_text(rate(group)),
        Some(verdict) => verdict.word().to_owned(),
    }
}

/// Formats a rate, per hour or per day if it is slow, so that no leak looks like none.
fn rate_text(per_minute: f64) -> String {
    const LEAST: f64 = 0.05;
    let [per_hour, per_day] = [60.0, 1_440.0].map(|minutes| per_minute * minutes);
    match per_minute {
        _ if per_minute >= LEAST => format!("+{per_minute:.1}/min"),
        _ if per_hour >= LEAST => format!("+{per_hour:.1}/h"),
        _ => format!("+{per_day:.1}/day"),
    }
}

/// Returns a row of the table, with all control sequences removed.
pub fn cells(group: &OpenGroup) -> [String; 6] {
    let text = |text: &str| neutral(&Untrusted(text).to_string());
    [
        group.open.to_string(),
        group.opened.to_string(),
        growth(group),
        text(&group.process),
        text(&group.type_name),
        group.function.as_deref().map_or_else(|| "no stack".to_owned(), text),
    ]
}

/// The texts above and below the table.
#[derive(Debug, Clone, Default)]
pub struct Heading {
    pub source: String,
    pub seconds: f64,
    pub events: u64,
    pub lost: u64,
    /// Number of events of unknown processes.
    pub hidden: u64,
    pub state: &'static str,
    /// What was last done, or failed.
    pub message: String,
}

impl Heading {
    /// Returns the first line.
    pub fn line(&self) -> String {
        let hidden = match self.hidden {
            0 => String::new(),
            hidden => format!("  {} of unknown processes not shown", HumanCount(hidden)),
        };
        format!(
            "{}  {:.1} s  {} events  {} lost{hidden}  {}",
            neutral(&self.source),
            self.seconds,
            HumanCount(self.events),
            HumanCount(self.lost),
            self.state
        )
    }
}

const KEYS: &str = "q quit  s save  w why  sort: o open  g growth  p process  t type  ↑↓ scroll";

/// Draws the groups from index `first` on, as many as fit on the screen, and counts those below.
pub fn draw_table(
    frame: &mut Frame<'_>,
    heading: &Heading,
    groups: &[OpenGroup],
    first: usize,
    order: TableOrder,
) {
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ]);
    let [top, middle, message, bottom] = areas.areas(frame.area());
    let groups = groups.get(first..).unwrap_or_default();
    // The titles take up one line.
    let is_cut = groups.len() + 1 > usize::from(middle.height);
    let areas = Layout::vertical([Constraint::Min(1), Constraint::Length(is_cut.into())]);
    let [middle, more] = areas.areas(middle);
    // Rows below the screen do not affect the widths.
    let shown = groups.iter().take(usize::from(middle.height.saturating_sub(1))).map(cells);
    let shown: Vec<[String; 6]> = shown.collect();
    let left_out = HumanCount((groups.len() - shown.len()) as u64);
    let titles = order.titles();
    let columns: [Rect; 6] = Layout::horizontal(widths(&titles, &shown)).spacing(1).areas(middle);
    let widths = columns.map(|column| column.width);
    let rows = shown.iter().map(|cells| {
        let lines = cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| cut_in_the_middle(cell, width.into()))
            .zip(0..)
            .map(|(cell, column)| match column {
                0 | 1 => Line::from(cell).right_aligned(),
                _ => Line::from(cell),
            });
        Row::new(lines)
    });
    let header = Row::new(titles.clone()).style(Role::Titles);
    frame.render_widget(Table::new(rows, widths).header(header), middle);
    frame.render_widget(Line::from(format!("+ {left_out} more")).style(Role::Aside), more);
    let line = |text: &str| Line::from(cut(text, frame.area().width.into()).into_owned());
    let lines = [
        line(&heading.line()).style(Role::Heading),
        line(&neutral(&heading.message)),
        line(KEYS).style(Role::Aside),
    ];
    for (line, area) in lines.into_iter().zip([top, message, bottom]) {
        frame.render_widget(line, area);
    }
}

/// Returns column widths that fit the content, so that only long names push a pid out. The function gets the rest.
fn widths(titles: &[String; 6], rows: &[[String; 6]]) -> [Constraint; 6] {
    let width = |column: usize| {
        let widest = rows
            .iter()
            .chain([titles])
            .map(|row| measure_text_width(&row[column]))
            .max()
            .unwrap_or_default();
        Constraint::Length(u16::try_from(widest.min(WIDEST)).unwrap_or(u16::MAX))
    };
    [width(0), width(1), width(2), width(3), width(4), Constraint::Fill(1)]
}

/// Draws a text from line `first` on.
pub fn draw_text(frame: &mut Frame<'_>, lines: &[String], first: usize) {
    let areas = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]);
    let [text, bottom] = areas.areas(frame.area());
    let width = text.width.into();
    let shown: Vec<_> = lines
        .iter()
        .skip(first)
        .take(text.height.into())
        .map(|line| neutral(&line.replace('\t', "  ")))
        .map(|line| Line::from(cut(&line, width).into_owned()))
        .collect();
    frame.render_widget(Paragraph::new(shown), text);
    frame.render_widget(Line::from("q back  arrows and pages scroll").style(Role::Aside), bottom);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_texts_up_to_a_limit() {
        let long = "x".repeat(100);
        let row =
            |process: &str| ["8", "5600000", "short", process, "Event", &long].map(str::to_owned);
        let titles = TITLES.map(str::to_owned);
        let constraints = widths(&titles, &[row("leaky.exe(7316)"), row("a.exe(4)")]);
        let lengths = [4, 7, 6, 15, 5].map(Constraint::Length);
        assert_eq!((&constraints[..5], constraints[5]), (&lengths[..], Constraint::Fill(1)));
        assert_eq!(widths(&titles, &[row(&long)])[3], Constraint::Length(40));
    }
}
