//! Tables as text for people: drawn on a terminal, aligned in a pipe.

use std::io::{self, Write};

use handlescope_model::Untrusted;
use indicatif::HumanCount;

use super::size::{GridSize, cut};
use super::{AnswerTable, ColumnFormat, Columns, FileRows};
use handlescope_session::settings::Display;
use handlescope_session::terminal::{Role, clip::Clip, table, wrapped};
use handlescope_session::values::CountedNoun;

/// Number of rows measured to choose between one line per row and one line per value.
const MEASURED_ROWS: usize = 1_000;

impl AnswerTable<'_> {
    pub fn text(&self, display: &Display, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Clip::new(out, display.screen.width.filter(|_| display.clip));
        for file in &self.files {
            if let Some(path) = &file.path {
                writeln!(out, "{}", display.screen.paint(Role::Name, Untrusted(path)))?;
            }
            out.write_all(file.above.as_bytes())?;
            self.write_rows(file, display, &mut out)?;
            file.write_below(display, &mut out)?;
        }
        out.finish()
    }

    fn write_rows(
        &self,
        file: &FileRows,
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if let Some(text) = &self.row_text {
            return file.rows().try_for_each(|row| text(&row, out));
        }
        let rows: Vec<usize> = file.rows().collect();
        if let Some(groups) = &self.groups {
            return self.write_groups(rows, groups, display, out);
        }
        self.write_lines(&rows, display, out)
    }

    /// Writes a line for each row, or for each value.
    fn write_lines(
        &self,
        rows: &[usize],
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let columns = self.shown();
        let headings: Vec<&str> = columns.iter().map(|(_, heading)| heading.as_str()).collect();
        let first = rows
            .iter()
            .take(MEASURED_ROWS)
            .map(|row| self.cells(&columns, *row))
            .collect::<io::Result<Vec<Vec<String>>>>()?;
        let clipped = self.clipped(&columns, display);
        let fitting = table::fitting(display.screen, &headings, &first, &self.spare, &clipped);
        let Some(fitting) = fitting else {
            return self.write_records(rows, &columns, display, out);
        };
        let shown = fitting.columns.iter().filter_map(|index| columns.get(*index).cloned());
        self.write_grid(rows, &shown.collect::<Vec<_>>(), display, out)?;
        out.write_all(fitting.left_out.as_bytes())
    }

    /// Writes headings and the rows below each.
    fn write_groups(
        &self,
        mut rows: Vec<usize>,
        groups: &[u32],
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let group = |row: &usize| groups.get(*row);
        rows.sort_by_key(group);
        for rows in rows.chunk_by(|a, b| group(a) == group(b)) {
            let heading = rows.first().map(|&row| self.cell(self.specs.len() - 1, row));
            let width = display.screen.width.filter(|_| display.clip);
            let heading = wrapped(&heading.transpose()?.unwrap_or_default(), width);
            writeln!(out, "{}", display.screen.paint(Role::Group, heading))?;
            self.write_lines(rows, display, out)?;
        }
        Ok(())
    }

    /// Writes a line for each row.
    fn write_grid(
        &self,
        rows: &[usize],
        columns: &[(usize, String)],
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let names: Vec<&str> = columns.iter().map(|(_, heading)| heading.as_str()).collect();
        let numbers = columns.iter().enumerate().filter(|(_, (column, _))| {
            let column = self.frame.columns().get(*column);
            column.is_some_and(|column| column.dtype().is_numeric())
        });
        let numbers: Vec<usize> = numbers.map(|(index, _)| index).collect();
        let clipped = self.clipped(columns, display);
        let mut rows = rows.iter().peekable();
        loop {
            let mut table = table::table(display.screen, &names);
            table::align_right(&mut table, &numbers);
            let mut size = GridSize::default();
            while let Some(&row) = rows.next_if(|_| size.has_room()) {
                let cells = self.cells(columns, row)?;
                size.add(&cells);
                table.add_row(cells);
            }
            write!(out, "{}", table::text_with(table, &clipped, &[]))?;
            if rows.peek().is_none() {
                return Ok(());
            }
        }
    }

    /// Returns the indexes of columns with shortened texts; `-NoClip` shows them whole.
    fn clipped(&self, columns: &[(usize, String)], display: &Display) -> Vec<usize> {
        let is_clipped =
            |column: &usize| self.specs.get(*column).is_some_and(ColumnFormat::is_clipped);
        columns
            .iter()
            .enumerate()
            .filter(|(_, (column, _))| display.clip && is_clipped(column))
            .map(|(place, _)| place)
            .collect()
    }

    /// Returns the cells of a row, shortened to what is printed.
    fn cells(&self, columns: &[(usize, String)], row: usize) -> io::Result<Vec<String>> {
        columns.iter().map(|(column, _)| Ok(cut(self.cell(*column, row)?))).collect()
    }

    /// Writes a line for each value, for columns that do not fit next to each other.
    fn write_records(
        &self,
        rows: &[usize],
        columns: &[(usize, String)],
        display: &Display,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        for (index, &row) in rows.iter().enumerate() {
            let gap = if index > 0 { "\n" } else { "" };
            writeln!(out, "{gap}row {}", index + 1)?;
            let cells = self.cells(columns, row)?;
            let lines =
                columns.iter().zip(cells).map(|((_, heading), cell)| [heading.clone(), cell]);
            write!(out, "{}", table::text(table::columns(display.screen, lines)))?;
        }
        Ok(())
    }

    /// Returns the columns that have a heading, from left to right, and their headings.
    fn shown(&self) -> Vec<(usize, String)> {
        // The last column becomes the heading of a group.
        let count = self.specs.len() - usize::from(self.groups.is_some());
        let mut titled: Vec<(i8, usize, String)> = self
            .specs
            .iter()
            .enumerate()
            .take(count)
            .filter_map(|(index, spec)| Some((spec.rank, index, spec.heading()?)))
            .collect();
        titled.sort_by_key(|(place, ..)| *place);
        titled.into_iter().map(|(_, index, heading)| (index, heading)).collect()
    }

    fn cell(&self, column: usize, row: usize) -> io::Result<String> {
        let (Some(column), Some(spec)) = (self.frame.columns().get(column), self.specs.get(column))
        else {
            return Ok(String::new());
        };
        Ok(spec.shown(&column.get(row).map_err(io::Error::other)?, row))
    }
}

