//! The table above the blocks of `.why`: what leaks, how fast and where, one line per suspect.

use std::fmt::Write;

use handlescope_model::{UNKNOWN_TYPE_NAME, Untrusted};
use indicatif::HumanCount;

use super::suspect::own_name;
use handlescope_query::{Suspect, sparkline};
use handlescope_session::settings::Display;
use handlescope_session::terminal::Role;
use handlescope_session::terminal::clip::{cut_in_the_middle, width_of};
use handlescope_session::values::Size;

/// On a terminal with fewer columns, bars are shorter and processes are shown by program.
const NARROW: usize = 100;

/// Number of bars in a line, and in a line on a narrow terminal.
const BARS: (usize, usize) = (12, 8);

/// Maximum widths of a type and of a process on a narrow terminal.
const NARROW_COLUMNS: (usize, usize) = (10, 14);

/// Minimum width of a function.
const MIN_FUNCTION: usize = 16;

/// Space between two columns.
const GAP: &str = "  ";

/// Headings of the columns.
pub const TITLES: [&str; 7] = ["", "Leaked", "Growth", "Over time", "Type", "Process", "Function"];

/// Whether a terminal is too narrow for long bars.
pub fn is_narrow(display: &Display) -> bool {
    display.screen.width.is_some_and(|width| width < NARROW)
}

/// Returns the lines of a table of suspects, including a heading.
pub fn overview(suspects: &[&Suspect], display: &Display) -> String {
    let is_narrow = is_narrow(display);
    let lines: Vec<[String; 7]> =
        suspects.iter().map(|suspect| cells(suspect, is_narrow)).collect();
    // A trace without a clock has no bars.
    let used = used_columns(&lines);
    let rows: Vec<[String; 7]> = std::iter::once(TITLES.map(str::to_owned)).chain(lines).collect();
    // Columns without text have no width.
    let width = |(column, is_used): (usize, bool)| {
        let cells = rows.iter().filter_map(|row| row.get(column)).filter(|_| is_used);
        cells.map(|cell| width_of(cell)).max()
    };
    let widths: Vec<Option<usize>> = used.into_iter().enumerate().map(width).collect();
    let before_function = widths.iter().rev().skip(1).flatten();
    let before: usize = before_function.map(|width| width + GAP.len()).sum();
    let room = display.screen.width.map(|width| width.saturating_sub(before).max(MIN_FUNCTION));
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let Some(width) = width else { continue };
            let cell = match room.filter(|_| column + 1 == row.len()) {
                Some(room) => cut_in_the_middle(cell, room),
                None => cell.into(),
            };
            let space = " ".repeat(width.saturating_sub(width_of(&cell)));
            // Numbers are right-aligned.
            let _ = match column {
                0 | 1 => write!(line, "{space}{cell}{GAP}"),
                _ => write!(line, "{cell}{space}{GAP}"),
            };
        }
        let line = line.trim_end();
        let _ = match index {
            0 => writeln!(text, "{}", display.screen.paint(Role::Aside, line)),
            _ => writeln!(text, "{line}"),
        };
    }
    text
}

/// Returns for each column whether a line has text there.
pub fn used_columns<const N: usize>(lines: &[[String; N]]) -> [bool; N] {
    std::array::from_fn(|at| {
        lines.iter().any(|line| line.get(at).is_some_and(|text| !text.is_empty()))
    })
}

/// Returns the line of a suspect, one text per column.
pub fn cells(suspect: &Suspect, is_narrow: bool) -> [String; 7] {
    let program = suspect.program();
    let process = if is_narrow { program } else { &suspect.process };
    let function = suspect.function.as_deref().unwrap_or("no stack");
    let function = own_name(function, program);
    let type_name = match suspect.allocator.as_ref().unwrap_or(&suspect.type_name).as_str() {
        UNKNOWN_TYPE_NAME => "unknown",
        name => name,
    };
    let name = |name: &str, most: usize| match Untrusted(name).to_string() {
        name if is_narrow => cut_in_the_middle(&name, most).into_owned(),
        name => name,
    };
    [
        suspect.rank.to_string(),
        leaked(suspect),
        growth(suspect),
        bars(suspect, if is_narrow { BARS.1 } else { BARS.0 }),
        name(type_name, NARROW_COLUMNS.0),
        name(process, NARROW_COLUMNS.1),
        Untrusted(function).to_string(),
    ]
}

/// Returns the bytes that the program did not release, or how many of all.
fn leaked(suspect: &Suspect) -> String {
    match suspect.bytes.filter(|bytes| bytes.unreleased > 0) {
        Some(bytes) => Size(bytes.unreleased).to_string(),
        None => {
            let (leaked, opened) = (suspect.counts.unreleased(), suspect.counts.opened);
            format!("{} of {}", HumanCount(leaked), HumanCount(opened))
        }
    }
}

/// Returns the rate, in bytes if there are any, or else the verdict.
fn growth(suspect: &Suspect) -> String {
    match suspect.bytes.and_then(|bytes| bytes.per_minute) {
        Some(per_minute) => format!("{}/min", Size(per_minute as i64)),
        None => suspect.growth.short(),
    }
}

/// Draws how much is open at the end of each of `count` equal parts of the trace; `count` must divide
/// [`Suspect::PARTS`].
pub fn bars(suspect: &Suspect, count: usize) -> String {
    let step = Suspect::PARTS / count;
    let open = suspect.open_over_time.iter().skip(step - 1).step_by(step);
    sparkline(&open.copied().collect::<Vec<u32>>())
}
