//! The size of a grid in memory. A table printer pads each line of a cell to the width of its column, and each cell to
//! the height of its row.

use std::borrow::Cow;

use indicatif::HumanCount;

/// Maximum number of rows in one grid. Later rows get another grid with its own widths.
const MAX_ROWS: usize = 50_000;

/// Maximum number of bytes in one grid, with all cells padded.
const MAX_BYTES: usize = 64 << 20;

/// Maximum number of printed lines of a cell, if they fit, and of bytes in a line.
const MAX_LINES: usize = 10_000;
const MAX_LINE_LENGTH: usize = 32 << 10;

/// The size of a grid so far.
#[derive(Default)]
pub struct GridSize {
    rows: usize,
    lines: usize,
    /// Width of each column.
    widths: Vec<usize>,
}

impl GridSize {
    pub fn has_room(&self) -> bool {
        let bytes = self.lines.saturating_mul(self.widths.iter().sum());
        self.rows < MAX_ROWS && bytes < MAX_BYTES
    }

    pub fn add(&mut self, cells: &[String]) {
        self.rows += 1;
        self.widths.resize(cells.len(), 0);
        let mut height = 1;
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = (*width).max(longest(cell));
            height = height.max(cell.lines().count());
        }
        self.lines += height;
    }
}

fn longest(cell: &str) -> usize {
    cell.lines().map(str::len).max().unwrap_or_default()
}

/// Shortens a cell to what is printed; its last line counts what is left out.
pub fn cut(cell: String) -> String {
    let count = cell.lines().count();
    let longest = longest(&cell);
    let max_lines = (MAX_BYTES / longest.clamp(1, MAX_LINE_LENGTH)).min(MAX_LINES);
    if count <= max_lines && longest <= MAX_LINE_LENGTH {
        return cell;
    }
    let mut lines: Vec<Cow<'_, str>> = cell.lines().take(max_lines).map(shortened).collect();
    if count > max_lines {
        lines.push(format!("… {} more lines", HumanCount((count - max_lines) as u64)).into());
    }
    lines.join("\n")
}

fn shortened(line: &str) -> Cow<'_, str> {
    let end = line.floor_char_boundary(MAX_LINE_LENGTH);
    match line.get(..end) {
        Some(start) if end < line.len() => Cow::Owned(format!("{start}…")),
        _ => Cow::Borrowed(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_printed_up_to_some_lines_and_columns() {
        let cell = "one\ntwo".to_owned();
        assert_eq!(cut(cell.clone()), cell);
        let many = cut("frame\n".repeat(30_000));
        assert_eq!(many.lines().count(), MAX_LINES + 1);
        assert_eq!(many.lines().last(), Some("… 20,000 more lines"));
        let long = cut("ä".repeat(MAX_LINE_LENGTH));
        assert!(long.ends_with("ä…") && long.len() == MAX_LINE_LENGTH + "…".len());
        let both = cut(format!("{}\n", "x".repeat(MAX_LINE_LENGTH)).repeat(5_000));
        assert_eq!(both.lines().count(), MAX_BYTES / MAX_LINE_LENGTH + 1);
    }

    #[test]
    fn a_grid_ends_before_its_padding_takes_the_memory() {
        let row = |cell: &str| vec!["1".to_owned(), cell.to_owned()];
        let mut size = GridSize::default();
        let tall = "f\n".repeat(1_000);
        let rows = (0..).take_while(|_| {
            let has_room = size.has_room();
            size.add(&row(&tall));
            has_room
        });
        assert_eq!(rows.count(), MAX_BYTES.div_ceil(1_000 * 2));
        let mut size = GridSize::default();
        (0..MAX_ROWS).for_each(|_| size.add(&row("x")));
        assert!(!size.has_room());
    }
}