impl<'a, R: 'a> Columns<'a, R> {
    /// Returns the headings and values of a row, for a display with one value per line.
    pub fn facts(self, row: R) -> io::Result<Vec<(String, String)>> {
        let table = AnswerTable::new(self, vec![row], [FileRows::rows_of(1)])?;
        let columns = table.shown().into_iter();
        columns.map(|(column, heading)| Ok((heading, table.cell(column, 0)?))).collect()
    }
}

impl FileRows {
    /// Writes the lines below the rows; they are never cut on a narrow screen.
    fn write_below(&self, display: &Display, out: &mut dyn Write) -> io::Result<()> {
        let wrapped_line =
            |line: &str| wrapped(line, display.screen.width.filter(|_| display.clip));
        match &self.counted {
            Some(counted) => {
                writeln!(
                    out,
                    "{}",
                    wrapped_line(&format!("{} {counted}", HumanCount(self.height() as u64)))
                )?;
            }
            None if self.left_out > 0 => {
                let count = self.left_out as u64;
                match self.noun {
                    Some(noun) => writeln!(out, "+ {}", CountedNoun(count, noun))?,
                    None => writeln!(out, "+ {} more", HumanCount(count))?,
                }
            }
            None => {}
        }
        self.below.iter().try_for_each(|line| writeln!(out, "{}", wrapped_line(line)))
    }
}
