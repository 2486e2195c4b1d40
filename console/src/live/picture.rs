//! What is drawn: the table of open handles, or a text.

use console::measure_text_width;
use handlescope_model::Untrusted;
use indicatif::HumanCount;
use ratatui::{
    Frame,
    layout::{Constraint, Layout},
    style::{Style, Stylize},
    text::Line,
    widgets::{Paragraph, Row, Table},
};

use crate::{
    query::{OpenGroup, Verdict},
    terminal::neutral,
};

/// The titles of the table.
pub(super) const TITLES: [&str; 6] = ["Open", "Opened", "Growth", "Process", "Type", "Opened by"];

/// No column but the last one is wider: names may be long.
const WIDEST: usize = 40;

/// What the table is sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Open,
    Growth,
    Process,
    Type,
}

impl Order {
    /// The order that a key stands for.
    pub(super) fn of(letter: char) -> Option<Order> {
        Some(match letter {
            'o' => Order::Open,
            'g' => Order::Growth,
            'p' => Order::Process,
            't' => Order::Type,
            _ => return None,
        })
    }

    /// Sorts groups; those that agree by what is open.
    pub(super) fn sort(self, groups: &mut [OpenGroup]) {
        groups.sort_by_key(|group| std::cmp::Reverse(group.open));
        match self {
            Order::Open => {}
            Order::Growth => groups.sort_by(|a, b| rate(b).total_cmp(&rate(a))),
            Order::Process => groups.sort_by(|a, b| a.process.cmp(&b.process)),
            Order::Type => groups.sort_by(|a, b| a.type_name.cmp(&b.type_name)),
        }
    }
}

/// Handles that a group loses per minute; 0 where it does not leak steadily.
fn rate(group: &OpenGroup) -> f64 {
    let rate = group.growth.and_then(|growth| growth.evidence.rate);
    rate.map_or(0.0, |rate| rate.per_minute)
}

/// How a group grows, in a word or a rate.
fn growth(group: &OpenGroup) -> String {
    match group.growth.map(|growth| growth.verdict) {
        None => "unknown".to_owned(),
        Some(Verdict::Steady) if rate(group) > 0.0 => format!("+{:.1}/min", rate(group)),
        Some(verdict) => verdict.word().to_owned(),
    }
}

/// A row of the table; nothing in it acts on a terminal.
pub(super) fn cells(group: &OpenGroup) -> [String; 6] {
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

/// What is said above and below the table.
#[derive(Debug, Clone, Default)]
pub(super) struct Heading {
    pub(super) source: String,
    pub(super) seconds: f64,
    pub(super) events: u64,
    pub(super) lost: u64,
    /// Events whose process is not known.
    pub(super) hidden: u64,
    pub(super) state: &'static str,
    /// The last thing that was done, or failed.
    pub(super) message: String,
}

impl Heading {
    /// The first line.
    pub(super) fn line(&self) -> String {
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

const KEYS: &str = "q quit  s save  w why  sort: o open  g growth  p process  t type";

pub(super) fn draw_table(frame: &mut Frame<'_>, heading: &Heading, groups: &[OpenGroup]) {
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ]);
    let [top, middle, message, bottom] = areas.areas(frame.area());
    frame.render_widget(Line::from(heading.line()).bold(), top);
    // What is below the screen needs no width.
    let shown = groups.iter().take(usize::from(middle.height)).map(cells);
    let shown: Vec<[String; 6]> = shown.collect();
    let widths = widths(&shown);
    let rows = shown.into_iter().map(|[open, opened, growth, process, type_name, function]| {
        let right = |text: String| Line::from(text).right_aligned();
        let left = |text: String| Line::from(text);
        Row::new([
            right(open),
            right(opened),
            left(growth),
            left(process),
            left(type_name),
            left(function),
        ])
    });
    let table = Table::new(rows, widths).header(Row::new(TITLES).style(Style::new().underlined()));
    frame.render_widget(table, middle);
    frame.render_widget(Line::from(neutral(&heading.message)), message);
    frame.render_widget(Line::from(KEYS).dim(), bottom);
}

/// As wide as what is in them, so that a pid is cut only after a long name; the function has what is left.
fn widths(rows: &[[String; 6]]) -> [Constraint; 6] {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| measure_text_width(&row[column]));
        let widest = cells.chain([TITLES[column].len()]).max().unwrap_or_default();
        Constraint::Length(u16::try_from(widest.min(WIDEST)).unwrap_or(u16::MAX))
    };
    [width(0), width(1), width(2), width(3), width(4), Constraint::Fill(1)]
}

/// Draws a text from one of its lines on.
pub(super) fn draw_text(frame: &mut Frame<'_>, lines: &[String], first: usize) {
    let areas = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]);
    let [text, bottom] = areas.areas(frame.area());
    let shown = lines.iter().skip(first).map(|line| Line::from(neutral(&line.replace('\t', "  "))));
    frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()), text);
    frame.render_widget(Line::from("q back  arrows and pages scroll").dim(), bottom);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_texts_up_to_a_limit() {
        let long = "x".repeat(100);
        let row =
            |process: &str| ["8", "5600000", "short", process, "Event", &long].map(str::to_owned);
        let found = widths(&[row("leaky.exe(7316)"), row("a.exe(4)")]);
        let lengths = [4, 7, 6, 15, 5].map(Constraint::Length);
        assert_eq!((&found[..5], found[5]), (&lengths[..], Constraint::Fill(1)));
        assert_eq!(widths(&[row(&long)])[3], Constraint::Length(40));
    }
}
