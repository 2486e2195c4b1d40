//! Tables: drawn on a terminal, plain aligned columns in a pipe. Also decides which columns fit the screen. A number, a
//! time, an address or a name cannot be read or copied when broken in the middle; a long path or command line can.

use std::iter;

use comfy_table::{
    Cell, CellAlignment, ContentArrangement, LineStyle, Row, Table, TableStyle, presets,
};
use console::measure_text_width;

use crate::terminal::Screen;
use crate::terminal::clip::cut_in_the_middle;
use crate::terminal::wrap::{wrapped, wrapped_cell};

/// On a terminal, the only line of a table is below its header.
const DRAWN: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// Creates a table with a header. On a terminal it has a line below the header and is at most as wide as the screen. In
/// a pipe the columns are only aligned, and no text is wrapped.
pub fn table(screen: Screen, header: &[&str]) -> Table {
    let style = if screen.is_terminal() { DRAWN } else { presets::NOTHING };
    let mut table = empty(screen, style);
    table.set_header(header.iter().map(Cell::new));
    if let Some(first) = table.column_mut(0) {
        first.set_padding((0, 1));
    }
    table
}

/// Creates rows without header or lines, wrapped on a terminal.
pub fn columns(screen: Screen, rows: impl IntoIterator<Item = impl Into<Row>>) -> Table {
    let mut table = empty(screen, presets::NOTHING);
    table.add_rows(rows);
    table
}

