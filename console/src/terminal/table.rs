//! Tables: drawn on a terminal, plain aligned columns in a pipe.

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, ContentLineStyle, LineStyle, Row,
    Table, TableStyle, Width, presets,
};

use crate::terminal::{Screen, width::LeastWidths};

/// `UTF8_NO_BORDERS` without a line after every row, so that a screen holds twice as many.
const DRAWN: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction('┆'))
    .header_separator(LineStyle::none().fill('═').junction('╪'))
    .content_lines(ContentLineStyle::none().junction('┆'));

/// A table with a header. On a terminal it has lines and is as wide as the screen at most; in a
/// pipe the columns are only aligned, and no text is wrapped.
pub fn table(screen: Screen, header: &[&str]) -> Table {
    let style = if screen.is_terminal() { DRAWN } else { presets::NOTHING };
    let mut table = empty(screen, style);
    table.set_header(header.iter().map(Cell::new));
    if let Some(first) = table.column_mut(0).filter(|_| !screen.is_terminal()) {
        first.set_padding((0, 1));
    }
    table
}

/// Rows without header or lines, wrapped on a terminal.
pub fn columns(screen: Screen, rows: impl IntoIterator<Item = impl Into<Row>>) -> Table {
    let mut table = empty(screen, presets::NOTHING);
    table.add_rows(rows);
    table
}

/// Moves numbers to the right of their columns.
pub fn align_right(table: &mut Table, columns: &[usize]) {
    for &index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// The text of a table, each line ended and without spaces at its end. Text from outside is made harmless before
/// it becomes a cell. On a screen that is wide enough for it, no number and no name is broken.
pub fn text(mut table: Table) -> String {
    keep_words(&mut table);
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Gives each column the width of its longest word, if all of them fit.
fn keep_words(table: &mut Table) {
    let Some(width) = table.width() else { return };
    let cells = |row: &Row| row.cell_iter().map(Cell::content).collect::<Vec<String>>();
    let rows: Vec<Vec<String>> =
        table.header().into_iter().chain(table.row_iter()).map(cells).collect();
    let least = LeastWidths::of(rows.iter().map(|row| row.iter().map(String::as_str)));
    if least.sum() > usize::from(width) {
        return;
    }
    for (index, width) in least.padded().enumerate() {
        if let Some(column) = table.column_mut(index) {
            let width = Width::Fixed(u16::try_from(width).unwrap_or(u16::MAX));
            column.set_constraint(ColumnConstraint::LowerBoundary(width));
        }
    }
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
