//! Text on the screen of a terminal.

use std::fmt;

use vt100::{Cell, Color};

/// Returns the number of lines that have scrolled off the top of the screen.
pub fn scrolled(screen: &mut vt100::Screen) -> usize {
    screen.set_scrollback(usize::MAX);
    let scrolled = screen.scrollback();
    screen.set_scrollback(0);
    scrolled
}

/// The content of a screen.
pub struct ScreenView<'a> {
    pub screen: &'a vt100::Screen,
    /// Number of lines that have scrolled off.
    pub above: usize,
}

impl<'a> ScreenView<'a> {
    pub fn new(screen: &'a mut vt100::Screen) -> Self {
        let above = scrolled(screen);
        ScreenView { screen, above }
    }

    /// Returns the row of the cursor, counted from the first line the program has written.
    pub fn cursor_row(&self) -> usize {
        self.above + usize::from(self.screen.cursor_position().0)
    }

    /// Returns the lines from top to bottom, without trailing spaces.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        (0..self.screen.size().0).map(|row| self.line(row))
    }

    pub fn line(&self, row: u16) -> String {
        text(self.cells(row)).trim_end().to_owned()
    }

    pub fn cells(&self, row: u16) -> impl Iterator<Item = &Cell> {
        let columns = 0..self.screen.size().1;
        columns.filter_map(move |column| self.screen.cell(row, column))
    }

    /// Whether the program has hidden the cursor.
    #[must_use]
    pub fn is_cursor_hidden(&self) -> bool {
        self.screen.hide_cursor()
    }

    /// Returns the cursor's line up to the cursor.
    #[must_use]
    pub fn before_cursor(&self) -> String {
        let (row, column) = self.screen.cursor_position();
        text(self.cells(row).take(column.into()))
    }

    /// Returns the colour of a text in the cursor's line; `None` if it is not there or has more than one colour.
    #[must_use]
    pub fn color(&self, searched: &str) -> Option<Color> {
        let (row, _) = self.screen.cursor_position();
        let cells: Vec<&Cell> = self.cells(row).collect();
        let found = cells
            .windows(searched.chars().count())
            .rfind(|window| text(window.iter().copied()) == searched)?;
        let color = found.first()?.fgcolor();
        found.iter().all(|cell| cell.fgcolor() == color).then_some(color)
    }
}

impl fmt::Display for ScreenView<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().try_for_each(|line| writeln!(formatter, "|{line}"))
    }
}

/// Returns the characters of cells; a cell that was never written is a space.
fn text<'a>(cells: impl Iterator<Item = &'a Cell>) -> String {
    cells
        .filter(|cell| !cell.is_wide_continuation())
        .map(|cell| if cell.has_contents() { cell.contents() } else { " " })
        .collect()
}