/// Right-aligns columns of numbers.
pub fn align_right(table: &mut Table, columns: &[usize]) {
    for &index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// The part of a table that fits a screen.
pub struct Fitting {
    /// Indexes of the columns.
    pub columns: Vec<usize>,
    /// The line below that names the missing columns; empty if there are none.
    pub left_out: String,
}

/// Leaves out columns until the rest fits the screen: as many of the `spare` ones as needed, in their order. `None` if
/// even the rest does not fit. Texts in `clipped` columns may be shown in part.
pub fn fitting(
    screen: Screen,
    header: &[&str],
    rows: &[Vec<String>],
    spare: &[&str],
    clipped: &[usize],
) -> Option<Fitting> {
    let indexes = 0..header.len();
    let Some(width) = screen.width else {
        return Some(Fitting { columns: indexes.collect(), left_out: String::new() });
    };
    let mut left_out: Vec<usize> =
        spare.iter().filter_map(|name| header.iter().position(|title| title == name)).collect();
    // A path or a function matters more than figures, unless nothing else fits beside it.
    let count = |long| {
        let rows = rows.iter().map(|row| row.iter().map(String::as_str).collect());
        let rows = iter::once(header.to_vec()).chain(rows);
        LeastWidths::new(rows, long, clipped).left_out(width, &left_out)
    };
    let count = count(MAX_WORD_LENGTH).or_else(|| count(MIN_LONG_WIDTH))?;
    left_out.truncate(count);
    let names: Vec<&str> =
        left_out.iter().filter_map(|index| header.get(*index).copied()).collect();
    let line = if rows.is_empty() || names.is_empty() {
        String::new()
    } else {
        format!("Not shown at {width} columns: {} (-Columns all)\n", names.join(", "))
    };
    Some(Fitting {
        columns: indexes.filter(|index| !left_out.contains(index)).collect(),
        left_out: wrapped(&line, screen.width),
    })
}

/// Renders a table without trailing spaces. Text from outside must be made harmless before it becomes a cell. If the
/// screen is wide enough, no number and no name is broken.
pub fn text(table: Table) -> String {
    text_with(table, &[], &[])
}

/// Like [`text`], but texts in `clipped` columns are cut in the middle instead of broken. `below` has a text for each
/// row, to be printed below it.
pub fn text_with(mut table: Table, clipped: &[usize], below: &[String]) -> String {
    if let Some(width) = table.width() {
        fit(&mut table, width.into(), clipped);
    }
    let mut lines = table.lines();
    let mut text = String::new();
    let mut add = |count: usize, below: &str| {
        for line in lines.by_ref().take(count) {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push_str(below);
    };
    if let Some(header) = table.header() {
        add(height(header) + usize::from(table.style() == DRAWN), "");
    }
    for (row, below) in table.row_iter().zip(below) {
        add(height(row), below);
    }
    add(usize::MAX, "");
    text
}

/// Returns the number of lines of a row that fits.
fn height(row: &Row) -> usize {
    row.cell_iter().map(|cell| cell.content().split('\n').count()).max().unwrap_or(1)
}

/// Breaks or cuts the lines of cells that are wider than their columns.
fn fit(table: &mut Table, screen: usize, clipped: &[usize]) {
    let widths = widths(table, screen, clipped);
    let is_wider = |(cell, width): (&Cell, &usize)| measure(cell) > *width;
    let narrowed = |row: &Row, clipped: &[usize]| {
        let cells = row.cell_iter().zip(&widths).enumerate();
        Row::from(cells.map(|(column, (cell, width))| {
            if !is_wider((cell, width)) {
                cell.clone()
            } else if clipped.contains(&column) {
                Cell::new(cut_in_the_middle(&cell.content(), *width))
            } else {
                Cell::new(wrapped_cell(&cell.content(), *width))
            }
        }))
    };
    if let Some(header) = table.header().map(|header| narrowed(header, &[])) {
        table.set_header(header);
    }
    for column in table.column_iter_mut() {
        column.remove_constraint();
    }
    for row in table.row_iter_mut() {
        if row.cell_iter().zip(&widths).any(is_wider) {
            *row = narrowed(row, clipped);
        }
    }
}

/// Returns the maximum text width of each column. If there is room, that is its natural width. Otherwise the wider
/// columns share one width, unless a column's longest word is even wider.
fn widths(table: &Table, screen: usize, clipped: &[usize]) -> Vec<usize> {
    let rows: Vec<Vec<String>> = table
        .header()
        .into_iter()
        .chain(table.row_iter())
        .map(|row| row.cell_iter().map(Cell::content).collect())
        .collect();
    let texts = rows.iter().map(|row| row.iter().map(String::as_str));
    let least = LeastWidths::new(texts, MIN_LONG_WIDTH, clipped);
    let keeps_words = least.sum() <= screen;
    let natural = table.column_max_content_widths();
    let least = least.iter().map(|least| if keeps_words { least } else { 1 });
    let bounds: Vec<(usize, usize)> = least.zip(natural.into_iter().map(usize::from)).collect();
    let beside: usize = table.column_iter().map(|column| usize::from(column.padding_width())).sum();
    let room = screen.saturating_sub(beside);
    let widths = |level: usize| -> Vec<usize> {
        bounds.iter().map(|(least, natural)| level.max(*least).min(*natural)).collect()
    };
    let fitting = (1..=room).rev().map(widths).find(|widths| widths.iter().sum::<usize>() <= room);
    fitting.unwrap_or_else(|| widths(1))
}

/// Returns the width of the longest line of a cell.
fn measure(cell: &Cell) -> usize {
    cell.content().lines().map(measure_text_width).max().unwrap_or_default()
}

fn empty(screen: Screen, style: TableStyle) -> Table {
    let mut table = Table::new();
    table.load_style(style);
    match screen.width {
        Some(width) => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    if screen.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table
}

/// Longest word that is never broken, unless it is a path or a function; longer ones are command lines and the like. A
/// GUID is this long.
const MAX_WORD_LENGTH: usize = 36;

/// Minimum width of a column with such words.
const MIN_LONG_WIDTH: usize = 12;

/// Columns narrower than this on average no longer read as columns.
const MIN_WIDTH: usize = 9;

/// Longest number with its unit; a time with a date is longer.
const MAX_QUANTITY: usize = 16;

/// Space between two columns; the last one is followed by half of it.
const GAP: usize = 2;
const MARGIN: usize = GAP / 2;

/// The minimum text width of each column: its longest word, or less if that is broken anyway.
pub struct LeastWidths(Vec<usize>);

impl LeastWidths {
    /// Measures the cells of some rows, including headings. Words that may be broken and texts that may be cut count
    /// for at most `long`.
    pub fn new<'a, R: IntoIterator<Item = &'a str>>(
        rows: impl IntoIterator<Item = R>,
        long: usize,
        clipped: &[usize],
    ) -> LeastWidths {
        let mut widths = Vec::new();
        for cells in rows {
            for (index, cell) in cells.into_iter().enumerate() {
                if index == widths.len() {
                    widths.push(0);
                }
                let width = if clipped.contains(&index) {
                    measure_text_width(cell).min(long)
                } else {
                    cell.lines()
                        .flat_map(words)
                        .map(|word| least(word, long))
                        .max()
                        .unwrap_or_default()
                };
                widths[index] = widths[index].max(width);
            }
        }
        LeastWidths(widths)
    }

    /// Returns the minimum width of the table.
    pub fn sum(&self) -> usize {
        self.sum_without(&[])
    }

    fn sum_without(&self, left_out: &[usize]) -> usize {
        self.0
            .iter()
            .enumerate()
            .filter(|(index, _)| !left_out.contains(index))
            .map(|(_, width)| width + GAP)
            .sum::<usize>()
            .saturating_sub(GAP - MARGIN)
    }

    /// Returns how many of the `spare` columns to leave out, in order, so that the rest fits the screen; `None` if even
    /// the rest does not.
    pub fn left_out(&self, screen: usize, spare: &[usize]) -> Option<usize> {
        (0..=spare.len()).find(|count| {
            let left_out = spare.get(..*count).unwrap_or(spare);
            let columns = self.0.len() - left_out.len();
            columns * MIN_WIDTH <= screen && self.sum_without(left_out) <= screen
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }
}

/// Splits a line of a cell into parts that stay together.
fn words(line: &str) -> Box<dyn Iterator<Item = &str> + '_> {
    let is_quantity = line.trim_start().starts_with(|char: char| char.is_ascii_digit());
    if is_quantity && measure_text_width(line) <= MAX_QUANTITY {
        Box::new(iter::once(line.trim_end()))
    } else {
        Box::new(line.split(' '))
    }
}

/// Returns the minimum column width for a word.
fn least(word: &str, long: usize) -> usize {
    let width = measure_text_width(word);
    // A number with separators between thousands.
    if word.contains('\u{a0}') && word.chars().all(|char| char.is_ascii_digit() || char == '\u{a0}')
    {
        return width;
    }
    if width > MAX_WORD_LENGTH || word.contains(['\\', '/', '!']) || word.contains("::") {
        width.min(long)
    } else {
        width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_broken_behind_its_separators_and_a_number_not_at_all() {
        let screen = Screen { width: Some(46), color: false };
        let mut table = table(screen, &["Size", "Path", "Function"]);
        align_right(&mut table, &[0]);
        table.add_row([
            "65,536",
            r"\Device\HarddiskVolume3\Windows\x.dll",
            "x.dll!std::list::push",
        ]);
        table.add_row(["1", "short", "f"]);
        insta::assert_snapshot!(text(table), @r"
          Size  Path              Function
        ────────────────────────────────────────────
        65,536  \Device\          x.dll!std::list::
                HarddiskVolume3\  push
                Windows\x.dll
             1  short             f
        ");
    }

    #[test]
    fn a_clipped_column_gets_the_rest_of_the_line_and_text_below_a_row_the_whole() {
        let screen = Screen { width: Some(43), color: false };
        let header = ["Pid", "Command line"];
        let rows = [
            vec!["4312".to_owned(), r#""C:\Program Files\a.exe" --type=one --last=1"#.to_owned()],
            vec!["4".to_owned(), "smss.exe".to_owned()],
        ];
        let fits = |screen, clipped: &[usize]| fitting(screen, &header, &rows, &["Pid"], clipped);
        assert_eq!(fits(screen, &[1]).map(|fitting| fitting.columns), Some(vec![0, 1]));
        let narrow = Screen { width: Some(42), color: false };
        assert_eq!(fits(narrow, &[1]).map(|fitting| fitting.columns), Some(vec![1]));
        let table = || {
            let mut table = table(screen, &header);
            align_right(&mut table, &[0]);
            table.add_rows(&rows);
            table
        };
        let below = ["    a frame that is as long as the screen\n".to_owned(), String::new()];
        insta::assert_snapshot!(text_with(table(), &[1], &below), @r#"
         Pid  Command line
        ───────────────────────────────────────────
        4312  "C:\Program Files\…type=one --last=1
            a frame that is as long as the screen
           4  smss.exe
        "#);
        assert_eq!(text(table()).lines().count(), 5, "broken, not cut");
    }

    #[test]
    fn a_column_holds_its_longest_word_but_no_long_path() {
        let path = r"C:\x\".repeat(5);
        let rows = [
            ["Pid", "Process", "Path", "Bytes"],
            ["12345", "cacheserver.exe(9044) +-", "a-short-word", "994.90 KiB"],
            ["1", "", &path, "0 B"],
        ];
        let least = LeastWidths::new(rows, MIN_LONG_WIDTH, &[]);
        assert_eq!(least.0, [5, 21, MIN_LONG_WIDTH, 10]);
        assert_eq!(least.sum(), 5 + 21 + 12 + 10 + 3 * 2 + 1);
        assert_eq!(LeastWidths::new([["2024-05-10 12:46:34.008663"]], MIN_LONG_WIDTH, &[]).0, [15]);
        assert_eq!(LeastWidths::new::<[&str; 0]>([], MIN_LONG_WIDTH, &[]).sum(), 0);
    }

    #[test]
    fn spare_columns_are_left_out_one_by_one_until_the_others_fit() {
        let least = LeastWidths::new(
            [["a-name-of-20-columns", "a-time-of-15-co", "10-columns", "9-columns"]],
            MIN_LONG_WIDTH,
            &[],
        );
        for (screen, left_out) in
            [(61, Some(0)), (60, Some(1)), (44, Some(1)), (43, Some(2)), (33, Some(2)), (32, None)]
        {
            assert_eq!(least.left_out(screen, &[1, 3]), left_out, "{screen}");
        }
    }
}
