//! `.sql`: rows and columns.

use std::io::{self, Write};

use polars::prelude::{AnyValue, DataFrame};

use crate::render::rows::cell;
use crate::settings::Display;
use crate::terminal::Clean;
use crate::terminal::table;

/// More rows nobody reads on a screen, and a table is in memory as a whole to be aligned.
const MOST_ROWS: usize = 1000;

/// Columns narrower than this on average are no longer read as columns.
const LEAST_WIDTH: usize = 9;

/// Writes the first rows, and returns how many it leaves out.
pub(in crate::render) fn frame(
    frame: &DataFrame,
    display: &Display,
    out: &mut impl Write,
) -> io::Result<usize> {
    let rows = frame.height().min(MOST_ROWS);
    let width = display.screen.width;
    match width.is_some_and(|width| frame.width() * LEAST_WIDTH > width) {
        true => records(frame, rows, display, out)?,
        false => grid(frame, rows, display, out)?,
    }
    Ok(frame.height() - rows)
}

/// A line for each row.
fn grid(frame: &DataFrame, rows: usize, display: &Display, out: &mut impl Write) -> io::Result<()> {
    let names: Vec<String> = names(frame).collect();
    let header: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = table::table(display.screen, &header);
    let numbers = frame.columns().iter().enumerate();
    let numbers = numbers.filter(|(_, column)| column.dtype().is_numeric()).map(|(at, _)| at);
    table::align_right(&mut table, &numbers.collect::<Vec<_>>());
    for row in 0..rows {
        let values: io::Result<Vec<String>> = values(frame, row).collect();
        table.add_row(values?);
    }
    write!(out, "{}", table::text(&table))
}

/// A line for each value: more columns than fit beside each other.
fn records(
    frame: &DataFrame,
    rows: usize,
    display: &Display,
    out: &mut impl Write,
) -> io::Result<()> {
    for row in 0..rows {
        let gap = if row > 0 { "\n" } else { "" };
        writeln!(out, "{gap}row {}", row + 1)?;
        let values: io::Result<Vec<String>> = values(frame, row).collect();
        let table =
            table::columns(display.screen, names(frame).zip(values?).map(<[String; 2]>::from));
        write!(out, "{}", table::text(&table))?;
    }
    Ok(())
}

fn names(frame: &DataFrame) -> impl Iterator<Item = String> {
    frame.columns().iter().map(|column| Clean(column.name()).to_string())
}

fn values(frame: &DataFrame, row: usize) -> impl Iterator<Item = io::Result<String>> {
    frame.columns().iter().map(move |column| {
        let value = column.get(row).map_err(io::Error::other)?;
        Ok(match value {
            AnyValue::Null => "null".to_owned(),
            AnyValue::Float64(number) => rounded(number),
            value => {
                let mut text = String::new();
                cell(&value, &mut text);
                lines(&text)
            }
        })
    })
}

/// Lines of a stack stay lines, with an empty one behind them.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| Clean(line).to_string()).collect();
    let end = if lines.len() > 1 { "\n" } else { "" };
    lines.join("\n") + end
}

/// Six digits behind the point are what a nanosecond of a millisecond needs; the last of all digits
/// are no news.
fn rounded(number: f64) -> String {
    const LEAST: f64 = 1e-3;
    if !number.is_finite() || (number != 0.0 && number.abs() < LEAST) {
        return number.to_string();
    }
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        for (number, text) in [
            (1420.6535999999999, "1420.6536"),
            (0.1 + 0.2, "0.3"),
            (100.0, "100"),
            (0.0, "0"),
            (-2.5, "-2.5"),
            (0.000_012, "0.000012"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(rounded(number), text);
        }
    }

    #[test]
    fn a_stack_stays_a_stack_and_nothing_talks_to_the_terminal() {
        assert_eq!(lines("a!b\nc\u{1b}[2J"), "a!b\nc\\u{1b}[2J\n");
        assert_eq!(lines("one"), "one");
        assert_eq!(lines(""), "");
    }
}
